//! Bounds on graphs of fibres against values from theory, and against plans on random graphs.

use crate::{general_algorithms, reconfiguration_cost, rows, sum};
use opticoll::bounds::wdm_graph;
use opticoll::bounds::wdm_graph::{demanded, time};
use opticoll::bounds::{Bound, TimeBound};
use opticoll::collective::{Collective, CollectiveKind, DemandMatrix};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_graph::WdmGraph;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Returns the graph of a specification. `ring:9` is a ring of 9 ranks with one wavelength,
/// `nsfnet` is the NSFNET of 22 cables with one wavelength, and `two_arms` is a line.
fn graph(name: &str) -> Fabric {
    let one_wavelength = |ranks: u32, cables: Vec<String>| {
        let links = cables.join("+");
        format!("wdm_graph:ranks={ranks},links={links},wavelengths=1")
    };
    let spec = match name.strip_prefix("ring:") {
        Some(ranks) => {
            let ranks: u32 = ranks.parse().unwrap();
            let cable = |rank: u32| format!("{rank}-{}", (rank + 1) % ranks);
            one_wavelength(ranks, (0..ranks).map(cable).collect())
        }
        // 12 ranks on one side of rank 0 and 4 on the other side: in a single slot, 12 lightpaths
        // would cross a link of 8 channels, although rank 0 has 16.
        None if name == "two_arms" => {
            let arm =
                |ranks: std::ops::Range<u32>| ranks.map(|rank| format!("{}-{rank}", rank - 1));
            let cables: Vec<String> = arm(1..13)
                .chain(["0-13".into()])
                .chain(arm(14..17))
                .collect();
            format!(
                "wdm_graph:ranks=17,links={},wavelengths=8",
                cables.join("+")
            )
        }
        None if name == "nsfnet" => {
            // Cables of the NSFNET of 14 nodes and 22 cables, in the numbers of its usual drawing.
            let cables = "1-2 1-3 1-8 2-3 2-4 3-6 4-5 4-11 5-6 5-7 6-10 6-14 7-8 7-10 8-9 9-10 \
                          9-12 9-13 11-12 11-13 12-14 13-14";
            let from_zero = |cable: &str| {
                let (from, to) = cable.split_once('-').unwrap();
                let number = |node: &str| node.parse::<u32>().unwrap() - 1;
                format!("{}-{}", number(from), number(to))
            };
            let cables = cables.split_whitespace().map(from_zero);
            one_wavelength(14, cables.collect())
        }
        None => name.to_owned(),
    };
    Fabric::parse(&spec).unwrap()
}

fn slots(fabric: &Fabric, collective: &Collective) -> Vec<Bound> {
    wdm_graph::slots(fabric.downcast().unwrap(), collective, true)
}

/// Values of `concurrent_flow` for an all_to_all whose blocks have `pieces` chunks, on one
/// wavelength. The number of slots is the load of a link, times the pieces, rounded up. Rings,
/// lines: Liang and Shen, Discrete Applied Mathematics 2006. Tori and hypercubes: half of the ranks
/// send to the other half over the links between them (Beauquier, Parallel Processing Letters
/// 1998). Meshes: 8 ranks send to 8 ranks over 4 links. NSFNET: linear program of path flows
/// (HiGHS): load 11.25.
const ALL_TO_ALL: &str = "
ring:8 | 1 | 8
ring:9 | 1 | 10
ring:16 | 1 | 32
wdm_line:ranks=5,wavelengths=1 | 1 | 6
wdm_line:ranks=16,wavelengths=1 | 1 | 64
wdm_hypercube:ranks=8,wavelengths=1 | 1 | 4
wdm_hypercube:ranks=16,wavelengths=1 | 1 | 8
wdm_torus:dims=4x4,wavelengths=1 | 1 | 8
wdm_torus:dims=8x8,wavelengths=1 | 1 | 64
wdm_torus:dims=4x4,wavelengths=8 | 1 | 1
wdm_mesh:dims=4x4,wavelengths=1 | 1 | 16
nsfnet | 1 | 12
nsfnet | 4 | 45
";

