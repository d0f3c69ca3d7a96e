//! What each member of a collective sends and receives, from the schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::schedule::{Action, Schedule};

/// A message of one member of a collective: its step, the other member, and the chunks.
pub(super) struct MemberMessage {
    pub(super) step: u32,
    pub(super) peer: u32,
    pub(super) sends: bool,
    pub(super) chunks: Vec<(u32, u32)>,
    /// The route that the plan names for it; [`OF_FABRIC`](opticoll_plan::plan::routes::OF_FABRIC)
    /// otherwise.
    pub(super) route: u32,
}

/// A schedule as each member sees it.
pub(super) struct MemberSchedule {
    pub(super) collective: Collective,
    pub(super) members: Vec<Vec<MemberMessage>>,
    /// The routes that the plan names.
    pub(super) routes: NamedRoutes,
}

/// The messages of a step: source, destination, action and route, with their chunks.
type ChunksByMessage = BTreeMap<(u32, u32, Action, u32), Vec<(u32, u32)>>;

/// A schedule cut by member: messages in order of steps, sends before receives. Steps with more partners
/// than ports are cut into parts, which count as steps.
pub(super) fn by_member(schedule: &Schedule, routes: NamedRoutes, ports: u32) -> MemberSchedule {
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
                    let (own, peer) = match sends {
                        true => (*source, *destination),
                        false => (*destination, *source),
                    };
                    members[own as usize].push(MemberMessage {
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

/// Cuts the messages of a step into parts in which no rank has more partners than ports.
fn cut(messages: ChunksByMessage, ranks: usize, ports: usize) -> Vec<ChunksByMessage> {
    let mut parts: Vec<(ChunksByMessage, Vec<BTreeSet<u32>>)> = Vec::new();
    for (ends, chunks) in messages {
        interrupt::check();
        let (source, destination) = (ends.0 as usize, ends.1 as usize);
        let has_port = |partners: &[BTreeSet<u32>]| {
            let fits = |own: usize, other: u32| {
                partners[own].contains(&other) || partners[own].len() < ports
            };
            fits(source, ends.1) && fits(destination, ends.0)
        };
        let found = parts.iter().position(|(_, partners)| has_port(partners));
        let place = found.unwrap_or_else(|| {
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

/// The messages from `first` on that a rank's ports serve without another setup: whole steps.
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

/// The bytes of a message of an exchange of various sizes: block i N + j is what member i has for member
/// j, cut evenly into pieces.
pub(super) fn various_bytes(
    collective: &Collective,
    size: impl Fn(u32, u32) -> Option<u64>,
    part: &MemberMessage,
) -> Option<u64> {
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let chunks = part.chunks.iter();
    let mut chunks = chunks.flat_map(|&(chunk, count)| chunk..chunk + count);
    chunks.try_fold(0u64, |sum, chunk| {
        let (block, piece) = (chunk / pieces, u128::from(chunk % pieces));
        let whole = u128::from(size(block / ranks, block % ranks)?);
        let edge = |piece: u128| whole * piece / u128::from(pieces);
        sum.checked_add((edge(piece + 1) - edge(piece)) as u64)
    })
}
