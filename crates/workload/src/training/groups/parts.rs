//! Division of the time of an iteration among its causes, for each rank.
//!
//! Between the ends of two consecutive events of a device, the device computes or waits; the second
//! event tells for what the device waited. Therefore the parts of a rank add up to the time at
//! which the rank finishes. From then until the end of the iteration, the rank idles in the
//! pipeline bubble. If a device waits for another stage, the time in which the message is in flight
//! counts as sending, and the remaining time as bubble. Work of the other streams is hidden while
//! the device does not wait for it.

use super::RankPlace;
use super::program::{GroupedTrace, Role};
use crate::replay::Timeline;
use opticoll_base::units::Time;

opticoll_simulate::columns! {
    /// A row per stage of the pipeline: means over its ranks.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct StageParts {
        /// Time in which the device computes.
        pub compute: Time,
        /// Time in which the device waits for all_reduces of its tensor-parallel group.
        pub tensor: Time,
        /// Time in which the device waits for all_to_alls of its expert-parallel group.
        pub expert: Time,
        /// Time in which the device waits for activations or their gradients in flight between
        /// stages.
        pub sending: Time,
        /// Time in which the device waits for another stage to compute: the pipeline bubble.
        pub bubble: Time,
        /// Time in which the device waits for collectives among replicas.
        pub replicas: Time,
        /// Time during which messages between pipeline stages are in flight, but the device does
        /// not wait for these messages.
        pub sending_hidden: Time,
        /// Time of collectives among replicas while the device does not wait for them.
        pub replicas_hidden: Time,
    }
}

/// Time of one rank, divided among its causes, or the sum over ranks, in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    compute: u128,
    tensor: u128,
    expert: u128,
    sending: u128,
    bubble: u128,
    replicas: u128,
    sending_total: u128,
    replicas_total: u128,
}

/// Returns the time of each stage, divided among its causes. The last row contains the means over
/// all ranks. `time` is the time of the iteration.
pub fn parts(written: &GroupedTrace, timeline: &Timeline, time: Time) -> StageParts {
    let ends = event_ends(written, timeline);
    let groups = written.groups;
    let mut parts = StageParts::default();
    let mut total = Sums::default();
    let ranks_per_stage = u128::from(groups.tensor * groups.data);
    for stage in 0..groups.pipeline {
        let mut sums = Sums::default();
        for data in 0..groups.data {
            for tensor in 0..groups.tensor {
                let place = RankPlace {
                    tensor,
                    data,
                    stage,
                };
                sums.add(&rank_sums(written, &ends, groups.rank(place), time.ps()));
            }
        }
        sums.push_to(&mut parts, ranks_per_stage);
        total.add(&sums);
    }
    total.push_to(&mut parts, ranks_per_stage * u128::from(groups.pipeline));
    parts
}

/// Returns the end of each event in picoseconds, indexed by rank and event.
fn event_ends(written: &GroupedTrace, timeline: &Timeline) -> Vec<Vec<u64>> {
    let ranks = written.trace.ranks.iter();
    let mut ends: Vec<Vec<u64>> = ranks.map(|events| vec![0; events.len()]).collect();
    // Rows are in the order of ends, so the last row of an event contains the event's end.
    for row in 0..timeline.rank.len() {
        let (rank, event) = (timeline.rank[row], timeline.event[row]);
        ends[rank as usize][event as usize] = timeline.end[row].ps();
    }
    ends
}

/// Divides the time of `rank` among its causes. `ends` contains the end of each event in
/// picoseconds, indexed by rank and event. `time` is the time of the iteration in picoseconds.
fn rank_sums(written: &GroupedTrace, ends: &[Vec<u64>], rank: u32, time: u64) -> Sums {
    let rank_ends = &ends[rank as usize];
    let after = &written.trace.after[rank as usize];
    let mut sums = Sums::default();
    let mut now = 0;
    for (event, role) in written.roles[rank as usize].iter().enumerate() {
        let end = rank_ends[event];
        let spent = u128::from(end.saturating_sub(now));
        match *role {
            Role::Computing(work) => {
                let work = u128::from(work.ps()).min(spent);
                sums.compute += work;
                // The device waited for sharded parameters during the remaining time.
                sums.replicas += spent - work;
            }
            Role::Tensor => sums.tensor += spent,
            Role::Expert => sums.expert += spent,
            Role::LastReplicas => sums.replicas += spent,
            Role::Stage { arrival } => {
                let departure = departure(written, ends, rank, arrival);
                let in_flight = u128::from(end.saturating_sub(now.max(departure)));
                sums.sending += in_flight;
                sums.bubble += spent - in_flight;
            }
            Role::Arrival { .. } => {
                let departure = departure(written, ends, rank, event as u32);
                sums.sending_total += u128::from(end.saturating_sub(departure));
                continue;
            }
            Role::Replicas => {
                let before = after[event]
                    .iter()
                    .map(|&earlier| rank_ends[earlier as usize]);
                let began = before.max().unwrap_or(0);
                sums.replicas_total += u128::from(end.saturating_sub(began));
                continue;
            }
            Role::Sending => continue,
        }
        now = end;
    }
    sums.bubble += u128::from(time.saturating_sub(now));
    sums
}

/// Returns the time in picoseconds at which the message that arrives at `rank` in event `arrival`
/// was passed to the network. `ends` contains the end of each event in picoseconds, indexed by rank
/// and event.
fn departure(written: &GroupedTrace, ends: &[Vec<u64>], rank: u32, arrival: u32) -> u64 {
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
        self.sending_total += other.sending_total;
        self.replicas_total += other.replicas_total;
    }

    fn push_to(&self, parts: &mut StageParts, ranks: u128) {
        let mean = |sum: u128| Time::from_ps((sum / ranks) as u64);
        parts.compute.push(mean(self.compute));
        parts.tensor.push(mean(self.tensor));
        parts.expert.push(mean(self.expert));
        parts.sending.push(mean(self.sending));
        parts.bubble.push(mean(self.bubble));
        parts.replicas.push(mean(self.replicas));
        let hidden = |total: u128, exposed: u128| mean(total.saturating_sub(exposed));
        parts
            .sending_hidden
            .push(hidden(self.sending_total, self.sending));
        parts
            .replicas_hidden
            .push(hidden(self.replicas_total, self.replicas));
    }
}
