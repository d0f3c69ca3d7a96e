//! Edge splitting: removal of switches from a graph, such that links connect ranks directly.
//!
//! *Splitting off* a unit at switch w replaces a unit of u -> w and a unit of w -> t by a unit of a
//! link u -> t. If the capacities into w and out of w are equal, units can be split off one after
//! another until w has no link left, while the condition of the packing remains true: every set X
//! with a rank in it satisfies
//!
//! ```text
//! in(X) + k (ranks in X) >= k N
//! ```
//!
//! (Bang-Jensen, Frank and Jackson, Preserving and increasing local edge-connectivity in mixed
//! graphs, SIAM Journal on Discrete Mathematics 8, 1995; Jackson, Journal of Graph Theory 12,
//! 1988). Any pair (u, t) may be split off if the condition remains true. The search first tries
//! pairs that lead to shallow trees: their path is a shortest path from u to t that never descends
//! to the ranks and ascends again. Each u divides its units among as many t as possible, in the
//! order of van der Corput's sequence, whose first elements are spread over all ranks.
//!
//! If a switch is connected to another switch, the units are split off again at the other switch.

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_bounds::throughput::flow::Flow;

/// Capacity of the link from one vertex to another, in whole units; indexed by the pair of
/// vertices.
pub(super) type Capacities = FxHashMap<(u32, u32), u128>;

/// Paths from one vertex to another, as (switches on the path, capacity); indexed by the pair of
/// vertices.
pub(super) type Paths = FxHashMap<(u32, u32), Vec<(Vec<u32>, u128)>>;

/// Work of splitting off the units of one pair (u, t) at a switch, in visited links.
const WORK_PER_PAIR: u64 = 256;

/// Removes all switches. Returns the capacities of the links between ranks, and the paths over
/// switches that these links replace. `None` if capacity is lost because the capacities into and
/// out of a switch differ, or if the flows visit more than `work` links. `supply` is the number of
/// trees per root, indexed by rank. `is_route(from, switch, to)` returns whether messages between
/// two ranks may use a switch.
pub(super) fn without_switches(
    vertices: u32,
    rates: &Capacities,
    supply: &[u32],
    is_route: impl Fn(u32, u32, u32) -> bool,
    work: &mut u64,
) -> Option<(Capacities, Paths)> {
    let ranks = supply.len() as u32;
    let mut capacities = rates.clone();
    let links = rates.iter();
    let mut paths: Paths = links
        .map(|(ends, capacity)| (*ends, vec![(Vec::new(), *capacity)]))
        .collect();
    let distances = Distances::new(vertices, ranks, rates);
    for switch in ranks..vertices {
        interrupt::check();
        let length = |from: u32, to: u32| {
            let between = paths.get(&(from, to)).into_iter().flatten();
            between.map(|path| path.0.len() as u32 + 1).min()
        };
        let is_direct = |from: u32, to: u32| {
            let lengths = length(from, switch).zip(length(switch, to));
            lengths.is_some_and(|(into, out)| into + out <= distances.between(from, to))
                && !distances.is_valley(from, switch, to)
                && (from >= ranks || to >= ranks || is_route(from, switch, to))
        };
        for (from, to, amount) in
            remove(switch, vertices, &mut capacities, supply, &is_direct, work)?
        {
            let into = remove_units(&mut paths, (from, switch), amount);
            let out = remove_units(&mut paths, (switch, to), amount);
            let joined = join(into, switch, out);
            paths.entry((from, to)).or_default().extend(joined);
        }
        paths.retain(|ends, _| ends.0 != switch && ends.1 != switch);
    }
    capacities.retain(|_, capacity| *capacity > 0);
    Some((capacities, paths))
}

/// Number of links between any two vertices (`all`), and from each vertex to the nearest rank
/// (`to_rank`).
struct Distances {
    all: Vec<Vec<u32>>,
    to_rank: Vec<u32>,
}

