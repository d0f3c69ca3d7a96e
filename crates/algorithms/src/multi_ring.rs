//! Multi-dimensional ring: on a torus, rings in all dimensions and both directions at the same
//! time.
//!
//! A block is cut into D parts, one for each of the D dimensions. Part d travels around the rings
//! of dimension d first, then around the rings of dimensions d + 1, d + 2, ..., cyclically. On a
//! torus with equal sides, the parts are in different dimensions in every step. In a dimension of n
//! ranks a part travels in both directions, in floor(n / 2) steps. In step s a rank forwards to
//! both neighbours the data that started s - 1 positions away. If n is even, the block of the
//! opposite rank arrives in the last step, one half from each neighbour.
//!
//! An all_gather takes sum floor(n_d / 2) steps. This is the number of hops between the most
//! distant ranks, and therefore the minimum. Every rank sends N - 1 blocks. If all sides are equal
//! and larger than 2, all 2 D links of a rank carry (N - 1) / (2 D) blocks each, which is the lower
//! bound. The all_reduce is the reversed all_gather, with sums, followed by the all_gather.

use super::{Algorithm, AlgorithmError, CostFormulas, Request, all_pairs, make_room_for};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const NAME: &str = "multi_ring";

const LABEL: &str = "Multi-dimensional ring";

const CITATION: &str = "Jain and Sabharwal, Optimal Bucket Algorithms for Large MPI Collectives \
    on Torus Interconnects, ICS 2010; Sack and Gropp, Collective Algorithms for Multiported Torus \
    Networks, TOPC 2015";

const TORUS: &[&str] = &["torus", "ocs_torus"];

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        aliases: &["bucket"],
        summary: "Rings in all dimensions of a torus and in both directions at the same time, each \
                  for another part of the blocks",
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
        summary: "Reduce_scatter, then all_gather, by rings in all dimensions of a torus and in \
                  both directions at the same time",
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

/// Dimension of the torus with more than one rank.
#[derive(Clone, Copy)]
struct Side {
    ranks: u32,
    /// Difference between the rank numbers of neighbours along this dimension.
    stride: u32,
}

impl Side {
    /// Returns the rank `places` positions after `rank` along its ring of this dimension.
    fn moved(self, rank: u32, places: u32) -> u32 {
        let coordinate = rank / self.stride % self.ranks;
        rank - coordinate * self.stride + (coordinate + places) % self.ranks * self.stride
    }

    fn steps(self) -> u32 {
        self.ranks / 2
    }
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    gather_schedule(request.collective, &sides(request)?)
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let blocks = Collective::new(CollectiveKind::AllGather, ranks)?;
    let gather_schedule = gather_schedule(blocks, &sides(request)?)?;
    let collective = request
        .collective
        .with_pieces(gather_schedule.collective.chunks())?;
    let mut schedule = gather_schedule.reversed(collective);
    schedule.append(&gather_schedule, 1);
    let doubled = |count: Option<u64>| count.map(|count| 2 * count);
    schedule.claims = Claims {
        schedule_steps: gather_schedule.claims.schedule_steps.map(|steps| 2 * steps),
        chunks_sent_per_rank: doubled(gather_schedule.claims.chunks_sent_per_rank),
        ..Claims::default()
    };
    Ok(schedule)
}

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
        return Err(AlgorithmError::refused(
            NAME,
            request.ranks(),
            "its rings go straight around each side, but those of a twisted torus do not",
        ));
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

fn gather_schedule(collective: Collective, sides: &[Side]) -> Result<Schedule, AlgorithmError> {
    let (ranks, parts) = (collective.ranks(), sides.len() as u32);
    // Number of subdivisions of a part: 2 if a ring has even length, because its last step sends
    // halves.
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
            // Determine the dimensions that the part has completed, its current dimension, and the
            // number of steps that the part has made in this dimension (`places`).
            let (mut completed, mut places) = (Vec::new(), step);
            let mut order = (part..parts)
                .chain(0..part)
                .map(|side| sides[side as usize]);
            let side = order.find(|&side| {
                let is_completed = places >= side.steps();
                if is_completed {
                    places -= side.steps();
                    completed.push(side);
                }
                !is_completed
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
                    for block in gathered(origin, &completed) {
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

/// Returns the ranks that differ from `rank` at most in the coordinates of `dimensions`.
fn gathered(rank: u32, dimensions: &[Side]) -> Vec<u32> {
    let mut members = vec![rank];
    for side in dimensions {
        let moved = |places| {
            members
                .iter()
                .map(move |&member| side.moved(member, places))
        };
        members = (0..side.ranks).flat_map(moved).collect();
    }
    members
}
