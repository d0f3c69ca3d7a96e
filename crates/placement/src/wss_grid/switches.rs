//! How the slow switches of a grid are set for a plan.

use opticoll_fabric::fabric::Plane;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::wss_grid::{Configuration, SwitchSetting, TunedLight};
use opticoll_plan::plan::Plan;

/// The settings that the hops of a plan need, for each input port and wavelength one output port; none on other
/// fabrics than a grid of tunable circuits. Whether they can all be had at once is the verifier's business: of
/// two for one input and wavelength the first is taken.
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
