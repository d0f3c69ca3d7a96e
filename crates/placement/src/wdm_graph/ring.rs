//! Plans of a ring as plans of the graph of fibres with the same lightpaths, and the reverse.

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_graph::{GraphLight, RingAndGraph};
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight};
use opticoll_plan::plan::{NamedRoutes, Plan};

/// Converts a plan of a ring to a plan of the graph. Every lightpath keeps its slot, its fibre and
/// its wavelength, and names its route. A row of the result stands for one lightpath, because
/// graphs have no rotations.
pub fn plan_of_graph(plan: Plan, pair: &RingAndGraph) -> Plan {
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
        pair.route(source, destination, direction, &mut route);
        routes.assign(transfer, &route);
        *light = Light::from(GraphLight { fibre, wavelength });
    }
    Plan {
        fabric: pair.graph.clone(),
        routes,
        ..plan
    }
}

/// Converts a plan of the graph to a plan of the ring. Every lightpath keeps its slot, its fibre,
/// its wavelength, and the direction of its first link.
pub fn plan_of_ring(mut plan: Plan, pair: &RingAndGraph) -> Plan {
    let clockwise = pair.clockwise_links();
    for (transfer, light) in plan.light.iter_mut().enumerate() {
        interrupt::check();
        let route = plan.routes.of(transfer).unwrap_or_default();
        let is_clockwise = route.first().is_some_and(|link| clockwise.contains(link));
        let GraphLight { fibre, wavelength } = GraphLight::from(*light);
        *light = Light::from(WdmLight {
            direction: Direction::BOTH[usize::from(!is_clockwise)],
            fibre,
            wavelength,
        });
    }
    Plan {
        fabric: pair.ring.clone(),
        routes: NamedRoutes::default(),
        ..plan
    }
}
