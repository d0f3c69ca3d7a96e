//! What no plan can beat: lower bounds on slots and on time, each with its proof and with the
//! assumption under which it holds.
//!
//! N ranks on a ring, c channels per direction (fibres times wavelengths), hence 2cN
//! link-channels in a slot; a lightpath of length l takes l of them and delivers at its end only.
//! A rank takes in at most r = min(2c, ports) lightpaths in a slot. One chunk per lightpath and
//! slot; P chunks to a block (or to the vector).
//!
//! **receive.** A rank that must get m chunks needs ceil(m / r) slots: all_gather P(N - 1) at every
//! rank, gather P(N - 1) at the root, all_reduce, broadcast P. Run backwards, reduce_scatter sends
//! P(N - 1) chunks from every rank, scatter P(N - 1) from the root, reduce P from every other.
//!
//! **growth.** In a slot, each rank that has (something of) a block tells at most r others, so
//! 1 + r times as many have it afterwards: S >= ceil(log_(1+r) N) where something of one rank
//! reaches all, or of all ranks one. The last is the same backwards. This one holds for any number
//! of chunks per lightpath. Source for D = 2: Bermond, Gargano, Perennes, Rescigno and Vaccaro,
//! Theoretical Computer Science 2000.
//!
//! **relay_tree.** See [`relay_tree`]: an all_gather in S slots needs P C_S(N) <= 2 c S, with
//! C_S(N) the least total length of a tree of lightpaths of depth at most S that reaches all ranks
//! from one. A reduce_scatter backwards is such an all_gather: the lightpaths that bring every
//! contribution of a block to its owner, backwards, bring the owner's block to every rank.
//!
//! **per_step.** See [`per_step`]: the same with a price for every slot, raised as far as a
//! certificate is found. On rings of up to a thousand ranks it has not been seen to exceed relay_tree.
//!
//! **cut.** all_to_all: P floor(N / 2) ceil(N / 2) chunks go from one half of the ring to the other,
//! over two directed links with c channels each: S >= ceil(P floor(N^2 / 4) / (2c)).
//!
//! ```
//! use opticoll::bound;
//! use opticoll::collective::{Collective, CollectiveKind};
//! use opticoll::fabric::Fabric;
//! let Fabric::WdmRing(ring) = Fabric::parse("wdm_ring:ranks=64,wavelengths=8")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 64)?;
//! let bound = bound::best(&ring, &collective);
//! assert_eq!((bound.steps, bound.name), (7, "relay_tree"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod per_step;
pub mod relay_tree;
pub mod time;

use crate::collective::{Collective, CollectiveKind};
use crate::fabric::WdmRing;

/// A number of slots that no plan can go below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The slots (what the papers count as steps).
    pub steps: u64,
    /// Which bound, such as `relay_tree`.
    pub name: &'static str,
    /// Under which conditions it holds, in words.
    pub assumption: &'static str,
}

const ONE_CHUNK: &str = "one chunk per lightpath and slot, each delivered at its lightpath's end \
                         only";
const ANY_LOAD: &str = "any number of chunks per lightpath, each delivered at its lightpath's end \
                        only; a rank forwards in later slots than the one in which it received";
const RELAYED: &str = "one chunk per lightpath and slot, each delivered at its lightpath's end \
                       only; a rank forwards in later slots than the one in which it received";

/// All bounds on the slots of a collective on a ring; none of them is below another's proof.
pub fn slots(ring: &WdmRing, collective: &Collective) -> Vec<Bound> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return vec![Bound {
            steps: 0,
            name: "receive",
            assumption: "a single rank has everything",
        }];
    }
    let pieces = u64::from(collective.pieces());
    let intake = intake(ring);
    let channels = u64::from(ring.channels());
    let received = match collective.kind() {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => pieces,
        _ => pieces * (ranks - 1),
    };
    let mut bounds = vec![Bound {
        steps: received.div_ceil(intake),
        name: "receive",
        assumption: ONE_CHUNK,
    }];
    match collective.kind() {
        CollectiveKind::AllToAll => bounds.push(Bound {
            steps: (pieces * (ranks * ranks / 4)).div_ceil(2 * channels),
            name: "cut",
            assumption: ONE_CHUNK,
        }),
        CollectiveKind::Scatter | CollectiveKind::Gather => {}
        _ => bounds.push(Bound {
            steps: growth(ranks, intake),
            name: "growth",
            assumption: ANY_LOAD,
        }),
    }
    if matches!(
        collective.kind(),
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter
    ) {
        let least = bounds.iter().map(|bound| bound.steps).max().unwrap_or(0);
        let steps = relay_tree::least_steps(collective.ranks(), pieces, 2 * channels, least);
        if let Some(steps) = steps {
            let priced = per_step::least_steps(collective.ranks(), pieces, 2 * channels, steps);
            for (name, steps) in [("per_step", priced), ("relay_tree", steps)] {
                bounds.push(Bound {
                    steps,
                    name,
                    assumption: RELAYED,
                });
            }
        }
    }
    bounds
}

/// The greatest of the bounds; of equal ones the last, which is the sharper one elsewhere.
pub fn best(ring: &WdmRing, collective: &Collective) -> Bound {
    let bounds = slots(ring, collective);
    let greatest = bounds.iter().map(|bound| bound.steps).max().unwrap_or(0);
    let named = bounds.iter().rev().find(|bound| bound.steps == greatest);
    named.copied().unwrap_or(bounds[0])
}

/// How many lightpaths a rank takes in (or sends) in a slot at most.
fn intake(ring: &WdmRing) -> u64 {
    let channels = 2 * u64::from(ring.channels());
    ring.ports
        .map_or(channels, |ports| channels.min(u64::from(ports)))
}

/// The least S with (1 + intake)^S >= ranks.
fn growth(ranks: u64, intake: u64) -> u64 {
    let (mut steps, mut informed) = (0, 1u64);
    while informed < ranks {
        informed = informed.saturating_mul(1 + intake);
        steps += 1;
    }
    steps
}
