//! All_to_alls whose blocks differ: bytes counted by hand, plans of all algorithms, decompositions
//! near the bound, and bounds that are not above the best of all plans.

mod decomposition;

use opticoll::algorithms;
use opticoll::collective::demand::generate::generate;
use opticoll::collective::{
    Collective, CollectiveError, CollectiveKind, DemandError, DemandMatrix, Holders,
};
use opticoll::fabric::Fabric;
use opticoll::plan::{Plan, text};
use opticoll::planner::{time_bound, time_bounds};
use opticoll::program::CollectiveProgram;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use crate::{proved_plan, refusal};

use CollectiveKind::{AllGather, AllToAll};

/// Returns an all_to_all with this demand.
fn demanding(demand: DemandMatrix) -> Collective {
    let collective = Collective::new(AllToAll, demand.ranks()).unwrap();
    collective.with_demand(demand).unwrap()
}

fn generated(spec: &str, ranks: u32) -> DemandMatrix {
    generate(&spec.parse().unwrap(), ranks).unwrap()
}

/// Returns the verified plan of a specification, and checks that the plan's text is read back as
/// the same plan.
fn proved(
    spec: &str,
    fabric: &Fabric,
    collective: Collective,
    size: u64,
    method: &TimingModel,
) -> Plan {
    let plan = proved_plan(spec, fabric, collective, Bytes::new(size), method).plan;
    let written = text::write(&plan);
    let read = text::read(&written).unwrap();
    assert_eq!(read.schedule.collective, plan.schedule.collective);
    assert_eq!(text::write(&read), written);
    plan
}

/// Returns the time of a plan, and checks that the time is not below the bounds: the bounds of all
/// plans, and those of direct plans if the plan has no relay.
fn time(plan: &Plan, size: u64, method: &TimingModel) -> Time {
    let size = Bytes::new(size);
    let outcome = simulate::run(plan, size, method).unwrap();
    let bounds = time_bounds(&plan.fabric, &plan.schedule.collective, size, method).unwrap();
    let is_direct = plan.relays.is_empty() && plan.schedule.steps() == 1;
    for bound in bounds.into_iter().map(|one| one.bound) {
        // Flows are simulated with 53 bits.
        let least = bound.time.ps() as f64 * (1.0 - 1e-9) - 1.0;
        let holds = bound.name != "direct" || is_direct;
        assert!(
            !holds || outcome.time.ps() as f64 >= least,
            "{} on {}: {} below {} ({})",
            plan.algorithm,
            plan.fabric.spec(),
            outcome.time,
            bound.time,
            bound.name
        );
    }
    outcome.time
}

#[test]
fn bytes_and_ends_of_chunks_are_those_written_down() {
    // Rank 0 keeps 5 bytes, sends 7 + 2 to rank 1; rank 1 sends nothing; rank 2 sends 3 to rank 0
    // and 6 to rank 1.
    let chunks = [(0, 0, 5), (0, 1, 7), (0, 1, 2), (2, 0, 3), (2, 1, 6)];
    let collective = demanding(DemandMatrix::new(3, chunks).unwrap());
    assert_eq!(collective.chunks(), 5);
    for (chunk, (source, destination, amount)) in (0..).zip(chunks) {
        assert_eq!(collective.before(chunk), Holders::One(source));
        assert_eq!(collective.after(chunk), Holders::One(destination));
        // The largest row has 14.
        assert_eq!(
            collective.chunk_bytes(Bytes::new(14), chunk),
            Bytes::new(amount)
        );
        assert_eq!(
            collective.chunk_bytes(Bytes::new(140), chunk),
            Bytes::new(10 * amount)
        );
    }
    // Of 10 bytes: edges at 5, 12, 14, 17 and 23 fourteenths of 10, rounded down: 3, 8, 10, 12, 16.
    let of_ten = (0..5).map(|chunk| collective.chunk_bytes(Bytes::new(10), chunk).get());
    assert_eq!(of_ten.collect::<Vec<_>>(), [3, 5, 2, 2, 4]);
    assert_eq!(
        collective.range_bytes(Bytes::new(10), 1, 3).unwrap(),
        Bytes::new(9)
    );
    assert_eq!(collective.uniform_chunk_bytes(Bytes::new(14)), None);
    assert_eq!(collective.chunks_of_blocks(1..3), 1..3);
    assert_eq!(collective.chunks_of_blocks(3..6), 3..3);
    assert_eq!(collective.chunks_of_blocks(6..9), 3..5);
    let demand = collective.demand().unwrap();
    assert_eq!(demand.matrix(), [5, 9, 0, 0, 0, 0, 3, 6, 0]);
    assert_eq!(demand.whole_blocks().matrix(), demand.matrix());
    assert_eq!(demand.whole_blocks().len(), 4);
}

