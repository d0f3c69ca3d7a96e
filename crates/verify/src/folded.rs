//! Proves a folded plan from what rank 0 sends.
//!
//! The whole plan consists of N copies of each orbit: copy r leaves rank r, with its chunks r blocks
//! further, on channel `first + r mod l`. Turning every rank and chunk by one thus turns the whole
//! plan into itself, but for the channels. That is why it is enough to look at orbits:
//!
//! - **Form.** Every number of a copy is in range if those of the orbit are and its chunks lie in one
//!   block: no turn takes them over the end of the numbering.
//! - **Light.** A link is crossed by the copies that leave the l ranks before it, whose numbers are
//!   all different modulo l. Where l divides N no turn around the ring breaks that count, so every
//!   channel of the orbit carries exactly one copy on every link: an orbit never collides with itself,
//!   and two orbits collide (on every link) if and only if they share a channel. Where l does not
//!   divide N, the ceil(N / l) copies on the first channel need more than N links: some collide.
//!   Converted copies put a load of l on every link, whatever l.
//!   Two orbits of one length and direction on the same channels are one: their copies run between the same ranks,
//!   and share lightpaths.
//! - **Ports.** In a slot every rank sends, and receives, one copy of each orbit, those that share as one.
//! - **Data.** What the collective demands of block b is what it demands of block 0, turned by b.
//!   Chunks have nothing to do with one another, and the transfers of block b are those of block 0,
//!   turned by b, in the same steps. Block 0 is delivered by exactly one copy of each orbit, so it is
//!   replayed with these, and every other block fares as it does.
//!   In an all_to_all the blocks from rank 0 are replayed: every other block is turned from one of them.
//! - **Claims.** All ranks send the same to ranks equally far away.

use super::form::{self, Admitted};
use super::order::AdmittedOrder;
use super::report::{Report, each, named};
use super::wdm_ring;
use super::{RingLink, Violation, ViolationKind, claims, data};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

/// Everything that is wrong with a folded plan.
pub(super) fn verify(plan: &Plan) -> Vec<Violation> {
    let mut report = Report::default();
    check(plan, &mut report);
    let mut violations = report.finish();
    for violation in &mut violations {
        violation.sentence += " (and likewise in all rotations)";
    }
    violations
}

fn check(orbits: &Plan, report: &mut Report) {
    let Some(ring) = orbits.fabric.downcast::<WdmRing>() else {
        let sentence = "a folded plan needs a ring of wavelengths; unfold it";
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence.into())
        });
    };
    let (turned, ranks) = (orbits.repetition.rotations, ring.ranks);
    if turned != ranks {
        let sentence = format!("a folded plan has rows in all {ranks} rotations, not in {turned}");
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence)
        });
    }
    let collective = orbits.schedule.collective;
    let Some(block) = block(&collective) else {
        let kind = collective.kind();
        let sentence = format!(
            "a folded plan needs a collective that looks the same from every rank; this {kind} in {} \
             pieces does not",
            collective.pieces()
        );
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence)
        });
    };
    let degraded = &ring.degraded;
    let is_degraded = !degraded.links.is_empty() || !degraded.channels.is_empty();
    let is_uneven = spacing(ring).is_none() || is_degraded;
    if is_uneven || !ring.broken.is_empty() || !ring.dead.is_empty() || ring.multicast {
        let sentence = "a folded plan needs a ring that looks the same from every rank, with all its \
                        wavelengths and no light trees; unfold it";
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence.into())
        });
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    let Some(admitted) = form::check(orbits, &wrong_light, report) else {
        return;
    };
    if ring.ranks != collective.ranks() {
        return;
    }
    let order = AdmittedOrder::by_slot(orbits, &admitted);
    for slot in order.slots(orbits) {
        interrupt::check();
        let here: Vec<usize> = slot.map(|position| order.at(position)).collect();
        light(orbits, ring, &admitted, &here, report);
        ports(orbits, ring, &here, report);
    }
    let complete = admitted.transfers == orbits.len();
    if rotations(orbits, &admitted, block, report) && complete {
        let turned = of_block_0(orbits, &admitted, block);
        let of_rank_0 = match collective.kind() {
            CollectiveKind::AllToAll => collective.ranks() * block,
            _ => block,
        };
        data::check(&turned, &admitted, 0..of_rank_0, report);
    }
    claims::check(orbits, &admitted, 1, report);
}

