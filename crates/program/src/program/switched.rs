//! Chunks that switches add or multicast in a schedule.

use std::collections::BTreeMap;

use opticoll_base::interrupt;
use opticoll_plan::schedule::Schedule;

/// Chunk that switches add or multicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SwitchedChunk {
    /// Index of the chunk in the collective.
    pub chunk: u32,
    /// Rank that receives the sum of the switches, or whose chunk they multicast.
    pub hub: u32,
    /// True if the switches add.
    pub adds: bool,
    /// Number of other ranks that send or receive the chunk.
    pub members: u32,
}

/// Returns the chunks that switches add or multicast.
pub(super) fn switched_chunks(schedule: &Schedule) -> Vec<SwitchedChunk> {
    if !schedule.is_in_network() {
        return Vec::new();
    }
    let mut switched = Vec::new();
    for step in 0..schedule.steps() {
        let mut members: BTreeMap<(bool, u32, u32), u32> = BTreeMap::new();
        let transfers = schedule.columns(step).transfers();
        for transfer in transfers.filter(|transfer| transfer.action.is_in_network()) {
            interrupt::check();
            let adds = transfer.action.adds();
            let hub = if adds {
                transfer.destination
            } else {
                transfer.source
            };
            for chunk in transfer.chunk..transfer.chunk + transfer.count {
                *members.entry((adds, hub, chunk)).or_default() += 1;
            }
        }
        let of_step = members.into_iter();
        switched.extend(of_step.map(|((adds, hub, chunk), members)| SwitchedChunk {
            chunk,
            hub,
            adds,
            members,
        }));
    }
    switched
}
