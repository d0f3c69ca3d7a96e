//! Several tasks on one grid, planning by `auto`, and replanning after failures.

use opticoll::family::wss_grid::WssGrid;
use std::collections::BTreeSet;

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Plane};
use opticoll::families;
use opticoll::family::wss_grid::TunedLight;
use opticoll::plan::Plan;
use opticoll::planner::{PlannerError, replan};
use opticoll::schedule::Schedule;
use opticoll::simulate::tasks::{Task, run_tasks};
use opticoll::simulate::{SimulationError, TimingModel, run};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::{self, ViolationKind};

use crate::proved_plan;

use super::{planned, proved};

const GRID: &str = "wss_grid:rows=4,columns=4,rate=8Gb/s,slow_switch=1ms,control=1us";

#[test]
fn tasks_on_the_same_nodes_or_other_machines_do_not_get_along() {
    let task = |nodes: &str| {
        let fabric = format!("wss_grid:rows=2,columns=4{nodes}");
        proved(CollectiveKind::AllReduce, "halving_doubling", &fabric)
    };
    let (left, right) = (task(",nodes=0-1+4-5"), task(",nodes=2-3+6-7"));
    assert_eq!(verify::tasks(&[&left, &right]), []);
    let both = verify::tasks(&[&left, &right, &task(",nodes=1-2")]);
    let kinds: Vec<ViolationKind> = both.iter().map(|violation| violation.kind).collect();
    assert_eq!(kinds, [ViolationKind::Allocation; 2]);
    assert!(both[0].sentence.contains("node 1"), "{both:?}");
    let faster = task(",nodes=2-3,rate=400Gb/s");
    assert_eq!(verify::tasks(&[&left, &faster]).len(), 1);
    let ring = Plan::without_light(
        &Fabric::parse("crossbar:ranks=2").unwrap(),
        Schedule::new(Collective::new(CollectiveKind::Barrier, 2).unwrap()),
        "none".into(),
    );
    assert_eq!(verify::tasks(&[&left, &ring]).len(), 1);
}

#[test]
fn the_arbiter_admits_tasks_when_their_nodes_are_free_and_then_stands_aside() {
    let on = |nodes: &str| {
        let fabric = format!("{GRID},nodes={nodes}");
        proved(CollectiveKind::AllReduce, "halving_doubling", &fabric)
    };
    let (upper, lower, whole) = (on("0-7"), on("8-15"), on("0-15"));
    assert_eq!(verify::tasks(&[&upper, &lower]), []);
    let task = |plan, rounds, request_us: u64| Task {
        plan,
        size: Bytes::new(8000),
        rounds,
        request: Time::from_ps(request_us * 1_000_000),
    };
    let wanted = [
        task(&upper, 3, 0),
        task(&lower, 500, 2),
        task(&whole, 1, 5),
        task(&upper, 1, 6),
    ];
    let found = run_tasks(&wanted).unwrap();
    let alone = run(&upper, Bytes::new(8000), &TimingModel::default())
        .unwrap()
        .time;
    let slow = Time::from_ps(1_000_000_000);
    let us = |count: u64| Time::from_ps(count * 1_000_000);
    // Two on disjoint nodes run side by side, each as long as alone.
    assert_eq!(found[0].admitted, Time::ZERO);
    assert_eq!(found[0].end, slow.plus(alone.times(3).unwrap()).unwrap());
    assert_eq!(found[1].admitted, us(2));
    assert_eq!(
        found[1].end,
        us(2)
            .plus(slow)
            .unwrap()
            .plus(alone.times(500).unwrap())
            .unwrap()
    );
    // The third needs nodes of both, and the fourth has to wait behind it.
    assert_eq!(found[2].admitted, found[1].end);
    assert_eq!(found[3].admitted, found[2].end);
    assert_eq!(found[0].round, found[3].round);
    // The upper half has two rows, and four columns of which it uses two ports each. However long a
    // task is, the arbiter answers once and sets each switch once.
    assert_eq!(
        (found[0].arbiter_messages, found[1].arbiter_messages),
        (1 + 2 + 4, 1 + 2 + 4)
    );
    // Log2 of eight partners: two of the row, one of the column.
    let configuration = &found[0].configuration;
    assert_eq!(configuration.settings().len(), 8 * 3);
    assert_eq!(configuration.wavelengths(Plane::Row), 2);
    assert_eq!(configuration.wavelengths(Plane::Column), 1);
    let other = proved(
        CollectiveKind::AllReduce,
        "ring",
        "wss_grid:rows=2,columns=2",
    );
    let machines = run_tasks(&[task(&upper, 1, 0), task(&other, 1, 0)]);
    assert!(matches!(machines, Err(SimulationError::Fabric { .. })));
}