#[test]
fn demands_are_the_same_where_their_chunks_are() {
    let whole = || demanding(DemandMatrix::from_matrix(2, &[0, 3, 4, 0]).unwrap());
    assert_eq!(whole(), whole());
    let cut = DemandMatrix::new(2, [(0, 1, 1), (0, 1, 2), (1, 0, 4)]).unwrap();
    assert_ne!(demanding(cut), whole());
    assert_ne!(whole(), whole().without_demand());
}

#[test]
fn what_is_no_demand_is_refused() {
    let refused =
        |chunks: &[(u32, u32, u64)]| DemandMatrix::new(3, chunks.iter().copied()).unwrap_err();
    assert_eq!(refused(&[]), DemandError::Nothing);
    assert!(matches!(
        refused(&[(0, 3, 1)]),
        DemandError::Rank { destination: 3, .. }
    ));
    assert!(matches!(refused(&[(0, 1, 0)]), DemandError::Empty { .. }));
    assert!(matches!(
        refused(&[(1, 0, 1), (0, 1, 1)]),
        DemandError::Order { .. }
    ));
    assert_eq!(
        refused(&[(0, 1, u64::MAX), (0, 2, 1)]),
        DemandError::TooLarge
    );
    let demand = generated("random", 4);
    let gather = Collective::new(AllGather, 4).unwrap();
    let kind = AllGather;
    assert_eq!(
        gather.with_demand(demand.clone()),
        Err(CollectiveError::NoDemand { kind })
    );
    let five = Collective::new(AllToAll, 5).unwrap();
    let ranks = CollectiveError::DemandRanks {
        demand: 4,
        ranks: 5,
    };
    assert_eq!(five.with_demand(demand.clone()), Err(ranks));
    let pieces = CollectiveError::CutDemand { pieces: 2 };
    assert_eq!(
        demanding(demand.clone()).with_pieces(2),
        Err(pieces.clone())
    );
    let halves = Collective::new(AllToAll, 4)
        .unwrap()
        .with_pieces(2)
        .unwrap();
    assert_eq!(halves.with_demand(demand), Err(pieces));
    for (spec, problem) in [
        ("zipff", "zipf"),
        ("zipf:exponent=-1", "0 to 10"),
        ("zipf:exponent=nan", "0 to 10"),
        ("random:sed=1", "seed"),
    ] {
        let error = generate(&spec.parse().unwrap(), 4).unwrap_err().to_string();
        assert!(error.contains(problem), "{spec}: {error}");
    }
    assert_eq!(
        generate(&"random".parse().unwrap(), 1),
        Err(DemandError::Nothing)
    );
}

#[test]
fn a_line_of_demands_is_refused_with_its_place() {
    let fabric = Fabric::parse("crossbar:ranks=6").unwrap();
    let collective = demanding(generated("random:seed=5", 6));
    let plan = proved(
        "direct",
        &fabric,
        collective,
        1 << 13,
        &TimingModel::default(),
    );
    let written = text::write(&plan);
    let row = |line: &&str| line.starts_with("demand 0");
    let (place, old) = written
        .lines()
        .enumerate()
        .find(|(_, line)| row(line))
        .unwrap();
    for (line, problem) in [
        ("demand 0 1", "expected a destination"),
        ("demand 0 1=0", "at least one byte"),
        ("demand 0 9=1", "6 ranks"),
        ("demand 0 1=2 1=3", "increase"),
        ("demand 0", "the line ends"),
        ("demand 0 1=18446744073709551615 2=1", "2^64"),
        ("demand 0 1=x", "not a number"),
    ] {
        let error = text::read(&written.replacen(old, line, 1)).unwrap_err();
        assert_eq!(error.line, 1 + place, "{error}");
        assert!(error.problem.contains(problem), "{error}");
    }
}

