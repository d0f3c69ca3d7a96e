//! A ring given as a graph of fibres has the plans, times and bounds of the ring.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Machine};
use opticoll::family::wdm_graph::{GraphLight, RingAndGraph, WdmGraph};
use opticoll::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll::plan::Plan;
use opticoll::planner::{self, Planned, PlanningTask};
use opticoll::simulate::outcome::Outcome;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::spec::Spec;
use opticoll::units::Bytes;

use crate::{leaves_out, rows};

/// Rings and the graphs that form them, with the vertices of the graph in the order of the nodes.
/// Both have the options of the third cell.
const MACHINES: &str = "\
ranks=6 | ranks=6,links=0-1+1-2+2-3+3-4+4-5+5-0 | wavelengths=3,conversion=1ns,flit=32B | 0 1 2 3 4 5
ranks=8 | ranks=8,links=7-0+6-7+5-6+4-5+3>4+4>3+2-3+1-2+0-1 | wavelengths=4,fibres=2
    | 0 1 2 3 4 5 6 7
ranks=5 | ranks=5,links=0-1+1-2+2-3+3-4+4-0 | wavelengths=2,converters=full | 0 1 2 3 4
ranks=7,ports=2 | ranks=7,links=0-1+1-2+2-3+3-4+4-5+5-6+6-0,transmitters=2,receivers=2
    | wavelengths=4,dead=1+2 | 0 1 2 3 4 5 6
ranks=6,propagation=5us | ranks=6,links=0-1+1-2+2-3+3-4+4-5+5-0,latency=5us
    | wavelengths=2,reach=2 | 0 1 2 3 4 5
ranks=6,broken=5-0 | ranks=6,links=0-1+1-2+2-3+3-4+4-5 | wavelengths=4 | 0 1 2 3 4 5
ranks=6,broken=2-3 | ranks=6,links=3-4+4-5+5-0+0-1+1-2 | wavelengths=2 | 0 1 2 3 4 5
ranks=5,broken=1-2ccw | ranks=5,links=0-1+1>2+2-3+3-4+4-0 | wavelengths=2 | 0 1 2 3 4
ranks=6,degraded=1-2@10Gb/s+4>5@20Gb/s
    | ranks=6,links=0-1+1-2@10Gb/s+2-3+3-4+4>5@20Gb/s+5>4+5-0 | wavelengths=2 | 0 1 2 3 4 5
ranks=8,members=0+2-3+6 | ranks=4,switches=4,links=0-4+4-1+1-2+2-5+5-6+6-3+3-7+7-0
    | wavelengths=3 | 0 4 1 2 5 6 3 7
ranks=6 | ranks=6,links=0-1+1-2+2-3+3-4+4-5+5-0 | wavelengths=2,without=3 | 0 1 2 5 3 4
ranks=2 | ranks=2,links=0-1+1-0 | wavelengths=2 | 0 1
ranks=2,broken=1-0 | ranks=2,links=0-1 | wavelengths=2 | 0 1
";

/// Options of algorithms that are tried in addition to the defaults.
const VARIANTS: &str = "\
all_to_all | direct:order=at_once | auto
all_gather | direct:order=at_once | optimal
all_gather | ring:stripes=all | auto
all_gather | optree:radices=3x2 | first_fit
reduce_scatter | ring | best_fit
all_gather | one_stage | first_fit
";

#[test]
fn plans_times_and_bounds_of_a_ring_and_of_its_graph_are_equal() {
    let mut leaves_out = leaves_out(5);
    let mut named: Vec<(CollectiveKind, String, &str)> = Vec::new();
    for record in opticoll::algorithms::records() {
        named.push((record.collective, record.name.into(), "auto"));
    }
    for planner in planner::PLANNERS {
        let kinds = planner.collectives.iter();
        named.extend(kinds.map(|&kind| (kind, planner.name.into(), "auto")));
    }
    for [kind, spec, assignment] in rows(VARIANTS) {
        named.push((kind.parse().unwrap(), spec.into(), assignment));
    }
    let mut plans = 0;
    for [ring, graph, options, nodes] in rows(MACHINES) {
        let ring = format!("wdm_ring:{ring},{options}");
        let graph = format!("wdm_graph:{graph},{options},rate=40Gb/s");
        let nodes: Vec<u32> = nodes.split(' ').map(|node| node.parse().unwrap()).collect();
        for (kind, spec, assignment) in &named {
            if !leaves_out() {
                plans += usize::from(check([&ring, &graph], &nodes, *kind, spec, assignment));
            }
        }
    }
    assert!(plans >= 40, "{plans} plans were compared");
}

