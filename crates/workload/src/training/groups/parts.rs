//! Division of the time of an iteration among its causes, for each rank.
//!
//! A device computes, or waits for the next of its events to end. The time between the ends of two
//! consecutive events, without the time of computing, is a wait for the second event, which tells
//! the cause. Therefore the parts of a rank add up to the time at which the rank finishes. From
//! then until the end of the iteration, the rank idles in the pipeline bubble. If a device waits
//! for another stage, the time in which the message is in flight counts as sending, and the
//! remaining time as bubble. An exchange is hidden while the device does not wait for it.

use std::collections::BTreeMap;

use super::GroupKind;
use super::program::{GroupedTrace, Role};
use crate::program::Call;
use crate::replay::Timeline;
use opticoll_base::units::Time;

opticoll_simulate::columns! {
    /// A row per stage of the pipeline: means over its ranks.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct StageParts {
        /// Time in which the device computes.
        pub compute: Time,
        /// Time in which the device waits for exchanges of its tensor-parallel group.
        pub tensor: Time,
        /// Time in which the device waits for exchanges of its context-parallel group.
        pub context: Time,
        /// Time in which the device waits for all_to_alls of its expert-parallel group.
        pub expert: Time,
        /// Time in which the device waits for activations or their gradients in flight between
        /// stages.
        pub sending: Time,
        /// Time in which the device waits for another stage to compute: the pipeline bubble.
        pub bubble: Time,
        /// Time in which the device waits for collectives among replicas.
        pub replicas: Time,
        /// Time of exchanges of the tensor-parallel group while the device does not wait for them.
        pub tensor_hidden: Time,
        /// Time of exchanges of the context-parallel group while the device does not wait for them.
        pub context_hidden: Time,
        /// Time of exchanges of the expert-parallel group while the device does not wait for them.
        pub expert_hidden: Time,
        /// Time during which messages between pipeline stages are in flight, but the device does
        /// not wait for these messages.
        pub sending_hidden: Time,
        /// Time of collectives among replicas while the device does not wait for them.
        pub replicas_hidden: Time,
    }
}

/// Time of the exchanges of one kind of group on one rank, or the sum over ranks, in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Exchanged {
    /// Time in which the device waits.
    exposed: u128,
    /// Time of the exchanges, whether the device waits or not.
    all: u128,
}

/// Time of one rank, divided among its causes, or the sum over ranks, in picoseconds.
#[derive(Debug, Clone, Default)]
struct Sums {
    compute: u128,
    bubble: u128,
    exchanged: BTreeMap<GroupKind, Exchanged>,
}

