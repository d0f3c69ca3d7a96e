//! Record of the simulator `fluid`.

use crate::live::Live;
use crate::outcome::Outcome;
use crate::timing_model::{Case, Simulator, Unfit};
use crate::{NO_LINKS, SimulationError, TimingModel, fluid, fluid_options, require_network};
use opticoll_fabric::fabric::Fabric;

pub(super) const RECORD: Simulator = Simulator {
    in_network: true,
    run: Some(run),
    live: Some(live),
    bounded_by_loads: true,
    rule: |_, method| format!("under {}", method.start.unwrap_or_default().name()),
    bound_note: |_, _| {
        let share = fluid::ROUNDING;
        Some(format!(
            "times by fluid are rounded, by about {share:e} of them"
        ))
    },
    ..Simulator::new(
        "fluid",
        "Flows that share the links of electrical fabrics max-min fairly, under a start rule",
        "Bertsekas and Gallager, Data Networks, section 6.5; SimGrid's model without its \
               corrections",
        |fabric, _| has_links(fabric),
    )
};

/// Returns an error if the fabric has no links that messages can share.
pub(super) fn has_links(fabric: &Fabric) -> Result<(), Unfit> {
    match fabric.network() {
        Some(_) => Ok(()),
        None => Err(Unfit::Fabric(NO_LINKS)),
    }
}

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let options = fluid_options(&case.plan.fabric, case.method)?;
    fluid::simulate_plan(
        case.plan,
        case.size,
        case.method.start.unwrap_or_default(),
        &options,
    )
}

fn live<'a>(
    fabric: &'a Fabric,
    method: &'a TimingModel,
) -> Result<Box<dyn Live + 'a>, SimulationError> {
    let network = require_network(fabric, RECORD.name)?;
    let options = fluid_options(fabric, method)?;
    Ok(Box::new(fluid::DrivenFlows::new(network, &options)?))
}
