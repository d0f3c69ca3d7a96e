//! Plans along light trees, for rings with multicast: every rank on the route of a lightpath can
//! receive a share of the light.
//!
//! **all_gather.** The block of every rank is sent half-way around the ring in each direction,
//! along one light tree of at most floor(N / 2) links per direction. The light trees of two ranks
//! at a distance of floor(N / 2) links share a channel in each direction. In a slot, c channels per
//! direction thus carry 2c blocks, and the plan needs ceil(N / (2c)) slots. The bound `receive` is
//! ceil((N - 1) / (2c)) slots. The plan meets this bound if N is even, or if N is odd and c does
//! not divide (N - 1) / 2.
//!
//! On a line, every block is sent to both ends, and the last link carries c blocks in a slot. The
//! plan has ceil((N - 1) / c) slots, which is the bound of a line. If light trees cannot span half
//! the ring, the last receiver of each tree forwards the block.
//!
//! **broadcast.** Each chunk either uses one light tree in each direction (c chunks per slot), or
//! one light tree around the whole ring in one direction (2c chunks per slot). The second variant
//! needs a sufficient reach.

use super::lightpath_requests::{self, LightpathRequest};
use super::reachable;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;

/// Plans an all_gather along light trees. Returns `None` if cuts separate some ranks.
pub(crate) fn all_gather(ring: &WdmRing, collective: Collective, name: &str) -> Option<Plan> {
    let pieces = collective.pieces();
    let half = (ring.ranks / 2).max(1);
    let mut chains = Vec::new();
    let facing = (0..half).flat_map(|rank| (rank..ring.ranks).step_by(half as usize));
    for origin in facing {
        let (clockwise, counter) = reachable::sides(ring, origin)?;
        for piece in 0..pieces {
            let chunk = origin * pieces + piece;
            chains.push((chunk, origin, Direction::Clockwise, clockwise));
            chains.push((chunk, origin, Direction::CounterClockwise, counter));
        }
    }
    let requests = light_trees(ring, &chains);
    let placed = lightpath_requests::place(ring, &requests, u32::MAX)?;
    let plan = lightpath_requests::plan(ring, collective, &requests, &placed, name);
    Some(plan)
}

/// Plans a broadcast along light trees. Returns `None` if cuts separate some rank from the root.
pub(crate) fn broadcast(ring: &WdmRing, collective: Collective, name: &str) -> Option<Plan> {
    let (root, others) = (collective.root(), ring.ranks - 1);
    let (clockwise, counter) = reachable::sides(ring, root)?;
    let goes_around =
        ring.broken.is_empty() && ring.longest_tree() >= others && collective.pieces() > 1;
    let mut chains = Vec::new();
    for piece in 0..collective.pieces() {
        if goes_around {
            let direction = Direction::BOTH[(piece % 2) as usize];
            chains.push((piece, root, direction, others));
        } else {
            chains.push((piece, root, Direction::Clockwise, clockwise));
            chains.push((piece, root, Direction::CounterClockwise, counter));
        }
    }
    let requests = light_trees(ring, &chains);
    let placed = lightpath_requests::place(ring, &requests, u32::MAX)?;
    let plan = lightpath_requests::plan(ring, collective, &requests, &placed, name);
    Some(plan)
}

/// Cuts chains into light trees that do not exceed the reach. Each entry of `chains` is the index
/// of a chunk, the rank at which the chain begins, a direction, and the number of links of the
/// chain. In the result, the first trees of all chains come first, then the second trees, and so
/// on.
fn light_trees(ring: &WdmRing, chains: &[(u32, u32, Direction, u32)]) -> Vec<LightpathRequest> {
    let reach = ring.longest_tree();
    let mut requests = Vec::new();
    let mut last: Vec<Option<u32>> = vec![None; chains.len()];
    let longest = chains.iter().map(|(.., links)| *links).max().unwrap_or(0);
    for offset in (0..longest).step_by(reach as usize) {
        for (&(chunk, origin, direction, links), last) in chains.iter().zip(&mut last) {
            interrupt::check();
            if links <= offset {
                continue;
            }
            requests.push(LightpathRequest {
                chunk,
                count: 1,
                source: ring.rank_after(origin, direction, offset),
                direction,
                length: reach.min(links - offset),
                shared: true,
                earliest: 0,
                after: *last,
            });
            *last = Some(requests.len() as u32 - 1);
        }
    }
    requests
}
