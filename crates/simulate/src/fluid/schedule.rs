//! Steps and messages of a schedule.

use super::program::{FlowMembers, StepFlow, Steps};
use crate::in_network::Groups;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, UnitError};
use opticoll_plan::plan::{NamedRoutes, StepMessages};
use opticoll_plan::schedule::Schedule;

/// Maximum number of chunks of unequal sizes for which a table of offsets is stored (8 MB).
const MAX_OFFSETS: usize = 1 << 20;

/// Transfers of a schedule as steps of flows, for a collective of a given size.
pub(super) struct ScheduledSteps<'a> {
    schedule: &'a Schedule,
    routes: &'a NamedRoutes,
    groups: &'a Groups,
    size: Bytes,
    /// Bytes of each chunk, if all chunks have the same size.
    uniform: Option<u64>,
    /// Number of bytes in all chunks before each chunk, indexed by chunk; the last entry is the
    /// number of bytes in all chunks. Empty if all chunks have the same size or if there are too
    /// many chunks.
    offsets: Vec<u64>,
}

impl<'a> ScheduledSteps<'a> {
    pub(super) fn new(
        schedule: &'a Schedule,
        routes: &'a NamedRoutes,
        groups: &'a Groups,
        size: Bytes,
    ) -> Result<ScheduledSteps<'a>, UnitError> {
        let collective = &schedule.collective;
        let uniform = collective.uniform_chunk_bytes(size).map(Bytes::get);
        let chunks = collective.chunks();
        let mut offsets = Vec::new();
        // A table saves time only if most of its entries are looked up.
        if uniform.is_none() && (chunks as usize) < MAX_OFFSETS.min(schedule.len()) {
            for chunk in 0..=chunks {
                offsets.push(collective.range_bytes(size, 0, chunk)?.get());
            }
        }
        Ok(ScheduledSteps {
            schedule,
            routes,
            groups,
            size,
            uniform,
            offsets,
        })
    }

    fn range_bytes(&self, chunk: u32, count: u32) -> Result<u64, UnitError> {
        if let Some(bytes) = self.uniform
            && let Some(bytes) = bytes.checked_mul(u64::from(count))
        {
            return Ok(bytes);
        }
        let end = chunk as usize + count as usize;
        if let Some(end) = self.offsets.get(end) {
            return Ok(end - self.offsets[chunk as usize]);
        }
        let collective = &self.schedule.collective;
        Ok(collective.range_bytes(self.size, chunk, count)?.get())
    }
}

impl Steps for ScheduledSteps<'_> {
    fn steps(&self) -> usize {
        self.schedule.steps()
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let mut messages = StepMessages::of(self.schedule, self.routes, step);
        let before = flows.len();
        for (place, transfer) in self.schedule.columns(step).transfers().enumerate() {
            interrupt::check();
            let bytes = self.range_bytes(transfer.chunk, transfer.count)?;
            if let Some(message) = messages.earlier(place) {
                // All transfers of a group carry the same chunks.
                if transfer.action.is_in_network() {
                    continue;
                }
                let message_bytes: &mut u64 = &mut flows[before + message].bytes;
                *message_bytes =
                    message_bytes
                        .checked_add(bytes)
                        .ok_or_else(|| UnitError::Overflow {
                            what: format!("a message of {message_bytes} and {bytes} bytes"),
                            smallest: "bytes",
                        })?;
                continue;
            }
            flows.push(StepFlow {
                source: transfer.source,
                destination: transfer.destination,
                bytes,
            });
        }
        Ok(())
    }

    fn names_routes(&self) -> bool {
        !self.groups.routes.is_empty()
    }

    fn routes(&self, step: usize, routes: &mut Vec<u32>) {
        if self.names_routes() {
            let firsts = StepMessages::firsts(self.schedule, self.routes, step);
            routes.extend(firsts.map(|transfer| self.groups.routes.number(transfer)));
        }
    }

    fn members(&self, step: usize, members: &mut Vec<FlowMembers>) {
        if !self.groups.exist() {
            return;
        }
        let actions = self.schedule.columns(step).action();
        let start = self.schedule.step(step).start;
        let firsts = StepMessages::firsts(self.schedule, self.routes, step);
        for (flow, transfer) in firsts.enumerate() {
            if let Some(ranks) = self.groups.members(transfer) {
                members.push(FlowMembers {
                    flow,
                    ranks: ranks.into(),
                    send: actions[transfer - start].adds(),
                });
            }
        }
    }
}
