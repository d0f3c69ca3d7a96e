//! Configurations of a grid's slow switches for a plan.

use opticoll_fabric::fabric::Plane;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::{Configuration, SwitchConfiguration, TunedLight};
use opticoll_plan::plan::Plan;

/// Returns the configuration of the slow switches that a plan needs: for each hop, the output port
/// to which the input port forwards the wavelength. Fabrics other than `wss_grid` have an empty
/// configuration. If two hops need different outputs for the same input and wavelength, the
/// configuration contains the lower output; the verifier reports such conflicts.
pub fn configuration(plan: &Plan) -> Configuration {
    let Some(CircuitMachine::WssGrid(grid)) = plan.fabric.circuit_machine() else {
        return Configuration::default();
    };
    let hops = (0..plan.len()).flat_map(|transfer| plan.hops_of(transfer));
    let settings = hops.filter_map(|hop| {
        let light = TunedLight::from(hop.light);
        let plane = Plane::numbered(light.plane)?;
        let (switch, input) = grid.port(hop.from, plane);
        let (_, output) = grid.port(hop.to, plane);
        Some(SwitchConfiguration {
            plane,
            switch,
            input,
            wavelength: light.wavelength.into(),
            output,
        })
    });
    Configuration::new(settings.collect())
}