#[test]
fn auto_takes_both_planes_where_the_vector_is_long() {
    let fabric = Fabric::parse("wss_grid:rows=4,columns=4,rate=100Gb/s,control=1us").unwrap();
    for kind in CollectiveKind::ALL {
        let collective = Collective::new(kind, 16).unwrap();
        for bytes in [1000, 100_000_000] {
            let method = TimingModel::default();
            let planned = proved_plan("auto", &fabric, collective, Bytes::new(bytes), &method);
            let timed = planned
                .candidates
                .iter()
                .filter(|one| one.left_out.is_none());
            assert!(planned.candidates.len() > 1 && timed.is_sorted_by_key(|one| one.time));
            if kind == CollectiveKind::AllReduce && bytes > 1000 {
                assert_eq!(planned.candidates[0].name, "dual_plane_halving_doubling");
            }
        }
    }
}

/// Returns a task that asks for 1,000 bytes once, at time 0.
fn task(plan: &Plan) -> Task<'_> {
    Task {
        plan,
        size: Bytes::new(1000),
        rounds: 1,
        request: Time::ZERO,
    }
}

/// Returns the names of plane, switch and port of both ends of every hop.
fn ports_of(plan: &Plan) -> BTreeSet<String> {
    let grid = plan.fabric.downcast::<WssGrid>().unwrap();
    let hops = (0..plan.len()).flat_map(|transfer| plan.hops_of(transfer));
    let ends = hops.flat_map(|hop| {
        let plane = TunedLight::from(hop.light).plane;
        [(hop.from, plane), (hop.to, plane)]
    });
    ends.map(|(rank, plane)| {
        let (row, column) = (
            grid.nodes[rank as usize] / grid.columns,
            grid.nodes[rank as usize] % grid.columns,
        );
        match plane {
            0 => format!("row{row}.{column}"),
            _ => format!("column{column}.{row}"),
        }
    })
    .collect()
}

/// Returns the settings that a plan needs: (plane, switch, input, wavelength, output).
fn light_of(plan: &Plan) -> Vec<(u8, u32, u32, u16, u32)> {
    let grid = plan.fabric.downcast::<WssGrid>().unwrap();
    let at = |rank: u32| {
        let node = grid.nodes[rank as usize];
        (node / grid.columns, node % grid.columns)
    };
    let hops = (0..plan.len()).flat_map(|transfer| plan.hops_of(transfer));
    hops.map(|hop| {
        let (from, to) = (at(hop.from), at(hop.to));
        let TunedLight { plane, wavelength } = TunedLight::from(hop.light);
        match plane {
            0 => (0, from.0, from.1, wavelength, to.1),
            _ => (1, from.1, from.0, wavelength, to.0),
        }
    })
    .collect()
}

#[test]
fn two_tasks_run_side_by_side_where_their_ports_differ_and_nowhere_else() {
    let (mut together, mut of_one_node) = (0, 0);
    for (rows, columns) in [(2, 2), (1, 4), (2, 3)] {
        let nodes = rows * columns;
        let mut plans = Vec::new();
        for subset in 1..1u32 << nodes {
            let chosen: Vec<String> = (0..nodes)
                .filter(|node| subset & (1 << node) != 0)
                .map(|node| node.to_string())
                .collect();
            let fabric = format!(
                "wss_grid:rows={rows},columns={columns},rate=8Gb/s,control=1us,nodes={}",
                chosen.join("+")
            );
            let parsed = Fabric::parse(&fabric).unwrap();
            for (kind, algorithm) in [
                (CollectiveKind::AllReduce, "halving_doubling"),
                (CollectiveKind::Broadcast, "binomial"),
            ] {
                // Nodes that nothing joins are no task.
                if chosen.len() > 1 && planned(kind, algorithm, &parsed).is_ok() {
                    plans.push(proved(kind, algorithm, &fabric));
                }
            }
        }
        for (one, other) in plans
            .iter()
            .flat_map(|one| plans.iter().map(move |two| (one, two)))
        {
            let found = run_tasks(&[task(one), task(other)]).unwrap();
            let disjoint = ports_of(one).is_disjoint(&ports_of(other));
            let at_once = found[1].admitted == Time::ZERO;
            assert_eq!(at_once, disjoint, "{} and {}", one.fabric, other.fabric);
            assert_eq!(verify::tasks(&[one, other]).is_empty(), disjoint);
            let alone = run(other, Bytes::new(1000), &TimingModel::default()).unwrap();
            assert_eq!(found[1].round, alone);
            if !disjoint {
                assert_eq!(found[1].admitted, found[0].end);
                continue;
            }
            together += 1;
            let nodes = |plan: &Plan| plan.fabric.downcast::<WssGrid>().unwrap().nodes.clone();
            of_one_node += u32::from(nodes(one).iter().any(|node| nodes(other).contains(node)));
            // No switch has to send one light two ways, or two lights on one wavelength one way.
            for first in light_of(one) {
                for second in light_of(other) {
                    let same_switch = (first.0, first.1) == (second.0, second.1);
                    assert!(!same_switch || first.2 != second.2, "inputs");
                    assert!(!same_switch || first.4 != second.4, "outputs");
                }
            }
        }
    }
    // A node may serve one task with its row and another with its column.
    assert!(
        together > 100 && of_one_node > 10,
        "{together} {of_one_node}"
    );
}

