//! A ring given as a graph is a `wdm_ring`: a faulty plan breaks the same rules on both.

use std::collections::BTreeSet;

use itertools::iproduct;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Machine};
use opticoll::family::wdm_graph::GraphLight;
use opticoll::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll::plan::{NamedRoutes, Plan, Repetition};
use opticoll::planner::plan as plan_by;
use opticoll::simulate::TimingModel;
use opticoll::spec::Spec;
use opticoll::units::Bytes;
use opticoll::verify::verify;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::change_light;

/// Returns the graph of the nodes and links of a ring: link 2 i leads from node i clockwise, and
/// link 2 i + 1 back.
fn graph_of(ring: &WdmRing) -> Fabric {
    let nodes = ring.nodes;
    let cables = (0..nodes).map(|node| format!("{node}-{}", (node + 1) % nodes));
    let cables: Vec<String> = cables.collect();
    let mut spec = Spec::new("wdm_graph")
        .with("ranks", nodes)
        .with("links", cables.join("+"));
    for (key, value) in ring.spec().options() {
        spec = match key {
            "ranks" => spec,
            "propagation" => spec.with("latency", value),
            "ports" => spec.with("transmitters", value).with("receivers", value),
            "broken" => spec.with("without", value),
            _ => spec.with(key, value),
        };
    }
    Fabric::parse(&spec.to_string()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// Returns the plan of a ring as a plan of the graph. Returns `None` if light crosses a link that
/// the graph does not have.
fn as_graph(plan: &Plan, graph: &Fabric) -> Option<Plan> {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let mut routes = NamedRoutes::default();
    let mut light = Vec::new();
    for transfer in 0..plan.len() {
        let (source, destination) = plan.schedule.ends(transfer);
        let on_ring = WdmLight::from(plan.light[transfer]);
        let (mut node, end) = (ring.node(source), ring.node(destination));
        let mut links = Vec::new();
        while node != end {
            let back = (node + ring.nodes - 1) % ring.nodes;
            let (link, next) = match on_ring.direction {
                Direction::Clockwise => (2 * node, (node + 1) % ring.nodes),
                Direction::CounterClockwise => (2 * back + 1, back),
            };
            links.push(graph.link_in_part(link)?);
            node = next;
        }
        routes.assign(transfer, &links);
        light.push(
            GraphLight {
                fibre: on_ring.fibre,
                wavelength: on_ring.wavelength,
            }
            .into(),
        );
    }
    Some(Plan {
        fabric: graph.clone(),
        light,
        routes,
        repetition: Repetition::NONE,
        ..plan.clone()
    })
}

/// Rings, the options of which the graph also has.
const RINGS: [&str; 16] = [
    "ranks=2,wavelengths=2",
    "ranks=6,wavelengths=2,propagation=300ns",
    "ranks=7,wavelengths=3,propagation=1us,conversion=1ns,flit=32B",
    "ranks=5,wavelengths=2,fibres=2,conversion=2ns,flit=32B,packet=128B",
    "ranks=8,wavelengths=4,ports=1",
    "ranks=8,wavelengths=2,ports=2,propagation=1us",
    "ranks=8,wavelengths=2,converters=full",
    "ranks=7,wavelengths=2,fibres=2,converters=full",
    "ranks=8,wavelengths=4,dead=1+2",
    "ranks=8,wavelengths=3,fibres=2,dead=0+1.2",
    "ranks=8,wavelengths=2,degraded=2-3@10Gb/s+w1@20Gb/s",
    "ranks=6,wavelengths=2,broken=2-3",
    "ranks=9,wavelengths=3,members=0+2+3+7,propagation=1us",
    "ranks=8,wavelengths=2,reach=3",
    "ranks=8,wavelengths=2,multicast=drop_and_continue,propagation=1us",
    "ranks=8,wavelengths=3,multicast=drop_and_continue,ports=2,degraded=1-2@10Gb/s",
];

/// Returns the expanded plans of all algorithms on a ring that have one for a collective.
fn plans(fabric: &Fabric, kind: CollectiveKind, algorithms: &[&str]) -> Vec<(String, Plan)> {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let size = Bytes::new(64 << 10);
    let mut plans = Vec::new();
    for algorithm in algorithms {
        let method = TimingModel::default();
        let spec = algorithm.parse().unwrap();
        if let Ok(planned) = plan_by(&spec, fabric, collective, size, &method) {
            let case = format!("{kind} by {algorithm} on {fabric}");
            plans.push((case, planned.plan.expanded().into_owned()));
        }
    }
    plans
}

/// Changes a random entry of a plan.
fn change(plan: &mut Plan, random: &mut Pcg64Mcg) {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let (wavelengths, fibres) = (ring.wavelengths as u16, ring.fibres as u8);
    let transfer = random.random_range(0..plan.len());
    let light = &mut plan.light[transfer];
    match random.random_range(0..6) {
        0 => change_light(light, |light: &mut WdmLight| {
            light.wavelength = random.random_range(0..wavelengths + 1);
        }),
        1 => change_light(light, |light: &mut WdmLight| {
            light.fibre = random.random_range(0..fibres + 1);
        }),
        2 => change_light(light, |light: &mut WdmLight| {
            light.direction = light.direction.opposite();
        }),
        3 => change_light(light, |light: &mut WdmLight| light.wavelength = CONVERTED),
        4 => plan.slot[transfer] = random.random_range(0..plan.slots() + 1),
        _ => {
            let other = random.random_range(0..plan.len());
            plan.light[transfer] = plan.light[other];
        }
    }
}

#[test]
fn faulty_plans_of_a_ring_break_the_same_rules_on_its_graph() {
    let kinds = |plan: &Plan| -> BTreeSet<&'static str> {
        let violations = verify(plan);
        violations
            .iter()
            .map(|violation| violation.kind.name())
            .collect()
    };
    let mut random = Pcg64Mcg::seed_from_u64(44);
    let mut seen = BTreeSet::new();
    let wanted = [
        CollectiveKind::AllGather,
        CollectiveKind::AllToAll,
        CollectiveKind::Broadcast,
        CollectiveKind::AllReduce,
    ];
    for (ring, kind) in iproduct!(RINGS, wanted) {
        let fabric = Fabric::parse(&format!("wdm_ring:{ring}")).unwrap();
        let graph = graph_of(fabric.downcast().unwrap());
        for (case, plan) in plans(&fabric, kind, &["relay_tree", "ring", "tree", "direct"]) {
            for mutant in 0..20 {
                let mut mutated = plan.clone();
                for _ in 0..random.random_range(1..5) {
                    change(&mut mutated, &mut random);
                }
                // A mutant over a cut has no route on the graph, which lacks the link.
                let Some(on_graph) = as_graph(&mutated, &graph) else {
                    continue;
                };
                let expected = kinds(&mutated);
                assert_eq!(kinds(&on_graph), expected, "{case}, mutant {mutant}");
                seen.extend(expected);
            }
        }
    }
    let by_light = [
        "collision",
        "conversion",
        "dead_wavelength",
        "fibre_range",
        "overload",
        "ports",
        "reach",
        "slot_range",
        "step_order",
        "wavelength_range",
    ];
    for kind in by_light {
        assert!(seen.contains(kind), "no mutant breaks {kind}: {seen:?}");
    }
}
