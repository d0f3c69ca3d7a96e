//! Schedules on switch grids: hops, slots and wavelengths against theory.

use opticoll::algorithms::records_for;
use opticoll::collective::CollectiveKind;
use opticoll::fabric::{Fabric, Plane};
use opticoll::family::wss_grid::WssGrid;
use opticoll::family::wss_grid::{Configuration, SwitchConfiguration};
use opticoll::placement::wavelengths_used;
use opticoll::placement::wss_grid::placement::colour_edges;
use opticoll::placement::wss_grid::switches::configuration;
use opticoll::plan::Plan;
use proptest::prelude::*;

use super::{planned, proved};

/// Algorithms that need a ring of light.
const OF_RINGS: [&str; 2] = ["one_stage", "wrht"];

#[test]
fn every_algorithm_is_proved_on_every_shape() {
    for (rows, columns) in [
        (1, 1),
        (1, 5),
        (2, 2),
        (3, 3),
        (4, 4),
        (2, 8),
        (3, 4),
        (5, 2),
    ] {
        let fabric = format!("wss_grid:rows={rows},columns={columns}");
        for record in records_for(&Fabric::parse(&fabric).unwrap()) {
            let accepted = (record.accepts)(rows * columns).is_ok();
            if accepted && !OF_RINGS.contains(&record.name) {
                proved(record.collective, record.name, &fabric);
            }
        }
    }
}

/// Returns whether every step takes one slot and nothing is relayed.
fn is_one_hop(plan: &Plan) -> bool {
    plan.slots() as usize == plan.schedule.steps() && plan.relays.is_empty()
}

/// Lists the destinations of a rank, step by step.
fn partners(plan: &Plan, rank: u32) -> Vec<u32> {
    let of_rank = plan.schedule.transfers().filter(|one| one.source == rank);
    of_rank.map(|one| one.destination).collect()
}

#[test]
fn partners_are_those_of_the_paper() {
    // Section 2: of eight nodes, the first exchanges with 5, 3, 2, 3 and 5; counted from 1, and the
    // middle two exchanges, with 2, share a circuit.
    let fabric = "wss_grid:rows=2,columns=4,plan=xor";
    let plan = proved(
        CollectiveKind::AllReduce,
        "halving_doubling:order=far",
        fabric,
    );
    let from_one: Vec<u32> = partners(&plan, 0).iter().map(|rank| rank + 1).collect();
    assert_eq!(from_one, [5, 3, 2, 2, 3, 5]);
}

#[test]
fn switches_and_wavelengths_are_those_of_the_paper() {
    // Nodes, switches, ports: 1024 nodes take 64 switches of 32 ports, 4096 take 128 of 64.
    for (side, switches, ports, bits) in [
        (2, 4, 2, 1),
        (4, 8, 4, 2),
        (32, 64, 32, 5),
        (64, 128, 64, 6),
    ] {
        let spec = format!("wss_grid:rows={side},columns={side},plan=xor");
        let fabric = Fabric::parse(&spec).unwrap();
        let grid = fabric.downcast::<WssGrid>().unwrap();
        assert_eq!((grid.switches(), grid.switch_ports), (switches, ports));
        // Halving and doubling needs log2 of the ports, any pair of ports all but one.
        assert_eq!(grid.wavelengths, bits);
        let cyclic = Fabric::parse(&format!("wss_grid:rows={side},columns={side},plan=cyclic"));
        assert_eq!(
            cyclic.unwrap().downcast::<WssGrid>().unwrap().wavelengths,
            ports - 1
        );
    }
}

#[test]
fn halving_and_doubling_takes_as_many_wavelengths_as_a_side_has_bits() {
    for plan in ["xor", "edge_colouring"] {
        for (rows, columns) in [(2u32, 2u32), (4, 4), (2, 16), (8, 4), (16, 16)] {
            let fabric = format!("wss_grid:rows={rows},columns={columns},plan={plan}");
            for algorithm in ["halving_doubling", "dual_plane_halving_doubling"] {
                let plan = proved(CollectiveKind::AllReduce, algorithm, &fabric);
                let configuration = configuration(&plan);
                assert_eq!(configuration.wavelengths(Plane::Row), columns.ilog2());
                assert_eq!(configuration.wavelengths(Plane::Column), rows.ilog2());
                assert_eq!(wavelengths_used(&plan), rows.max(columns).ilog2());
                assert!(is_one_hop(&plan), "{algorithm} on {fabric}");
            }
        }
    }
}