/// Plans halving and doubling anew after a failure; returns the slowdown and the name of the
/// new wavelength plan.
fn replanned(plan: &str, wound: &str) -> Result<(f64, String), PlannerError> {
    // The lasers may need more wavelengths than the two of the XOR plan.
    let fabric =
        format!("wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s,plan={plan},wavelengths=15");
    let before = proved(CollectiveKind::AllReduce, "halving_doubling", &fabric);
    let left = families::after_failures(&before.fabric, wound).unwrap();
    let size = Bytes::new(16 << 10);
    let algorithm: Spec = before.algorithm.parse().unwrap();
    let anew = replan::replan(&before, &left, &algorithm, size, &TimingModel::default())?;
    assert_eq!(anew.violations, [], "{wound}");
    let made = &anew.planned.plan;
    assert_eq!(made.fabric.ranks(), left.ranks());
    // 2 (15 / 16) of the vector at a byte a nanosecond.
    assert_eq!(anew.before, Time::from_ps(2 * 15 * 1024 * 1000));
    let wavelengths = made.fabric.downcast::<WssGrid>().unwrap().plan.name();
    Ok((anew.slowdown(), wavelengths.to_owned()))
}

#[test]
fn failures_are_planned_around_and_cost_what_theory_says() {
    // Without one node the core has eight ranks, and seven hand over the whole vector before and
    // get it back after, each to a rank of its own, in one hop: (2 + 2 (7 / 8)) / (2 (15 / 16)) =
    // 2. A node whose transceiver to its row is dead still hands over along its column, and the
    // other way.
    for wound in [
        "leaving=15",
        "dead_transceivers=5.row",
        "dead_ports=column2.1",
    ] {
        let (slowdown, _) = replanned("edge_colouring", wound).unwrap();
        assert_eq!(slowdown, 2.0, "{wound}");
    }
    for (plan, wound) in [
        ("xor", "dead_transceivers=5.row+10.column"),
        ("cyclic", "dead_ports=row0.0+column3.3"),
    ] {
        let (slowdown, _) = replanned(plan, wound).unwrap();
        assert!((2.0..=4.0).contains(&slowdown), "{wound}: {slowdown}");
    }
    // Of the rows that are left, 1 and 2 exchange, which XOR does not join: another plan is taken.
    let (_, wavelengths) = replanned("xor", "leaving=0").unwrap();
    assert_ne!(wavelengths, "xor");
    let cut = replanned("edge_colouring", "dead_transceivers=5.row+5.column").unwrap_err();
    assert!(cut.to_string().contains("no route leads from"), "{cut}");
}

#[test]
fn the_root_is_the_same_node_after_others_have_left() {
    let before = proved_from(5, "wss_grid:rows=2,columns=4");
    let anew = |failed: &str| {
        let left = families::after_failures(&before.fabric, failed).unwrap();
        let auto: Spec = "auto".parse().unwrap();
        let size = Bytes::new(1000);
        replan::replan(&before, &left, &auto, size, &TimingModel::default())
    };
    let found = anew("leaving=1+3").unwrap();
    assert_eq!(found.violations, []);
    let made = &found.planned.plan;
    let root = made.schedule.collective.root() as usize;
    assert_eq!(made.fabric.downcast::<WssGrid>().unwrap().nodes[root], 5);
    assert!(!found.planned.candidates.is_empty());
    assert!(matches!(
        anew("leaving=5"),
        Err(PlannerError::RootLeft { node: 5 })
    ));
}

/// Returns the verified broadcast from a node of a whole grid.
fn proved_from(root: u32, fabric: &str) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(CollectiveKind::Broadcast, fabric.ranks()).unwrap();
    let collective = collective.with_root(root).unwrap();
    let (size, method) = (Bytes::new(1), TimingModel::default());
    proved_plan("binomial", &fabric, collective, size, &method).plan
}

#[test]
fn failures_add_up_and_those_off_the_grid_are_refused() {
    let fabric = Fabric::parse("wss_grid:rows=2,columns=2,nodes=0-2,dead_ports=row0.1").unwrap();
    let grid = fabric.downcast::<WssGrid>().unwrap();
    let left = grid
        .after_failures("dead_ports=row0.1+column1.0,dead_transceivers=2.row,leaving=1")
        .unwrap();
    let expected = "wss_grid:rows=2,columns=2,nodes=0+2,dead_transceivers=2.row,\
                    dead_ports=row0.1+column1.0";
    assert_eq!(Fabric::new(left), Fabric::parse(expected).unwrap());
    for (failed, hint) in [
        ("leaving=3", "not allocated"),
        ("leaving=0-2", "no node is left"),
        ("leaving=4", "0 to 3"),
        ("dead_port=row0.1", "dead_ports"),
        ("dead_ports=row2.0", "does not exist"),
        ("", "lacks its key or its value"),
    ] {
        let message = grid.after_failures(failed).unwrap_err().to_string();
        assert!(message.contains(hint), "{failed}: {message}");
    }
}
