//! Swing: halving and doubling with partners alternately on both sides along a ring. This keeps
//! partners close to each other.
//!
//! Let N = 2^k. In step s = 0, 1, ... of a reduce_scatter, rank r exchanges with rank
//!
//! p(r, s) = r + d(s) for even r, r - d(s) for odd r, where
//! d(s) = 1 - 2 + 4 - ... + (-2)^s = (1 - (-2)^(s + 1)) / 3,
//!
//! and sends the sums of the blocks of all ranks that p(r, s) reaches in the steps after s. The
//! distances 1, 1, 3, 5, 11, ... are about two thirds of the distances of recursive halving.
//!
//! **Reached ranks.** All d are odd, so p(., s) is its own inverse and changes parity, and
//! d(s + 1) - d(s) = (-2)^(s + 1). For even r let C(r, s) contain the ranks r + i 2^(s + 1) and
//! r + d(s) + i 2^(s + 1); for odd r let C(r, s) = C(r - d(s), s). Then C(r, s) is the set of ranks
//! that r reaches in the steps from s on, including r, each exactly once. For s = k - 1 the set
//! consists of r and its partner. For smaller s and even r, rank r reaches C(r, s + 1) in the later
//! steps, and rank r + d(s) reaches C(r + d(s) - d(s + 1), s + 1). The even ranks of the two sets
//! differ by 2^(s + 1) modulo 2^(s + 2), and so do the odd ranks. Hence the sets are disjoint, and
//! their union is C(r, s).
//!
//! Let e(r) be r for even r, and r - d(k - 1) for odd r. The even number e(r) modulo 2^(s + 1)
//! determines C(r, s). If the ranks are sorted by e(r) with reversed bits, each C is a range. The
//! all_reduce cuts its vector in this order and sends one range per message.

use super::{
    Algorithm, AlgorithmError, CostFormulas, OptionRecord, Request, choice, make_room,
    powers_of_two,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};

const CITATION: &str = "De Sensi, Bonato, Saam and Hoefler, Swing: Short-cutting Rings for Higher \
    Bandwidth Allreduce, NSDI 2024";

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Exchange blocks with partners at distance ..., 11, 5, 3, 1, 1, to the left and \
            right in turn",
        citation: CITATION,
        costs: CostFormulas::new("log2 N", "N - 1", "N - 1"),
        accepts: powers_of_two,
        ..Algorithm::new("swing", "Swing", CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Halving and doubling with partners at distance 1, 1, 3, 5, 11, ..., to the left \
            and right in turn",
        citation: CITATION,
        options: &[OptionRecord::new(
            "minimize",
            "quantity to minimize: bytes, halves of the vector; steps, whole vectors in \
         half as many steps",
        )
        .range("bytes, steps")
        .default("bytes")
        .tries(&["steps"])],
        costs: CostFormulas::new("2 log2 N", "2 (N - 1) / N", "2 (N - 1) / N"),
        accepts: powers_of_two,
        ..Algorithm::new("swing", "Swing", CollectiveKind::AllReduce, all_reduce)
    },
];

#[derive(Clone, Copy)]
struct Swing {
    ranks: u32,
    steps: u32,
}

impl Swing {
    fn new(ranks: u32) -> Swing {
        Swing {
            ranks,
            steps: ranks.ilog2(),
        }
    }

    /// Returns the rank r + d(s) if `sign` is 1, or r - d(s) if `sign` is -1, for r = `rank` and s
    /// = `step`.
    fn moved(self, rank: u32, step: u32, sign: i64) -> u32 {
        let distance = (1 - (-2i64).pow(step + 1)) / 3;
        (i64::from(rank) + sign * distance).rem_euclid(self.ranks.into()) as u32
    }

    /// Returns the rank with which `rank` exchanges in step `step`.
    fn partner(self, rank: u32, step: u32) -> u32 {
        self.moved(rank, step, if rank % 2 == 0 { 1 } else { -1 })
    }

    /// Returns the position of `rank` if all ranks are sorted by e(r) with reversed bits. In this
    /// order, the ranks that a rank reaches in the steps after any step are consecutive.
    fn place(self, rank: u32) -> u32 {
        if self.steps == 0 {
            return 0;
        }
        let even = match rank % 2 {
            0 => rank,
            _ => self.moved(rank, self.steps - 1, -1),
        };
        // The lowest k - 1 bits of half of e(r), in reverse order.
        let reversed = (even / 2).reverse_bits().checked_shr(33 - self.steps);
        2 * reversed.unwrap_or(0) + rank % 2
    }

    /// Returns the ranks that `rank` reaches in the steps after `step`, including `rank`, as a
    /// range of positions (see `place`): (first position, number of positions).
    fn reached(self, rank: u32, step: u32) -> (u32, u32) {
        let count = self.ranks >> (step + 1);
        (self.place(rank) & !(count - 1), count)
    }
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let swing = Swing::new(ranks);
    let mut at_place = vec![0; ranks as usize];
    for rank in 0..ranks {
        at_place[swing.place(rank) as usize] = rank;
    }
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    for step in (0..swing.steps).rev() {
        schedule.begin_step();
        for rank in 0..ranks {
            let (first, count) = swing.reached(rank, step);
            for &block in &at_place[first as usize..(first + count) as usize] {
                schedule.push(Transfer::copy(block, rank, swing.partner(rank, step)));
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(swing.steps),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let swing = Swing::new(ranks);
    let whole = choice(
        request.spec,
        "minimize",
        &[("bytes", false), ("steps", true)],
    )?;
    let pieces = if whole { 1 } else { ranks };
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    let kept = |rank, step| match whole {
        true => (0, 1),
        false => swing.reached(rank, step),
    };
    let mut exchange = |step, action| {
        schedule.begin_step();
        for source in 0..ranks {
            let destination = swing.partner(source, step);
            let kept = |rank| kept(rank, step);
            schedule.push(Transfer::for_kept_chunks(action, source, destination, kept));
        }
    };
    for step in 0..swing.steps {
        exchange(step, Action::Reduce);
    }
    for step in (0..swing.steps).rev().filter(|_| !whole) {
        exchange(step, Action::Copy);
    }
    let (steps, sent) = match whole {
        true => (swing.steps, swing.steps),
        false => (2 * swing.steps, 2 * (ranks - 1)),
    };
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(sent.into()),
        ..Claims::default()
    };
    Ok(schedule)
}
