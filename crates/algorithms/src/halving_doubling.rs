//! Halving and doubling (Rabenseifner): all_reduce as a reduce_scatter by recursive halving of the
//! vector, followed by an all_gather by recursive doubling.
//!
//! The vector is cut into P pieces, where P is the largest power of two that is at most N. The
//! other N - P ranks fold (see `fold.rs`). In the k-th of log2 P exchanges a rank keeps half of its
//! current part and sends its partner the other half, M / 2^k bytes of a vector of M bytes. Then
//! the same partners exchange the results in reverse order. With `order=near`, the distances of the
//! exchanges are 1, 2, 4, ..., as in MPI libraries, so large messages travel short distances. With
//! `order=far`, the first distance is P/2. On a grid of tunable circuits every exchange stays in a
//! row or a column (see [`super::dual_plane`]).
//!
//! With `halvings` = h < log2 P, ranks halve the vector only in the first h exchanges. Along the
//! other distances they exchange the whole remaining part, as in recursive doubling. In the log2 P
//! + h exchanges together, a rank sends 2 (1 - 2^-h) M + (log2 P - h) 2^-h M bytes.

use super::fold::Fold;
use super::{
    Algorithm, AlgorithmError, CostFormulas, OptionRecord, Request, Role, choice, dual_plane,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Exchange halves, quarters, ... of the vector and combine, then collect the results",
    citation: "Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004",
    options: &[
        OptionRecord::new(
            "order",
            "distance to the partner of the first step: near, 1 rank; far, N/2 ranks",
        )
        .range("near, far")
        .default("near")
        .tries(&["far"]),
        OptionRecord::new(
            "halvings",
            "number of exchanges of halves; the other exchanges send the whole remaining part",
        )
        .range("0 to log2 P")
        .default("log2 P")
        .role(Role::Halvings)
        .tries(&["1", "2", "3", "4", "5", "6"]),
    ],
    costs: CostFormulas::new("2 log2 P + 2 F", "2 (P - 1) / P + F", "2 (P - 1) / P + F"),
    ..Algorithm::new(
        "halving_doubling",
        "Halving-doubling",
        CollectiveKind::AllReduce,
        build,
    )
}];

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let near_first = choice(request.spec, "order", &[("near", true), ("far", false)])?;
    let fold = Fold::new(request.ranks());
    let dimensions = fold.core.ilog2();
    let halvings = request.spec.count("halvings", 0, dimensions)?;
    if request.fabric.planes().is_some() {
        return match halvings {
            None => dual_plane::single(request, near_first),
            Some(_) => Err(AlgorithmError::Refused {
                name: "halving_doubling",
                ranks: request.ranks(),
                reason: "on a wss_grid its exchanges are halves in rows and columns: leave \
                         `halvings` out"
                    .into(),
            }),
        };
    }
    let halvings = halvings.unwrap_or(dimensions);
    let pieces = 1 << halvings;
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    let whole = |source, destination, action| Transfer {
        chunk: 0,
        count: pieces,
        source,
        destination,
        action,
    };
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            schedule.push(whole(waiting, partner, Action::Reduce));
        }
    }
    let mut distances: Vec<u32> = fold.distances().collect();
    if !near_first {
        distances.reverse();
    }
    // After an exchange, the rank with index i has the sums of `kept` pieces, starting at piece
    // `first[i]`.
    let mut first = vec![0; fold.core as usize];
    let mut kept = pieces;
    let (halved, whole_left) = distances.split_at(halvings as usize);
    for &distance in halved {
        kept /= 2;
        for (index, first) in first.iter_mut().enumerate() {
            *first += if index as u32 & distance > 0 { kept } else { 0 };
        }
        exchange(&mut schedule, &fold, distance, Action::Reduce, &first, kept);
    }
    for &distance in whole_left {
        exchange(&mut schedule, &fold, distance, Action::Reduce, &first, kept);
    }
    for &distance in halved.iter().rev() {
        exchange(&mut schedule, &fold, distance, Action::Copy, &first, kept);
        for (index, first) in first.iter_mut().enumerate() {
            *first -= if index as u32 & distance > 0 { kept } else { 0 };
        }
        kept *= 2;
    }
    if fold.waiting > 0 {
        schedule.begin_step();
        for (waiting, partner) in fold.pairs() {
            schedule.push(whole(partner, waiting, Action::Copy));
        }
    }
    let sent = 2 * (pieces - 1) + (dimensions - halvings) + fold.waits() * pieces;
    schedule.claims = Claims {
        schedule_steps: Some(dimensions + halvings + 2 * fold.waits()),
        chunks_sent_per_rank: Some(u64::from(sent)),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Appends a step in which the ranks with indices i and i XOR `distance` are partners. The rank
/// with index i keeps the sums of `count` pieces, starting at piece `first[i]`. With
/// `Action::Reduce`, a rank sends the pieces that its partner keeps. With `Action::Copy`, a rank
/// sends the pieces that it keeps.
fn exchange(
    schedule: &mut Schedule,
    fold: &Fold,
    distance: u32,
    action: Action,
    first: &[u32],
    count: u32,
) {
    schedule.begin_step();
    for index in 0..fold.core {
        let partner = index ^ distance;
        let keeper = if action.adds() { partner } else { index };
        schedule.push(Transfer {
            chunk: first[keeper as usize],
            count,
            source: fold.rank(index),
            destination: fold.rank(partner),
            action,
        });
    }
}
