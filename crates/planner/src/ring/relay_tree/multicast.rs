//! Plans of light trees, for rings whose ranks can take a share of passing light.
//!
//! **all_gather.** The block of every rank goes half-way around the ring in each direction, along one
//! light tree each, which takes at most floor(N / 2) links. Those of two ranks floor(N / 2) apart fit on
//! one channel, in both directions. In a slot c channels take 2c blocks: ceil(N / (2c)) slots. That is the receive bound ceil((N - 1) / (2c)) for every even N, and
//! for every odd N but those where c divides (N - 1) / 2. On a line every block goes to both ends, and
//! the last link takes c blocks a slot: ceil((N - 1) / c), the bound of a line. Where light trees may
//! not span half the ring, the last drop of each sends the block on.
//!
//! **broadcast.** One light tree each way: a slot for c chunks; or all the way around in one direction
//! for every chunk, a slot for 2c, where light reaches as far.

use crate::ring::relay_tree::lightpath_requests::{self, Demand};
use crate::ring::relay_tree::reachable;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;

/// The all_gather along light trees; `None` where cuts leave some rank out.
pub(crate) fn all_gather(ring: &WdmRing, collective: Collective, name: &str) -> Option<Plan> {
    let pieces = collective.pieces();
    let half = (ring.ranks / 2).max(1);
    let mut chains = Vec::new();
    // Ranks that face each other share channels, so they come one after the other.
    let facing = (0..half).flat_map(|rank| (rank..ring.ranks).step_by(half as usize));
    for origin in facing {
        let (clockwise, counter) = reachable::sides(ring, origin)?;
        for piece in 0..pieces {
            let chunk = origin * pieces + piece;
            chains.push((chunk, origin, Direction::Clockwise, clockwise));
            chains.push((chunk, origin, Direction::CounterClockwise, counter));
        }
    }
    let demands = chained(ring, &chains);
    let placed = lightpath_requests::place(ring, &demands, u32::MAX)?;
    let plan = lightpath_requests::plan(ring, collective, &demands, &placed, name);
    Some(plan)
}

/// The broadcast along light trees; `None` where cuts leave some rank out.
pub(crate) fn broadcast(ring: &WdmRing, collective: Collective, name: &str) -> Option<Plan> {
    let (root, others) = (collective.root(), ring.ranks - 1);
    let (clockwise, counter) = reachable::sides(ring, root)?;
    let around = ring.broken.is_empty() && ring.longest_tree() >= others && collective.pieces() > 1;
    let mut chains = Vec::new();
    for piece in 0..collective.pieces() {
        if around {
            let direction = Direction::BOTH[(piece % 2) as usize];
            chains.push((piece, root, direction, others));
        } else {
            chains.push((piece, root, Direction::Clockwise, clockwise));
            chains.push((piece, root, Direction::CounterClockwise, counter));
        }
    }
    let demands = chained(ring, &chains);
    let placed = lightpath_requests::place(ring, &demands, u32::MAX)?;
    let plan = lightpath_requests::plan(ring, collective, &demands, &placed, name);
    Some(plan)
}

/// Cuts chains (chunk, origin, direction, links) into light trees as long as light reaches: all first
/// ones, then all second ones, and so on.
fn chained(ring: &WdmRing, chains: &[(u32, u32, Direction, u32)]) -> Vec<Demand> {
    let reach = ring.longest_tree();
    let mut demands = Vec::new();
    let mut last: Vec<Option<u32>> = vec![None; chains.len()];
    let longest = chains.iter().map(|(.., links)| *links).max().unwrap_or(0);
    for behind in (0..longest).step_by(reach as usize) {
        for (&(chunk, origin, direction, links), last) in chains.iter().zip(&mut last) {
            interrupt::check();
            if links <= behind {
                continue;
            }
            let source = match direction {
                Direction::Clockwise => (origin + behind) % ring.ranks,
                Direction::CounterClockwise => (origin + ring.ranks - behind) % ring.ranks,
            };
            demands.push(Demand {
                chunk,
                count: 1,
                source,
                direction,
                length: reach.min(links - behind),
                shared: true,
                earliest: 0,
                after: *last,
            });
            *last = Some(demands.len() as u32 - 1);
        }
    }
    demands
}