/// Compares the plan of one specification on a ring and on the graph, and the bounds. Returns
/// whether there is a plan.
#[track_caller]
fn check(
    fabrics: [&str; 2],
    nodes: &[u32],
    kind: CollectiveKind,
    spec: &str,
    assignment: &str,
) -> bool {
    let [ring, graph] = fabrics.map(|fabric| Fabric::parse(fabric).unwrap());
    let case = format!("{kind} by {spec} on {graph}");
    let collective = Collective::new(kind, ring.ranks()).unwrap();
    let size = Bytes::new(64 << 10);
    let spec: Spec = spec.parse().unwrap();
    let planned = [&ring, &graph].map(|fabric| {
        let task = PlanningTask {
            fabric,
            collective,
            size: Some(size),
            method: &TimingModel::default(),
            assignment,
            condition: None,
            watch: &|_| {},
        };
        planner::plan_task(&spec, &task)
    });
    assert_eq!(
        ring.injection_bandwidth(),
        graph.injection_bandwidth(),
        "{case}"
    );
    for single in [false, true] {
        let bounds = [&ring, &graph]
            .map(|fabric| opticoll::bounds::slots_bound(fabric, &collective, single));
        assert_eq!(bounds[0], bounds[1], "{case}");
    }
    let [on_ring, on_graph] = planned;
    let (on_ring, on_graph) = match (on_ring, on_graph) {
        (Ok(on_ring), Ok(on_graph)) => (on_ring, on_graph),
        (Err(_), Err(_)) => return false,
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => panic!("{case}: {error}"),
    };
    assert_eq!(opticoll::verify::verify(&on_ring.plan), [], "{case}");
    assert_eq!(opticoll::verify::verify(&on_graph.plan), [], "{case}");
    let planner = planner::PLANNERS
        .iter()
        .find(|planner| planner.name == spec.name());
    let needs_graph = planner.is_some_and(|planner| !planner.applies(&ring));
    let machine: &WdmRing = ring.downcast().unwrap();
    if needs_graph || spec.name() == "auto" && !machine.cuts.is_empty() {
        // The search on a graph depends on the order of its links.
        return true;
    }
    let names = |planned: &Planned| planned.plan.algorithm.clone();
    assert_eq!(names(&on_ring), names(&on_graph), "{case}");
    let on_ring = on_ring.plan.into_expanded();
    compare(&on_ring, &on_graph.plan, nodes, &case);
    for (policy, _) in ring.circuits().unwrap().policies() {
        let method = TimingModel::from(policy.parse::<Policy>().unwrap());
        let [of_ring, of_graph] = [&on_ring, &on_graph.plan]
            .map(|plan| opticoll::simulate::run(plan, size, &method).unwrap());
        let rows = |of: Outcome| (of.time, of.slots, of.ranks, of.reconfigurations);
        assert_eq!(rows(of_ring), rows(of_graph), "{case}: {policy}");
        let bound = |fabric: &Fabric| planner::time_bound(fabric, &collective, size, &method);
        let [of_ring, of_graph] = [&ring, &graph].map(|fabric| bound(fabric).unwrap());
        assert_eq!(of_ring, of_graph, "{case}: {policy}");
    }
    true
}

