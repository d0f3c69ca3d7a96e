//! What the time of an iteration was spent on, rank by rank.
//!
//! Between the end of what a device did before and the end of what it does next lies either computing or waiting, and what
//! it does next says what it waited for. So the parts of a rank sum to the time at which it is through; what is missing to
//! the end of the iteration it idles in the bubble of the pipeline. Where a device waits for another stage, the time in
//! which the message was in flight is sending, and the rest is bubble. What streams beside the device do while the device
//! does not wait for them is hidden.

use super::RankPlace;
use super::program::{GroupedTrace, Role};
use crate::replay::Timeline;
use opticoll_base::units::Time;

opticoll_simulate::columns! {
    /// One row per stage of the pipeline: means over its ranks.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct StageParts {
        /// The device computes.
        pub compute: Time,
        /// The device waits for all_reduces of its tensor-parallel group.
        pub tensor: Time,
        /// The device waits for all_to_alls of its expert-parallel group.
        pub expert: Time,
        /// The device waits for activations or their gradients in flight between stages.
        pub sending: Time,
        /// The device waits for another stage to compute: the bubble of the pipeline.
        pub bubble: Time,
        /// The device waits for collectives among replicas.
        pub replicas: Time,
        /// Messages between stages in flight while the device did not wait for them.
        pub sending_hidden: Time,
        /// Collectives among replicas going on while the device did not wait for them.
        pub replicas_hidden: Time,
    }
}

/// The parts of one rank, or sums of them, in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    compute: u128,
    tensor: u128,
    expert: u128,
    sending: u128,
    bubble: u128,
    replicas: u128,
    sending_all: u128,
    replicas_all: u128,
}

/// The parts of each stage; the last row has the means over all ranks.
pub fn parts(written: &GroupedTrace, timeline: &Timeline, time: Time) -> StageParts {
    let ends = event_ends(written, timeline);
    let groups = written.groups;
    let mut parts = StageParts::default();
    let mut all = Sums::default();
    let each = u128::from(groups.tensor * groups.data);
    for stage in 0..groups.pipeline {
        let mut sums = Sums::default();
        for data in 0..groups.data {
            for tensor in 0..groups.tensor {
                let place = RankPlace {
                    tensor,
                    data,
                    stage,
                };
                sums.add(&of_rank(written, &ends, groups.rank(place), time.ps()));
            }
        }
        sums.push_to(&mut parts, each);
        all.add(&sums);
    }
    all.push_to(&mut parts, each * u128::from(groups.pipeline));
    parts
}

/// When each event of each rank ended.
fn event_ends(written: &GroupedTrace, timeline: &Timeline) -> Vec<Vec<u64>> {
    let ranks = written.trace.ranks.iter();
    let mut ends: Vec<Vec<u64>> = ranks.map(|events| vec![0; events.len()]).collect();
    // Rows stand in the order in which their nodes ended: the last of an event is its own.
    for row in 0..timeline.rank.len() {
        let (rank, event) = (timeline.rank[row], timeline.event[row]);
        ends[rank as usize][event as usize] = timeline.end[row].ps();
    }
    ends
}

fn of_rank(written: &GroupedTrace, ends: &[Vec<u64>], rank: u32, time: u64) -> Sums {
    let own = &ends[rank as usize];
    let after = &written.trace.after[rank as usize];
    let mut sums = Sums::default();
    let mut now = 0;
    for (event, role) in written.roles[rank as usize].iter().enumerate() {
        let end = own[event];
        let spent = u128::from(end.saturating_sub(now));
        match *role {
            Role::Computing(work) => {
                let work = u128::from(work.ps()).min(spent);
                sums.compute += work;
                // Sharded parameters that were not there yet.
                sums.replicas += spent - work;
            }
            Role::Tensor => sums.tensor += spent,
            Role::Expert => sums.expert += spent,
            Role::LastReplicas => sums.replicas += spent,
            Role::Stage { arrival } => {
                let left = left(written, ends, rank, arrival);
                let in_flight = u128::from(end.saturating_sub(now.max(left)));
                sums.sending += in_flight;
                sums.bubble += spent - in_flight;
            }
            Role::Arrival { .. } => {
                let left = left(written, ends, rank, event as u32);
                sums.sending_all += u128::from(end.saturating_sub(left));
                continue;
            }
            Role::Replicas => {
                let before = after[event].iter().map(|&one| own[one as usize]);
                let began = before.max().unwrap_or(0);
                sums.replicas_all += u128::from(end.saturating_sub(began));
                continue;
            }
            Role::Sending => continue,
        }
        now = end;
    }
    sums.bubble += u128::from(time.saturating_sub(now));
    sums
}

/// When a message that arrives was handed to the network.
fn left(written: &GroupedTrace, ends: &[Vec<u64>], rank: u32, arrival: u32) -> u64 {
    let Role::Arrival { peer, tag } = written.roles[rank as usize][arrival as usize] else {
        return 0;
    };
    let after = written
        .sent_after
        .get(&(peer, rank, tag))
        .copied()
        .flatten();
    after.map_or(0, |event| ends[peer as usize][event as usize])
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.compute += other.compute;
        self.tensor += other.tensor;
        self.expert += other.expert;
        self.sending += other.sending;
        self.bubble += other.bubble;
        self.replicas += other.replicas;
        self.sending_all += other.sending_all;
        self.replicas_all += other.replicas_all;
    }

    fn push_to(&self, parts: &mut StageParts, ranks: u128) {
        let mean = |sum: u128| Time::from_ps((sum / ranks) as u64);
        parts.compute.push(mean(self.compute));
        parts.tensor.push(mean(self.tensor));
        parts.expert.push(mean(self.expert));
        parts.sending.push(mean(self.sending));
        parts.bubble.push(mean(self.bubble));
        parts.replicas.push(mean(self.replicas));
        let hidden = |all: u128, exposed: u128| mean(all.saturating_sub(exposed));
        parts
            .sending_hidden
            .push(hidden(self.sending_all, self.sending));
        parts
            .replicas_hidden
            .push(hidden(self.replicas_all, self.replicas));
    }
}
