//! Simulation of one flow for each colour of flows, where the colours form an equitable partition.
//!
//! # The partition
//!
//! Links, ranks and flows have colours. The colours are *equitable* if
//!
//! 1. links of one colour have the same rate, latency and sharing;
//! 2. flows of one colour belong to one step and have the same bytes; their sources have one
//!    colour, their destinations have one colour, and the links of their routes have the same
//!    colours in order;
//! 3. each link of colour L carries the same number m(c, L) of flows of colour c;
//! 4. each rank of colour R sends the same number of flows of colour c, and receives the same
//!    number.
//!
//! [`partition`] computes such colours by refinement: it divides colours until no condition is
//! violated. Because the refinement compares hashes, exact counts check all conditions at the end.
//!
//! # Proof that one flow for each colour is enough
//!
//! **Rates.** Suppose that for each colour either all flows move or none, with the same weight.
//! Give each colour L of links the level mu_L, and each colour c of flows the level x_c = min of
//! mu_L over the colours of its route, where the mu_L solve
//!
//! ```text
//! sum over c on L of m(c, L) w_c min(mu_L, y_cL) = C_L
//! y_cL = min of mu_K over the other colours K of c
//! ```
//!
//! (infinite if the sum never exceeds C_L). By conditions 2 and 3 these are the equations of the
//! single links ([`super`]): if each link has the level of its colour, every equation holds. Their
//! solution has unique x_f, so x_f = x_c for each flow f of colour c. The relaxation of
//! [`super::shares`] finds the solution, because its proof requires only that the weight of a class
//! on a link is positive. A link of the colour that limits c is full, and no flow on it has a
//! higher level. The link is therefore a bottleneck of each flow of colour c whose route contains
//! it, and each such route contains a link of that colour.
//!
//! **Times.** The flows of a colour start, begin to move and end at the same instants. The proof is
//! by induction over instants. A rank may continue when the flows that it sends and receives in
//! earlier steps have ended. By condition 4 these flows have the same colours for all ranks of a
//! colour, so they have ended for all of these ranks or for none. The flows of a colour may
//! therefore start at the same instant, under each start rule. By condition 2 they begin to move
//! after the same latency and have the same weight. They have the same rate at all times, as shown
//! above, and therefore end at the same instant.
//!
//! The engine therefore simulates the *quotient*: one flow for each colour of flows, one link for
//! each colour of links, one rank for each colour of ranks. Afterwards each flow, link and rank
//! gets the results of its colour. These results equal those of the plain engine, with two
//! exceptions. Sums are added in another order, which changes rounding errors. If a flow has
//! several bottlenecks, another bottleneck may be recorded.

mod partition;
#[cfg(test)]
mod tests;

use partition::Partition;

