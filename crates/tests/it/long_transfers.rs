//! Long transfers against the same transfers cut into single chunks. Both verifiers judge mutants
//! of plans with long transfers alike (tests/test_electrical.py).

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::verify::{Violation, ViolationKind, verify};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The transfers of each step.
type Steps = Vec<Vec<Transfer>>;

fn rebuilt(plan: &Plan, steps: &Steps) -> Plan {
    let mut schedule = Schedule::new(plan.schedule.collective);
    for (number, step) in steps.iter().enumerate() {
        if number > 0 {
            schedule.begin_step();
        }
        step.iter().for_each(|moved| schedule.push(*moved));
    }
    Plan::without_light(&plan.fabric, schedule, "a mutant".into())
}

/// Returns the violations without the transfers that they name.
fn summary(violations: &[Violation]) -> Vec<(ViolationKind, Option<u32>, Option<u32>)> {
    let mut all: Vec<_> = violations
        .iter()
        .map(|one| (one.kind, one.chunk, one.rank))
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn long_transfers_break_the_rules_that_their_single_chunks_break() {
    let mut random = Pcg64Mcg::seed_from_u64(14);
    let fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    let mut kinds = Vec::new();
    for case in 0..4_000 {
        let kind = CollectiveKind::ALL[case % CollectiveKind::ALL.len()];
        let pieces = random.random_range(1..40);
        let collective = Collective::new(kind, 4).unwrap();
        let collective = collective.with_pieces(pieces).unwrap();
        let chunks = collective.chunks();
        let mut steps: Steps = Vec::new();
        for _ in 0..random.random_range(1..4) {
            let mut step = Vec::new();
            for _ in 0..random.random_range(1..5) {
                let source = random.random_range(0..4);
                let reduces = collective.combines() && random.random_range(0..3) > 0;
                // Whole blocks as a rule, from any chunk to any other now and then.
                let (mut chunk, mut end) = (random.random_range(0..chunks), chunks);
                if random.random_range(0..3) > 0 {
                    chunk -= chunk % pieces;
                    end = chunk + pieces;
                }
                step.push(Transfer {
                    chunk,
                    count: random.random_range(end - chunk - (end - chunk) / 2..=end - chunk),
                    source,
                    destination: (source + random.random_range(1..4)) % 4,
                    action: [Action::Copy, Action::Reduce][usize::from(reduces)],
                });
            }
            steps.push(step);
        }
        let singles = steps.iter().map(|step| {
            let chunks = step.iter().flat_map(|moved| {
                (moved.chunk..moved.chunk + moved.count).map(|chunk| Transfer {
                    chunk,
                    count: 1,
                    ..*moved
                })
            });
            chunks.collect()
        });
        let plan = Plan::without_light(&fabric, Schedule::new(collective), "random".into());
        let long = verify(&rebuilt(&plan, &steps));
        let single = verify(&rebuilt(&plan, &singles.collect()));
        assert_eq!(summary(&long), summary(&single), "{collective:?} {steps:?}");
        kinds.extend(long.iter().map(|violation| violation.kind));
        kinds.sort_unstable();
        kinds.dedup();
    }
    assert!(kinds.len() >= 7, "{kinds:?}");
}

/// Returns a plan on a crossbar with one step, whose transfers carry all chunks.
fn plan_of_all_chunks(collective: Collective, ends: &[(u32, u32)], action: Action) -> Plan {
    let ranks = collective.ranks();
    let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
    let mut schedule = Schedule::new(collective);
    for &(source, destination) in ends {
        schedule.push(Transfer {
            chunk: 0,
            count: collective.chunks(),
            source,
            destination,
            action,
        });
    }
    Plan::without_light(&fabric, schedule, "by hand".into())
}

#[test]
fn a_billion_chunks_that_fare_alike_are_one() {
    let pieces = 1 << 30;
    let broadcast = Collective::new(CollectiveKind::Broadcast, 3).unwrap();
    let broadcast = broadcast.with_pieces(pieces).unwrap();
    let right = plan_of_all_chunks(broadcast, &[(0, 1), (0, 2)], Action::Copy);
    assert_eq!(verify(&right), []);
    let wrong = plan_of_all_chunks(broadcast, &[(0, 1), (1, 2)], Action::Copy);
    let violations = verify(&wrong);
    let counted = |kind, each: u64| {
        let own = violations.iter().filter(|violation| violation.kind == kind);
        let more = each * u64::from(pieces) - 100_000;
        let rest = format!("at least {more} more");
        own.clone().count() == 100_001
            && own
                .max_by_key(|one| one.chunk.is_none())
                .unwrap()
                .sentence
                .contains(&rest)
    };
    assert!(counted(ViolationKind::SameStepForward, 1));
    let reduce = Collective::new(CollectiveKind::Reduce, 3).unwrap();
    let reduce = reduce.with_pieces(pieces).unwrap();
    let right = plan_of_all_chunks(reduce, &[(1, 0), (2, 0)], Action::Reduce);
    assert_eq!(verify(&right), []);
}

#[test]
fn what_takes_too_long_to_prove_is_refused_with_the_figure() {
    // All chunks between 60 000 ranks, each of its own pair, sixteen times.
    let collective = Collective::new(CollectiveKind::AllToAll, 60_000).unwrap();
    let ends: Vec<(u32, u32)> = (1..17).map(|rank| (0, rank)).collect();
    let violations = verify(&plan_of_all_chunks(collective, &ends, Action::Copy));
    let [only] = &violations[..] else {
        panic!("{} violations", violations.len());
    };
    assert_eq!(only.kind, ViolationKind::TooLarge);
    // 16 x 3.6 x 10^9 deliveries of 8 ns.
    let sentence =
        "delivers 57600000000 chunks to 60000 ranks; to replay them would take about 7 minutes";
    assert!(only.sentence.contains(sentence), "{}", only.sentence);
}
