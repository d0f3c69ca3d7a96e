//! Schedules against plain lists of transfers: that a schedule stores repeated steps only once must
//! not be visible.

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::schedule::{Action, Schedule, Transfer};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::electrical::proved;

/// The transfers of each step.
type Steps = Vec<Vec<Transfer>>;

fn collective() -> Collective {
    // Four ranks of three pieces each: 12 chunks.
    let all_gather = Collective::new(CollectiveKind::AllGather, 4).unwrap();
    all_gather.with_pieces(3).unwrap()
}

fn schedule_of(collective: Collective, steps: &Steps, reserved: usize) -> Schedule {
    let mut schedule = Schedule::new(collective);
    schedule.reserve(reserved);
    for step in steps {
        schedule.begin_step();
        step.iter().for_each(|transfer| schedule.push(*transfer));
    }
    schedule
}

fn steps_of(schedule: &Schedule) -> Steps {
    let steps = 0..schedule.steps();
    steps
        .map(|step| schedule.columns(step).transfers().collect())
        .collect()
}

/// Checks that a schedule answers every question as the list of its transfers does.
fn check(schedule: &Schedule, steps: &Steps) {
    let all: Vec<Transfer> = steps.iter().flatten().copied().collect();
    assert_eq!(&steps_of(schedule), steps);
    assert_eq!(schedule.steps(), steps.len());
    assert_eq!(schedule.len(), all.len());
    assert_eq!(schedule.is_empty(), all.is_empty());
    assert!(schedule.stored() <= all.len());
    assert!(schedule.transfers().eq(all.iter().copied()));
    let deliveries: u64 = all.iter().map(|one| u64::from(one.count)).sum();
    assert_eq!(schedule.deliveries(), deliveries);
    let single = all.iter().all(|one| one.count == 1);
    assert_eq!(schedule.has_single_chunks(), single);
    for (index, one) in all.iter().enumerate() {
        assert_eq!(schedule.transfer(index), *one);
        assert_eq!(schedule.ends(index), (one.source, one.destination));
    }
    let mut first = 0;
    for (number, step) in steps.iter().enumerate() {
        let range = schedule.step(number);
        assert_eq!(range, first..first + step.len());
        first = range.end;
        let columns = schedule.columns(number);
        assert_eq!(
            (columns.len(), columns.is_empty()),
            (step.len(), step.is_empty())
        );
        assert!(columns.chunks().eq(step.iter().map(|one| one.chunk)));
        for (place, one) in step.iter().enumerate() {
            assert_eq!(columns.chunk(place), one.chunk);
            assert_eq!(columns.count()[place], one.count);
            assert_eq!(columns.source()[place], one.source);
            assert_eq!(columns.destination()[place], one.destination);
            assert_eq!(columns.action()[place], one.action);
        }
    }
}

/// Draws steps, many of which repeat an earlier step with other chunks, exactly or almost.
fn repetitive(seed: u64) -> Steps {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let chunks = collective().chunks();
    // Some seeds have chunks that do not exist, as hand-made schedules may.
    let beyond = if seed % 5 == 0 { 3 } else { 0 };
    let patterns: Steps = (0..random.random_range(1..4))
        .map(|_| {
            let transfer = |random: &mut Pcg64Mcg| Transfer {
                chunk: match random.random_range(0..40) {
                    0 if beyond > 0 => u32::MAX,
                    _ => random.random_range(0..chunks + beyond),
                },
                count: random.random_range(1..3),
                source: random.random_range(0..4),
                destination: random.random_range(0..4),
                action: Action::ALL[random.random_range(0..Action::ALL.len())],
            };
            let transfers = random.random_range(0..7);
            (0..transfers).map(|_| transfer(&mut random)).collect()
        })
        .collect();
    let step = |random: &mut Pcg64Mcg| {
        let mut step = patterns[random.random_range(0..patterns.len())].clone();
        let shift = random.random_range(0..chunks);
        for one in step.iter_mut().filter(|one| one.chunk < chunks) {
            one.chunk = (one.chunk + shift) % chunks;
        }
        if random.random_range(0..3) == 0 && !step.is_empty() {
            let at = random.random_range(0..step.len());
            change(&mut step, at, random);
        }
        step
    };
    let steps = random.random_range(0..20);
    (0..steps).map(|_| step(&mut random)).collect()
}

/// Changes one field of a transfer of a step, or removes or doubles the transfer.
fn change(step: &mut Vec<Transfer>, at: usize, random: &mut Pcg64Mcg) {
    match random.random_range(0..7) {
        0 => step[at].chunk ^= 1,
        1 => step[at].count += 1,
        2 => step[at].source ^= 1,
        3 => step[at].destination ^= 2,
        4 => {
            step[at].action = Action::ALL[(step[at].action as usize + 1) % Action::ALL.len()];
        }
        5 => drop(step.remove(at)),
        _ => step.insert(at, step[at]),
    }
}

