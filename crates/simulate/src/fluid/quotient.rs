//! Flows that are alike are simulated once: one flow for each colour of an equitable partition.
//!
//! # The partition
//!
//! Links, ranks and flows have colours. The colours are *equitable* if
//!
//! 1. links of one colour have the same rate, latency and sharing;
//! 2. flows of one colour are of one step and have the same bytes; their sources have one colour, their
//!    destinations have one colour, and the links of their routes have the same colours in order;
//! 3. each link of colour L carries the same number m(c, L) of flows of colour c;
//! 4. each rank of colour R sends the same number of flows of colour c, and receives the same number.
//!
//! [`partition`] finds such colours by refinement: it tells apart what a condition tells apart, until
//! no condition does. It compares hashes, so at the end all conditions are checked with exact counts.
//!
//! # Why one flow for each colour is enough
//!
//! **Rates.** Suppose that, of each colour, either all flows are moving or none, with the same weight. Give
//! each colour of links the level mu_L, and each colour of flows the level x_c = min of mu_L over
//! the colours of its route, where the mu_L solve
//!
//! ```text
//! sum over c on L of m(c, L) w_c min(mu_L, y_cL) = C_L,    y_cL = min of mu_K over the other colours of c
//! ```
//!
//! (infinite where the sum never exceeds C_L). By conditions 2 and 3 these are the equations of the single
//! links ([`super`]): give each link the level of its colour, and every equation holds. Their solution has
//! unique x_f, so x_f = x_c for each flow f of colour c. The relaxation of [`super::shares`] finds it,
//! since its proof needs nothing of a class's weight on a link but that it is positive. A link of the
//! colour that bounds c is full, and no flow on it has a higher level: it is a bottleneck of
//! each flow of colour c whose route it is on, and each such route has a link of that colour.
//!
//! **Times.** The flows of a colour start, begin to move and end at the same instants, by induction over
//! instants: a rank may go on when the flows that it sends and receives in earlier steps have ended. By
//! condition 4 those are of the same colours for all ranks of a colour, and these have ended for all or
//! for none. So the flows of a colour may start at one instant, under each start rule. They begin to
//! move after the same latency, and weigh the same, by condition 2. They have the same rate at all times,
//! as shown, and so they end at one instant.
//!
//! So the engine runs on the *quotient*: a flow for each colour of flows, a link for each colour of links,
//! a rank for each colour of ranks. Afterwards each flow, link and rank is told what its colour did. The
//! results are those of the plain engine but for rounding, since sums are added in another order, and but
//! for the choice of a flow's bottleneck among several.

mod partition;
#[cfg(test)]
mod tests;

use partition::Partition;

use super::disjoint::note_last;
use super::engine::FluidEngine;
use super::flow_log::FlowLog;
use super::ledger::FlowLedger;
use super::program::{StepFlow, Steps, check_count};
use super::steps::Stepped;
use super::{FlowOptions, FluidError, StartRule};
use crate::outcome::NONE;
use opticoll_fabric::network::Network;

/// When a partition is looked for, and which one is worth it.
pub(super) struct Worth {
    /// Flows, at least.
    pub(super) flows: usize,
    /// Flows of a step on average, at least, over the steps up to each.
    pub(super) flows_per_step: usize,
    /// Flows of a colour on average, at least.
    pub(super) flows_per_colour: usize,
}

impl Worth {
    pub(super) const USUAL: Worth = Worth {
        flows: 1 << 14,
        flows_per_step: 1 << 12,
        flows_per_colour: 16,
    };
}

/// Steps, at most: more are left to the plain engine, which has one in memory at a time.
const MOST_STEPS: usize = 64;

/// Flows, at most, for the same reason.
const MOST_FLOWS: usize = 1 << 25;

/// The flows of all steps.
struct StepFlows {
    flows: Vec<StepFlow>,
    /// By step: its first flow; and their number.
    firsts: Vec<usize>,
}

/// Runs flows in steps by their quotient, to the ledger and the number of flows; none where no
/// partition is worth it.
///
/// # Errors
/// As [`super::simulate_steps`].
pub(super) fn run(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
    worth: &Worth,
) -> Result<Option<(FlowLedger, u64)>, FluidError> {
    let Some(flows) = StepFlows::collect(steps, worth)? else {
        return Ok(None);
    };
    let most = flows.flows.len() / worth.flows_per_colour;
    let Some(partition) = Partition::refine(network, &flows, most) else {
        return Ok(None);
    };
    let Some(quotient) = partition.quotient(network, &flows) else {
        return Ok(None);
    };
    let Some(bytes) = quotient.link_bytes() else {
        return Ok(None);
    };
    let of_colours = FlowOptions {
        record_flows: true,
        ..options.clone()
    };
    let mut engine = FluidEngine::of_quotient(&quotient, &of_colours)?;
    engine.run(&mut Stepped::of_quotient(&quotient, rule))?;
    let (links, ranks) = (&partition.links, &partition.ranks);
    let (mut ledger, log) = engine
        .ledger
        .unfold(links, &bytes, ranks, options.record_flows);
    flows.tell(&partition, &log, rule, network, &mut ledger)?;
    Ok(Some((ledger, flows.flows.len() as u64)))
}

impl StepFlows {
    /// The flows of all steps, if they are many and the steps are few.
    fn collect(steps: &dyn Steps, worth: &Worth) -> Result<Option<StepFlows>, FluidError> {
        if steps.steps() > MOST_STEPS {
            return Ok(None);
        }
        let (mut flows, mut firsts) = (Vec::new(), vec![0]);
        for step in 0..steps.steps() {
            steps.step(step, &mut flows)?;
            check_count(flows.len(), 0)?;
            if flows.len() < worth.flows_per_step * (step + 1) || flows.len() > MOST_FLOWS {
                return Ok(None);
            }
            firsts.push(flows.len());
        }
        let enough = flows.len() >= worth.flows;
        Ok(enough.then_some(StepFlows { flows, firsts }))
    }

    /// Tells each flow what its colour did, and its ranks what it carried.
    fn tell(
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
        // The latest end is known to a fraction of a picosecond; those of single flows are rounded.
        let last_end = std::mem::take(&mut ledger.last_end);
        let logged = |flow: usize| log.flow(partition.flows[flow]).unwrap_or_default();
        let mut last = vec![(NONE, 0.0); partition.ranks.len()];
        let mut route = Vec::new();
        for step in self.firsts.windows(2) {
            let latest = ledger.last_flow;
            for index in step[0]..step[1] {
                let (flow, of_colour) = (&self.flows[index], logged(index));
                let [source, destination] =
                    [flow.source, flow.destination].map(|rank| last[rank as usize]);
                let waited_for = rule.waited_for((source, destination), false, latest);
                ledger.start(index as u32, of_colour.start.ps() as f64, waited_for)?;
                if of_colour.bottleneck != NONE {
                    route.clear();
                    network.route(flow.source, flow.destination, &mut route);
                    let links = &partition.links;
                    let is_full = |&&link: &&u32| links[link as usize] == of_colour.bottleneck;
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
