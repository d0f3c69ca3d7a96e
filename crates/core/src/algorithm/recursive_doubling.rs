//! Recursive doubling: exchange everything with the partner at distance 1, 2, 4, ...
//!
//! Where N is no power of two, the usual fold: of the first 2(N - P) ranks, P the largest power of
//! two below N, each even one hands its data to the odd one after it and waits; P ranks exchange;
//! at the end the waiting ranks get the result. log2 P steps, and two more with the fold.

use super::{AlgorithmError, Record, Request, any_ranks, make_room};
use crate::collective::CollectiveKind;
use crate::schedule::{Claims, Schedule, Transfer};

const CITATION: &str = "Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in \
     MPICH, IJHPCA 2005";

/// The records of this file.
pub const RECORDS: &[Record] = &[
    Record {
        name: "recursive_doubling",
        label: "RD",
        collective: CollectiveKind::AllGather,
        summary: "Exchange all blocks held with the partner at distance 1, 2, 4, ...",
        citation: CITATION,
        options: &[],
        accepts: any_ranks,
        build: all_gather,
        reversed_from: None,
    },
    Record {
        name: "recursive_doubling",
        label: "RD",
        collective: CollectiveKind::AllReduce,
        summary: "Exchange and combine whole vectors with the partner at distance 1, 2, 4, ...",
        citation: CITATION,
        options: &[],
        accepts: any_ranks,
        build: all_reduce,
        reversed_from: None,
    },
];

/// The ranks that exchange, and those that hand their data over first.
struct Fold {
    ranks: u32,
    /// The largest power of two up to `ranks`.
    core: u32,
    /// Pairs (2i, 2i + 1), i < folded: the even rank waits, the odd one stands for both.
    folded: u32,
}

impl Fold {
    fn new(ranks: u32) -> Fold {
        let core = 1 << ranks.ilog2();
        Fold {
            ranks,
            core,
            folded: ranks - core,
        }
    }

    /// The rank with an index among those that exchange.
    fn rank(&self, index: u32) -> u32 {
        if index < self.folded {
            2 * index + 1
        } else {
            index + self.folded
        }
    }

    /// The ranks whose data the one with an index among the exchanging ranks stands for, from
    /// `index` on, `count` indices.
    fn covered(&self, index: u32, count: u32) -> std::ops::Range<u32> {
        let start = |index: u32| {
            if index < self.folded {
                2 * index
            } else {
                index + self.folded
            }
        };
        start(index)..start(index + count).min(self.ranks)
    }

    fn steps(&self) -> u32 {
        self.core.ilog2() + if self.folded > 0 { 2 } else { 0 }
    }
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let fold = Fold::new(ranks);
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    if fold.folded > 0 {
        schedule.begin_step();
        for pair in 0..fold.folded {
            schedule.push(Transfer::copy(2 * pair, 2 * pair, 2 * pair + 1));
        }
    }
    let mut distance = 1;
    while distance < fold.core {
        schedule.begin_step();
        for index in 0..fold.core {
            let (source, destination) = (fold.rank(index), fold.rank(index ^ distance));
            for chunk in fold.covered(index & !(distance - 1), distance) {
                schedule.push(Transfer::copy(chunk, source, destination));
            }
        }
        distance *= 2;
    }
    if fold.folded > 0 {
        schedule.begin_step();
        for pair in 0..fold.folded {
            let waiting = 2 * pair;
            for chunk in (0..ranks).filter(|&chunk| chunk != waiting) {
                schedule.push(Transfer::copy(chunk, waiting + 1, waiting));
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(fold.steps()),
        ..Claims::default()
    };
    Ok(schedule)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let fold = Fold::new(request.ranks());
    let mut schedule = Schedule::new(request.collective);
    let reduce = |source, destination| Transfer::reduce(0, source, destination);
    if fold.folded > 0 {
        schedule.begin_step();
        for pair in 0..fold.folded {
            schedule.push(reduce(2 * pair, 2 * pair + 1));
        }
    }
    let mut distance = 1;
    while distance < fold.core {
        schedule.begin_step();
        for index in 0..fold.core {
            schedule.push(reduce(fold.rank(index), fold.rank(index ^ distance)));
        }
        distance *= 2;
    }
    if fold.folded > 0 {
        schedule.begin_step();
        for pair in 0..fold.folded {
            schedule.push(Transfer::copy(0, 2 * pair + 1, 2 * pair));
        }
    }
    schedule.claims = Claims {
        paper_steps: Some(u64::from(fold.steps())),
        paper_step_share: Some((1, 1)),
        schedule_steps: Some(fold.steps()),
        ..Claims::default()
    };
    Ok(schedule)
}
