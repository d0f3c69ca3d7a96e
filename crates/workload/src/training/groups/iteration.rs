//! An iteration carried out: over a network, or with a time for each collective.

use std::collections::BTreeMap;

use super::super::TrainingError;
use super::parts::{StageParts, parts};
use super::program::{Carrier, GroupCollective, GroupedTrace, GroupedTraining};
use crate::error::TraceError;
use crate::expand::{Algorithms, ChosenAlgorithm};
use crate::network::{Done, ReplayRequest, TraceContent, Transport, run};
use crate::replay::ReplaySettings;
use opticoll_base::memory;
use opticoll_base::units::Time;
use opticoll_fabric::family::message_cost::MessageCost;
use opticoll_simulate::Method;

/// About what a node of the replay takes, with its messages under way, in bytes.
const NODE_BYTES: u128 = 160;

opticoll_simulate::totals! {
    /// An iteration of training with groups of ranks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct GroupedIteration {
        /// From the start to the end of the last rank.
        pub time: Time,
        /// The forward passes of a device, on average.
        pub forward: Time,
        /// The simulator that carried messages; empty where collectives were timed one by one.
        pub simulator: &'static str,
        /// Messages sent.
        pub messages: u64,
        /// Bytes sent.
        pub bytes: u64 as "B",
        /// What each stage spent its time on, then the mean over all ranks.
        pub stages: StageParts,
        /// By which algorithms collectives ran in the network.
        pub chosen: Vec<ChosenAlgorithm>,
    }
}

/// Why an iteration was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum IterationError {
    /// It could not be written.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// It could not be replayed.
    #[error(transparent)]
    Replay(#[from] TraceError),
}

impl GroupedTraining {
    /// Carries an iteration out over a network, in which all groups meet.
    ///
    /// # Errors
    /// As [`run`], such as a fabric that carries no single messages.
    pub fn over(
        &self,
        network: &Transport,
        method: &Method,
        algorithms: &Algorithms,
    ) -> Result<GroupedIteration, IterationError> {
        memory::take("the messages of the iteration", self.expected_bytes()?);
        self.carry_out(Carrier::Replay, network, method, algorithms)
    }

    /// Carries an iteration out with a time for each collective, as if its group were alone.
    ///
    /// # Errors
    /// A collective whose time is not given, a time beyond 64 bits.
    pub fn with_times(
        &self,
        times: &BTreeMap<GroupCollective, Time>,
    ) -> Result<GroupedIteration, IterationError> {
        let network = Transport::Messages(MessageCost::Zero);
        let carrier = Carrier::Times(times);
        let algorithms = Algorithms::default();
        let iteration = self.carry_out(carrier, &network, &Method::default(), &algorithms)?;
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
        network: &Transport,
        method: &Method,
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
        let done = replayed(&mut written, &request)?;
        let replayed = done.replayed;
        Ok(GroupedIteration {
            time: replayed.time,
            forward: self.forward()?,
            simulator: done.simulator,
            messages: replayed.messages,
            bytes: replayed.bytes,
            stages: parts(&written, &replayed.timeline, replayed.time),
            chosen: done.collectives,
        })
    }

    /// The forward passes of all micro-batches, on average over stages and expert-parallel ranks.
    fn forward(&self) -> Result<Time, TrainingError> {
        let layers = self.stages.iter().flat_map(|stage| &stage.layers);
        let times = layers.flat_map(|layer| &layer.forward);
        let sum: u128 = times.map(|time| u128::from(time.ps())).sum();
        let devices = u128::from(self.groups.pipeline) * u128::from(self.groups.expert);
        let mean = Time::from_ps((sum / devices) as u64);
        Ok(mean.times(self.micro_batches)?)
    }

    /// About the memory of the replay: a collective of g ranks takes each of them at most 2 (g - 1) messages sent and as
    /// many received.
    fn expected_bytes(&self) -> Result<u64, TrainingError> {
        let collectives = self.collectives()?;
        let nodes: u128 = collectives
            .iter()
            .map(|(one, count)| u128::from(*count) * 4 * u128::from(one.ranks))
            .sum();
        let ranks = u128::from(self.groups.tensor) * u128::from(self.groups.data);
        Ok(u64::try_from(nodes * ranks * NODE_BYTES).unwrap_or(u64::MAX))
    }
}

/// Replays a trace, which is lent to the replay and put back.
fn replayed(written: &mut GroupedTrace, request: &ReplayRequest<'_>) -> Result<Done, TraceError> {
    let content = TraceContent::Calls(std::mem::take(&mut written.trace));
    let done = run(&content, request);
    if let TraceContent::Calls(trace) = content {
        written.trace = trace;
    }
    done
}