#[test]
fn generated_demands_are_what_their_names_say() {
    let ranks = 16usize;
    let matrix = |spec: &str| generated(spec, ranks as u32).matrix();
    let is_own = |place: usize| place % (ranks + 1) == 0;
    assert!(
        matrix("uniform")
            .iter()
            .all(|amount| *amount == matrix("uniform")[0])
    );
    for spec in [
        "random:seed=3",
        "zipf:exponent=1.2,seed=3",
        "one_hot:seed=3",
    ] {
        let made = matrix(spec);
        assert_eq!(made, matrix(spec));
        assert_ne!(made, matrix(&spec.replace('3', "4")), "{spec}");
        assert!((0..ranks * ranks).all(|place| !is_own(place) || made[place] == 0));
    }
    let hot = matrix("one_hot");
    assert!(
        hot.chunks(ranks)
            .all(|row| row.iter().filter(|amount| **amount > 0).count() == 1)
    );
    // The most wanted rank gets k^1.2 times as much as the k-th.
    let zipf = matrix("zipf:exponent=1.2");
    let mut columns: Vec<u64> = (0..ranks)
        .map(|column| zipf[column + ranks * usize::from(column == 0)])
        .collect();
    columns.sort_unstable_by(|one, other| other.cmp(one));
    for (place, amount) in (1u32..).zip(&columns) {
        let expected = columns[0] as f64 / f64::from(place).powf(1.2);
        assert!((*amount as f64 - expected).abs() <= 2.0, "{place}");
    }
}

/// Fabrics of 8 ranks, with the settings under which they are tried.
const FABRICS: [&str; 9] = [
    "crossbar:ranks=8",
    "torus:dims=2x4",
    "mesh:dims=2x4",
    "fully_connected:ranks=8",
    "wdm_ring:ranks=8,wavelengths=4",
    "passive_star:ranks=8,wavelengths=4",
    "wss_grid:rows=2,columns=4",
    "lightpath_grid:ranks=8",
    "circuit_switch:ranks=8,ports=2,planes=2",
];

/// Returns the policies of a fabric with circuits.
fn policies(fabric: &Fabric) -> Vec<Policy> {
    let Some(circuits) = fabric.circuits() else {
        return Vec::new();
    };
    let supported = |policy: &Policy| circuits.charge(policy.name()).is_ok();
    Policy::ALL.into_iter().filter(supported).collect()
}

#[test]
fn all_algorithms_carry_out_demands_on_all_fabrics() {
    let mut plans = 0;
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        for demand in ["uniform", "random", "zipf:exponent=2", "one_hot:seed=1"] {
            let collective = demanding(generated(demand, 8));
            for record in algorithms::records_for(&fabric).filter(|one| one.collective == AllToAll)
            {
                let plan = proved(
                    record.name,
                    &fabric,
                    collective,
                    1 << 16,
                    &TimingModel::default(),
                );
                time(&plan, 1 << 16, &TimingModel::default());
                for policy in policies(&fabric) {
                    time(&plan, 1 << 16, &policy.into());
                }
                plans += 1;
            }
            let auto = proved(
                "auto",
                &fabric,
                collective,
                1 << 16,
                &TimingModel::default(),
            );
            time(&auto, 1 << 16, &TimingModel::default());
        }
    }
    assert!(plans >= 36 * 3, "{plans}");
}

#[test]
fn a_uniform_demand_takes_the_time_of_no_demand() {
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        let plain = Collective::new(AllToAll, 8).unwrap();
        for algorithm in ["direct", "pairwise", "bruck"] {
            let times = [plain, demanding(generated("uniform", 8))].map(|collective| {
                let plan = proved(
                    algorithm,
                    &fabric,
                    collective,
                    1 << 16,
                    &TimingModel::default(),
                );
                time(&plan, 1 << 16, &TimingModel::default())
            });
            assert_eq!(times[0], times[1], "{algorithm} on {}", fabric.spec());
        }
    }
}

/// On a passive star the bounds count the same bytes and slots. On grids the bound of equal blocks
/// also counts that blocks make more hops in few slots.
#[test]
fn the_bound_of_a_uniform_demand_is_that_of_no_demand_or_less() {
    let plain = Collective::new(AllToAll, 8).unwrap();
    let uniform = demanding(generated("uniform", 8));
    for spec in [
        "passive_star:ranks=8,wavelengths=4",
        "passive_star:ranks=8,wavelengths=16,transmitters=3,receivers=2",
        "wss_grid:rows=2,columns=4",
        "wss_grid:rows=8,columns=1",
        "lightpath_grid:ranks=8",
    ] {
        let fabric = Fabric::parse(spec).unwrap();
        for policy in policies(&fabric) {
            let of = |collective: &Collective| {
                let found = time_bound(&fabric, collective, Bytes::new(1 << 16), &policy.into());
                found.unwrap().unwrap().time
            };
            let (equal, demanded) = (of(&plain), of(&uniform));
            assert!(demanded <= equal, "{spec} {policy:?}");
            assert!(
                demanded == equal || !spec.starts_with("passive_star"),
                "{spec} {policy:?}"
            );
        }
    }
}