proptest! {
    #![proptest_config(crate::unsaved(2000))]

    #[test]
    fn a_schedule_is_its_transfers_however_it_is_stored(
        seed: u64, other: u64, reserved in 0usize..1000
    ) {
        let (collective, steps) = (collective(), repetitive(seed));
        let schedule = schedule_of(collective, &steps, reserved);
        check(&schedule, &steps);
        // Backwards: the ends and the order of steps exchanged. An all_gather becomes a sum.
        let backwards = Collective::new(CollectiveKind::ReduceScatter, 4).unwrap();
        let reversed: Steps = steps.iter().rev().cloned().map(|mut step| {
            for one in &mut step {
                (one.source, one.destination) = (one.destination, one.source);
                one.action = match one.action {
                    Action::Copy | Action::Reduce => Action::Reduce,
                    Action::Multicast | Action::Aggregate => Action::Aggregate,
                };
            }
            step
        }).collect();
        check(&schedule.reversed(backwards.with_pieces(3).unwrap()), &reversed);
        // One schedule after another.
        let more = repetitive(other);
        let mut both = schedule.clone();
        both.append(&schedule_of(collective, &more, 0), 1);
        check(&both, &[steps.clone(), more].concat());
        // Ranges of chunks cut up.
        if steps.iter().flatten().all(|one| one.chunk < 1000) {
            let single: Steps = steps.iter().map(|step| {
                let cut = |one: &Transfer| {
                    let one = *one;
                    let chunks = one.chunk..one.chunk + one.count;
                    chunks.map(move |chunk| Transfer { chunk, count: 1, ..one })
                };
                step.iter().flat_map(cut).collect()
            }).collect();
            check(&schedule.clone().into_single_chunks(), &single);
        }
    }

    #[test]
    fn schedules_are_equal_if_their_transfers_are(seed: u64, reserved in 0usize..1000) {
        let mut steps = repetitive(seed);
        let schedule = schedule_of(collective(), &steps, 0);
        prop_assert_eq!(&schedule, &schedule_of(collective(), &steps, reserved));
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let full: Vec<usize> = (0..steps.len()).filter(|&step| !steps[step].is_empty()).collect();
        if !full.is_empty() {
            let step = &mut steps[full[random.random_range(0..full.len())]];
            let at = random.random_range(0..step.len());
            change(step, at, &mut random);
            let changed = schedule_of(collective(), &steps, 0);
            check(&changed, &steps);
            prop_assert_ne!(&schedule, &changed);
        }
    }
}

#[test]
fn many_of_the_schedules_above_are_stored_by_repetition() {
    let stored = |seed| {
        let schedule = schedule_of(collective(), &repetitive(seed), 0);
        schedule.stored() < schedule.len()
    };
    let repeated = (0..1000).filter(|&seed| stored(seed)).count();
    assert!(repeated > 500, "{repeated} of 1000");
}

/// Returns the steps of a ring of N ranks: in step s, rank r sends block r - s to rank r + 1.
fn ring(ranks: u32) -> Steps {
    let block = |rank: u32, step: u32| (rank + ranks - step) % ranks;
    let sends = |rank: u32, step| Transfer::copy(block(rank, step), rank, (rank + 1) % ranks);
    (0..ranks - 1)
        .map(|step| (0..ranks).map(|rank| sends(rank, step)).collect())
        .collect()
}

#[test]
fn a_ring_stores_as_many_transfers_as_it_has_ranks_and_its_last_step() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    for ranks in [5, 64, 300] {
        // A step of each kind, of N transfers, and the last step. An all_reduce adds up and hands
        // out.
        for (kind, kinds_of_step, phases) in
            [(AllGather, 1, 1), (ReduceScatter, 1, 1), (AllReduce, 2, 2)]
        {
            let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
            let schedule = proved(kind, "ring", &fabric).schedule;
            let length = (phases * ranks * (ranks - 1)) as usize;
            assert_eq!(schedule.len(), length, "{kind} on {ranks}");
            let stored = (kinds_of_step + 1) * ranks as usize;
            assert_eq!(schedule.stored(), stored, "{kind} on {ranks}");
            if kind == AllGather {
                check(&schedule, &ring(ranks));
            }
        }
    }
}

#[test]
fn a_pipeline_stores_the_steps_in_which_it_fills_and_drains_and_one_between() {
    // Down a chain of N ranks, K pieces: N - 2 steps with fewer transfers before there are N - 1,
    // as many after; a single transfer is stored as it is. The step after the full ones is one of N
    // - 2.
    let (ranks, pieces) = (8, 1000);
    let collective = Collective::new(CollectiveKind::Broadcast, ranks).unwrap();
    let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
    let spec = format!("chain:segments={pieces}").parse().unwrap();
    let schedule = algorithms::build_ranges(&spec, collective, &fabric).unwrap();
    let step = |time: u32| -> Vec<Transfer> {
        let sends = (0..ranks - 1).filter(|&rank| rank <= time && time - rank < pieces);
        sends
            .map(|rank| Transfer::copy(time - rank, rank, rank + 1))
            .collect()
    };
    let steps: Steps = (0..ranks - 1 + pieces - 1).map(step).collect();
    check(&schedule, &steps);
    let filling: u32 = (1..ranks - 1).sum();
    assert_eq!(schedule.stored() as u32, 2 * filling + ranks - 1);
}
