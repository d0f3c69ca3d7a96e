//! Record of the simulator `circuit`, which also sends single messages over circuits on demand.

use super::control::no_controller;
use crate::live::Live;
use crate::on_demand::OnDemand;
use crate::outcome::{ChangedSetting, Outcome};
use crate::timing_model::{Case, Simulator, Unfit};
use crate::{SimulationError, TimingModel, circuit, default_policy};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::fabric::circuits::{Paths, ReconfigurationCharge};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::family::wdm_ring::WdmRing;

pub(super) const RECORD: Simulator = Simulator {
    run: Some(run),
    live: Some(live),
    bounded_by_loads: true,
    ..Simulator::new(
        "circuit",
        "Plan on an optical fabric, lightpath by lightpath, under any reconfiguration policy",
        "opticoll",
        |fabric, _| match fabric.network() {
            None => no_controller(fabric),
            Some(_) => Err(Unfit::Fabric(
                "it is an electrical fabric without circuits; use fluid",
            )),
        },
    )
};

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let fabric = &case.plan.fabric;
    let policy = case.method.policy.unwrap_or(default_policy(fabric));
    let policies = fabric
        .circuits()
        .map_or(&[][..], |circuits| circuits.policies());
    let groups = |(_, charge): &(_, _)| matches!(charge, ReconfigurationCharge::Groups { .. });
    if case.method.paths.is_some() && !policies.iter().any(groups) {
        let family = fabric.family();
        return Err(SimulationError::invalid_value(
            "paths",
            format!(
                "on {family} all circuits of a slot are set up together; only fabrics such as \
                 lightpath_grid keep circuits for later slots"
            ),
        ));
    }
    let paths = case.method.paths.unwrap_or_default();
    let mut outcome =
        circuit::simulate_within(case.plan, case.size, policy, paths, case.method.limit)?;
    if paths != Paths::default() {
        outcome.settings.push(ChangedSetting {
            name: "paths",
            value: paths.name().into(),
            plain: Paths::default().name(),
        });
    }
    Ok(outcome)
}

fn live<'a>(
    fabric: &'a Fabric,
    method: &'a TimingModel,
) -> Result<Box<dyn Live + 'a>, SimulationError> {
    let policy = method.policy.unwrap_or(default_policy(fabric));
    let on_demand = match fabric.downcast::<WdmGraph>() {
        Some(graph) => OnDemand::on_graph(graph, policy)?,
        None => OnDemand::new(
            crate::require_machine::<WdmRing>(fabric, RECORD.name)?,
            policy,
        )?,
    };
    Ok(Box::new(on_demand))
}