impl Distances {
    fn new(vertices: u32, ranks: u32, rates: &Capacities) -> Distances {
        let mut next = vec![Vec::new(); vertices as usize];
        for (&(from, to), _) in rates.iter().filter(|(_, capacity)| **capacity > 0) {
            next[from as usize].push(to);
        }
        let all: Vec<Vec<u32>> = (0..vertices)
            .map(|vertex| {
                let mut distances = vec![u32::MAX; vertices as usize];
                distances[vertex as usize] = 0;
                let mut order = vec![vertex];
                let mut place = 0;
                while let Some(&at) = order.get(place) {
                    place += 1;
                    for &to in &next[at as usize] {
                        if distances[to as usize] == u32::MAX {
                            distances[to as usize] = distances[at as usize] + 1;
                            order.push(to);
                        }
                    }
                }
                distances
            })
            .collect();
        let to_rank = all
            .iter()
            .map(|distances| distances[..ranks as usize].iter().min());
        Distances {
            to_rank: to_rank.map(|least| least.copied().unwrap_or(0)).collect(),
            all,
        }
    }

    fn between(&self, from: u32, to: u32) -> u32 {
        self.all[from as usize][to as usize]
    }

    /// Returns whether a switch is closer to a rank than both its neighbours `from` and `to`, so
    /// that the path over the switch descends and ascends again.
    fn is_valley(&self, from: u32, switch: u32, to: u32) -> bool {
        let distance = self.to_rank[switch as usize];
        self.to_rank[from as usize] > distance && self.to_rank[to as usize] > distance
    }
}

/// Removes `amount` units of capacity from the paths between two vertices, and returns the removed
/// paths.
fn remove_units(paths: &mut Paths, ends: (u32, u32), mut amount: u128) -> Vec<(Vec<u32>, u128)> {
    let mut removed = Vec::new();
    let Some(between) = paths.get_mut(&ends) else {
        return removed;
    };
    while amount > 0 {
        let Some((path, remaining)) = between.last_mut() else {
            break;
        };
        let part = amount.min(*remaining);
        removed.push((path.clone(), part));
        amount -= part;
        *remaining -= part;
        if *remaining == 0 {
            between.pop();
        }
    }
    removed
}

fn join(
    into: Vec<(Vec<u32>, u128)>,
    switch: u32,
    mut out: Vec<(Vec<u32>, u128)>,
) -> Vec<(Vec<u32>, u128)> {
    let mut joined = Vec::new();
    for (path, mut amount) in into {
        while amount > 0 {
            let Some((rest_of_path, remaining)) = out.last_mut() else {
                break;
            };
            let part = amount.min(*remaining);
            let whole = path
                .iter()
                .copied()
                .chain([switch])
                .chain(rest_of_path.iter().copied());
            joined.push((whole.collect(), part));
            amount -= part;
            *remaining -= part;
            if *remaining == 0 {
                out.pop();
            }
        }
    }
    joined
}

/// Returns whether the capacities have room for `supply[r]` trees of each root r. `None` if the
/// flows would visit more than `work` links.
pub(super) fn has_room(
    vertices: u32,
    capacities: &Capacities,
    supply: &[u32],
    work: &mut u64,
) -> Option<bool> {
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
    flow.max_work = *work;
    let is_lacking = flow.lacking(&order, wanted).is_some();
    *work = work.saturating_sub(flow.work);
    (!flow.gave_up()).then_some(!is_lacking)
}

