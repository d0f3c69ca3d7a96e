//! Plans of a ring as plans of the graph of fibres that forms this ring.

use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_graph::{GraphLight, RingOfGraph};
use opticoll_fabric::family::wdm_ring::WdmLight;
use opticoll_plan::plan::{NamedRoutes, Plan};

/// Converts a plan of the ring that `graph` forms to a plan of `graph`. Every lightpath keeps its
/// slot, its fibre and its wavelength, and names its route. A row of the result stands for one
/// lightpath, because graphs have no rotations.
pub fn plan_of_graph(plan: Plan, graph: &Fabric, ring: &RingOfGraph) -> Plan {
    let mut plan = plan.into_expanded();
    let (mut routes, mut route) = (NamedRoutes::default(), Vec::new());
    for (transfer, light) in plan.light.iter_mut().enumerate() {
        interrupt::check();
        let (source, destination) = plan.schedule.ends(transfer);
        let WdmLight {
            direction,
            fibre,
            wavelength,
        } = WdmLight::from(*light);
        ring.route(source, destination, direction, &mut route);
        routes.assign(transfer, &route);
        *light = Light::from(GraphLight { fibre, wavelength });
    }
    Plan {
        fabric: graph.clone(),
        routes,
        ..plan
    }
}
