//! Multi-dimensional ring: on a torus, rings in all dimensions and both directions at once.
//!
//! A block is cut into D parts, one for each of the D dimensions. Part d goes around the rings of dimension d first, then
//! around those of dimension d + 1, and so on, cyclically: in any step of a torus of equal sides, each part is in another
//! dimension. In a dimension of n ranks it goes both ways, in floor(n / 2) steps: in step s a rank hands on to both
//! neighbours what began s - 1 places away. Where n is even the last of these steps brings the block of the opposite
//! rank, half of it from each side.
//!
//! An all_gather takes sum floor(n_d / 2) steps, the hops between the farthest ranks, which is the fewest possible. Every
//! rank sends (N - 1) blocks; if all sides are equal and above 2, over all of its 2 D links evenly, so that step by step
//! no link waits for another: (N - 1) / (2 D) blocks for each link, which is the bound. all_reduce is the all_gather
//! backwards, with sums, and then forwards.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, all_pairs, make_room_for};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const NAME: &str = "multi_ring";

const LABEL: &str = "Multi-dimensional ring";

const CITATION: &str = "Jain and Sabharwal, Optimal Bucket Algorithms for Large MPI Collectives on Torus \
                        Interconnects, ICS 2010; Sack and Gropp, Collective Algorithms for Multiported Torus \
                        Networks, TOPC 2015";

const TORUS: &[&str] = &["torus", "ocs_torus"];

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        aliases: &["bucket"],
        summary: "Rings in all dimensions of a torus and both directions at once, each for another part of the blocks",
        citation: CITATION,
        families: TORUS,
        costs: CostFormulas {
            steps: None,
            ..CostFormulas::new("", "N - 1", "N - 1")
        },
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        aliases: &["bucket"],
        summary: "Reduce_scatter, then all_gather, by rings in all dimensions of a torus and both directions at once",
        citation: CITATION,
        families: TORUS,
        costs: CostFormulas {
            steps: None,
            ..CostFormulas::new("", "2 (N - 1) / N", "2 (N - 1) / N")
        },
        transfers: all_pairs,
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllReduce, all_reduce)
    },
];

/// A dimension of the torus.
#[derive(Clone, Copy)]
struct Side {
    ranks: u32,
    /// What one more of this coordinate means in a rank's number.
    stride: u32,
}

impl Side {
    /// The rank so many places on along the ring of this dimension.
    fn moved(self, rank: u32, places: u32) -> u32 {
        let own = rank / self.stride % self.ranks;
        rank - own * self.stride + (own + places) % self.ranks * self.stride
    }

    fn steps(self) -> u32 {
        self.ranks / 2
    }
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    gathering(request.collective, &sides(request)?)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let blocks = Collective::new(CollectiveKind::AllGather, ranks)?;
    let gathering = gathering(blocks, &sides(request)?)?;
    let collective = request
        .collective
        .with_pieces(gathering.collective.chunks())?;
    let mut schedule = gathering.reversed(collective);
    schedule.append(&gathering, 1);
    let both = |count: Option<u64>| count.map(|count| 2 * count);
    schedule.claims = Claims {
        schedule_steps: gathering.claims.schedule_steps.map(|steps| 2 * steps),
        chunks_sent_per_rank: both(gathering.claims.chunks_sent_per_rank),
        ..Claims::default()
    };
    Ok(schedule)
}

/// The dimensions of more than one rank.
fn sides(request: &Request<'_>) -> Result<Vec<Side>, AlgorithmError> {
    let network = request.fabric.network();
    let grid = network.and_then(|network| network.translations());
    let grid = grid.ok_or(WrongFamily {
        what: request.name,
        needed: "torus",
        family: request.fabric.family(),
        nature: request.fabric.nature(),
    })?;
    if grid.is_twisted() {
        return Err(AlgorithmError::Refused {
            name: NAME,
            ranks: request.ranks(),
            reason: "its rings go straight around each side, and those of a twisted torus do not"
                .into(),
        });
    }
    let mut stride = 1;
    let mut sides = Vec::new();
    for &ranks in grid.sides() {
        if ranks > 1 {
            sides.push(Side { ranks, stride });
        }
        stride *= ranks;
    }
    Ok(sides)
}

fn gathering(collective: Collective, sides: &[Side]) -> Result<Schedule, AlgorithmError> {
    let (ranks, parts) = (collective.ranks(), sides.len() as u32);
    // Halves of parts, for the last steps around rings of even length.
    let halves = 1 + u32::from(sides.iter().any(|side| side.ranks % 2 == 0));
    let pieces = (parts * halves).max(1);
    let mut schedule = Schedule::new(collective.with_pieces(pieces)?);
    let blocks = u64::from(ranks) * u64::from(ranks - 1);
    make_room_for(&mut schedule, blocks * u64::from(pieces))?;
    let steps: u32 = sides.iter().map(|side| side.steps()).sum();
    for step in 0..steps {
        interrupt::check();
        schedule.begin_step();
        for part in 0..parts {
            // The dimensions behind the part, its step in the next one, and that one.
            let (mut behind, mut places) = (Vec::new(), step);
            let mut order = (part..parts)
                .chain(0..part)
                .map(|side| sides[side as usize]);
            let side = order.find(|&side| {
                let is_behind = places >= side.steps();
                if is_behind {
                    places -= side.steps();
                    behind.push(side);
                }
                !is_behind
            });
            let Some(side) = side else { continue };
            let first = part * halves;
            let opposite = side.ranks % 2 == 0 && places + 1 == side.steps();
            let (up, down) = match opposite {
                true => ((first, 1), (first + 1, 1)),
                false => ((first, halves), (first, halves)),
            };
            for rank in 0..ranks {
                for (origin, next, (piece, count)) in
                    [(side.ranks - places, 1, up), (places, side.ranks - 1, down)]
                {
                    let origin = side.moved(rank, origin);
                    for block in gathered(origin, &behind) {
                        schedule.push(Transfer {
                            count,
                            ..Transfer::copy(block * pieces + piece, rank, side.moved(rank, next))
                        });
                    }
                }
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(u64::from(ranks - 1) * u64::from(pieces)),
        ..Claims::default()
    };
    Ok(schedule)
}

/// The ranks whose coordinates differ in the given dimensions only.
fn gathered(rank: u32, dimensions: &[Side]) -> Vec<u32> {
    let mut all = vec![rank];
    for side in dimensions {
        let moved = |places| all.iter().map(move |&one| side.moved(one, places));
        all = (0..side.ranks).flat_map(moved).collect();
    }
    all
}
