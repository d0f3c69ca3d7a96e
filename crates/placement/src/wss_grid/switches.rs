//! Settings of a grid's slow switches for a plan.

use opticoll_fabric::fabric::Plane;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::{Configuration, SwitchSetting, TunedLight};
use opticoll_plan::plan::Plan;

/// Returns the settings that the hops of a plan need: one output port for each input port and
/// wavelength. Returns no settings on fabrics other than `wss_grid`. The verifier checks whether
/// the settings are possible at the same time; if two have the same input and wavelength, this
/// function keeps the one with the lower output.
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
        Some(SwitchSetting {
            plane,
            switch,
            input,
            wavelength: light.wavelength.into(),
            output,
        })
    });
    Configuration::new(settings.collect())
}