/// Returns the switch settings of the wavelength plan of a whole grid.
fn configuration_by_formula(grid: &WssGrid) -> Configuration {
    let mut settings = Vec::new();
    for plane in Plane::BOTH {
        let ports = grid.ports_in_use(plane);
        for switch in 0..grid.rows * grid.columns / ports {
            for (input, output) in (0..ports).flat_map(|one| (0..ports).map(move |two| (one, two)))
            {
                if let Some(wavelength) = grid.plan.wavelength(ports, input, output) {
                    settings.push(SwitchConfiguration {
                        plane,
                        switch,
                        input,
                        wavelength,
                        output,
                    });
                }
            }
        }
    }
    Configuration::new(settings)
}

#[test]
fn a_configuration_says_for_each_input_and_wavelength_one_output() {
    let fabric = Fabric::parse("wss_grid:rows=2,columns=4,plan=xor").unwrap();
    let set = configuration_by_formula(fabric.downcast::<WssGrid>().unwrap());
    // Two row switches of four ports with two wavelengths each, four column switches of two ports.
    assert_eq!(set.settings().len(), 2 * 4 * 2 + 4 * 2);
    assert_eq!(set.output(Plane::Row, 1, 1, 1), Some(3));
    assert_eq!(set.output(Plane::Column, 3, 1, 0), Some(0));
    assert_eq!(set.output(Plane::Column, 3, 1, 1), None);
    let plan = proved(
        CollectiveKind::AllReduce,
        "halving_doubling",
        &fabric.to_string(),
    );
    assert_eq!(configuration(&plan), set);
    let cyclic = Fabric::parse("wss_grid:rows=1,columns=3,plan=cyclic").unwrap();
    let set = configuration_by_formula(cyclic.downcast::<WssGrid>().unwrap());
    let expected = SwitchConfiguration {
        plane: Plane::Row,
        switch: 0,
        input: 2,
        wavelength: 1,
        output: 1,
    };
    assert!(set.settings().contains(&expected));
}

#[test]
fn wavelength_plans_that_do_not_join_or_lasers_that_do_not_reach_are_refused() {
    let ring = |spec: &str| {
        let fabric = Fabric::parse(spec).unwrap();
        planned(CollectiveKind::AllReduce, "ring", &fabric).map(|_| ())
    };
    assert_eq!(ring("wss_grid:rows=1,columns=4,plan=cyclic"), Ok(()));
    let not_joined = ring("wss_grid:rows=1,columns=4,plan=xor").unwrap_err();
    let ports = "has no wavelength from port 1 to port 2";
    assert!(not_joined.to_string().contains(ports), "{not_joined}");
    let direct = Fabric::parse("wss_grid:rows=1,columns=4,wavelengths=2").unwrap();
    let few = planned(CollectiveKind::AllToAll, "direct", &direct).map(|_| ());
    let said = "the plan needs 3 wavelengths, but the tunable source has 2";
    assert!(few.unwrap_err().to_string().starts_with(said));
    let cut = "wss_grid:rows=2,columns=2,dead_transceivers=3.row,dead_ports=column1.1";
    let cut = planned(
        CollectiveKind::AllReduce,
        "ring",
        &Fabric::parse(cut).unwrap(),
    );
    assert!(
        cut.unwrap_err()
            .to_string()
            .starts_with("no route leads from")
    );
}

#[test]
fn a_ring_goes_in_single_hops_around_every_grid() {
    for rows in 1..8 {
        for columns in 1..8 {
            let fabric = format!("wss_grid:rows={rows},columns={columns}");
            for kind in [CollectiveKind::AllGather, CollectiveKind::AllReduce] {
                assert!(is_one_hop(&proved(kind, "ring", &fabric)), "{fabric}");
            }
        }
    }
}

#[test]
fn a_task_on_some_rows_and_columns_exchanges_as_on_a_grid_of_its_own() {
    for (nodes, rows, columns) in [
        ("0-1+4-5+8-9+12-13", 4, 2),
        ("2-3+6-7", 2, 2),
        ("0+2+8+10", 2, 2),
        ("5-7+9-11+13-15+1-3", 4, 3),
        ("1+13", 2, 1),
        ("1", 1, 1),
    ] {
        for algorithm in ["halving_doubling", "dual_plane_halving_doubling"] {
            let on = |fabric: String| {
                let plan = proved(CollectiveKind::AllReduce, algorithm, &fabric);
                assert!(is_one_hop(&plan), "{fabric}");
                (plan.slots(), plan.len(), wavelengths_used(&plan))
            };
            let task = on(format!("wss_grid:rows=4,columns=4,nodes={nodes}"));
            let own = on(format!("wss_grid:rows={rows},columns={columns}"));
            assert_eq!(task, own, "{algorithm} on {nodes}");
        }
    }
}