/// The links between nodes from each rank to the next, where all have as many, or their number is of no matter.
fn spacing(ring: &WdmRing) -> Option<u64> {
    let counts = ring.reach.is_some() || ring.budget.is_some() || ring.propagation.ps() > 0;
    let (Some(first), true) = (ring.node_of_rank.first(), counts) else {
        return Some(1);
    };
    let around = first + ring.nodes;
    let next = ring
        .node_of_rank
        .iter()
        .skip(1)
        .chain(std::iter::once(&around));
    let gaps = ring.node_of_rank.iter().zip(next);
    let mut gaps = gaps.map(|(place, next)| u64::from(next - place));
    let gap = gaps.next()?;
    gaps.all(|other| other == gap).then_some(gap)
}

/// The chunks of a block: what a rotation by one rank moves a chunk by, but in an all_to_all, whose blocks turn with both ranks.
fn block(collective: &Collective) -> Option<u32> {
    let (pieces, ranks) = (collective.pieces(), collective.ranks());
    match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => Some(pieces),
        CollectiveKind::AllToAll if collective.demand().is_none() => Some(pieces),
        CollectiveKind::AllReduce if pieces % ranks == 0 => Some(pieces / ranks),
        _ => None,
    }
}

/// Whether every orbit leaves rank 0 and has its chunks in one block; reports those that do not.
fn rotations(orbits: &Plan, admitted: &Admitted, block: u32, report: &mut Report) -> bool {
    let mut sound = true;
    for orbit in admitted.transfers() {
        interrupt::check();
        let transfer = orbits.schedule.transfer(orbit);
        let (kind, problem) = if transfer.source != 0 {
            (ViolationKind::Symmetry, "does not leave rank 0")
        } else if transfer.count > block - transfer.chunk % block {
            (
                ViolationKind::ChunkRange,
                "carries chunks of several blocks, some rotation of which do not exist",
            )
        } else {
            continue;
        };
        sound = false;
        fault(orbits, kind, vec![orbit], problem, report);
    }
    sound
}

/// The copy of each orbit that carries chunks of block 0, in an all_to_all of a block from rank 0; one that is not admitted stays as it is.
fn of_block_0(orbits: &Plan, admitted: &Admitted, block: u32) -> Plan {
    let ranks = orbits.schedule.collective.ranks();
    let is_all_to_all = orbits.schedule.collective.kind() == CollectiveKind::AllToAll;
    let mut turned = orbits.without_lightpaths();
    let mut admitted = admitted.transfers().peekable();
    for step in 0..orbits.schedule.steps() {
        turned.schedule.begin_step();
        for orbit in orbits.schedule.step(step) {
            interrupt::check();
            let mut lightpath = orbits.lightpath(orbit);
            if admitted.next_if_eq(&orbit).is_some() {
                let transfer = &mut lightpath.transfer;
                let (place, piece) = (transfer.chunk / block, transfer.chunk % block);
                let back = match is_all_to_all {
                    true => ranks - place / ranks,
                    false => ranks - place,
                };
                transfer.chunk = piece;
                if is_all_to_all {
                    let to = (place % ranks + back) % ranks;
                    transfer.chunk += to * block;
                }
                for rank in [&mut transfer.source, &mut transfer.destination] {
                    *rank = ((u64::from(*rank) + u64::from(back)) % u64::from(ranks)) as u32;
                }
            }
            turned.push(lightpath);
        }
    }
    turned
}

/// The channels `first .. first + links` of a direction, held by an orbit on every link.
struct ChannelGroup {
    direction: Direction,
    first: u64,
    links: u64,
    orbit: usize,
}

impl ChannelGroup {
    fn end(&self) -> u64 {
        self.first + self.links
    }

    /// How many of its channels are on a fibre.
    fn on_fibre(&self, fibre: u64, wavelengths: u64) -> u64 {
        let end = self.end().min((fibre + 1) * wavelengths);
        end.saturating_sub(self.first.max(fibre * wavelengths))
    }
}