#[test]
fn an_all_to_all_needs_the_load_of_the_best_fractional_routes() {
    for [name, pieces, least] in rows(ALL_TO_ALL) {
        let fabric = graph(name);
        let collective = Collective::new(CollectiveKind::AllToAll, fabric.ranks()).unwrap();
        let collective = collective.with_pieces(pieces.parse().unwrap()).unwrap();
        let bounds = slots(&fabric, &collective);
        let load = bounds.iter().find(|bound| bound.name == "concurrent_flow");
        assert_eq!(load.unwrap().steps, sum(least), "{name}, {pieces} pieces");
    }
}

/// Bounds of collectives on slots, by hand: collective, graph, name of the bound, slots.
const BY_HAND: &str = "
all_gather | wdm_torus:dims=4x4,wavelengths=1 | receive | 4
all_gather | wdm_torus:dims=4x4,wavelengths=4,receivers=3 | receive | 5
all_gather | wdm_torus:dims=4x4,wavelengths=4,transmitters=3 | receive | 5
reduce_scatter | wdm_torus:dims=4x4,wavelengths=4,transmitters=3 | receive | 5
all_reduce | wdm_line:ranks=5,wavelengths=1 | receive | 1
all_reduce | wdm_graph:ranks=5,switches=1,links=0-5+1-5+2-5+3-5+4-5,wavelengths=1 | receive | 2
broadcast | wdm_line:ranks=5,wavelengths=1 | growth | 2
broadcast | ring:16 | growth | 3
all_gather | wdm_line:ranks=8,wavelengths=1 | receive | 7
all_gather | wdm_line:ranks=9,wavelengths=1 | cut | 8
gather | wdm_line:ranks=9,wavelengths=1 | receive | 8
all_gather | wdm_graph:ranks=6,links=0-1+1-2+2-0+3-4+4-5+5-3+0-3,wavelengths=2 | cut | 2
scatter | wdm_graph:ranks=6,links=0-1+1-2+2-0+3-4+4-5+5-3+0-3,wavelengths=1 | cut | 3
all_gather | wdm_torus:dims=8x8,wavelengths=64 | relay_tree | 1
all_gather | wdm_torus:dims=8x8,wavelengths=63 | relay_tree | 2
all_gather | wdm_line:ranks=9,wavelengths=1,reach=2 | reach | 4
broadcast | wdm_mesh:dims=4x4,wavelengths=8,reach=1 | reach | 6
broadcast | two_arms | spread | 2
";

#[test]
fn bounds_on_slots_are_those_computed_by_hand() {
    for [kind, name, bound, least] in rows(BY_HAND) {
        let fabric = graph(name);
        let collective = Collective::new(kind.parse().unwrap(), fabric.ranks()).unwrap();
        let bounds = slots(&fabric, &collective);
        let own = bounds.iter().find(|own| own.name == bound);
        assert_eq!(
            own.map(|own| own.steps),
            Some(sum(least)),
            "{kind} on {name}, {bound}"
        );
    }
}

/// Least numbers of slots on small graphs: collective, fabric, slots.
const OPTIMA: &str = include_str!("../../data/wdm_graph_optima.txt");

#[test]
fn no_bound_on_slots_exceeds_the_optimum_of_an_exhaustive_search() {
    let mut met = 0;
    for row in OPTIMA.lines().filter(|row| !row.starts_with('#')) {
        let [kind, spec, optimum]: [&str; 3] =
            row.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let fabric = Fabric::parse(spec).unwrap();
        let collective = Collective::new(kind.parse().unwrap(), fabric.ranks()).unwrap();
        let optimum: u64 = optimum.parse().unwrap();
        let bounds = slots(&fabric, &collective);
        for bound in &bounds {
            assert!(bound.steps <= optimum, "{row}: {bound:?}");
        }
        met += u32::from(bounds.iter().any(|bound| bound.steps == optimum));
    }
    assert!(met > 0, "no bound meets an optimum");
}

