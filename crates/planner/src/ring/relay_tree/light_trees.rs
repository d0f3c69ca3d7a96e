//! Plans along light trees, for rings whose ranks can take a share of passing light.
//!
//! **all_gather.** The block of every rank travels half-way around the ring in each direction,
//! along one light tree of at most floor(N / 2) links each. The light trees of two ranks that are
//! floor(N / 2) apart fit on one channel, in both directions. In a slot c channels carry 2c blocks,
//! so that the plan needs ceil(N / (2c)) slots. This is the receive bound ceil((N - 1) / (2c)) for
//! every even N, and for every odd N unless c divides (N - 1) / 2. On a line every block travels to
//! both ends, and the last link carries c blocks in a slot: ceil((N - 1) / c) slots, the bound of a
//! line. If light trees cannot span half the ring, the last receiver of each tree sends the block
//! on.
//!
//! **broadcast.** Either one light tree in each direction, with c chunks in a slot; or all the way
//! around in one direction for every chunk, with 2c chunks in a slot, if light reaches so far.

use super::lightpath_requests::{self, LightpathRequest};
use super::reachable;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;

/// Plans the all_gather along light trees; `None` if cuts separate some rank.
pub(crate) fn all_gather(ring: &WdmRing, collective: Collective, name: &str) -> Option<Plan> {
    let pieces = collective.pieces();
    let half = (ring.ranks / 2).max(1);
    let mut chains = Vec::new();
    // Opposite ranks share channels, so that they follow one another.
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

/// Plans the broadcast along light trees; `None` if cuts separate some rank.
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

/// Cuts chains, each given by chunk, origin, direction and links, into light trees as long as light
/// reaches: first all first parts, then all second parts, and so on.
fn light_trees(ring: &WdmRing, chains: &[(u32, u32, Direction, u32)]) -> Vec<LightpathRequest> {
    let reach = ring.longest_tree();
    let mut requests = Vec::new();
    let mut last: Vec<Option<u32>> = vec![None; chains.len()];
    let longest = chains.iter().map(|(.., links)| *links).max().unwrap_or(0);
    for behind in (0..longest).step_by(reach as usize) {
        for (&(chunk, origin, direction, links), last) in chains.iter().zip(&mut last) {
            interrupt::check();
            if links <= behind {
                continue;
            }
            requests.push(LightpathRequest {
                chunk,
                count: 1,
                source: ring.rank_after(origin, direction, behind),
                direction,
                length: reach.min(links - behind),
                shared: true,
                earliest: 0,
                after: *last,
            });
            *last = Some(requests.len() as u32 - 1);
        }
    }
    requests
}
