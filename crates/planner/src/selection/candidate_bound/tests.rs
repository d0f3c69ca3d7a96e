use super::{formula_bound, ranges_bound, record_bound, schedule_bound};
use crate::PlanningProblem;
use crate::building::striping::Striping;
use opticoll_algorithms::Algorithm;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::{Policy, TimingModel};

fn time(plan: &Plan, size: Bytes, method: &TimingModel) -> Time {
    let outcome = opticoll_simulate::run_watched(plan, size, method, &mut |_| true);
    outcome.expect("the plan fits the fabric").time
}

/// Maximum number of pieces. Pipelines with more pieces are similar, but slow to test.
const MAX_PIECES: u64 = 4;

/// Checks the bounds of every algorithm on a fabric. Returns the numbers of nonzero bounds from
/// formulas, from ranges and from link loads. If `expanded` is given, all transfers of
/// a plan are stored, and a plan has at most `expanded` transfers. Otherwise plans may be stored as
/// representatives.
fn check(name: &str, policy: Policy, size: Bytes, expanded: Option<u64>) -> [usize; 3] {
    check_some(name, policy, size, expanded, |_| true)
}

fn check_some(
    name: &str,
    policy: Policy,
    size: Bytes,
    expanded: Option<u64>,
    is_included: impl Fn(&Algorithm) -> bool,
) -> [usize; 3] {
    let fabric = Fabric::parse(name).expect("a fabric");
    let method = TimingModel {
        policy: Some(policy),
        ..TimingModel::default()
    };
    let mut nonzero = [0; 3];
    for record in opticoll_algorithms::records_for(&fabric) {
        let collective = Collective::new(record.collective, fabric.ranks()).expect("ranks");
        let problem = PlanningProblem::new(&fabric, collective, size, &method, &|_| {});
        let problem = problem.expect("a connected fabric");
        let problem = PlanningProblem {
            max_transfers: expanded.unwrap_or(problem.max_transfers),
            keeps_representatives: expanded.is_none(),
            ..problem
        };
        if (record.accepts)(fabric.ranks()).is_err() || !is_included(record) {
            continue;
        }
        for spec in record.variants(&fabric) {
            if record
                .pieces(&spec)
                .is_some_and(|pieces| pieces > MAX_PIECES)
            {
                continue;
            }
            let Ok(ranges) = opticoll_algorithms::build_ranges(&spec, collective, &fabric) else {
                continue;
            };
            let Ok((formula_bound, slots)) = formula_bound(record, &spec, &problem) else {
                continue;
            };
            let before = record_bound(record, &spec, &problem).expect("a time");
            let by_ranges = ranges_bound(&ranges, &problem).expect("a time");
            let schedule = opticoll_algorithms::carried(ranges, &fabric).expect("few transfers");
            let by_loads = schedule_bound(&schedule, &problem).expect("a time");
            let Ok(plan) =
                opticoll_placement::place_by_default(schedule, &fabric, spec.to_string())
            else {
                continue;
            };
            let (took, used) = match Striping::widest(plan, &problem) {
                Ok(striping) => {
                    let striped = striping.plan().expect("stripes");
                    let whole = time(&striping.whole, size, &method);
                    (time(&striped, size, &method).min(whole), striping.slots())
                }
                Err(plan) => (time(&plan, size, &method), plan.slots()),
            };
            let case = format!("{} {spec} on {name}, {policy:?}", record.collective);
            assert!(formula_bound <= took, "{case}: {formula_bound} and {took}");
            assert!(slots <= used.into(), "{case}: {slots} and {used} slots");
            assert!(by_ranges <= by_loads, "{case}: {by_ranges} and {by_loads}");
            assert!(before <= by_loads, "{case}: {before} and {by_loads}");
            assert!(by_loads <= took, "{case}: {by_loads} and {took}");
            nonzero[0] += usize::from(formula_bound > Time::ZERO);
            nonzero[1] += usize::from(by_ranges > Time::ZERO);
            nonzero[2] += usize::from(by_loads > Time::ZERO);
        }
    }
    nonzero
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow without optimisation: `make validate`"
)]
fn no_named_algorithm_is_faster_than_what_is_known_before_it_is_placed() {
    let mut nonzero = [0; 2];
    for ranks in [2, 3, 5, 8, 9, 12] {
        for wavelengths in [1, 3, 8] {
            let ring = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
            for policy in [
                Policy::EveryStep,
                Policy::OnChange,
                Policy::Free,
                Policy::PerPort,
            ] {
                for (bytes, expanded) in [(100, None), (100_000, None), (100_000, Some(300))] {
                    let more = check(&ring, policy, Bytes::new(bytes), expanded);
                    nonzero = [nonzero[0] + more[0], nonzero[1] + more[1]];
                }
            }
        }
    }
    assert!(nonzero[0] > 2000 && nonzero[1] > 2000, "{nonzero:?}");
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow without optimisation: `make validate`"
)]
fn no_named_algorithm_on_a_graph_of_fibres_is_faster_than_its_bound() {
    let mut nonzero = 0;
    for fabric in [
        "wdm_torus:dims=2x3,wavelengths=2",
        "wdm_mesh:dims=2x2,wavelengths=3,latency=5us,reconfiguration=0s",
        "wdm_graph:ranks=4,links=0-1+1-2@200Gb/s+2-3+3-0+0-2,wavelengths=2,converters=full",
        "wdm_graph:ranks=4,switches=1,links=0-4+1-4+2-4+3-4,wavelengths=2,flit=32B,conversion=1ns",
    ] {
        for policy in [Policy::EveryStep, Policy::OnChange] {
            let kinds = [CollectiveKind::AllGather, CollectiveKind::AllToAll];
            let is_included = |record: &Algorithm| kinds.contains(&record.collective);
            let size = Bytes::new(100_000);
            nonzero += check_some(fabric, policy, size, None, is_included)[2];
        }
    }
    assert!(nonzero > 50, "{nonzero}");
}

