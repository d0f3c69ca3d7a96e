//! Mutants of plans with long transfers, or chunks that many ranks get, whose data the verifier follows
//! as ranges of chunks, judged by a table of who holds what.

use opticoll::collective::{Collective, CollectiveKind, Holders};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::verify::verify;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::electrical::proved;

/// The transfers of each step.
type Steps = Vec<Vec<Transfer>>;

/// Whether all transfers send what is held and bring what is not, and all demands are met.
fn is_right(collective: &Collective, steps: &Steps) -> bool {
    let (ranks, chunks) = (collective.ranks(), collective.chunks());
    let includes = |holders, rank| match holders {
        Holders::One(holder) => holder == rank,
        Holders::All => true,
    };
    let mut held: Vec<Vec<bool>> = (0..ranks)
        .map(|rank| {
            (0..chunks)
                .map(|chunk| includes(collective.before(chunk), rank))
                .collect()
        })
        .collect();
    for step in steps {
        let at_start = held.clone();
        for moved in step {
            for chunk in moved.chunk..moved.chunk + moved.count {
                let (source, destination) = (moved.source as usize, moved.destination as usize);
                if !at_start[source][chunk as usize] || held[destination][chunk as usize] {
                    return false;
                }
                held[destination][chunk as usize] = true;
            }
        }
    }
    (0..ranks).all(|rank| {
        let mut demanded = (0..chunks).filter(|&chunk| includes(collective.after(chunk), rank));
        demanded.all(|chunk| held[rank as usize][chunk as usize])
    })
}

/// Changes one transfer; what it returns may be as good as the original.
fn mutate(steps: &mut Steps, ranks: u32, chunks: u32, random: &mut Pcg64Mcg) {
    let step = random.random_range(0..steps.len());
    let index = random.random_range(0..steps[step].len());
    let moved = &mut steps[step][index];
    match random.random_range(0..9) {
        0 => drop(steps[step].remove(index)),
        1 => {
            let again = *moved;
            steps[step].push(again);
        }
        2 => moved.chunk = (moved.chunk + 1).min(chunks - moved.count),
        3 => moved.chunk = moved.chunk.saturating_sub(1),
        4 => moved.count = (moved.count + 1).min(chunks - moved.chunk),
        5 => moved.count = (moved.count - 1).max(1),
        6 => {
            moved.source =
                (moved.source + 1 + u32::from(moved.source + 1 == moved.destination)) % ranks
        }
        7 => {
            let next = (moved.destination + 1) % ranks;
            moved.destination = if next == moved.source {
                (next + 1) % ranks
            } else {
                next
            };
        }
        _ => {
            let moved = steps[step].remove(index);
            let other = random.random_range(0..steps.len());
            steps[other].push(moved);
        }
    }
    steps.retain(|step| !step.is_empty());
}

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

#[test]
fn each_mutant_of_long_transfers_is_rejected_or_equivalent() {
    let mut random = Pcg64Mcg::seed_from_u64(6);
    let (mut rejected, mut accepted) = (0, 0);
    for (kind, algorithm, ranks) in [
        (CollectiveKind::AllGather, "recursive_doubling", 32),
        (CollectiveKind::AllGather, "bruck", 37),
        (CollectiveKind::AllGather, "gather_broadcast", 32),
        (CollectiveKind::Scatter, "binomial", 64),
        (CollectiveKind::Gather, "binomial", 64),
        (CollectiveKind::Broadcast, "scatter_all_gather", 32),
        // Chunks that many ranks get, in steps that are stored as repetitions of the first.
        (CollectiveKind::AllGather, "ring", 17),
        (CollectiveKind::AllGather, "ring:order=shuffled", 17),
        (CollectiveKind::AllGather, "direct", 17),
    ] {
        let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
        let plan = proved(kind, algorithm, &fabric);
        let collective = plan.schedule.collective;
        let delivered: u64 = plan
            .schedule
            .transfers()
            .map(|one| u64::from(one.count))
            .sum();
        let fewer = plan.len().min(collective.chunks() as usize);
        let dense = delivered > 4 * fewer as u64;
        assert!(
            dense || kind != CollectiveKind::AllGather,
            "{algorithm} is followed as ranges"
        );
        let steps: Steps = (0..plan.schedule.steps())
            .map(|step| {
                plan.schedule
                    .step(step)
                    .map(|index| plan.schedule.transfer(index))
                    .collect()
            })
            .collect();
        for _ in 0..300 {
            let mut mutant = steps.clone();
            for _ in 0..random.random_range(1..3) {
                mutate(&mut mutant, ranks, collective.chunks(), &mut random);
            }
            let right = is_right(&collective, &mutant);
            let violations = verify(&rebuilt(&plan, &mutant));
            assert_eq!(right, violations.is_empty(), "{algorithm}: {violations:?}");
            rejected += u32::from(!right);
            accepted += u32::from(right);
        }
    }
    // Undone changes and steps that may be exchanged leave a plan right.
    assert!(
        rejected > 1_000 && accepted > 10,
        "{rejected} rejected, {accepted} accepted"
    );
}