/// Least times of a broadcast of 1 MB on a line whose channels have 8 Gb/s: ranks, channels, root,
/// reconfiguration in us, number of slots of the fastest fractional plan, and the time of its bytes
/// in ms, by `validation/broadcast_lp.py`.
const BROADCASTS_ON_LINES: &str = "
5 | 1 | 0 | 500 | 2 | 1.66666667
5 | 2 | 2 | 1000 | 1 | 1.00000000
5 | 2 | 2 | 200 | 2 | 0.62500000
8 | 2 | 0 | 500 | 2 | 1.07142857
8 | 2 | 3 | 500 | 2 | 0.83333333
12 | 3 | 0 | 500 | 2 | 0.87636364
16 | 8 | 0 | 500 | 2 | 0.37867647
16 | 8 | 0 | 100 | 3 | 0.24318837
";

#[test]
fn broadcasts_on_lines_are_bounded_within_a_tenth_of_a_linear_program() {
    for [ranks, channels, root, reconfiguration, slots, bytes] in rows(BROADCASTS_ON_LINES) {
        let fabric = graph(&format!(
            "wdm_line:ranks={ranks},wavelengths={channels},rate=8Gb/s,\
             reconfiguration={reconfiguration}us"
        ));
        let fibres = fabric.downcast::<WdmGraph>().unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        let paid = number(slots) * number(reconfiguration) * 1e6;
        let bytes = number(bytes) * 1e9;
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let collective = Collective::new(kind, fabric.ranks()).unwrap();
            let collective = collective.with_root(root.parse().unwrap()).unwrap();
            let charge = reconfiguration_cost(fibres, Policy::EveryStep);
            let bound = time::best(fibres, &collective, Bytes::new(1_000_000), charge).unwrap();
            let proved = bound.time.ps() as f64 - paid;
            let least = bytes * 0.9..=bytes * (1.0 + 1e-8);
            assert!(
                least.contains(&proved),
                "{kind} on {fabric}: {proved} of {bytes} ps"
            );
        }
    }
}

/// Returns a connected graph of a few ranks and switches, with random options.
fn random_graph(random: &mut Pcg64Mcg) -> String {
    let ranks = random.random_range(2..9u32);
    let switches = random.random_range(0..3u32) / 2;
    let vertices = ranks + switches;
    let mut cables: Vec<String> = (1..vertices)
        .map(|vertex| format!("{}-{vertex}", random.random_range(0..vertex)))
        .collect();
    for _ in 0..random.random_range(0..vertices) {
        let (from, to) = (
            random.random_range(0..vertices),
            random.random_range(0..vertices),
        );
        let kind = ["-", ">", "-"][random.random_range(0..3usize)];
        let rate = ["", "@20Gb/s", "@100Gb/s@3us"][random.random_range(0..3usize)];
        if from != to {
            cables.push(format!("{from}{kind}{to}{rate}"));
        }
    }
    let mut spec = match random.random_range(0..4) {
        0 => format!(
            "wdm_torus:dims={}x{}",
            ranks / 3 + 2,
            random.random_range(2..4)
        ),
        1 => format!("wdm_mesh:dims={ranks}"),
        _ => format!(
            "wdm_graph:ranks={ranks},switches={switches},links={}",
            cables.join("+")
        ),
    };
    spec += &format!(",wavelengths={}", random.random_range(1..5));
    let mut option = |name: &str, values: &[&str]| {
        if random.random_range(0..3) == 0 {
            spec += &format!(",{name}={}", values[random.random_range(0..values.len())]);
        }
    };
    option("fibres", &["2"]);
    option("transmitters", &["1", "2", "3"]);
    option("receivers", &["1", "2", "3"]);
    option("reach", &["1", "2", "3"]);
    option("reach", &["3@10Gb/s+1@50Gb/s"]);
    option("converters", &["full", "1"]);
    option("multicast", &["drop_and_continue"]);
    option("dead", &["0", "0.1"]);
    option("degraded", &["w1@10Gb/s"]);
    option("conversion", &["0s", "2us"]);
    option("reconfiguration", &["0s", "1us", "1ms"]);
    option("latency", &["0s", "1us", "50us"]);
    spec
}

