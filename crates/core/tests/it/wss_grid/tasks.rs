//! Several tasks on one grid, planning by `auto`, and planning anew after failures.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Plane};
use opticoll::planner::{self, PlannerError, tunable};
use opticoll::simulate::control::{Task, simulate, tasks};
use opticoll::simulate::{Method, SimulationError};
use opticoll::units::{Bytes, Time};
use opticoll::verify;

use super::proved;

const GRID: &str = "wss_grid:rows=4,columns=4,rate=8Gb/s,slow_switch=1ms,control=1us";

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
    let found = tasks(&wanted).unwrap();
    let alone = simulate(&upper, Bytes::new(8000)).unwrap().time;
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
    let machines = tasks(&[task(&upper, 1, 0), task(&other, 1, 0)]);
    assert!(matches!(machines, Err(SimulationError::WrongFabric { .. })));
}

#[test]
fn auto_takes_both_planes_where_the_vector_is_long() {
    let fabric = Fabric::parse("wss_grid:rows=4,columns=4,rate=100Gb/s,control=1us").unwrap();
    for kind in CollectiveKind::ALL {
        let collective = Collective::new(kind, 16).unwrap();
        let auto = "auto".parse().unwrap();
        for bytes in [1000, 100_000_000] {
            let method = Method::default();
            let planned = planner::plan(&auto, &fabric, collective, Bytes::new(bytes), &method);
            let planned = planned.unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(verify::verify(&planned.plan), [], "{kind}");
            assert!(
                planned.candidates.len() > 1 && planned.candidates.is_sorted_by_key(|one| one.time)
            );
            if kind == CollectiveKind::AllReduce && bytes > 1000 {
                assert_eq!(planned.candidates[0].name, "dual_plane_halving_doubling");
            }
        }
    }
}

#[test]
fn what_needs_a_ring_of_light_is_refused() {
    let fabric = Fabric::parse("wss_grid:rows=2,columns=2").unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 4).unwrap();
    for name in ["relay_tree", "optree", "grouped"] {
        let spec = name.parse().unwrap();
        let refused = planner::plan(
            &spec,
            &fabric,
            collective,
            Bytes::new(1),
            &Method::default(),
        );
        let message = refused.err().unwrap().to_string();
        assert!(
            message.contains("tunable circuits") && message.contains("wdm_ring"),
            "{message}"
        );
    }
}

/// The plan of halving and doubling anew after something failed, with its slowdown.
fn replanned(plan: &str, wound: &str) -> Result<(f64, String), PlannerError> {
    let fabric = format!("wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s,plan={plan}");
    let before = proved(CollectiveKind::AllReduce, "halving_doubling", &fabric);
    let left = Fabric::parse(&format!("{fabric},{wound}")).unwrap();
    // The lasers may need more wavelengths than the two of the XOR plan.
    let mut left = left.wss_grid().unwrap().clone();
    left.wavelengths = 15;
    let size = Bytes::new(16 << 10);
    let anew = tunable::replan(&before, &left, size, &Method::default())?;
    assert_eq!(anew.violations, [], "{wound}");
    assert_eq!(anew.plan.fabric.ranks(), left.ranks());
    // 2 (15 / 16) of the vector at a byte a nanosecond.
    assert_eq!(anew.before, Time::from_ps(2 * 15 * 1024 * 1000));
    let wavelengths = anew.plan.fabric.wss_grid().unwrap().plan.name();
    Ok((anew.slowdown(), wavelengths.to_owned()))
}

#[test]
fn failures_are_planned_around_and_cost_what_theory_says() {
    // Without one node the core has eight ranks, and seven hand over the whole vector before and get it
    // back after, each to a rank of its own, in one hop: (2 + 2 (7 / 8)) / (2 (15 / 16)) = 2.
    // A node whose transceiver to its row is dead still hands over along its column, and the other way.
    for wound in [
        "nodes=0-14",
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
    let (_, wavelengths) = replanned("xor", "nodes=1-15").unwrap();
    assert_ne!(wavelengths, "xor");
    let cut = replanned("edge_colouring", "dead_transceivers=5.row+5.column").unwrap_err();
    assert!(cut.to_string().contains("no light leads"), "{cut}");
}
