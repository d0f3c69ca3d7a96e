//! Proof of a rotation-symmetric plan by its representatives: the transfers that leave rank 0.
//!
//! The whole plan consists of N copies of each representative. Copy r leaves rank r and carries
//! chunks that are r blocks later. Its channel is first + (r mod l), where first is the channel of
//! the representative, and l is the number of links of the lightpath. If all ranks and chunks are
//! rotated by one, the whole plan is therefore mapped to itself, except for the channels. It is
//! enough to examine the representatives:
//!
//! - **Form.** All numbers of a copy are in range if all numbers of the representative are in range
//!   and the chunks of the representative lie in one block: no rotation moves these chunks over the
//!   end of the numbering.
//! - **Light.** The copies that cross a link leave the l ranks before it, whose numbers all differ
//!   modulo l. If l divides N, this also holds across the end of the numbering, so that every
//!   channel of the representative carries exactly one copy on every link: a representative never
//!   collides with itself, and two representatives collide (on every link) if and only if they
//!   share a channel. If l does not divide N, the ceil(N / l) copies on the first channel need more
//!   than N links, so that some collide. Converted copies put a load of l on every link, for any l.
//!   Two representatives of the same length and direction on the same channels count as one: their
//!   copies run between the same ranks and share lightpaths.
//! - **Ports.** In a slot every rank sends, and receives, one copy of each representative;
//!   representatives that share lightpaths count as one.
//! - **Data.** The demand on block b is the demand on block 0, rotated by b. Chunks are
//!   independent, and the transfers of block b are the transfers of block 0, rotated by b, in the
//!   same steps. Exactly one copy of each representative delivers block 0. Block 0 is replayed with
//!   these copies, and every other block has the same result. In an all_to_all, the blocks from
//!   rank 0 are replayed, because every other block is a rotation of one of them.
//! - **Claims.** All ranks send the same number of chunks, to ranks at the same distances.

use super::form::{self, Admitted};
use super::in_network;
use super::order::AdmittedOrder;
use super::report::{Report, each, pair_violation, transfer_violation};
use super::wdm_ring;
use super::{RingLink, Violation, ViolationKind, claims, data};
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;

pub(super) fn verify(plan: &Plan) -> Vec<Violation> {
    let mut report = Report::default();
    check(plan, &mut report);
    let mut violations = report.finish();
    for violation in &mut violations {
        violation.sentence += " (and likewise in all rotations)";
    }
    violations
}

fn check(representatives: &Plan, report: &mut Report) {
    let Some(ring) = representatives.fabric.downcast::<WdmRing>() else {
        let sentence = "a rotation-symmetric plan needs a wdm_ring; expand the plan";
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence.into())
        });
    };
    let (rotations_found, ranks) = (representatives.repetition.rotations, ring.ranks);
    if rotations_found != ranks {
        let sentence = format!(
            "the rows of a rotation-symmetric plan have all {ranks} rotations, not \
             {rotations_found}"
        );
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence)
        });
    }
    let collective = representatives.schedule.collective;
    let Some(block) = block(&collective) else {
        let kind = collective.kind();
        let sentence = format!(
            "a rotation-symmetric plan needs a collective that looks the same from every rank; \
             this {kind} in {} pieces does not",
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
        let sentence = "a rotation-symmetric plan needs a ring that looks the same from every \
                        rank, with all its wavelengths and no light trees; expand the plan";
        return report.add(ViolationKind::Symmetry, || {
            Violation::new(ViolationKind::Symmetry, sentence.into())
        });
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    let Some(admitted) = form::check(representatives, &wrong_light, report) else {
        return;
    };
    in_network::check(representatives, &admitted, report);
    if ring.ranks != collective.ranks() {
        return;
    }
    let order = AdmittedOrder::new(representatives, &admitted);
    for slot in order.slots(representatives) {
        interrupt::check();
        let in_slot: Vec<usize> = slot.map(|position| order.at(position)).collect();
        light(representatives, ring, &admitted, &in_slot, report);
        ports(representatives, ring, &in_slot, report);
    }
    let complete = admitted.transfers == representatives.len();
    if check_representatives(representatives, &admitted, block, report) && complete {
        let block_copies = copies_in_first_block(representatives, &admitted, block);
        let chunks = match collective.kind() {
            CollectiveKind::AllToAll => collective.ranks() * block,
            _ => block,
        };
        data::check(&block_copies, &admitted, 0..chunks, report);
    }
    claims::check(representatives, &admitted, 1, report);
}

/// Returns the number of links of the physical ring between adjacent ranks; `None` if this number
/// differs. Returns 1 if the rules do not depend on this number.
fn spacing(ring: &WdmRing) -> Option<u64> {
    let spacing_matters =
        ring.reach.is_some() || ring.budget.is_some() || ring.propagation.ps() > 0;
    let (Some(first), true) = (ring.node_of_rank.first(), spacing_matters) else {
        return Some(1);
    };
    let first_again = first + ring.nodes;
    let next = ring
        .node_of_rank
        .iter()
        .skip(1)
        .chain(std::iter::once(&first_again));
    let gaps = ring.node_of_rank.iter().zip(next);
    let mut gaps = gaps.map(|(node, next)| u64::from(next - node));
    let gap = gaps.next()?;
    gaps.all(|other| other == gap).then_some(gap)
}

/// Returns the number of chunks of a block: a rotation by one rank adds this number to a chunk. In
/// an all_to_all, a block rotates with both of its ranks. `None` if the collective is not
/// symmetric.
fn block(collective: &Collective) -> Option<u32> {
    let (pieces, ranks) = (collective.pieces(), collective.ranks());
    match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => Some(pieces),
        CollectiveKind::AllToAll if collective.demand().is_none() => Some(pieces),
        CollectiveKind::AllReduce if pieces % ranks == 0 => Some(pieces / ranks),
        _ => None,
    }
}