/// Compares two plans transfer by transfer.
fn compare(on_ring: &Plan, on_graph: &Plan, nodes: &[u32], case: &str) {
    assert_eq!(on_ring.step_slots, on_graph.step_slots, "{case}");
    assert_eq!(on_ring.slot, on_graph.slot, "{case}");
    assert_eq!(on_ring.len(), on_graph.len(), "{case}");
    let ring: &WdmRing = on_ring.fabric.downcast().unwrap();
    let graph: &WdmGraph = on_graph.fabric.downcast().unwrap();
    let network = graph.fibre_links();
    for index in 0..on_ring.len() {
        let transfer = on_ring.schedule.transfer(index);
        assert_eq!(transfer, on_graph.schedule.transfer(index), "{case}");
        let (light, of_graph) = (WdmLight::from(on_ring.light[index]), on_graph.light[index]);
        let of_graph = GraphLight::from(of_graph);
        let lights = [
            (light.fibre, light.wavelength),
            (of_graph.fibre, of_graph.wavelength),
        ];
        assert_eq!(lights[0], lights[1], "{case}: transfer {index}");
        // The nodes that the light passes, by the definition of a direction.
        let (mut node, mut passed) = (ring.node(transfer.source), Vec::new());
        while node != ring.node(transfer.destination) {
            let next = match light.direction {
                Direction::Clockwise => (node + 1) % ring.nodes,
                Direction::CounterClockwise => (node + ring.nodes - 1) % ring.nodes,
            };
            passed.push((nodes[node as usize], nodes[next as usize]));
            node = next;
        }
        let route = on_graph.routes.of(index).unwrap_or(&[]).iter();
        let route: Vec<(u32, u32)> = route.filter_map(|&link| network.ends(link)).collect();
        assert_eq!(passed, route, "{case}: transfer {index}");
    }
}

#[test]
fn the_graph_of_a_ring_is_the_same_ring() {
    let budget = "launch_power=5dBm,sensitivity=-20dBm,through_loss=0.1dB,link_loss=1dB";
    for options in [
        "ranks=6,wavelengths=2",
        "ranks=6,wavelengths=2,ports=3,propagation=5us,reach=2",
        "ranks=9,wavelengths=4,fibres=2,members=1+4-7,without=5,broken=2-3cw",
        "ranks=8,wavelengths=4,degraded=1-2@10Gb/s+w3@5Gb/s,dead=1",
        "ranks=20,wavelengths=4,drop_loss=2dB,fixed_loss=1dB",
        "ranks=20,wavelengths=4,resonators=7,multicast=drop_and_continue,split_loss=1dB",
        "ranks=2,wavelengths=2,broken=1-0",
    ] {
        let needs_budget = options.contains("_loss");
        let budget = if needs_budget { budget } else { "" };
        let spec = format!("wdm_ring:{options},{budget}");
        let ring = Fabric::parse(spec.trim_end_matches(',')).unwrap();
        let pair = RingAndGraph::of(&ring).unwrap();
        let again = RingAndGraph::of(&pair.graph).unwrap();
        let (one, other) = (pair.machine(), again.machine());
        let facts = |ring: &WdmRing| {
            let positions = 0..ring.ranks;
            let to_next = positions.map(|rank| {
                let next = (rank + 1) % ring.ranks;
                let is_whole = |direction: Direction| match direction {
                    Direction::Clockwise => ring.is_whole(rank, next, direction),
                    Direction::CounterClockwise => ring.is_whole(next, rank, direction),
                };
                let [span, _] = Direction::BOTH.map(|way| ring.span(rank, next, way));
                (span, Direction::BOTH.map(is_whole))
            });
            (
                to_next.collect::<Vec<_>>(),
                ring.longest(),
                ring.longest_tree(),
                ring.channels(),
            )
        };
        assert_eq!(facts(one), facts(other), "{spec}");
        assert_eq!(one.degraded.channels, other.degraded.channels, "{spec}");
        assert_eq!(
            one.degraded.links.len(),
            other.degraded.links.len(),
            "{spec}"
        );
        assert_eq!(
            (one.ports, one.propagation),
            (other.ports, other.propagation),
            "{spec}"
        );
    }
}
