//! Record of the simulator `packet`.

use super::fluid::has_links;
use crate::live::Live;
use crate::outcome::Outcome;
use crate::timing_model::{Case, Simulator};
use crate::{SimulationError, TimingModel, packet, packet_settings};
use opticoll_fabric::fabric::Fabric;

pub(super) const RECORD: Simulator = Simulator {
    run: Some(run),
    live: Some(live),
    rule: |_, _| "packet by packet".into(),
    bound_note: |fabric, method| {
        let given = method.packet.placement.terminals(fabric.ranks()).is_some();
        let place = if given { "given" } else { "natural" };
        Some(format!(
            "ranks sit at the terminals of the {place} placement"
        ))
    },
    ..Simulator::new(
        "packet",
        "Chunks of messages on electrical fabrics, with virtual channels, credits and buffers",
        "Mubarak et al., A Case Study in Using Massively Parallel Simulation for \
               Extreme-Scale Torus Network Codesign, 2014; CODES's dragonfly",
        |fabric, _| has_links(fabric),
    )
};

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let settings = packet_settings(&case.plan.fabric, case.method)?;
    packet::simulate_plan(case.plan, case.size, &settings, case.watch)
}

fn live<'a>(
    fabric: &'a Fabric,
    method: &'a TimingModel,
) -> Result<Box<dyn Live + 'a>, SimulationError> {
    let settings = packet_settings(fabric, method)?;
    Ok(Box::new(packet::DrivenPackets::new(fabric, &settings)?))
}