/// Ways in which a grid may be less than whole, for `rows * columns` nodes.
fn wounds(nodes: u32) -> Vec<String> {
    let last = nodes - 1;
    vec![
        format!("nodes=0-{}", last - 1),
        format!("nodes=1-{last}"),
        format!("nodes=0+{last}+2"),
        "dead_transceivers=0.row".into(),
        "dead_transceivers=1.column+2.row".into(),
        "dead_ports=row1.1+column0.0".into(),
        "dead_ports=row0.0,dead_transceivers=3.column,nodes=all".into(),
    ]
}

#[test]
fn what_is_left_of_a_grid_is_planned_around_what_is_not() {
    for (rows, columns) in [(2, 2), (3, 3), (4, 4), (2, 5), (4, 3)] {
        for wound in wounds(rows * columns) {
            let fabric = format!("wss_grid:rows={rows},columns={columns},{wound}");
            for (kind, algorithm) in [
                (CollectiveKind::AllReduce, "halving_doubling"),
                (CollectiveKind::AllReduce, "dual_plane_halving_doubling"),
                (CollectiveKind::AllReduce, "ring"),
                (CollectiveKind::AllGather, "recursive_doubling"),
                (CollectiveKind::AllToAll, "direct"),
                (CollectiveKind::Broadcast, "binomial"),
            ] {
                let parsed = Fabric::parse(&fabric).unwrap();
                assert_eq!(Fabric::parse(&parsed.to_string()), Ok(parsed.clone()));
                let accepts = crate::general_algorithms()
                    .find(|one| one.name == algorithm && one.collective == kind);
                if (accepts.unwrap().accepts)(parsed.ranks()).is_ok() {
                    // Where a wound cuts a node off, it is refused as such; elsewhere it is proved.
                    match planned(kind, algorithm, &parsed) {
                        Err(error) if error.to_string().starts_with("no route leads from") => {
                            assert!(nodes_cut_off(&parsed), "{fabric}")
                        }
                        _ => drop(proved(kind, algorithm, &fabric)),
                    }
                }
            }
        }
    }
}

/// Returns whether some rank cannot reach rank 0 over transceivers that work, by repeated passes
/// over all pairs.
fn nodes_cut_off(fabric: &Fabric) -> bool {
    let grid = fabric.downcast::<WssGrid>().unwrap();
    let mut reached = vec![false; grid.ranks() as usize];
    reached[0] = true;
    for _ in 0..grid.ranks() {
        for (one, other) in
            (0..grid.ranks()).flat_map(|one| (0..grid.ranks()).map(move |two| (one, two)))
        {
            let joined = Plane::BOTH.iter().any(|&plane| {
                grid.port(one, plane).0 == grid.port(other, plane).0
                    && grid.works(one, plane)
                    && grid.works(other, plane)
            });
            if joined && reached[one as usize] {
                reached[other as usize] = true;
            }
        }
    }
    reached.contains(&false)
}

proptest! {
    #![proptest_config(crate::unsaved(64))]

    #[test]
    fn any_shape_is_planned_one_hop_at_a_time_but_for_the_hand_over(
        rows in 1u32..12, columns in 1u32..12
    ) {
        let fabric = format!("wss_grid:rows={rows},columns={columns}");
        for algorithm in ["halving_doubling", "dual_plane_halving_doubling"] {
            let plan = proved(CollectiveKind::AllReduce, algorithm, &fabric);
            prop_assert!(is_one_hop(&plan), "{} on {}", algorithm, fabric);
            // As many wavelengths as partners: the bits of a side, rounded up for the hand-over.
            let bits = |side: u32| side.next_power_of_two().ilog2();
            prop_assert!(wavelengths_used(&plan) <= bits(rows).max(bits(columns)));
        }
        // The XOR plan joins the hand-over's pairs too.
        proved(CollectiveKind::AllReduce, "halving_doubling", &format!("{fabric},plan=xor"));
    }

    #[test]
    fn colours_are_as_many_as_the_greatest_degree(
        edges in prop::collection::btree_set((0u32..9, 0u32..9), 0..60)
    ) {
        let edges: Vec<(u32, u32)> = edges.into_iter().collect();
        let colours = colour_edges(&edges, 9);
        let at = |side: fn(&(u32, u32)) -> u32, port: u32| {
            let ends = edges.iter().zip(&colours).filter(move |(edge, _)| side(edge) == port);
            ends.map(|(_, colour)| *colour).collect::<Vec<u32>>()
        };
        let mut greatest = 0;
        for port in 0..9 {
            for mut own in [at(|edge| edge.0, port), at(|edge| edge.1, port)] {
                greatest = greatest.max(own.len() as u32);
                own.sort_unstable();
                prop_assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
        prop_assert!(colours.iter().all(|&colour| colour < greatest));
    }
}
