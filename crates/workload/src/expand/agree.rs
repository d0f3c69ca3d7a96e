//! Check that the members of each communicator enter the same collectives.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::kind;
use crate::error::TraceError;
use crate::program::{Call, NONE};
use crate::trace::Trace;
use opticoll_base::interrupt;

/// Collectives, indexed by communicator. Each collective contains the index of every member's
/// event.
pub(super) type Entered = BTreeMap<u32, Vec<Vec<u32>>>;

/// Maximum number of distinct collectives (by kind, ranks and size) for which plans are made with
/// exact sizes. In programs with more distinct collectives, plans are made for powers of two, which
/// limits the number of plans.
const MAX_EXACT_SIZES: usize = 64;

/// Returns whether a trace has at most [`MAX_EXACT_SIZES`] distinct collectives.
pub(super) fn has_few_sizes(trace: &Trace, collectives: &Entered) -> bool {
    let mut distinct = FxHashSet::default();
    for (communicator, entered) in collectives {
        let members = &trace.communicators[communicator];
        for events in entered {
            let event = &trace.ranks[members[0] as usize][events[0] as usize];
            distinct.insert((event.call, members.len(), event.bytes));
        }
    }
    distinct.len() <= MAX_EXACT_SIZES
}

/// Checks that the members of each communicator enter the same collectives in the same order.
/// Returns the collectives.
pub(super) fn agree(trace: &Trace) -> Result<Entered, TraceError> {
    let mut entered: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
    for rank in 0..trace.ranks.len() as u32 {
        let mut count: FxHashMap<u32, usize> = FxHashMap::default();
        for (index, event) in trace.ranks[rank as usize].iter().enumerate() {
            interrupt::check();
            if kind(event.call).is_none() {
                continue;
            }
            let (members, number) = trace.members(rank, index)?;
            let rooted = event.peer != NONE;
            if rooted && !members.contains(&event.peer) {
                let problem = format!(
                    "the root {} is not a member of communicator {}",
                    event.peer, event.communicator
                );
                let place = trace.place(rank, index);
                return Err(TraceError::at(place, problem));
            }
            let collectives = entered.entry(event.communicator).or_default();
            let nth = count.entry(event.communicator).or_default();
            if collectives.len() == *nth {
                collectives.push(vec![NONE; members.len()]);
            }
            collectives[*nth][number as usize] = index as u32;
            *nth += 1;
        }
    }
    for (&communicator, collectives) in &entered {
        let members = &trace.communicators[&communicator];
        for events in collectives {
            check_agreement(trace, communicator, members, events)?;
        }
    }
    Ok(entered)
}

/// Checks that all members enter a collective with the same call, root and size. `events` contains
/// the index of each member's event, or [`NONE`].
fn check_agreement(
    trace: &Trace,
    communicator: u32,
    members: &[u32],
    events: &[u32],
) -> Result<(), TraceError> {
    let entering = members
        .iter()
        .zip(events)
        .filter(|(_, event)| **event != NONE);
    let mut entering = entering.map(|(&rank, &event)| (rank, event as usize));
    let Some((first_rank, first)) = entering.next() else {
        return Ok(());
    };
    let shape = |rank: u32, index: usize| {
        let event = trace.ranks[rank as usize][index];
        let differs = event.call == Call::AllToAllVarious || event.call.has_own_blocks();
        let size = (!differs).then_some(event.bytes);
        (event.call, event.peer, size)
    };
    let place = trace.place(first_rank, first);
    for (rank, index) in entering {
        if shape(rank, index) != shape(first_rank, first) {
            let [current, first_entered] =
                [shape(rank, index), shape(first_rank, first)].map(describe);
            let problem = format!(
                "enters {current} on communicator {communicator} where {place} enters \
                    {first_entered}"
            );
            return Err(TraceError::at(trace.place(rank, index), problem));
        }
    }
    match events.iter().position(|&event| event == NONE) {
        None => Ok(()),
        Some(missing) => {
            let (call, missing) = (shape(first_rank, first).0.name(), members[missing]);
            let article = if call.starts_with('a') { "an" } else { "a" };
            let problem = format!(
                "enters {article} {call} on communicator {communicator} that rank {missing} never \
                    enters"
            );
            Err(TraceError::at(place, problem))
        }
    }
}

fn describe((call, root, size): (Call, u32, Option<u64>)) -> String {
    let root = match root {
        NONE => String::new(),
        root => format!(" with root {root}"),
    };
    let size = size.map_or(String::new(), |size| format!(" of {size} bytes"));
    format!("{}{root}{size}", call.name())
}
