//! Execution of an iteration of training: over a network, or with a given time for each collective.

use std::collections::{BTreeMap, BTreeSet};

use super::super::TrainingError;
use super::parts::{StageParts, parts};
use super::program::{Carrier, GroupCollective, GroupedTrace, GroupedTraining, SharedPorts};
use super::stages::StageLayer;
use super::{GroupKind, Groups};
use crate::error::TraceError;
use crate::expand::{Algorithms, ChosenAlgorithm, Ran};
use crate::network::{ReplayOutcome, ReplayRequest, TraceContent, TransportModel, run_and_list};
use crate::replay::ReplaySettings;
use opticoll_base::memory;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::message_cost::MessageCost;
use opticoll_simulate::TimingModel;

/// Approximate memory of a replayed node and its messages in flight, in bytes.
const NODE_BYTES: u128 = 160;

opticoll_simulate::totals! {
    /// An iteration of training with groups of ranks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GroupedIteration {
        /// Time from the start to the end of the last rank.
        pub time: Time,
        /// Time of the forward passes on a device, as the mean over devices.
        pub forward: Time,
        /// Time of the optimizer's step on a device, as the mean over devices; zero if the
        /// computing times include it.
        pub optimizer: Time,
        /// Name of the simulator; empty if each collective was timed separately.
        pub simulator: &'static str,
        /// Number of messages sent.
        pub messages: u64,
        /// Number of bytes sent.
        pub bytes: u64 as "B",
        /// Maximum over ranks of the number of setups of circuits from one collective to the next.
        pub setups: u64,
        /// Time of each stage, divided among its causes; the last row is the mean over all ranks.
        pub stages: StageParts,
        /// Algorithms that the collectives used in the network.
        pub chosen: Vec<GroupAlgorithm>,
    }
}

opticoll_simulate::rows! {
    /// A row per kind of group, collective and size.
    #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
    pub struct GroupAlgorithm {
        /// Kind of the groups.
        pub group: &'static str,
        /// Name of the collective.
        pub collective: &'static str,
        /// Size for which the algorithm was chosen; empty if the choice does not depend on the
        /// size.
        pub size: Option<Bytes>,
        /// Algorithm of the plan.
        pub chosen: String,
    }
}

/// Reason why an iteration was not executed.
#[derive(Debug, thiserror::Error)]
pub enum IterationError {
    /// The trace of the iteration could not be written.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// The trace of the iteration could not be replayed.
    #[error(transparent)]
    Replay(#[from] TraceError),
}

impl GroupedTraining {
    /// Replays an iteration over a network that all groups share.
    ///
    /// # Errors
    /// Fails if the replay fails, for example on a fabric that does not support single messages.
    pub fn over(
        &self,
        network: &TransportModel,
        method: &TimingModel,
        algorithms: &Algorithms,
    ) -> Result<GroupedIteration, IterationError> {
        memory::check_forecast("the messages of the iteration", self.expected_bytes()?);
        self.carry_out(Carrier::Replay, network, method, algorithms)
    }

    /// Executes an iteration with a given time for each collective. Without `ports`, collectives
    /// of different kinds of groups do not wait for each other.
    ///
    /// # Errors
    /// Fails if the time of a collective is missing or a time exceeds 64 bits.
    pub fn with_times(
        &self,
        times: &BTreeMap<GroupCollective, Time>,
        ports: Option<&SharedPorts>,
    ) -> Result<GroupedIteration, IterationError> {
        let network = TransportModel::Messages(MessageCost::Zero);
        let carrier = Carrier::Times(times, ports);
        let algorithms = Algorithms::default();
        let iteration = self.carry_out(carrier, &network, &TimingModel::default(), &algorithms)?;
        Ok(GroupedIteration {
            simulator: "",
            messages: 0,
            bytes: 0,
            chosen: Vec::new(),
            ..iteration
        })
    }