/// Large schedules have empty chunks, and the maximum number of transfers limits their stripes.
#[test]
fn no_large_algorithm_is_faster_than_what_is_known_before_it_is_placed() {
    let ring = "wdm_ring:ranks=260,wavelengths=8";
    for (bytes, most) in [(10_000, 150_000), (10_000, 300_000), (100, 1 << 24)] {
        let around = |record: &Algorithm| {
            let kinds = [CollectiveKind::AllGather, CollectiveKind::AllReduce];
            kinds.contains(&record.collective)
                && ["ring", "ring_bidirectional", "neighbour_exchange"].contains(&record.name)
        };
        let size = Bytes::new(bytes);
        let nonzero = check_some(ring, Policy::Free, size, Some(most), around);
        assert!(nonzero[1] > 2, "{nonzero:?}");
    }
}

/// In long vectors, ranges load links nearly as much as their chunks do.
#[test]
fn ranges_tell_nearly_what_single_chunks_do() {
    let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8").expect("a ring");
    let method = TimingModel {
        policy: Some(Policy::EveryStep),
        ..TimingModel::default()
    };
    for (kind, name) in [
        ("all_reduce", "halving_doubling"),
        ("all_reduce", "halving_doubling:order=far"),
        ("all_reduce", "swing"),
        ("all_gather", "recursive_doubling"),
        ("all_gather", "bruck"),
        ("all_gather", "wrht:group_size=5"),
    ] {
        let kind = kind.parse().expect("a kind");
        let collective = Collective::new(kind, 64).expect("ranks");
        let size = Bytes::new(1 << 20);
        let problem = PlanningProblem::new(&fabric, collective, size, &method, &|_| {});
        let problem = problem.expect("a connected ring");
        let spec = name.parse().expect("a specification");
        let ranges = opticoll_algorithms::build_ranges(&spec, collective, &fabric).expect(name);
        let by_ranges = ranges_bound(&ranges, &problem).expect("a time");
        let schedule = opticoll_algorithms::carried(ranges, &fabric).expect(name);
        let by_chunks = schedule_bound(&schedule, &problem).expect("a time");
        assert!(
            by_ranges.ps() > by_chunks.ps() / 3,
            "{name}: {by_ranges} and {by_chunks}"
        );
    }
}
