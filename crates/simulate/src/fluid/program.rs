//! What asks the engine for flows, and what it hears of them.

use super::ledger::FlowLedger;
use super::{FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_base::units::UnitError;

/// A flow that may start.
#[derive(Clone, Copy)]
pub(super) struct FlowStart {
    pub(super) flow: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// The route that a plan names for it; [`OF_FABRIC`] otherwise.
    pub(super) route: u32,
    pub(super) bytes: u64,
    /// Bytes per ps, or infinite.
    pub(super) cap: f64,
    /// The instant from which it may start (ps).
    pub(super) start: f64,
}

/// An end of a message at its sender, its receiver or both.
#[derive(Clone, Copy)]
pub(super) struct FlowEnd {
    pub(super) flow: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// What decides when messages start.
pub(super) trait FlowProgram {
    /// Takes the events of an instant and gives the messages that may start now (or later, by
    /// their `start`). `quiet`: nothing is under way. Returns the instant, which it may move on
    /// only when all is quiet.
    fn advance(
        &mut self,
        now: f64,
        events: &[FlowEnd],
        quiet: bool,
        ready: &mut Vec<FlowStart>,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError>;
}

/// Bytes from one rank to another in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepFlow {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank, another one.
    pub destination: u32,
    /// Its size.
    pub bytes: u64,
}

/// Flows in steps, made step by step, so that they need not be in memory all at once.
pub trait Steps {
    /// The number of steps.
    fn steps(&self) -> usize;

    /// Appends the flows of a step.
    ///
    /// # Errors
    /// A size beyond 64 bits.
    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError>;

    /// Whether flows have routes that are not the network's.
    fn names_routes(&self) -> bool {
        false
    }

    /// Appends the number of the route of each flow of a step, where any are named.
    fn routes(&self, _step: usize, _routes: &mut Vec<u32>) {}
}

/// Whether so many more flows can be numbered after the first ones.
pub(super) fn check_count(more: usize, flows: u32) -> Result<(), FluidError> {
    if more >= (NONE - flows) as usize {
        return Err(FluidError::TooMany);
    }
    Ok(())
}

impl StartRule {
    /// The flow whose end let one start: of those that ended last at its two ends, with the times,
    /// and of all. An eager flow does not wait for its receiver.
    pub(super) fn waited_for(
        self,
        (source, destination): ((u32, f64), (u32, f64)),
        eager: bool,
        latest: u32,
    ) -> u32 {
        let by_destination = source.0 == NONE || destination.1 > source.1;
        match self {
            StartRule::Step => latest,
            StartRule::Rendezvous if destination.0 != NONE && !eager && by_destination => {
                destination.0
            }
            StartRule::Sender | StartRule::Rendezvous | StartRule::Link => source.0,
        }
    }
}
