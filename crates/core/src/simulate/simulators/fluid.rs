//! The record of `fluid`.

use super::{Case, Simulator, Unfit};
use crate::fabric::Fabric;
use crate::family::wss_grid::WssGrid;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::simulate::live::{BusiestLink, Happening, Live};
use crate::simulate::{Method, SimulationError, fluid, fluid_options, needed_network};
use crate::table::Details;
use crate::units::{Bytes, Time};

pub(super) const RECORD: Simulator = Simulator {
    run: Some(run),
    live: Some(live),
    bounded_by_loads: true,
    rule: |_, method| format!("under {}", method.start.unwrap_or_default().name()),
    beside_bound: |_, _| {
        let share = fluid::ROUNDING;
        Some(format!(
            "times by fluid are rounded, by about {share:e} of them"
        ))
    },
    ..Simulator::new(
        "fluid",
        "Flows share the links of electrical fabrics max-min fairly, under a start rule",
        "Bertsekas and Gallager, Data Networks, section 6.5; SimGrid's model without its \
               corrections",
        |fabric, _| has_links(fabric),
    )
};

/// Whether messages share links on a fabric.
pub(super) fn has_links(fabric: &Fabric) -> Result<(), Unfit> {
    match (fabric.network(), fabric.downcast::<WssGrid>()) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err(Unfit::Fabric(
            "it has no links that messages share; use control or circuit",
        )),
        (None, None) => Err(Unfit::Fabric(
            "it has no links that messages share; use circuit or closed_form",
        )),
    }
}

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let plan = case.plan.kept();
    let options = fluid_options(&plan.fabric, case.method)?;
    fluid::simulate_plan(
        plan,
        case.size,
        case.method.start.unwrap_or_default(),
        &options,
    )
}

fn live<'a>(fabric: &'a Fabric, method: &'a Method) -> Result<Box<dyn Live + 'a>, SimulationError> {
    let network = needed_network(fabric, RECORD.name)?;
    Ok(Box::new(Flows {
        flows: fluid::Driven::new(network, &fluid_options(fabric, method)?)?,
        network,
        ended: Vec::new(),
    }))
}

struct Flows<'a> {
    flows: fluid::Driven<'a>,
    network: &'a dyn Network,
    ended: Vec<u32>,
}

impl Live for Flows<'_> {
    fn send(
        &mut self,
        number: u32,
        ends: (u32, u32),
        bytes: Bytes,
        ready: Time,
    ) -> Result<(), SimulationError> {
        Ok(self.flows.start(number, ends, bytes, ready)?)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(self.flows.next_time()?)
    }

    fn advance(&mut self, happened: &mut Vec<Happening>) -> Result<(), SimulationError> {
        let now = self.flows.next_time()?.unwrap_or(Time::ZERO);
        self.flows.advance(&mut self.ended)?;
        let ended = self.ended.drain(..);
        happened.extend(ended.map(|message| Happening::arrival(message, now)));
        Ok(())
    }

    fn close(self: Box<Self>, time: Time) -> Result<Details, SimulationError> {
        let links = self.flows.close()?.links.bytes;
        Ok(BusiestLink::of_links(self.network, &links, time))
    }
}
