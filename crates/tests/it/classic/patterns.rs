//! The messages of each step, from one rank to another, against the definitions in the literature.

use std::collections::BTreeMap;

use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::*;
use opticoll::schedule::Schedule;

use super::ranges;

/// The chunks of each message of a step, by source and destination.
type Messages = BTreeMap<(u32, u32), u64>;

fn messages(schedule: &Schedule, step: usize) -> Messages {
    let mut messages = Messages::new();
    for index in schedule.step(step) {
        let transfer = schedule.transfer(index);
        *messages
            .entry((transfer.source, transfer.destination))
            .or_default() += u64::from(transfer.count);
    }
    messages
}

/// Checks that rank r sends `of(N, s, r) = (destination, parts)` in each of `steps(N)` steps, a
/// part being an N-th of the gathered result, of the vector, or of what one rank sends in all.
fn check(
    kind: CollectiveKind,
    spec: &str,
    sizes: &[u32],
    steps: fn(u32) -> u32,
    of: fn(u32, u32, u32) -> (u32, u64),
) {
    for &ranks in sizes {
        let schedule = ranges(kind, spec, ranks);
        assert_eq!(schedule.steps() as u32, steps(ranks), "{spec} on {ranks}");
        let pieces = u64::from(schedule.collective.pieces());
        for step in 0..steps(ranks) {
            let expected: Messages = (0..ranks)
                .map(|rank| {
                    let (destination, parts) = of(ranks, step, rank);
                    // Chunks are N-th parts, except of vectors in one piece.
                    let whole = kind == AllReduce && pieces == 1;
                    let chunks = if whole {
                        parts / u64::from(ranks)
                    } else {
                        parts
                    };
                    ((rank, destination), chunks)
                })
                .collect();
            assert_eq!(
                messages(&schedule, step as usize),
                expected,
                "{spec} on {ranks}, step {step}"
            );
        }
    }
}

fn others(ranks: u32) -> u32 {
    ranks - 1
}

fn rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

fn twice_log2(ranks: u32) -> u32 {
    2 * ranks.ilog2()
}

fn next(ranks: u32, _: u32, rank: u32) -> (u32, u64) {
    ((rank + 1) % ranks, 1)
}

fn shifted(ranks: u32, step: u32, rank: u32) -> (u32, u64) {
    ((rank + step + 1) % ranks, 1)
}

const POWERS: &[u32] = &[2, 4, 8, 16, 32, 64, 128];
const ANY: &[u32] = &[2, 3, 5, 6, 7, 8, 12, 16, 31, 33, 64];

#[test]
fn all_gathers_send_what_their_definitions_say() {
    check(AllGather, "ring", ANY, others, next);
    check(AllGather, "direct:order=shift", ANY, others, shifted);
    check(AllGather, "direct", ANY, others, shifted);
    check(
        AllGather,
        "recursive_doubling",
        POWERS,
        u32::ilog2,
        |_, s, r| (r ^ (1 << s), 1 << s),
    );
    check(AllGather, "bruck", ANY, rounds, |n, s, r| {
        (
            (r + n - (1 << s)) % n,
            u64::from((1 << s).min(n - (1 << s))),
        )
    });
    // Jeaugey 2025: far ranks first; with messages of A blocks, log2 A + N / A - 1 steps.
    check(AllGather, "pat", POWERS, u32::ilog2, |n, s, r| {
        ((r + (n >> (s + 1))) % n, 1 << s)
    });
    check(
        AllGather,
        "pat:aggregation=2",
        &POWERS[1..],
        |n| n / 2,
        |n, s, r| match s {
            0 => ((r + n / 2) % n, 1),
            _ => ((r + (1 << s.trailing_zeros())) % n, 2),
        },
    );
    check(AllGather, "pat:aggregation=1", ANY, others, |n, s, r| {
        ((r + (1 << (s + 1).trailing_zeros())) % n, 1)
    });
}

#[test]
fn all_reduces_send_what_their_definitions_say() {
    check(AllReduce, "ring", ANY, |n| 2 * (n - 1), next);
    check(
        AllReduce,
        "recursive_doubling",
        POWERS,
        u32::ilog2,
        |n, s, r| (r ^ (1 << s), n.into()),
    );
    // The exponent of the distance counts down and up again, or up and down.
    check(
        AllReduce,
        "halving_doubling:order=far",
        POWERS,
        twice_log2,
        |n, s, r| {
            let k = if s < n.ilog2() {
                n.ilog2() - 1 - s
            } else {
                s - n.ilog2()
            };
            (r ^ (1 << k), 1 << k)
        },
    );
    check(
        AllReduce,
        "halving_doubling:order=near",
        POWERS,
        twice_log2,
        |n, s, r| {
            let k = if s < n.ilog2() {
                s
            } else {
                2 * n.ilog2() - 1 - s
            };
            (r ^ (1 << k), u64::from(n >> (k + 1)))
        },
    );
}

#[test]
fn the_others_send_what_their_definitions_say() {
    check(AllToAll, "pairwise", POWERS, others, |_, s, r| {
        (r ^ (s + 1), 1)
    });
    check(AllToAll, "pairwise:order=shift", ANY, others, shifted);
    check(AllToAll, "pairwise", &[3, 6, 7, 12], others, shifted);
    check(ReduceScatter, "pairwise:order=shift", ANY, others, shifted);
    check(
        ReduceScatter,
        "recursive_halving",
        POWERS,
        u32::ilog2,
        |n, s, r| (r ^ (n >> (s + 1)), u64::from(n >> (s + 1))),
    );
    // Half of all distances have bit s.
    check(AllToAll, "bruck", POWERS, u32::ilog2, |n, s, r| {
        ((r + (1 << s)) % n, u64::from(n / 2))
    });
    check(Barrier, "dissemination", ANY, rounds, |n, s, r| {
        ((r + (1 << s)) % n, 1)
    });
    check(
        Barrier,
        "recursive_doubling",
        POWERS,
        u32::ilog2,
        |_, s, r| (r ^ (1 << s), 1),
    );
}

/// Returns the partner in Swing: even ranks go the distance of the step, and odd ranks go the same
/// distance in the other direction (De Sensi et al., section 3.1).
fn swung(ranks: u32, step: u32, rank: u32) -> u32 {
    let distance: i64 = [1, -1, 3, -5, 11, -21, 43][step as usize];
    let sign = if rank % 2 == 0 { 1 } else { -1 };
    (i64::from(rank) + sign * distance).rem_euclid(ranks.into()) as u32
}

#[test]
fn swing_goes_as_far_as_its_paper_says() {
    check(ReduceScatter, "swing", POWERS, u32::ilog2, |n, s, r| {
        (swung(n, s, r), u64::from(n >> (s + 1)))
    });
    check(AllGather, "swing", POWERS, u32::ilog2, |n, s, r| {
        (swung(n, n.ilog2() - 1 - s, r), 1 << s)
    });
    check(AllReduce, "swing", POWERS, twice_log2, |n, s, r| {
        let k = s.min(2 * n.ilog2() - 1 - s);
        (swung(n, k, r), u64::from(n >> (k + 1)))
    });
    check(
        AllReduce,
        "swing:minimize=steps",
        POWERS,
        u32::ilog2,
        |n, s, r| (swung(n, s, r), n.into()),
    );
}
