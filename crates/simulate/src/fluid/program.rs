//! Interface between the engine and the programs that start flows.

use super::ledger::FlowLedger;
use super::{FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_base::units::UnitError;

/// Flow that may start.
#[derive(Clone, Copy)]
pub(super) struct FlowStart {
    pub(super) flow: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Index of the route that a plan names for the flow, or
    /// [`FABRIC_ROUTE`](opticoll_plan::plan::routes::FABRIC_ROUTE).
    pub(super) route: u32,
    pub(super) bytes: u64,
    /// Maximum rate in bytes per ps, or infinity.
    pub(super) cap: f64,
    /// Earliest start (ps).
    pub(super) start: f64,
}

/// End of a message at its sender, its receiver or both.
#[derive(Clone, Copy)]
pub(super) struct FlowEnd {
    pub(super) flow: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// Program that decides when messages start.
pub(super) trait FlowProgram {
    /// Handles the events of the instant `now` (ps), and appends to `ready` the messages that may
    /// start at `now` or later. `quiet` is true if no message is under way. Returns the present
    /// instant, which the program may advance only if `quiet` is true.
    fn advance(
        &mut self,
        now: f64,
        events: &[FlowEnd],
        quiet: bool,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError>;
}

/// Flow of a step: bytes that one rank sends to another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepFlow {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank, which differs from the sending rank.
    pub destination: u32,
    /// Size in bytes.
    pub bytes: u64,
}

/// Further ranks of a flow: receivers of a multicast or senders of an aggregation. The flow ends
/// for all its ranks at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMembers {
    /// Index of the flow in its step.
    pub flow: usize,
    /// Ranks, without the source and the destination of the flow.
    pub ranks: Box<[u32]>,
    /// True if these ranks send, false if they receive.
    pub send: bool,
}

/// Flows in steps. Each step is generated on request, so not all flows need be in memory.
pub trait Steps {
    /// Returns the number of steps.
    fn steps(&self) -> usize;

    /// Appends the flows of step `step` to `flows`.
    ///
    /// # Errors
    /// A size exceeds 64 bits.
    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError>;

    /// Returns whether a plan names routes for the flows.
    fn names_routes(&self) -> bool {
        false
    }

    /// Appends the index of the route of each flow in a step to `routes`, if a plan names routes.
    fn routes(&self, _step: usize, _routes: &mut Vec<u32>) {}

    /// Appends the further ranks of all multicasts and aggregations in a step to `members`, in the
    /// order of flows.
    fn members(&self, _step: usize, _members: &mut Vec<FlowMembers>) {}
}

/// Checks that 32 bits can number `more` flows after the first `flows` flows.
pub(super) fn check_count(more: usize, flows: u32) -> Result<(), FluidError> {
    if more >= (NONE - flows) as usize {
        return Err(FluidError::TooMany);
    }
    Ok(())
}

impl StartRule {
    /// Returns the index of the flow whose end allowed a new flow to start, or [`NONE`]. `source`
    /// and `destination` each contain the index and the end (ps) of the flow that ended last at the
    /// source or destination of the new flow. `latest` is the index of the flow that ended last at
    /// any rank. A new flow that is `eager` does not wait for its receiver.
    pub(super) fn waited_for(
        self,
        (source, destination): ((u32, f64), (u32, f64)),
        eager: bool,
        latest: u32,
    ) -> u32 {
        let destination_is_later = source.0 == NONE || destination.1 > source.1;
        match self {
            StartRule::Step => latest,
            StartRule::Rendezvous if destination.0 != NONE && !eager && destination_is_later => {
                destination.0
            }
            StartRule::Sender | StartRule::Rendezvous | StartRule::Link => source.0,
        }
    }
}