    fn carry_out(
        &self,
        carrier: Carrier<'_>,
        network: &TransportModel,
        method: &TimingModel,
        algorithms: &Algorithms,
    ) -> Result<GroupedIteration, IterationError> {
        let mut written = self.trace(carrier)?;
        let settings = ReplaySettings {
            timeline: true,
            ..ReplaySettings::default()
        };
        let request = ReplayRequest {
            network,
            method,
            algorithms,
            settings,
        };
        let (outcome, ran) = replayed(&mut written, &request)?;
        let replayed = outcome.replayed;
        Ok(GroupedIteration {
            time: replayed.time,
            forward: self.forward()?,
            optimizer: self.mean_optimizer(),
            simulator: outcome.simulator,
            messages: replayed.messages,
            bytes: replayed.bytes,
            setups: written.setups.iter().copied().max().unwrap_or(0),
            stages: parts(&written, &replayed.timeline, replayed.time),
            chosen: algorithms_of_groups(&written, &outcome.collectives, &ran),
        })
    }

    /// Returns the time of all forward passes, as the mean over stages and expert-parallel ranks.
    fn forward(&self) -> Result<Time, TrainingError> {
        let devices = self.groups.expert as usize;
        let of_layer = |layer: &StageLayer, phase: usize| -> u128 {
            let chunks = layer.experts.map_or(1, |_| self.loads.chunks);
            let first = (phase * devices) % layer.forward.len();
            let times = layer.forward[first..].iter().take(devices);
            times.map(|time| u128::from(time.ps())).sum::<u128>() * u128::from(chunks)
        };
        let layers = self.stages.iter().flat_map(|stage| &stage.layers);
        let mut of_phase = vec![0u128; self.loads.phases()];
        for layer in layers {
            for (phase, sum) in of_phase.iter_mut().enumerate() {
                *sum += of_layer(layer, phase);
            }
        }
        let micro_batches = 0..self.micro_batches;
        let sum: u128 = micro_batches
            .map(|micro_batch| of_phase[self.loads.phase(micro_batch)])
            .sum();
        let devices = u128::from(self.groups.pipeline) * u128::from(self.groups.expert);
        Ok(Time::from_ps((sum / devices) as u64))
    }

    /// Returns the time of the optimizer's step, as the mean over stages.
    fn mean_optimizer(&self) -> Time {
        let sum: u128 = self
            .optimizer
            .iter()
            .map(|time| u128::from(time.ps()))
            .sum();
        Time::from_ps((sum / self.optimizer.len().max(1) as u128) as u64)
    }

    /// Returns the approximate memory of the replay in bytes. In a collective of g ranks, each rank
    /// sends at most 2 (g - 1) messages, and receives at most the same number.
    fn expected_bytes(&self) -> Result<u64, TrainingError> {
        let collectives = self.collectives()?;
        let nodes: u128 = collectives
            .iter()
            .map(|(collective, count)| u128::from(*count) * 4 * u128::from(collective.ranks))
            .sum();
        let ranks = u128::from(self.groups.tensor) * u128::from(self.groups.shares());
        Ok(u64::try_from(nodes * ranks * NODE_BYTES).unwrap_or(u64::MAX))
    }
}

/// Replays a trace. The trace is moved into the request, and is moved back afterwards.
fn replayed(
    written: &mut GroupedTrace,
    request: &ReplayRequest<'_>,
) -> Result<(ReplayOutcome, Ran), TraceError> {
    let content = TraceContent::Calls(std::mem::take(&mut written.trace));
    let outcome = run_and_list(&content, request);
    if let TraceContent::Calls(trace) = content {
        written.trace = trace;
    }
    outcome
}

/// Returns the algorithms of the groups of each kind.
fn algorithms_of_groups(
    written: &GroupedTrace,
    chosen: &[ChosenAlgorithm],
    ran: &Ran,
) -> Vec<GroupAlgorithm> {
    let row = |&(communicator, index): &(u32, usize)| {
        let members = &written.trace.communicators[&communicator];
        let algorithm = &chosen[index];
        kinds(written.groups, members).map(move |kind| GroupAlgorithm {
            group: kind.name(),
            collective: algorithm.collective,
            size: algorithm.size,
            chosen: algorithm.chosen.clone(),
        })
    };
    let rows: BTreeSet<GroupAlgorithm> = ran.iter().flat_map(row).collect();
    rows.into_iter().collect()
}

/// Returns the kinds of groups that have these members.
fn kinds(groups: Groups, members: &[u32]) -> impl Iterator<Item = GroupKind> {
    let place = groups.place(members[0]);
    GroupKind::ALL
        .into_iter()
        .filter(move |&kind| groups.members(kind, place) == members)
}