/// Returns the time of each stage, divided among its causes. The last row contains the means over
/// all ranks. `time` is the time of the iteration.
pub fn parts(written: &GroupedTrace, timeline: &Timeline, time: Time) -> StageParts {
    let ends = event_ends(written, timeline);
    let groups = written.groups;
    let mut parts = StageParts::default();
    let mut total = Sums::default();
    let ranks_per_stage = groups.ranks() / groups.pipeline;
    for stage in 0..groups.pipeline {
        let mut sums = Sums::default();
        for rank in stage * ranks_per_stage..(stage + 1) * ranks_per_stage {
            sums.add(&rank_sums(written, &ends, rank, time.ps()));
        }
        sums.push_to(&mut parts, ranks_per_stage);
        total.add(&sums);
    }
    total.push_to(&mut parts, groups.ranks());
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

/// Computing of a device: the end of each event and the time of computing until then, in
/// picoseconds, in the order of ends.
struct Busy(Vec<(u64, u64)>);

impl Busy {
    fn new(roles: &[Role], ends: &[u64]) -> Busy {
        let works = roles.iter().zip(ends);
        let works = works.filter_map(|(role, &end)| match role {
            Role::Computing(work) => Some((end, work.ps())),
            _ => None,
        });
        let mut works: Vec<(u64, u64)> = works.collect();
        works.sort_unstable();
        let mut sum = 0;
        for (_, work) in &mut works {
            sum += *work;
            *work = sum;
        }
        Busy(works)
    }

    /// Returns the picoseconds before `time` in which the device does not compute.
    fn idle(&self, time: u64) -> u64 {
        let next = self.0.partition_point(|&(end, _)| end <= time);
        let before = next.checked_sub(1).map_or(0, |last| self.0[last].1);
        let running = self.0.get(next).map_or(0, |&(end, sum)| {
            // The next event runs for the last part of the time until its end.
            (sum - before).saturating_sub(end - time)
        });
        time - before - running
    }
}

/// Divides the time of `rank` among its causes. `ends` contains the end of each event in
/// picoseconds, indexed by rank and event. `time` is the time of the iteration in picoseconds.
fn rank_sums(written: &GroupedTrace, ends: &[Vec<u64>], rank: u32, time: u64) -> Sums {
    let rank_ends = &ends[rank as usize];
    let after = &written.trace.after[rank as usize];
    let roles = &written.roles[rank as usize];
    let busy = Busy::new(roles, rank_ends);
    let mut order: Vec<usize> = (0..roles.len()).collect();
    order.sort_by_key(|&event| rank_ends[event]);
    let lasted = |event: usize| {
        let before = after[event].iter();
        let before = before.map(|&earlier| rank_ends[earlier as usize]);
        let elapsed = rank_ends[event].saturating_sub(before.max().unwrap_or(0));
        let event = &written.trace.ranks[rank as usize][event];
        u128::from(match event.call {
            // A given time, without the wait for another exchange of the stream.
            Call::Local => elapsed.min(event.compute),
            _ => elapsed,
        })
    };
    let mut sums = Sums::default();
    let mut now = 0;
    for event in order {
        let end = rank_ends[event];
        let waited = |from: u64| u128::from(busy.idle(end) - busy.idle(from.min(end)));
        let spent = waited(now);
        match roles[event] {
            Role::Computing(work) => {
                sums.compute += u128::from(work.ps());
                // The device waited for sharded parameters during the remaining time.
                sums.of(GroupKind::Data).exposed += spent;
            }
            Role::Waiting(group) => sums.of(group).exposed += spent,
            Role::Blocking(group) => {
                // Another pass may compute during the exchange.
                sums.of(group).all += lasted(event);
                sums.of(group).exposed += spent;
            }
            Role::Stage { arrival } => {
                let departure = departure(written, ends, rank, arrival);
                let in_flight = waited(now.max(departure));
                sums.of(GroupKind::Pipeline).exposed += in_flight;
                sums.bubble += spent - in_flight;
            }
            Role::Arrival { .. } => {
                let departure = departure(written, ends, rank, event as u32);
                let in_flight = u128::from(end.saturating_sub(departure));
                sums.of(GroupKind::Pipeline).all += in_flight;
                continue;
            }
            Role::Beside(group) => {
                sums.of(group).all += lasted(event);
                continue;
            }
            Role::Nothing => continue,
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
    fn of(&mut self, group: GroupKind) -> &mut Exchanged {
        let group = match group {
            GroupKind::ExpertData => GroupKind::Data,
            group => group,
        };
        self.exchanged.entry(group).or_default()
    }

    fn add(&mut self, other: &Sums) {
        self.compute += other.compute;
        self.bubble += other.bubble;
        for (group, exchanged) in &other.exchanged {
            let sum = self.of(*group);
            sum.exposed += exchanged.exposed;
            sum.all += exchanged.all;
        }
    }

    fn push_to(&self, parts: &mut StageParts, ranks: u32) {
        let mean = |sum: u128| Time::from_ps((sum / u128::from(ranks)) as u64);
        parts.compute.push(mean(self.compute));
        parts.bubble.push(mean(self.bubble));
        for (group, exposed, hidden) in [
            (
                GroupKind::Tensor,
                &mut parts.tensor,
                &mut parts.tensor_hidden,
            ),
            (
                GroupKind::Context,
                &mut parts.context,
                &mut parts.context_hidden,
            ),
            (
                GroupKind::Expert,
                &mut parts.expert,
                &mut parts.expert_hidden,
            ),
            (
                GroupKind::Pipeline,
                &mut parts.sending,
                &mut parts.sending_hidden,
            ),
            (
                GroupKind::Data,
                &mut parts.replicas,
                &mut parts.replicas_hidden,
            ),
        ] {
            let sum = self.exchanged.get(&group).copied().unwrap_or_default();
            exposed.push(mean(sum.exposed));
            hidden.push(mean(sum.all.saturating_sub(sum.exposed)));
        }
    }
}