/// A byte a nanosecond, 300 ns of latency, 1 us before every slot.
const BYTE_PER_NS: &str = "rate=8Gb/s,latency=300ns";

/// Rank 0 of a star with two wavelengths hears at most two ranks at a time, so three ranks need two
/// slots, and 600 B need 300 ns. Rank 3 sends its 300 B in both slots. The plan meets the bound.
#[test]
fn a_plan_by_hand_meets_the_bound_of_a_demand_on_a_star() {
    let spec =
        format!("passive_star:ranks=4,wavelengths=2,receivers=2,reconfiguration=1us,{BYTE_PER_NS}");
    let fabric = Fabric::parse(&spec).unwrap();
    let chunks = [(1, 0, 100), (2, 0, 200), (3, 0, 100), (3, 0, 200)];
    let collective = demanding(DemandMatrix::new(4, chunks).unwrap());
    let mut schedule = Schedule::new(collective);
    for [one, other] in [[0, 2], [1, 3]] {
        schedule.begin_step();
        for chunk in [one, other] {
            schedule.push(Transfer::copy(chunk, chunks[chunk as usize].0, 0));
        }
    }
    let plan = opticoll::placement::place_by_default(schedule, &fabric, "by hand".into()).unwrap();
    assert_eq!(verify(&plan), []);
    // The largest row has 300 B.
    let size = Bytes::new(300);
    for (policy, tunings) in [(Policy::EveryStep, 2), (Policy::Free, 0)] {
        let bound = time_bound(&fabric, &collective, size, &policy.into());
        let expected = Time::from_ps(1000 * (2 * 300 + 300 + 1000 * tunings));
        assert_eq!(bound.unwrap().unwrap().time, expected, "{policy:?}");
        assert_eq!(time(&plan, 300, &policy.into()), expected, "{policy:?}");
    }
}

/// Bounds of grids in which every circuit costs nothing, so that only bytes and latencies count.
#[test]
fn bytes_of_demands_on_grids_are_those_by_hand() {
    let bound = |fabric: &str, chunks: &[(u32, u32, u64)], size| {
        let fabric = Fabric::parse(&format!("{fabric},{BYTE_PER_NS}")).unwrap();
        let demand = DemandMatrix::new(fabric.ranks(), chunks.iter().copied()).unwrap();
        let found = time_bound(
            &fabric,
            &demanding(demand),
            Bytes::new(size),
            &Policy::Free.into(),
        );
        found.unwrap().unwrap().time.ps() / 1000
    };
    // Rank 0 sends 200 B over two transceivers. The two ranks are in other rows and columns.
    assert_eq!(
        bound("wss_grid:rows=2,columns=2", &[(0, 3, 200)], 200),
        300 + 100
    );
    // Each rank of a row sends 300 B to the other row, over one column transceiver each.
    let across = [(0, 4, 300), (1, 5, 300), (2, 6, 300), (3, 7, 300)];
    assert_eq!(bound("wss_grid:rows=2,columns=4", &across, 300), 300 + 300);
    // Three ranks reach one: one of the two transceivers hears two of them, one after the other.
    let three = [(1, 0, 100), (2, 0, 100), (3, 0, 100)];
    assert_eq!(
        bound("wss_grid:rows=1,columns=4", &three, 100),
        2 * 300 + 300
    );
    // Three ranks reach one over two ports: two slots, and 300 B over both ports.
    assert_eq!(
        bound("lightpath_grid:ranks=4,ports=2", &three, 100),
        2 * 300 + 150
    );
    // A rank that keeps its data sends nothing.
    assert_eq!(
        bound("lightpath_grid:ranks=4,ports=2", &[(1, 1, 100)], 100),
        0
    );
    assert_eq!(bound("wss_grid:rows=2,columns=2", &[(1, 1, 100)], 100), 0);
    assert_eq!(
        bound("passive_star:ranks=4,wavelengths=2", &[(1, 1, 100)], 100),
        0
    );
}

#[test]
fn on_a_crossbar_the_hottest_rank_takes_its_bytes_in_at_its_rate() {
    let fabric = Fabric::parse("crossbar:ranks=8,rate=80Gb/s,latency=0s").unwrap();
    for seed in 0..4 {
        let demand = generated(&format!("one_hot:seed={seed}"), 8);
        let matrix = demand.matrix();
        let hottest = (0..8).map(|column| {
            let senders = (0..8).filter(|row| matrix[8 * row + column] > 0);
            senders.count() as u64
        });
        let plan = proved(
            "direct",
            &fabric,
            demanding(demand.clone()),
            1 << 20,
            &TimingModel::default(),
        );
        // 80 Gb/s are 100 ps for a byte; every rank sends 2^20 bytes to one other.
        let expected = hottest.max().unwrap() * (100 << 20);
        assert_eq!(
            time(&plan, 1 << 20, &TimingModel::default()).ps(),
            expected,
            "{seed}"
        );
    }
}