/// Checks the channels of the orbits of a slot.
fn light(orbits: &Plan, ring: &WdmRing, admitted: &Admitted, slot: &[usize], report: &mut Report) {
    let wavelengths = u64::from(ring.wavelengths);
    let channels = wavelengths * u64::from(ring.fibres);
    let spacing = spacing(ring).unwrap_or(1);
    let mut groups = Vec::new();
    // Loads of converted orbits: direction, fibre, links.
    let mut converted = Vec::new();
    for &orbit in slot.iter().filter(|&&orbit| admitted.is_lit(orbit)) {
        interrupt::check();
        let light = WdmLight::from(orbits.light[orbit]);
        let (direction, fibre) = (light.direction, u64::from(light.fibre));
        let links = links(orbits, ring, orbit);
        if let Some(problem) = wdm_ring::too_far(ring, links * spacing, 0) {
            fault(orbits, ViolationKind::Reach, vec![orbit], &problem, report);
        }
        if light.wavelength == CONVERTED {
            converted.push((direction, fibre, links, orbit));
            continue;
        }
        let first = fibre * wavelengths + u64::from(light.wavelength);
        let group = ChannelGroup {
            direction,
            first,
            links,
            orbit,
        };
        if group.end() > channels {
            let problem = format!(
                "needs the channels {first} to {} in its rotations, of {channels}",
                group.end() - 1
            );
            fault(
                orbits,
                ViolationKind::WavelengthRange,
                vec![orbit],
                &problem,
                report,
            );
        }
        if u64::from(ring.ranks) % links != 0 {
            let problem = format!(
                "takes {links} links, which do not divide {}: its rotations collide",
                ring.ranks
            );
            fault(
                orbits,
                ViolationKind::Collision,
                vec![orbit],
                &problem,
                report,
            );
        }
        groups.push(group);
    }
    groups.sort_by_key(|group| (group.direction, group.first, group.links, group.orbit));
    groups.dedup_by_key(|group| (group.direction, group.first, group.links));
    collisions(orbits, wavelengths, &groups, report);
    converted.sort_unstable();
    for same in converted.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let (direction, fibre, ..) = same[0];
        let own = groups.iter().filter(|group| group.direction == direction);
        let fixed: u64 = own.map(|group| group.on_fibre(fibre, wavelengths)).sum();
        let load = fixed + same.iter().map(|(_, _, links, _)| links).sum::<u64>();
        if load > wavelengths {
            let problem = format!(
                "is one of {load} lightpaths on every link of its fibre, which has {wavelengths} wavelengths"
            );
            let crossing = same.iter().map(|(.., orbit)| *orbit).collect();
            fault(orbits, ViolationKind::Overload, crossing, &problem, report);
        }
    }
}

/// Reports the groups, sorted by direction and first channel, that share a channel.
fn collisions(orbits: &Plan, wavelengths: u64, groups: &[ChannelGroup], report: &mut Report) {
    for (index, group) in groups.iter().enumerate() {
        interrupt::check();
        let meets =
            |other: &&ChannelGroup| other.direction == group.direction && other.first < group.end();
        for other in groups[index + 1..].iter().take_while(meets) {
            let kind = ViolationKind::Collision;
            if report.is_full(kind) {
                report.count(kind, 1);
                break;
            }
            let slot = orbits.slot[group.orbit];
            let (one, two) = (named(orbits, group.orbit), named(orbits, other.orbit));
            let (fibre, wavelength) = (other.first / wavelengths, other.first % wavelengths);
            let sentence = format!(
                "slot {slot}: transfers {one} and {two} share wavelength {wavelength} of fibre {fibre} on every link"
            );
            report.add(kind, || Violation {
                transfers: vec![group.orbit, other.orbit],
                link: Some(RingLink {
                    rank: 0,
                    direction: group.direction,
                    fibre: fibre as u8,
                }),
                wavelength: Some(wavelength as u16),
                slot: Some(slot),
                ..Violation::new(kind, sentence)
            });
        }
    }
}

fn fault(
    orbits: &Plan,
    kind: ViolationKind,
    transfers: Vec<usize>,
    problem: &str,
    report: &mut Report,
) {
    let orbit = transfers[0];
    let slot = orbits.slot[orbit];
    let sentence = format!("slot {slot}: transfer {} {problem}", named(orbits, orbit));
    report.add(kind, || Violation {
        transfers,
        slot: Some(slot),
        ..Violation::new(kind, sentence)
    });
}

/// The links of an orbit's lightpaths, at least one.
fn links(orbits: &Plan, ring: &WdmRing, orbit: usize) -> u64 {
    let transfer = orbits.schedule.transfer(orbit);
    let (from, to) = match WdmLight::from(orbits.light[orbit]).direction {
        Direction::Clockwise => (transfer.source, transfer.destination),
        Direction::CounterClockwise => (transfer.destination, transfer.source),
    };
    let apart = i64::from(to) - i64::from(from);
    apart.rem_euclid(i64::from(ring.ranks)).max(1) as u64
}

/// Every rank sends and receives one copy of each orbit of a slot.
fn ports(orbits: &Plan, ring: &WdmRing, slot: &[usize], report: &mut Report) {
    let Some(most) = ring.ports.filter(|most| slot.len() > *most as usize) else {
        return;
    };
    let mut sent = slot.to_vec();
    wdm_ring::one_of_each_lightpath(orbits, &mut sent);
    if sent.len() <= most as usize {
        return;
    }
    let problem = format!(
        "is one of {} lightpaths that every rank sends at once, with {most} ports",
        sent.len()
    );
    fault(orbits, ViolationKind::Ports, sent, &problem, report);
}
