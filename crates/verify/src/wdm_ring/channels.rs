//! Check that every channel is used by one lightpath at a time, and that ranks have enough ports.
//!
//! In each slot, lightpaths are grouped by channel: a wavelength of a fibre in one direction. The
//! wavelength of a fibre extends over the N links of the ring, numbered by the node at which they
//! start. A lightpath from s to d occupies consecutive links: clockwise the links s, s+1, ..., d-1,
//! counter-clockwise the links d+1, ..., s-1, s, all modulo N. For each channel, the check marks
//! the occupied links word by word. Only if a link is already occupied, it compares pairs of
//! lightpaths.
//!
//! Transfers between the same ranks on the same channel are one lightpath, which carries them one
//! after another. Converted lightpaths have no channel. A light tree carries only its own chunks.

use super::super::form::Admitted;
use super::super::order::AdmittedOrder;
use super::super::report::{Report, pair_violation};
use super::super::{Violation, ViolationKind};
use super::light::Riders;
use super::{LitLinks, link_at, link_name};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::plan::Plan;

pub(super) fn check(
    plan: &Plan,
    ring: &WdmRing,
    admitted: &Admitted,
    order: &AdmittedOrder,
    riders: &Riders,
    report: &mut Report,
) {
    let mut channels = SlotChannels::new(plan, ring, admitted);
    let mut ports = ring.ports.map(|most| PortCounts::new(most, ring.ranks));
    let mut converted = Vec::new();
    for slot in order.slots(plan) {
        interrupt::check();
        converted.clear();
        let own_lightpaths = slot
            .clone()
            .map(|position| order.at(position))
            .filter(|&transfer| admitted.is_lit(transfer) && !riders.rides(transfer));
        channels.group_by_channel(own_lightpaths, &mut converted);
        channels.report_collisions(riders, report);
        if !converted.is_empty() {
            overload(plan, ring, &converted, &channels.lightpaths(riders), report);
        }
        if let Some(ports) = &mut ports {
            let mut received: Vec<usize> = slot.map(|position| order.at(position)).collect();
            let mut sent = received.clone();
            sent.retain(|&path| !riders.rides(path));
            keep_one_per_lightpath(plan, &mut sent);
            keep_one_per_lightpath(plan, &mut received);
            ports.check(plan, sent.iter().copied(), received.iter().copied(), report);
        }
    }
}

/// Keeps only the first transfer of each lightpath. Transfers between the same ranks on the same
/// channel are one lightpath.
pub(crate) fn keep_one_per_lightpath(plan: &Plan, transfers: &mut Vec<usize>) {
    let lightpath = |one: usize| {
        let is_converted = WdmLight::from(plan.light[one]).wavelength == CONVERTED;
        let alone = is_converted.then_some(one);
        (plan.schedule.ends(one), plan.light[one], alone)
    };
    transfers.sort_by_key(|&one| (lightpath(one), one));
    transfers.dedup_by_key(|one| lightpath(*one));
    transfers.sort_unstable();
}

/// Lightpaths of a slot, grouped by channel. Each slot uses the memory of the previous one.
struct SlotChannels<'a> {
    plan: &'a Plan,
    ring: &'a WdmRing,
    fibres: u32,
    wavelengths: u32,
    /// Number of lightpaths on each channel, and later the index in `grouped` of the channel's next
    /// lightpath. All zero between slots.
    next: Vec<u32>,
    /// Channels in use, in the order of their first lightpath.
    used: Vec<u32>,
    /// Links of each lightpath of the slot, in the order of the plan.
    arcs: Vec<LitLinks>,
    channel: Vec<u32>,
    /// Links of each lightpath of the slot, channel by channel.
    grouped: Vec<LitLinks>,
    /// Bits of the occupied links of the current channel. All zero between channels.
    occupied: Vec<u64>,
}