/// Removes a switch: splits off all units of capacity at the switch. Returns the links that replace
/// paths over the switch. At most three attempts are made, until there is room for all trees. The
/// first attempt drops units from a vertex over the switch back to this vertex. The second attempt
/// keeps these units. The third attempt also keeps them, and checks after each replacement that no
/// capacity is missing.
fn remove(
    switch: u32,
    vertices: u32,
    capacities: &mut Capacities,
    supply: &[u32],
    is_direct: &impl Fn(u32, u32) -> bool,
    work: &mut u64,
) -> Option<Vec<(u32, u32, u128)>> {
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
    let links_at = SwitchLinks {
        switch,
        sources: side(|ends| (ends.1, ends.0)),
        targets: side(|ends| (ends.0, ends.1)),
    };
    if links_at.targets.is_empty() || links_at.sources.is_empty() {
        // Links that only enter or only leave the switch are of no use.
        capacities.retain(|ends, _| ends.0 != switch && ends.1 != switch);
        return Some(Vec::new());
    }
    let pairs = links_at.sources.len() as u64 * links_at.targets.len() as u64;
    *work = work.checked_sub(pairs.saturating_mul(WORK_PER_PAIR))?;
    let order: Vec<u32> = (0..supply.len() as u32).collect();
    let wanted = supply.iter().map(|count| u128::from(*count)).sum();
    for (spares, checked) in [(true, false), (false, false), (false, true)] {
        let mut remaining = capacities.clone();
        let mut links: Vec<(u32, u32, u128)> = capacities
            .iter()
            .map(|(&(from, to), &capacity)| (from, to, capacity))
            .collect();
        for &from in &links_at.sources {
            links.extend(links_at.targets.iter().map(|&to| (from, to, 0)));
        }
        let mut flow = Flow::new(vertices as usize, &links);
        flow.max_work = *work;
        (0u32..)
            .zip(supply)
            .for_each(|(rank, count)| flow.set_supply(rank, (*count).into()));
        let lacking = |flow: &mut Flow| match checked {
            true => flow.lacking(&order, wanted),
            false => None,
        };
        let replaced = links_at.split_off(&mut flow, &mut remaining, is_direct, spares, lacking);
        *work = work.saturating_sub(flow.work);
        remaining.retain(|ends, _| ends.0 != switch && ends.1 != switch);
        if has_room(vertices, &remaining, supply, work)? {
            *capacities = remaining;
            return Some(replaced);
        }
    }
    None
}

/// A switch, the vertices with links to the switch, and the vertices with links from the switch.
struct SwitchLinks {
    switch: u32,
    sources: Vec<u32>,
    targets: Vec<u32>,
}

impl SwitchLinks {
    /// Replaces paths over the switch by links, and returns these links. If `lacking` returns a
    /// missing capacity after a replacement, the replacement is reduced by this capacity.
    fn split_off(
        &self,
        flow: &mut Flow,
        capacities: &mut Capacities,
        is_direct: &impl Fn(u32, u32) -> bool,
        spares: bool,
        lacking: impl Fn(&mut Flow) -> Option<u128>,
    ) -> Vec<(u32, u32, u128)> {
        let mut replaced = Vec::new();
        let (switch, targets) = (self.switch, &self.targets);
        let spread = van_der_corput_order(targets.len());
        let direct = self.sources.iter().map(|from| {
            let ends = targets.iter().filter(|to| from != *to);
            (
                *from,
                ends.filter(|to| is_direct(*from, **to)).count() as u128,
            )
        });
        let direct: FxHashMap<u32, u128> = direct.collect();
        for (limited, all_pairs) in [(true, false), (false, false), (true, true), (false, true)] {
            if spares && limited && all_pairs {
                // No link is needed from a vertex over the switch back to this vertex.
                for &beside in &self.sources {
                    let (into, out) = (flow.room(beside, switch), flow.room(switch, beside));
                    if into.min(out) > 0 {
                        let amount = into.min(out) as i128;
                        flow.change(beside, switch, -amount);
                        flow.change(switch, beside, -amount);
                    }
                }
            }
            for &step in &spread {
                for &from in &self.sources {
                    let position = targets
                        .partition_point(|to| *to < from)
                        .min(targets.len() - 1);
                    let to = targets[(position + step) % targets.len()];
                    let (into, out) = (flow.room(from, switch), flow.room(switch, to));
                    let available = into.min(out);
                    if from == to || available == 0 || (!all_pairs && !is_direct(from, to)) {
                        continue;
                    }
                    // The equal share of the capacity into the switch.
                    let total = capacities[&(from, switch)];
                    let share = (total / direct[&from].max(1)).max(1);
                    let mut amount = if limited {
                        available.min(share)
                    } else {
                        available
                    };
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
                        replaced.push((from, to, amount));
                    }
                }
            }
        }
        replaced
    }
}

fn change(flow: &mut Flow, (from, switch, to): (u32, u32, u32), amount: i128) {
    flow.change(from, switch, -amount);
    flow.change(switch, to, -amount);
    flow.change(from, to, amount);
}

/// Returns the numbers 0 to `count - 1` in van der Corput's order. The numbers are sorted by their
/// reversed binary digits, so the first elements are far apart.
fn van_der_corput_order(count: usize) -> Vec<usize> {
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
