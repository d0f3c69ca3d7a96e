//! Removes switches from a graph, so that links lead from rank to rank.
//!
//! To *split off* a unit at switch w is to put a link u -> t in the place of a unit of u -> w and one of w -> t. Where as
//! much capacity leads into w as out of it, units can be split off one after the other until w has no link left, so that
//! the condition of the packing holds all along: every set X with a rank in it has
//!
//! ```text
//! in(X) + k (ranks in X) >= k N
//! ```
//!
//! (Bang-Jensen, Frank and Jackson, Preserving and increasing local edge-connectivity in mixed graphs, SIAM Journal on
//! Discrete Mathematics 8, 1995; Jackson, Journal of Graph Theory 12, 1988). Any pair (u, t) whose unit keeps the
//! condition may be split off. So those are tried first that make low trees and whose path is the
//! route that messages from u to t take anyway: each u spreads its units over as many t as it can, in an order in which
//! the first few are spread over all ranks (van der Corput's).
//!
//! A switch may lead to another switch; what is split off there is split off once more.

use rustc_hash::FxHashMap;

use crate::bound::throughput::flow::Flow;
use crate::interrupt;

/// Links between vertices with whole capacities.
pub(super) type Capacities = FxHashMap<(u32, u32), u128>;

/// The graph of ranks alone; `None` where capacity does not get through, since a switch does not balance. `supply` are the
/// trees of each rank; `is_route` says of two vertices whether the route from one to the other leads over a switch.
pub(super) fn without_switches(
    vertices: u32,
    rates: &Capacities,
    supply: &[u32],
    is_route: impl Fn(u32, u32, u32) -> bool,
) -> Option<Capacities> {
    let ranks = supply.len() as u32;
    let mut capacities = rates.clone();
    for switch in ranks..vertices {
        interrupt::check();
        remove(switch, vertices, &mut capacities, supply, &is_route)?;
    }
    capacities.retain(|_, capacity| *capacity > 0);
    Some(capacities)
}

/// Whether there is room for all trees: the condition holds.
pub(super) fn has_room(vertices: u32, capacities: &Capacities, supply: &[u32]) -> bool {
    let links: Vec<(u32, u32, u128)> = capacities
        .iter()
        .map(|(&(from, to), &capacity)| (from, to, capacity))
        .collect();
    let mut flow = Flow::new(vertices as usize, &links);
    (0u32..)
        .zip(supply)
        .for_each(|(rank, count)| flow.set_supply(rank, (*count).into()));
    let wanted = supply.iter().map(|count| u128::from(*count)).sum();
    let order: Vec<u32> = (0..supply.len() as u32).collect();
    flow.lacking(&order, wanted).is_none()
}

/// Splits off all that leads over a switch: in even shares, and only where these leave too little room with a check of each
/// pair.
fn remove(
    switch: u32,
    vertices: u32,
    capacities: &mut Capacities,
    supply: &[u32],
    is_route: &impl Fn(u32, u32, u32) -> bool,
) -> Option<()> {
    let side = |of: fn(&(u32, u32)) -> (u32, u32)| {
        let links = capacities.iter().filter(|(_, capacity)| **capacity > 0);
        let links = links.filter_map(|(ends, _)| {
            let (at, other) = of(ends);
            (at == switch).then_some(other)
        });
        let mut ends: Vec<u32> = links.collect();
        ends.sort_unstable();
        ends
    };
    let around = Around {
        switch,
        sources: side(|ends| (ends.1, ends.0)),
        targets: side(|ends| (ends.0, ends.1)),
    };
    if around.targets.is_empty() || around.sources.is_empty() {
        return Some(());
    }
    let order: Vec<u32> = (0..supply.len() as u32).collect();
    let wanted = supply.iter().map(|count| u128::from(*count)).sum();
    for checked in [false, true] {
        let mut left = capacities.clone();
        let mut links: Vec<(u32, u32, u128)> = capacities
            .iter()
            .map(|(&(from, to), &capacity)| (from, to, capacity))
            .collect();
        for &from in &around.sources {
            links.extend(around.targets.iter().map(|&to| (from, to, 0)));
        }
        let mut flow = Flow::new(vertices as usize, &links);
        (0u32..)
            .zip(supply)
            .for_each(|(rank, count)| flow.set_supply(rank, (*count).into()));
        let lacking = |flow: &mut Flow| match checked {
            true => flow.lacking(&order, wanted),
            false => None,
        };
        around.split_off(&mut flow, &mut left, is_route, lacking);
        left.retain(|ends, _| ends.0 != switch && ends.1 != switch);
        if has_room(vertices, &left, supply) {
            *capacities = left;
            return Some(());
        }
    }
    None
}

/// A switch, and what has links to it and from it.
struct Around {
    switch: u32,
    sources: Vec<u32>,
    targets: Vec<u32>,
}

impl Around {
    /// Puts links in the place of paths over the switch, as long as `lacking` says that nothing is lacking.
    fn split_off(
        &self,
        flow: &mut Flow,
        capacities: &mut Capacities,
        is_route: &impl Fn(u32, u32, u32) -> bool,
        lacking: impl Fn(&mut Flow) -> Option<u128>,
    ) {
        let (switch, targets) = (self.switch, &self.targets);
        let spread = spread(targets.len());
        for (limited, any) in [(true, false), (false, false), (true, true), (false, true)] {
            for &step in &spread {
                for &from in &self.sources {
                    let here = targets
                        .partition_point(|to| *to < from)
                        .min(targets.len() - 1);
                    let to = targets[(here + step) % targets.len()];
                    let (into, out) = (flow.room(from, switch), flow.room(switch, to));
                    let most = into.min(out);
                    if from == to || most == 0 || (!any && !is_route(from, switch, to)) {
                        continue;
                    }
                    // An even share of what leads here.
                    let total = capacities[&(from, switch)];
                    let share = (total / (targets.len() as u128 - 1).max(1)).max(1);
                    let mut amount = if limited { most.min(share) } else { most };
                    while amount > 0 {
                        change(flow, (from, switch, to), amount as i128);
                        let Some(lacking) = lacking(flow) else {
                            break;
                        };
                        change(flow, (from, switch, to), -(amount as i128));
                        amount = amount.saturating_sub(lacking);
                    }
                    if amount > 0 {
                        *capacities.entry((from, to)).or_default() += amount;
                    }
                }
            }
        }
    }
}

/// Puts so much of a link in the place of a path over a switch.
fn change(flow: &mut Flow, (from, switch, to): (u32, u32, u32), amount: i128) {
    flow.change(from, switch, -amount);
    flow.change(switch, to, -amount);
    flow.change(from, to, amount);
}

/// The numbers below n, the first few far apart: by their digits to the base 2, in reverse.
fn spread(count: usize) -> Vec<usize> {
    let bits = count.next_power_of_two().trailing_zeros();
    let reversed = (0..count.next_power_of_two()).map(|number| match bits {
        0 => 0,
        bits => number.reverse_bits() >> (usize::BITS - bits),
    });
    let scaled = reversed.map(|number| number * count / count.next_power_of_two());
    let mut seen = vec![false; count];
    scaled
        .filter(|number| !std::mem::replace(&mut seen[*number], true))
        .collect()
}