impl<'a> SlotChannels<'a> {
    fn new(plan: &'a Plan, ring: &'a WdmRing, admitted: &Admitted) -> SlotChannels<'a> {
        let fibres = plan.light[0..admitted.transfers].iter();
        let most_fibre = fibres
            .map(|light| u32::from(WdmLight::from(*light).fibre))
            .max()
            .unwrap_or(0);
        // Converted lightpaths have no channel. Lightpaths without a valid wavelength are not
        // grouped.
        let wavelengths = ring.wavelengths.min(u32::from(u16::MAX));
        let fibres = ring.fibres.min(most_fibre + 1);
        SlotChannels {
            plan,
            ring,
            fibres,
            wavelengths,
            next: vec![0; 2 * fibres as usize * wavelengths as usize],
            used: Vec::new(),
            arcs: Vec::new(),
            channel: Vec::new(),
            grouped: Vec::new(),
            occupied: vec![0; (ring.nodes as usize).div_ceil(64)],
        }
    }

    /// Groups the lightpaths of a slot by channel. Adds converted lightpaths to `converted`.
    fn group_by_channel(
        &mut self,
        transfers: impl Iterator<Item = usize>,
        converted: &mut Vec<LitLinks>,
    ) {
        self.used.clear();
        self.arcs.clear();
        self.channel.clear();
        for transfer in transfers {
            interrupt::check();
            let arc = LitLinks::new(self.plan, self.ring, transfer);
            let light = WdmLight::from(self.plan.light[transfer]);
            if light.wavelength == CONVERTED {
                converted.push(arc);
                continue;
            }
            let fibre = light.direction as u32 * self.fibres + u32::from(light.fibre);
            let channel = fibre * self.wavelengths + u32::from(light.wavelength);
            let count = &mut self.next[channel as usize];
            if *count == 0 {
                self.used.push(channel);
            }
            *count += 1;
            self.arcs.push(arc);
            self.channel.push(channel);
        }
        let mut start = 0;
        for &channel in &self.used {
            let count = std::mem::replace(&mut self.next[channel as usize], start);
            start += count;
        }
        self.grouped.resize(self.arcs.len(), LitLinks::default());
        for (arc, &channel) in self.arcs.iter().zip(&self.channel) {
            interrupt::check();
            let place = &mut self.next[channel as usize];
            self.grouped[*place as usize] = *arc;
            *place += 1;
        }
    }

    /// Returns the links of each lightpath of the slot, without repetitions. A light tree shares
    /// its light with no other transfer.
    fn lightpaths(&self, riders: &Riders) -> Vec<LitLinks> {
        let transfers = self.arcs.iter().map(|arc| arc.transfer as usize);
        let (mut kept, mut single): (Vec<usize>, Vec<usize>) =
            transfers.partition(|&transfer| riders.carries_riders(transfer));
        keep_one_per_lightpath(self.plan, &mut single);
        kept.append(&mut single);
        let arc = |transfer| LitLinks::new(self.plan, self.ring, transfer);
        kept.into_iter().map(arc).collect()
    }

    /// Reports every pair of lightpaths that share a link on a channel, and resets `next`.
    fn report_collisions(&mut self, riders: &Riders, report: &mut Report) {
        let mut start = 0;
        for &channel in &self.used {
            let end = std::mem::take(&mut self.next[channel as usize]) as usize;
            let group = &self.grouped[start..end];
            start = end;
            if group.len() == 1 {
                continue;
            }
            for (index, arc) in group.iter().enumerate() {
                interrupt::check();
                let before = &group[..index];
                let is_tree = |one: &LitLinks| riders.carries_riders(one.transfer as usize);
                let same = |other: &LitLinks| {
                    other.occupies_same_links(arc) && !is_tree(other) && !is_tree(arc)
                };
                if before.last().is_some_and(same) {
                    continue;
                }
                if occupy(&mut self.occupied, arc, self.ring.nodes) {
                    let others = before.iter().filter(|other| !same(other));
                    pairs(self.plan, self.ring, others, arc, report);
                }
            }
            for arc in group {
                clear_links(&mut self.occupied, arc, self.ring.nodes);
            }
        }
    }
}