/// Returns whether every representative leaves rank 0 with chunks of a single block, and reports
/// the representatives for which this is false.
fn check_representatives(
    representatives: &Plan,
    admitted: &Admitted,
    block: u32,
    report: &mut Report,
) -> bool {
    let mut are_valid = true;
    for representative in admitted.transfers() {
        interrupt::check();
        let transfer = representatives.schedule.transfer(representative);
        let (kind, problem) = if transfer.source != 0 {
            (ViolationKind::Symmetry, "does not leave rank 0")
        } else if transfer.count > block - transfer.chunk % block {
            (
                ViolationKind::ChunkRange,
                "carries chunks of several blocks, so that some of its rotations do not exist",
            )
        } else {
            continue;
        };
        are_valid = false;
        fault(representatives, kind, vec![representative], problem, report);
    }
    are_valid
}

/// Returns the copy of each representative that carries chunks of block 0, or in an all_to_all of a
/// block from rank 0. Representatives that are not admitted do not change.
fn copies_in_first_block(representatives: &Plan, admitted: &Admitted, block: u32) -> Plan {
    let ranks = representatives.schedule.collective.ranks();
    let is_all_to_all = representatives.schedule.collective.kind() == CollectiveKind::AllToAll;
    let mut copies = representatives.without_lightpaths();
    let mut admitted = admitted.transfers().peekable();
    for step in 0..representatives.schedule.steps() {
        copies.schedule.begin_step();
        for representative in representatives.schedule.step(step) {
            interrupt::check();
            let mut lightpath = representatives.lightpath(representative);
            if admitted.next_if_eq(&representative).is_some() {
                let transfer = &mut lightpath.transfer;
                let (block_number, piece) = (transfer.chunk / block, transfer.chunk % block);
                let rotation = match is_all_to_all {
                    true => ranks - block_number / ranks,
                    false => ranks - block_number,
                };
                transfer.chunk = piece;
                if is_all_to_all {
                    let to = (block_number % ranks + rotation) % ranks;
                    transfer.chunk += to * block;
                }
                for rank in [&mut transfer.source, &mut transfer.destination] {
                    *rank = ((u64::from(*rank) + u64::from(rotation)) % u64::from(ranks)) as u32;
                }
            }
            copies.push(lightpath);
        }
    }
    copies
}

/// Channels `first .. first + links` of one direction, which the copies of a representative occupy
/// on every link.
struct ChannelGroup {
    direction: Direction,
    first: u64,
    links: u64,
    representative: usize,
}

impl ChannelGroup {
    fn end(&self) -> u64 {
        self.first + self.links
    }

    /// Returns the number of channels of the group on `fibre`, which has `wavelengths` wavelengths.
    fn count_on_fibre(&self, fibre: u64, wavelengths: u64) -> u64 {
        let end = self.end().min((fibre + 1) * wavelengths);
        end.saturating_sub(self.first.max(fibre * wavelengths))
    }
}

