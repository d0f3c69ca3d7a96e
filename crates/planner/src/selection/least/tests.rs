use super::{by_formulas, of_ranges, of_schedule};
use crate::Question;
use crate::striped;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_simulate::{Method, Policy};

fn time(plan: &Plan, size: Bytes, method: &Method) -> Time {
    let outcome = opticoll_simulate::run_watched(plan, size, method, &mut |_| true);
    outcome.expect("the plan fits the fabric").time
}

/// Pipelines of more pieces are the same, only longer.
const MOST_PIECES: u64 = 4;

/// Every named algorithm on small rings: how many bounds of formulas, and of ranges, there are beside zero.
fn check(ring: &str, policy: Policy, size: Bytes) -> [usize; 2] {
    let fabric = Fabric::parse(ring).expect("a ring");
    let method = Method {
        policy: Some(policy),
        ..Method::default()
    };
    let mut known = [0; 2];
    for record in opticoll_algorithms::records_for(&fabric) {
        let collective = Collective::new(record.collective, fabric.ranks()).expect("ranks");
        let question = Question::new(&fabric, collective, size, &method, &|_| {});
        let question = question.expect("a connected ring");
        if (record.accepts)(fabric.ranks()).is_err() {
            continue;
        }
        for spec in record.variants(&fabric) {
            if record
                .pieces(&spec)
                .is_some_and(|pieces| pieces > MOST_PIECES)
            {
                continue;
            }
            let Ok(ranges) = opticoll_algorithms::build_ranges(&spec, collective, &fabric) else {
                continue;
            };
            let Ok((by_formulas, slots)) = by_formulas(record, &spec, &question) else {
                continue;
            };
            let by_ranges = of_ranges(&ranges, &question).expect("a time");
            let schedule = opticoll_algorithms::carried(ranges, &fabric).expect("few transfers");
            let by_loads = of_schedule(&schedule, &question).expect("a time");
            let Ok(plan) =
                opticoll_placement::place_by_default(schedule, &fabric, spec.to_string())
            else {
                continue;
            };
            let whole = time(&plan, size, &method);
            let plan = striped::widest(plan, &question).expect("stripes");
            let (took, used) = (time(&plan, size, &method).min(whole), plan.slots());
            let case = format!("{} {spec} on {ring}, {policy:?}", record.collective);
            assert!(by_formulas <= took, "{case}: {by_formulas} and {took}");
            assert!(slots <= used.into(), "{case}: {slots} and {used} slots");
            assert!(by_ranges <= by_loads, "{case}: {by_ranges} and {by_loads}");
            assert!(by_loads <= took, "{case}: {by_loads} and {took}");
            known[0] += usize::from(by_formulas > Time::ZERO);
            known[1] += usize::from(by_ranges > Time::ZERO);
        }
    }
    known
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow without optimisation: `make validate`"
)]
fn no_named_algorithm_is_faster_than_what_is_known_before_it_is_placed() {
    let mut known = [0; 2];
    for ranks in [2, 3, 5, 8, 9, 12] {
        for wavelengths in [1, 3, 8] {
            let ring = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
            for policy in [
                Policy::EveryStep,
                Policy::OnChange,
                Policy::Free,
                Policy::PerPort,
            ] {
                for bytes in [100, 100_000] {
                    let more = check(&ring, policy, Bytes::new(bytes));
                    known = [known[0] + more[0], known[1] + more[1]];
                }
            }
        }
    }
    assert!(known[0] > 1300 && known[1] > 1300, "{known:?}");
}

/// Steps of the ranges of long vectors load links nearly as much as the chunks do.
#[test]
fn ranges_tell_nearly_what_single_chunks_do() {
    let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8").expect("a ring");
    let method = Method {
        policy: Some(Policy::EveryStep),
        ..Method::default()
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
        let question = Question::new(&fabric, collective, size, &method, &|_| {});
        let question = question.expect("a connected ring");
        let spec = name.parse().expect("a specification");
        let ranges = opticoll_algorithms::build_ranges(&spec, collective, &fabric).expect(name);
        let by_ranges = of_ranges(&ranges, &question).expect("a time");
        let schedule = opticoll_algorithms::carried(ranges, &fabric).expect(name);
        let by_chunks = of_schedule(&schedule, &question).expect("a time");
        assert!(
            by_ranges.ps() > by_chunks.ps() / 3,
            "{name}: {by_ranges} and {by_chunks}"
        );
    }
}
