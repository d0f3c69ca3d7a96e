//! Record of the simulator `control`, and the check that a fabric has no central controller.

use crate::outcome::Outcome;
use crate::timing_model::{Case, Simulator, Unfit};
use crate::{Policy, SimulationError, control};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wss_grid::WssGrid;

pub(crate) const RECORD: Simulator = Simulator {
    run: Some(run),
    ..Simulator::new(
        "control",
        "Control protocol of tunable circuits, flow by flow: request, grant, tune, lock, send, \
         release",
        "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
               Optical Network, OFC 2024",
        |fabric, method| match method.policy {
            _ if fabric.network().is_some() => Err(Unfit::Fabric(
                "it is an electrical fabric without circuits; use fluid",
            )),
            _ if fabric.downcast::<WssGrid>().is_none() => Err(Unfit::Fabric(
                "its lasers are not tuned flow by flow; use circuit",
            )),
            None | Some(Policy::TwoTier) => Ok(()),
            Some(policy) => Err(Unfit::Policy(
                policy,
                match no_controller(fabric) {
                    Ok(()) => {
                        "lasers are tuned flow by flow; use two_tier, or the circuit simulator"
                    }
                    Err(_) => "a central controller answers flow by flow; use two_tier",
                },
            )),
        },
    )
};

/// Returns an error if the fabric has a central controller, which only `control` simulates.
pub(super) fn no_controller(fabric: &Fabric) -> Result<(), Unfit> {
    let grid = fabric.downcast::<WssGrid>();
    match grid.is_some_and(|grid| grid.controller.is_some()) {
        true => Err(Unfit::Fabric(
            "it does not model the queue of a central controller; use control with the policy \
             two_tier, or leave `controller` out of the fabric",
        )),
        false => Ok(()),
    }
}

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    control::simulate_within(case.plan, case.size, case.method.limit)
}