#[test]
fn a_large_block_takes_all_channels_of_its_way_around_a_ring() {
    let text = "wdm_ring:ranks=8,wavelengths=4,rate=80Gb/s,reconfiguration=1us";
    let fabric = Fabric::parse(text).unwrap();
    let (size, method) = (1u64 << 20, TimingModel::default());
    let demand = DemandMatrix::new(8, [(0, 1, size)]).unwrap();
    let collective = demanding(demand);
    let plan = proved("decomposition", &fabric, collective, size, &method);
    // 100 ps for a byte, over the 4 channels of one link; from rank 0 lead 8.
    assert_eq!(time(&plan, size, &method).ps(), 1_000_000 + size / 4 * 100);
    let bounds = time_bounds(&fabric, &collective, Bytes::new(size), &method).unwrap();
    let [bound] = &bounds[..] else {
        panic!("{bounds:?}")
    };
    assert_eq!(bound.bound.time.ps(), 1_000_000 + size / 8 * 100);
    // Four ranks send to the four opposite ones: 4 blocks over 2 links of 4 channels.
    let across = DemandMatrix::new(8, (0..4).map(|rank| (rank, rank + 4, size))).unwrap();
    let bounds = time_bounds(&fabric, &demanding(across), Bytes::new(size), &method).unwrap();
    assert_eq!(
        bounds[0].bound.time.ps(),
        1_000_000 + 4 * size / 8 * 100,
        "{bounds:?}"
    );
    // Blocks that differ are cut as well.
    let fabric = Fabric::parse("wdm_ring:ranks=16,wavelengths=8").unwrap();
    let zipf = demanding(generated("zipf:exponent=1.2", 16));
    let whole = proved("direct", &fabric, zipf, 1 << 24, &method);
    let chosen = proved("auto", &fabric, zipf, 1 << 24, &method);
    let times = [&whole, &chosen].map(|plan| time(plan, 1 << 24, &method).ps());
    assert!(times[1] * 10 <= times[0] * 6, "{times:?}");
}

#[test]
fn a_setting_that_is_kept_comes_near_the_hottest_rank_where_changes_are_dear() {
    for (ranks, most) in [(8u32, 118), (16, 111), (32, 111)] {
        let text = format!(
            "circuit_switch:ranks={ranks},ports=4,rate=200Gb/s,latency=500ns,reconfiguration=10ms"
        );
        let fabric = Fabric::parse(&text).unwrap();
        let (size, method) = (1u64 << 20, TimingModel::default());
        let demand = generated("zipf:exponent=1.2", ranks);
        let matrix = demand.matrix();
        let received = |rank: u32| -> u128 {
            let senders = (0..ranks).filter(|sender| *sender != rank);
            let amounts =
                senders.map(|sender| u128::from(matrix[(sender * ranks + rank) as usize]));
            amounts.sum()
        };
        // 40 ps for a byte over each of 4 ports.
        let hottest = (0..ranks).map(received).max().unwrap();
        let hottest = hottest * u128::from(size) / u128::from(demand.largest()) * 40 / 4;
        let chosen = proved("auto", &fabric, demanding(demand), size, &method);
        let took = u128::from(time(&chosen, size, &method).ps());
        assert!(
            took >= hottest && took * 100 <= hottest * most,
            "{ranks}: {took}, {hottest}"
        );
    }
}

#[test]
fn what_takes_equal_blocks_refuses_demands() {
    let collective = demanding(generated("random", 8));
    let refused = |algorithm: &str, fabric: &str| {
        let fabric = Fabric::parse(fabric).unwrap();
        let error = refusal(algorithm, &fabric, collective, None);
        assert!(error.contains("does not run here, on 8 ranks"), "{error}");
    };
    refused("shifts", "circuit_switch:ranks=8");
    refused("store_and_forward", "wss_grid:rows=2,columns=4");
    refused("concurrent_flow", "torus:dims=2x4");
    refused("decomposition", "crossbar:ranks=8");
    let fabric = Fabric::parse("crossbar:ranks=8").unwrap();
    let plan = proved(
        "direct",
        &fabric,
        collective,
        1 << 16,
        &TimingModel::default(),
    );
    let program = CollectiveProgram::from_schedule(&plan.schedule, "demand".into());
    assert!(program.unwrap_err().to_string().contains("blocks differ"));
}