/// Marks the links of `arc` as occupied. Returns whether some of them were occupied before.
fn occupy(occupied: &mut [u64], arc: &LitLinks, ranks: u32) -> bool {
    let mut already_occupied = 0;
    for range in arc.ranges(ranks) {
        if range.is_empty() {
            continue;
        }
        let (first, last) = (range.start as usize / 64, (range.end as usize - 1) / 64);
        let from_start = !0 << (range.start % 64);
        let to_end = !0 >> (63 - (range.end - 1) % 64);
        if first == last {
            already_occupied |= occupied[first] & from_start & to_end;
            occupied[first] |= from_start & to_end;
            continue;
        }
        already_occupied |= (occupied[first] & from_start) | (occupied[last] & to_end);
        occupied[first] |= from_start;
        occupied[last] |= to_end;
        for word in &mut occupied[first + 1..last] {
            already_occupied |= *word;
            *word = !0;
        }
    }
    already_occupied != 0
}

/// Clears every word of `occupied` that contains a link of `arc`.
fn clear_links(occupied: &mut [u64], arc: &LitLinks, ranks: u32) {
    for range in arc.ranges(ranks) {
        if !range.is_empty() {
            occupied[range.start as usize / 64..=(range.end as usize - 1) / 64].fill(0);
        }
    }
}

/// Reports a collision of `arc` with each lightpath of `earlier` that shares a link with it.
fn pairs<'a>(
    plan: &Plan,
    ring: &WdmRing,
    earlier: impl Iterator<Item = &'a LitLinks>,
    arc: &LitLinks,
    report: &mut Report,
) {
    let kind = ViolationKind::Collision;
    if report.is_full(kind) {
        // Comparing all pairs of many lightpaths would take the square of their number.
        return report.count(kind, 1);
    }
    for other in earlier {
        interrupt::check();
        let Some(shared) = other.shared(arc, ring.nodes) else {
            continue;
        };
        report.add(kind, || {
            let (one, two) = (other.transfer as usize, arc.transfer as usize);
            let link = link_at(plan, two, shared);
            let slot = plan.slot[two];
            let wavelength = WdmLight::from(plan.light[two]).wavelength;
            let name = link_name(link, ring);
            let problem = format!("share wavelength {wavelength} on the {name}");
            Violation {
                link: Some(link),
                wavelength: Some(wavelength),
                ..pair_violation(plan, kind, slot, [one, two], &problem)
            }
        });
    }
}

/// Reports each sequence of adjacent links with too many lightpaths, at its most loaded link. With
/// converters at every rank, the wavelengths of each link can be assigned anew, so that only the
/// number of lightpaths per link counts. Only fibres with converted lightpaths are checked; on
/// other fibres, too many lightpaths always collide.
fn overload(
    plan: &Plan,
    ring: &WdmRing,
    converted: &[LitLinks],
    fixed: &[LitLinks],
    report: &mut Report,
) {
    let fibre_of = |arc: &LitLinks| {
        let light = WdmLight::from(plan.light[arc.transfer as usize]);
        (light.direction, light.fibre)
    };
    let mut fibres: Vec<(Direction, u8)> = converted.iter().map(fibre_of).collect();
    fibres.sort_unstable();
    fibres.dedup();
    for fibre in fibres {
        let arcs: Vec<LitLinks> = fixed
            .iter()
            .chain(converted)
            .filter(|arc| fibre_of(arc) == fibre)
            .copied()
            .collect();
        let (_, number) = fibre;
        let dead = ring
            .dead
            .iter()
            .filter(|dead| dead.fibre == u32::from(number));
        let wavelengths = ring.wavelengths - dead.count() as u32;
        for (link, load) in overloaded(&arcs, ring.nodes, wavelengths) {
            interrupt::check();
            report.add(ViolationKind::Overload, || {
                let crossing: Vec<usize> = arcs
                    .iter()
                    .filter(|arc| arc.contains(link, ring.nodes))
                    .map(|arc| arc.transfer as usize)
                    .collect();
                let place = link_at(plan, crossing[0], link);
                let slot = plan.slot[crossing[0]];
                let sentence = format!(
                    "slot {slot}: {load} lightpaths cross the {}, which has {wavelengths} \
                     wavelengths",
                    link_name(place, ring),
                );
                Violation {
                    transfers: crossing,
                    link: Some(place),
                    slot: Some(slot),
                    ..Violation::new(ViolationKind::Overload, sentence)
                }
            });
        }
    }
}

