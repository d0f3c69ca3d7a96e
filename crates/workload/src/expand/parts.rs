//! Messages of each member of a collective, derived from the schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::schedule::{Action, Schedule};

/// Message that a member sends or receives in a step.
pub(super) struct MemberMessage {
    pub(super) step: u32,
    pub(super) peer: u32,
    pub(super) sends: bool,
    pub(super) chunks: Vec<(u32, u32)>,
    /// Index in [`MemberSchedule::routes`] of the route of the message, or
    /// [`FABRIC_ROUTE`](opticoll_plan::plan::routes::FABRIC_ROUTE) if the plan names no route.
    pub(super) route: u32,
}

/// Messages of a schedule.
pub(super) struct MemberSchedule {
    pub(super) collective: Collective,
    /// Messages that a member sends or receives, indexed by member.
    pub(super) members: Vec<Vec<MemberMessage>>,
    /// Routes that the plan names.
    pub(super) routes: NamedRoutes,
}

/// Chunks of each message of a step, as ranges (first chunk, number of chunks). The key of a
/// message is (source, destination, action, route).
type ChunksByMessage = BTreeMap<(u32, u32, Action, u32), Vec<(u32, u32)>>;

/// Lists the messages of each member, in the order of steps. In a step, sends precede receives. A
/// step with more than `ports` partners is cut into parts; each part becomes a step.
pub(super) fn member_schedule(
    schedule: &Schedule,
    routes: NamedRoutes,
    ports: u32,
) -> MemberSchedule {
    let ranks = schedule.collective.ranks() as usize;
    let mut members: Vec<Vec<MemberMessage>> = (0..ranks).map(|_| Vec::new()).collect();
    let mut number = 0;
    for step in 0..schedule.steps() {
        let mut messages = ChunksByMessage::new();
        for index in schedule.step(step) {
            interrupt::check();
            let transfer = schedule.transfer(index);
            let (source, destination) = (transfer.source, transfer.destination);
            let message = (source, destination, transfer.action, routes.number(index));
            let chunks = messages.entry(message).or_default();
            chunks.push((transfer.chunk, transfer.count));
        }
        for messages in cut(messages, ranks, ports as usize) {
            for sends in [true, false] {
                for ((source, destination, _, route), chunks) in &messages {
                    let (member, peer) = match sends {
                        true => (*source, *destination),
                        false => (*destination, *source),
                    };
                    members[member as usize].push(MemberMessage {
                        step: number,
                        peer,
                        sends,
                        chunks: chunks.clone(),
                        route: *route,
                    });
                }
            }
            number += 1;
        }
    }
    MemberSchedule {
        collective: schedule.collective,
        members,
        routes,
    }
}

/// Cuts the messages of a step into parts in which no rank has more than `ports` partners.
fn cut(messages: ChunksByMessage, ranks: usize, ports: usize) -> Vec<ChunksByMessage> {
    let mut parts: Vec<(ChunksByMessage, Vec<BTreeSet<u32>>)> = Vec::new();
    for (ends, chunks) in messages {
        interrupt::check();
        let (source, destination) = (ends.0 as usize, ends.1 as usize);
        let has_port = |partners: &[BTreeSet<u32>]| {
            let fits = |rank: usize, other: u32| {
                partners[rank].contains(&other) || partners[rank].len() < ports
            };
            fits(source, ends.1) && fits(destination, ends.0)
        };
        let first_fitting = parts.iter().position(|(_, partners)| has_port(partners));
        let place = first_fitting.unwrap_or_else(|| {
            parts.push((ChunksByMessage::new(), vec![BTreeSet::new(); ranks]));
            parts.len() - 1
        });
        let (part, partners) = &mut parts[place];
        partners[source].insert(ends.1);
        partners[destination].insert(ends.0);
        part.insert(ends, chunks);
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// Returns the range of messages, from index `first` on, whose lightpaths are set up together. The
/// range consists of whole steps. It is as long as possible with at most `ports` partners, and
/// contains at least one step.
pub(super) fn group_from(parts: &[MemberMessage], first: usize, ports: u32) -> Range<usize> {
    let mut partners: BTreeSet<u32> = BTreeSet::new();
    let mut end = first;
    while let Some(next) = parts.get(end) {
        let step = parts[end..]
            .iter()
            .take_while(|part| part.step == next.step);
        let step: Vec<u32> = step.map(|part| part.peer).collect();
        partners.extend(&step);
        if end > first && partners.len() > ports as usize {
            break;
        }
        end += step.len();
    }
    first..end
}

pub(super) fn plain_bytes(collective: &Collective, size: u64, part: &MemberMessage) -> Option<u64> {
    part.chunks.iter().try_fold(0u64, |sum, &(chunk, count)| {
        let range = collective
            .range_bytes(Bytes::new(size), chunk, count)
            .ok()?;
        sum.checked_add(range.get())
    })
}

/// Returns the number of bytes of a message whose blocks have different sizes, or `None` if the
/// bytes exceed 64 bits. Each block is cut evenly into pieces. `size` returns the number of bytes
/// of a block. With N ranks, block i N + j of an all_to_all goes from member i to member j, and
/// block i of other collectives belongs to member i.
pub(super) fn various_bytes(
    collective: &Collective,
    size: impl Fn(u32) -> Option<u64>,
    part: &MemberMessage,
) -> Option<u64> {
    let pieces = collective.pieces();
    let chunks = part.chunks.iter();
    let mut chunks = chunks.flat_map(|&(chunk, count)| chunk..chunk + count);
    chunks.try_fold(0u64, |sum, chunk| {
        let piece = u128::from(chunk % pieces);
        let whole = u128::from(size(chunk / pieces)?);
        let edge = |piece: u128| whole * piece / u128::from(pieces);
        sum.checked_add((edge(piece + 1) - edge(piece)) as u64)
    })
}
