//! Deliveries of single chunks, and the interface of their replay.

use std::ops::Range;

use super::report::Report;
use super::{Violation, ViolationKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Action;

/// Effect of a chunk at its destination, whether switches take part or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The chunk replaces the chunk of the destination.
    Copy,
    /// The chunk is added to the chunk of the destination.
    Reduce,
}

impl From<Action> for Effect {
    fn from(action: Action) -> Effect {
        match action {
            Action::Copy | Action::Multicast => Effect::Copy,
            Action::Reduce | Action::Aggregate => Effect::Reduce,
        }
    }
}

/// Transmission of one chunk by a transfer.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) step: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) transfer: u32,
    pub(super) effect: Effect,
}

/// Rules that check the deliveries of a chunk.
pub(super) trait DeliveryRule {
    /// Replays all deliveries of `chunk`, which are sorted by step and not empty. Reports the rules
    /// that they break.
    fn replay(&mut self, chunk: u32, deliveries: &[Delivery], report: &mut Report);

    /// Reports the ranks that lack chunks of the range `chunks`, none of which is ever sent.
    fn idle(&mut self, chunks: Range<u32>, report: &mut Report);
}

/// Reports the ranks that lack chunks of the range `chunks`, none of which is ever sent. `lacking`
/// returns the ranks that lack a chunk, and `lacking_count` their number, which is the same for all
/// chunks of a block.
pub(super) fn report_idle<Ranks: Iterator<Item = u32>>(
    plan: &Plan,
    chunks: Range<u32>,
    lacking: impl Fn(u32) -> Ranks,
    lacking_count: impl Fn(u32) -> u64,
    missing: impl Fn(u32, u32) -> Violation,
    report: &mut Report,
) {
    let kind = ViolationKind::Missing;
    let pieces = plan.schedule.collective.pieces();
    let mut chunk = chunks.start;
    while chunk < chunks.end {
        let block_end = (u64::from(chunk / pieces) + 1) * u64::from(pieces);
        let end = block_end.min(u64::from(chunks.end)) as u32;
        let each = lacking_count(chunk);
        if each == 0 {
            chunk = end;
        } else if report.is_full(kind) {
            report.count(kind, each * u64::from(end - chunk));
            chunk = end;
        } else {
            for rank in lacking(chunk) {
                report.add(kind, || missing(rank, chunk));
            }
            chunk += 1;
        }
    }
}