/// Returns, for each sequence of adjacent links with more lightpaths than wavelengths, the most
/// loaded link and its number of lightpaths.
fn overloaded(arcs: &[LitLinks], ranks: u32, wavelengths: u32) -> Vec<(u32, u64)> {
    // The end of a lightpath comes before the start of another at the same link, because a
    // lightpath does not occupy the link at its end.
    let mut events: Vec<(u32, bool)> = arcs
        .iter()
        .flat_map(|arc| arc.ranges(ranks))
        .filter(|range| !range.is_empty())
        .flat_map(|range| [(range.start, true), (range.end, false)])
        .collect();
    events.sort_unstable();
    let mut worst = Vec::new();
    let mut open: Option<(u32, u64)> = None;
    let mut load = 0u64;
    for (position, &(link, starts)) in events.iter().enumerate() {
        interrupt::check();
        if starts {
            load += 1;
        } else {
            load -= 1;
        }
        if events.get(position + 1).is_some_and(|next| next.0 == link) {
            continue;
        }
        if load <= u64::from(wavelengths) {
            worst.extend(open.take());
        } else if open.is_none_or(|(_, peak)| load > peak) {
            open = Some((link, load));
        }
    }
    worst.extend(open);
    worst
}

/// Number of lightpaths that each rank sends, and receives, in a slot.
struct PortCounts {
    most: u32,
    sends: Vec<u32>,
    receives: Vec<u32>,
}

impl PortCounts {
    fn new(most: u32, ranks: u32) -> PortCounts {
        PortCounts {
            most,
            sends: vec![0; ranks as usize],
            receives: vec![0; ranks as usize],
        }
    }

    /// Reports ranks with too few ports in a slot. Each transfer of `sent` needs a transmitter, and
    /// each transfer of `received` needs a receiver.
    fn check(
        &mut self,
        plan: &Plan,
        sent: impl Iterator<Item = usize> + Clone,
        received: impl Iterator<Item = usize> + Clone,
        report: &mut Report,
    ) {
        let most = self.most;
        let source = |transfer| plan.schedule.ends(transfer).0;
        let destination = |transfer| plan.schedule.ends(transfer).1;
        count_ports(plan, most, &mut self.sends, source, "sends", sent, report);
        let receives = &mut self.receives;
        count_ports(
            plan,
            most,
            receives,
            destination,
            "receives",
            received,
            report,
        );
    }
}

/// Reports the ranks that use more than `most` ports in a slot. `uses` has the number of used ports
/// of each rank, and is all zero between slots.
fn count_ports(
    plan: &Plan,
    most: u32,
    uses: &mut [u32],
    rank_of: impl Fn(usize) -> u32,
    verb: &str,
    slot: impl Iterator<Item = usize> + Clone,
    report: &mut Report,
) {
    for transfer in slot.clone() {
        interrupt::check();
        uses[rank_of(transfer) as usize] += 1;
    }
    for transfer in slot.clone() {
        let rank = rank_of(transfer);
        let used = std::mem::take(&mut uses[rank as usize]);
        if used > most {
            let users = slot.clone().filter(|&other| rank_of(other) == rank);
            report.add(ViolationKind::Ports, || {
                too_few_ports(plan, rank, used, most, verb, users.collect())
            });
        }
    }
}

fn too_few_ports(
    plan: &Plan,
    rank: u32,
    used: u32,
    most: u32,
    verb: &str,
    transfers: Vec<usize>,
) -> Violation {
    let slot = plan.slot[transfers[0]];
    let sentence = format!(
        "slot {slot}: rank {rank} {verb} {used} lightpaths at the same time, but has {most} ports"
    );
    Violation {
        transfers,
        slot: Some(slot),
        rank: Some(rank),
        ..Violation::new(ViolationKind::Ports, sentence)
    }
}