/// Checks the channels of the representatives of one slot.
fn light(
    representatives: &Plan,
    ring: &WdmRing,
    admitted: &Admitted,
    slot: &[usize],
    report: &mut Report,
) {
    let wavelengths = u64::from(ring.wavelengths);
    let channels = wavelengths * u64::from(ring.fibres);
    let spacing = spacing(ring).unwrap_or(1);
    let mut groups = Vec::new();
    // Converted representatives: direction, fibre, number of links, representative.
    let mut converted = Vec::new();
    for &representative in slot
        .iter()
        .filter(|&&representative| admitted.is_lit(representative))
    {
        interrupt::check();
        let light = WdmLight::from(representatives.light[representative]);
        let (direction, fibre) = (light.direction, u64::from(light.fibre));
        let links = links(representatives, ring, representative);
        if let Some(problem) = wdm_ring::too_far(ring, links * spacing, 0) {
            fault(
                representatives,
                ViolationKind::Reach,
                vec![representative],
                &problem,
                report,
            );
        }
        if light.wavelength == CONVERTED {
            converted.push((direction, fibre, links, representative));
            continue;
        }
        let first = fibre * wavelengths + u64::from(light.wavelength);
        let group = ChannelGroup {
            direction,
            first,
            links,
            representative,
        };
        if group.end() > channels {
            let problem = format!(
                "needs the channels {first} to {} in its rotations, of {channels}",
                group.end() - 1
            );
            fault(
                representatives,
                ViolationKind::WavelengthRange,
                vec![representative],
                &problem,
                report,
            );
        }
        if u64::from(ring.ranks) % links != 0 {
            let problem = format!(
                "spans {links} links, and {links} does not divide {}, so that its rotations \
                 collide",
                ring.ranks
            );
            fault(
                representatives,
                ViolationKind::Collision,
                vec![representative],
                &problem,
                report,
            );
        }
        groups.push(group);
    }
    groups.sort_by_key(|group| {
        (
            group.direction,
            group.first,
            group.links,
            group.representative,
        )
    });
    groups.dedup_by_key(|group| (group.direction, group.first, group.links));
    collisions(representatives, wavelengths, &groups, report);
    converted.sort_unstable();
    for same in converted.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let (direction, fibre, ..) = same[0];
        let same_direction = groups.iter().filter(|group| group.direction == direction);
        let fixed: u64 = same_direction
            .map(|group| group.count_on_fibre(fibre, wavelengths))
            .sum();
        let load = fixed + same.iter().map(|(_, _, links, _)| links).sum::<u64>();
        if load > wavelengths {
            let problem = format!(
                "is one of {load} lightpaths on every link of its fibre, which has {wavelengths} \
                 wavelengths"
            );
            let crossing = same
                .iter()
                .map(|(.., representative)| *representative)
                .collect();
            fault(
                representatives,
                ViolationKind::Overload,
                crossing,
                &problem,
                report,
            );
        }
    }
}

/// Reports the groups that share a channel. The groups are sorted by direction and first channel.
fn collisions(
    representatives: &Plan,
    wavelengths: u64,
    groups: &[ChannelGroup],
    report: &mut Report,
) {
    for (index, group) in groups.iter().enumerate() {
        interrupt::check();
        let shares_channel =
            |other: &&ChannelGroup| other.direction == group.direction && other.first < group.end();
        for other in groups[index + 1..].iter().take_while(shares_channel) {
            let kind = ViolationKind::Collision;
            if report.is_full(kind) {
                report.count(kind, 1);
                break;
            }
            let slot = representatives.slot[group.representative];
            let pair = [group.representative, other.representative];
            let (fibre, wavelength) = (other.first / wavelengths, other.first % wavelengths);
            let problem = format!("share wavelength {wavelength} of fibre {fibre} on every link");
            report.add(kind, || Violation {
                link: Some(RingLink {
                    rank: 0,
                    direction: group.direction,
                    fibre: fibre as u8,
                }),
                wavelength: Some(wavelength as u16),
                ..pair_violation(representatives, kind, slot, pair, &problem)
            });
        }
    }
}

/// Reports a problem of some representatives. The sentence names the first of them.
fn fault(
    representatives: &Plan,
    kind: ViolationKind,
    transfers: Vec<usize>,
    problem: &str,
    report: &mut Report,
) {
    let representative = transfers[0];
    let slot = representatives.slot[representative];
    report.add(kind, || Violation {
        transfers,
        ..transfer_violation(representatives, kind, slot, representative, problem)
    });
}

/// Returns the number of links of the lightpaths of `representative`, at least 1.
fn links(representatives: &Plan, ring: &WdmRing, representative: usize) -> u64 {
    let transfer = representatives.schedule.transfer(representative);
    let (from, to) = match WdmLight::from(representatives.light[representative]).direction {
        Direction::Clockwise => (transfer.source, transfer.destination),
        Direction::CounterClockwise => (transfer.destination, transfer.source),
    };
    let distance = i64::from(to) - i64::from(from);
    distance.rem_euclid(i64::from(ring.ranks)).max(1) as u64
}

/// Checks the ports. Every rank sends, and receives, one copy of each representative of the slot.
fn ports(representatives: &Plan, ring: &WdmRing, slot: &[usize], report: &mut Report) {
    let Some(most) = ring.ports.filter(|most| slot.len() > *most as usize) else {
        return;
    };
    let mut sent = slot.to_vec();
    wdm_ring::keep_one_per_lightpath(representatives, &mut sent);
    if sent.len() <= most as usize {
        return;
    }
    let problem = format!(
        "is one of {} lightpaths that every rank sends at the same time, but a rank has {most} \
         ports",
        sent.len()
    );
    fault(
        representatives,
        ViolationKind::Ports,
        sent,
        &problem,
        report,
    );
}