/// Returns bytes for some pairs of ranks.
fn random_demand(random: &mut Pcg64Mcg, ranks: u32) -> DemandMatrix {
    let bytes = (0..ranks * ranks).map(|place| {
        let is_pair = place / ranks != place % ranks && random.random_range(0..3) == 0;
        u64::from(is_pair) * random.random_range(1..2_000_000u64)
    });
    let pairs = (0u32..).zip(bytes).filter(|(_, bytes)| *bytes > 0);
    let pairs = pairs.map(|(place, bytes)| (place / ranks, place % ranks, bytes));
    let pairs: Vec<(u32, u32, u64)> = pairs.collect();
    match pairs.is_empty() {
        true => DemandMatrix::new(ranks, [(0, 1, 1000)]).unwrap(),
        false => DemandMatrix::new(ranks, pairs).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_on_any_graph_of_fibres_is_below_its_bounds(seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let spec = random_graph(&mut random);
        // Some options do not fit the graph.
        let Ok(fabric) = Fabric::parse(&spec) else {
            return Ok(());
        };
        let graph = fabric.downcast::<WdmGraph>().unwrap();
        let named = general_algorithms().map(|record| (record.collective, record.name));
        let planned = planner::PLANNERS.iter();
        let planned = planned.flat_map(|record| {
            record.collectives.iter().map(|kind| (*kind, record.name))
        });
        let names: Vec<(CollectiveKind, &str)> = named.chain(planned).collect();
        for _ in 0..6 {
            let (kind, name) = names[random.random_range(0..names.len())];
            let root = random.random_range(0..fabric.ranks());
            let collective = Collective::new(kind, fabric.ranks()).unwrap();
            let collective = collective.with_root(root).unwrap_or(collective);
            let collective = match kind {
                CollectiveKind::AllToAll if random.random_range(0..2) == 0 => {
                    let demand = random_demand(&mut random, fabric.ranks());
                    collective.with_demand(demand).unwrap()
                }
                _ => collective,
            };
            let size = Bytes::new([0, 1, 1000, 100_000, 3_000_000][random.random_range(0..5usize)]);
            let policy = Policy::ALL[random.random_range(0..4usize)];
            let method = TimingModel::from(policy);
            let planned =
                planner::plan(&name.parse().unwrap(), &fabric, collective, size, &method);
            // Not every algorithm is for every graph.
            let Ok(planned) = planned else { continue };
            let plan = planned.plan.into_expanded();
            // Bounds say nothing about plans that cannot be carried out.
            if !verify(&plan).is_empty() {
                continue;
            }
            let collective = plan.schedule.collective;
            let single = plan.has_one_chunk_per_lightpath();
            let has_demand = collective.demand().is_some();
            let bounds = match has_demand {
                true => Vec::new(),
                false => wdm_graph::slots(graph, &collective, single),
            };
            for least in bounds {
                prop_assert!(
                    u64::from(plan.slots()) >= least.steps,
                    "{kind} by {name}, {collective:?}, on {fabric}: {} slots are below {least:?}",
                    plan.slots()
                );
            }
            for policy in Policy::ALL {
                let simulated = simulate::simulate(&plan, size, policy, "circuit");
                // Graphs with converters have no policy `per_port`.
                let Ok(simulated) = simulated else { continue };
                let charge = reconfiguration_cost(graph, policy);
                let bounds: Vec<TimeBound> = match has_demand {
                    true => vec![demanded::best(graph, &collective, size, charge).unwrap()],
                    false => {
                        let bounds = time::bounds(graph, &collective, size, charge).unwrap();
                        bounds.into_iter().map(|one| one.bound).collect()
                    }
                };
                for bound in bounds {
                    let (time, bound) = (bound.time, bound.name);
                    prop_assert!(
                        simulated.time >= time,
                        "{kind} by {name}, {size}, on {fabric}, {policy:?}: {} is below {bound}, \
                         {time}",
                        simulated.time
                    );
                }
            }
        }
    }
}