use super::engine::FluidEngine;
use super::flow_log::FlowLog;
use super::ledger::FlowLedger;
use super::non_interfering::note_last;
use super::program::{StepFlow, Steps, check_count};
use super::steps::Stepped;
use super::{FlowOptions, FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_fabric::network::Network;

/// Minimum numbers of flows for which a quotient is used.
pub(super) struct QuotientLimits {
    /// Minimum number of flows.
    pub(super) min_flows: usize,
    /// Minimum mean number of flows per step. For each step, the mean of this step and all earlier
    /// steps must reach this minimum.
    pub(super) min_flows_per_step: usize,
    /// Minimum mean number of flows per colour.
    pub(super) min_flows_per_colour: usize,
}

impl QuotientLimits {
    pub(super) const DEFAULT: QuotientLimits = QuotientLimits {
        min_flows: 1 << 14,
        min_flows_per_step: 1 << 12,
        min_flows_per_colour: 16,
    };
}

/// Maximum number of steps. The plain engine, which stores few steps at a time, has no maximum.
const MAX_STEPS: usize = 64;

/// Maximum number of flows, which are all in memory at the same time.
const MAX_FLOWS: usize = 1 << 25;

/// Flows of all steps, one step after the other.
struct StepFlows {
    flows: Vec<StepFlow>,
    /// Index of the first flow of each step; the last entry is the number of all flows.
    firsts: Vec<usize>,
}

/// Simulates flows in steps by their quotient: one flow for each colour of flows. Returns the
/// ledger and the number of flows. Returns `None` if there are too many steps or colours, or too
/// few or too many flows.
pub(super) fn run(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
    limits: &QuotientLimits,
) -> Result<Option<(FlowLedger, u64)>, FluidError> {
    let Some(flows) = StepFlows::collect(steps, limits)? else {
        return Ok(None);
    };
    let max_colours = flows.flows.len() / limits.min_flows_per_colour;
    let Some(partition) = Partition::refine(network, &flows, max_colours) else {
        return Ok(None);
    };
    let Some(quotient) = partition.quotient(network, &flows) else {
        return Ok(None);
    };
    let Some(bytes) = quotient.link_bytes() else {
        return Ok(None);
    };
    let quotient_options = FlowOptions {
        record_flows: true,
        ..options.clone()
    };
    let mut engine = FluidEngine::for_quotient(&quotient, &quotient_options)?;
    engine.run(&mut Stepped::for_quotient(&quotient, rule))?;
    let (links, ranks) = (&partition.links, &partition.ranks);
    let (mut ledger, log) = engine
        .ledger
        .expand(links, &bytes, ranks, options.record_flows);
    flows.write_results(&partition, &log, rule, network, &mut ledger)?;
    Ok(Some((ledger, flows.flows.len() as u64)))
}

impl StepFlows {
    /// Collects the flows of all steps; `None` if there are too few flows or too many steps.
    fn collect(
        steps: &dyn Steps,
        limits: &QuotientLimits,
    ) -> Result<Option<StepFlows>, FluidError> {
        if steps.steps() > MAX_STEPS {
            return Ok(None);
        }
        let (mut flows, mut firsts) = (Vec::new(), vec![0]);
        for step in 0..steps.steps() {
            steps.step(step, &mut flows)?;
            check_count(flows.len(), 0)?;
            let min_flows = limits.min_flows_per_step * (step + 1);
            if flows.len() < min_flows || flows.len() > MAX_FLOWS {
                return Ok(None);
            }
            firsts.push(flows.len());
        }
        let enough = flows.len() >= limits.min_flows;
        Ok(enough.then_some(StepFlows { flows, firsts }))
    }

    /// Adds the bytes of each flow to the totals of its two ranks. If the ledger records flows,
    /// also records for each flow the times and the bottleneck of its colour.
    fn write_results(
        &self,
        partition: &Partition,
        log: &FlowLog,
        rule: StartRule,
        network: &dyn Network,
        ledger: &mut FlowLedger,
    ) -> Result<(), FluidError> {
        for flow in &self.flows {
            let ends = (flow.source, flow.destination);
            ledger.replay_ranks(ends, flow.bytes.into(), 1, 0.0);
        }
        if !ledger.records_flows() {
            return Ok(());
        }
        // `last_end` is exact to a fraction of a picosecond; the ends of single flows are rounded.
        let last_end = std::mem::take(&mut ledger.last_end);
        let logged = |flow: usize| log.flow(partition.flows[flow]).unwrap_or_default();
        let mut last = vec![(NONE, 0.0); partition.ranks.len()];
        let mut route = Vec::new();
        for step in self.firsts.windows(2) {
            let latest = ledger.last_flow;
            for index in step[0]..step[1] {
                let (flow, colour) = (&self.flows[index], logged(index));
                let [source, destination] =
                    [flow.source, flow.destination].map(|rank| last[rank as usize]);
                let waited_for = rule.waited_for((source, destination), false, latest);
                ledger.start(index as u32, colour.start.ps() as f64, waited_for)?;
                if colour.bottleneck != NONE {
                    route.clear();
                    network.route(flow.source, flow.destination, &mut route);
                    let links = &partition.links;
                    let is_full = |&&link: &&u32| links[link as usize] == colour.bottleneck;
                    let bottleneck = route.iter().find(is_full).copied();
                    ledger.rate(index as u32, 0.0, bottleneck);
                }
            }
            for index in step[0]..step[1] {
                let end = logged(index).end.ps() as f64;
                ledger.note_end(index as u32, end)?;
                note_last(&mut last, &self.flows[index], index as u32, end);
            }
        }
        ledger.last_end = last_end;
        Ok(())
    }
}
