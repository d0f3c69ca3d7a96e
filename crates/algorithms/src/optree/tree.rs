//! The trees of OpTree: groups, radices, loads, and the search for the best real tree.
//!
//! ```
//! use opticoll_algorithms::optree::tree;
//! // The 16-rank example of the OpTree paper: 8 and 16 wavelengths for 4x4.
//! assert_eq!(tree::stage_loads(16, &[4, 4]), [8, 16]);
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::one_stage;
use opticoll_base::interrupt;

/// Ranks `start .. start + len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The first rank.
    pub start: u32,
    /// The number of ranks, at least 1.
    pub len: u32,
}

impl Group {
    /// The group cut into `radix` contiguous children whose sizes differ by at most one, the
    /// larger ones first; into single ranks where there are fewer than `radix`.
    pub fn children(self, radix: u32) -> impl Iterator<Item = Group> {
        let parts = radix.min(self.len);
        let (size, larger) = (self.len / parts, self.len % parts);
        (0..parts).map(move |part| Group {
            start: self.start + part * size + part.min(larger),
            len: size + u32::from(part < larger),
        })
    }
}

/// Calls `visit(source, destination)` for every ordered pair of children of `group` and each
/// position of the sending child.
pub fn for_each_pair(group: Group, radix: u32, mut visit: impl FnMut(u32, u32)) {
    let children: Vec<Group> = group.children(radix).collect();
    for (index, from) in children.iter().enumerate() {
        for (other, to) in children.iter().enumerate() {
            if index == other {
                continue;
            }
            for position in 0..from.len {
                let matched = u64::from(position) * u64::from(to.len) / u64::from(from.len);
                visit(from.start + position, to.start + matched as u32);
            }
        }
    }
}

/// Reads `4x4x4`; the product must reach the number of ranks.
pub fn parse_radices(text: &str, ranks: u32) -> Result<Vec<u32>, String> {
    let radices: Vec<u32> = text
        .split('x')
        .map(|part| part.parse().ok().filter(|radix| *radix >= 2))
        .collect::<Option<_>>()
        .ok_or("must be whole numbers from 2 on with x between them, such as 4x4x4")?;
    let mut leaves = 1u64;
    for (stage, radix) in radices.iter().enumerate() {
        if stage > 0 && leaves >= u64::from(ranks) {
            return Err(format!(
                "{leaves} leaves after {stage} stages suffice for {ranks} ranks"
            ));
        }
        leaves = leaves.saturating_mul(u64::from(*radix));
    }
    if leaves < u64::from(ranks) {
        return Err(format!(
            "makes {leaves} leaves, fewer than the {ranks} ranks"
        ));
    }
    Ok(radices)
}

/// The most stages in which `ranks` ranks can be cut into single ones: ceil(log2 N).
pub fn deepest(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// The tree that the paper's depth k stands for: k stages of radix m, the least with m^k >= N.
/// Where fewer stages of m would do, some are made smaller so that all k are used.
pub fn uniform_radices(ranks: u32, depth: u32) -> Vec<u32> {
    let leaves = |radices: &[u32]| {
        radices
            .iter()
            .fold(1u64, |leaves, &radix| leaves.saturating_mul(radix.into()))
    };
    let reaches = |radices: &[u32]| leaves(radices) >= u64::from(ranks);
    let radix = (2..=ranks.max(2)).find(|&radix| reaches(&vec![radix; depth as usize]));
    let mut radices = vec![radix.unwrap_or(2); depth as usize];
    // Each time the first k - 1 stages reach N, all k reach 2 N; one smaller radix of at least 2
    // leaves two thirds of that or more.
    while let Some((_, first)) = radices.split_last() {
        let Some(place) = radices.iter().rposition(|&radix| radix > 2) else {
            break;
        };
        if !reaches(first) {
            break;
        }
        radices[place] -= 1;
    }
    radices
}

/// The greatest link load of each stage, in lightpaths of one block: what the stage needs in
/// wavelengths per direction at the least. Antipodal ties are broken by parity here, which may
/// differ by one from the routes of a finished plan.
pub fn stage_loads(ranks: u32, radices: &[u32]) -> Vec<u64> {
    let mut groups = vec![Group {
        start: 0,
        len: ranks,
    }];
    let mut held = vec![1u64; ranks as usize];
    let mut loads = Vec::new();
    for &radix in radices {
        if groups.iter().all(|group| group.len == 1) {
            break;
        }
        let mut received = held.clone();
        // Changes of the load from one link to the next, clockwise and counter-clockwise.
        let mut change = [
            vec![0i64; ranks as usize + 1],
            vec![0i64; ranks as usize + 1],
        ];
        for group in &groups {
            for_each_pair(*group, radix, |source, destination| {
                let blocks = held[source as usize];
                received[destination as usize] += blocks;
                add_arc(&mut change, ranks, source, destination, blocks as i64);
            });
        }
        held = received;
        groups = groups
            .iter()
            .flat_map(|group| group.children(radix))
            .collect();
        loads.push(
            change
                .iter()
                .map(|change| greatest(change))
                .max()
                .unwrap_or(0),
        );
    }
    loads
}

/// Adds an arc's load: the shorter way; antipodal pairs alternate by their lower rank's parity.
fn add_arc(change: &mut [Vec<i64>; 2], ranks: u32, source: u32, destination: u32, load: i64) {
    let clockwise = (destination + ranks - source) % ranks;
    let is_clockwise = match (2 * clockwise).cmp(&ranks) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => source.min(destination) % 2 == 0,
    };
    // Links are numbered by the lower end: link i joins i and i + 1.
    let (direction, from, to) = if is_clockwise {
        (0, source, destination)
    } else {
        (1, destination, source)
    };
    add_links(&mut change[direction], from, to, load);
}

/// Adds the load of an arc from link `from` to before link `to`.
fn add_links(change: &mut [i64], from: u32, to: u32, load: i64) {
    change[from as usize] += load;
    change[to as usize] -= load;
    if from > to {
        change[0] += load;
    }
}

fn greatest(change: &[i64]) -> u64 {
    let mut load = 0;
    let loads = change.iter().map(|step| {
        load += step;
        load
    });
    loads.max().unwrap_or(0) as u64
}

/// The tree with the fewest slots for `channels` wavelengths per direction; of equal ones that
/// with the least load, then the flattest, then that with the fewest children.
///
/// A stage takes its greatest link load in wavelengths, stage 1 what first-fit takes around the
/// ring. No tree is better than the one returned, for the reasons given at `Search`, unless the
/// search reaches `MOST_WORK`: then it returns the best tree that it has found, which may not be
/// the best there is.
pub fn best_radices(ranks: u32, channels: u32) -> Vec<u32> {
    let mut search = Search {
        ranks: ranks.into(),
        channels: channels.into(),
        bounds: FxHashMap::default(),
        radices: Vec::new(),
        best: ([u64::MAX; 4], Vec::new()),
        work: 0,
    };
    search.extend((ranks, false), &[(0..=ranks).collect()], [0; 4]);
    search.best.1
}

/// After how many positions, of groups or along the ring, a search ends. Of the rings of up to
/// 65,536 ranks with no more wavelengths than ranks, none is known that needs so many.
const MOST_WORK: u64 = 1 << 27;

/// Slots, the sum of the stages' loads, stages, and the sum of radices; compared in this order.
type Cost = [u64; 4];

/// The size of the smallest group of a level, and whether others have one rank more.
type Sizes = (u32, bool);

/// How many blocks the first i ranks of a group hold together, for i from 0 to its size.
type Holdings = Vec<u32>;

/// A depth-first search over all lists of radices, the list of the lowest bound first.
///
/// Groups of a level differ in size by at most one. Groups whose positions hold equally many blocks
/// load their links alike in all later stages. So the distinct holdings of a level determine what
/// all later stages cost.
///
/// The search gives up a list where the cost so far and a bound for the rest reach the best known
/// cost. The bound knows the sizes only. No position of a group holds more blocks than the one
/// before it. This is so at first, and every stage keeps it: position i of a child receives what
/// one position of each sibling holds, position i or the next; only position 0 of a smaller child
/// receives from two positions, and the last of a larger child receives nothing from smaller ones.
/// So the first o of s ranks hold at least o / s of the N blocks. Where they are the first k of r
/// children, they send all they hold to r - k children across one link, which therefore carries
/// N o (r - k) / s or more.
///
/// In stage 1, k of r children with o ranks send o (r - k) blocks to the others and receive
/// (N - o) k, over two links and in two directions, so that a link carries a quarter of that or
/// more. Equal children need exactly this much, unequal ones what [`first_fit`] takes for them.
struct Search {
    ranks: u64,
    channels: u64,
    /// The least that stages after the first may cost from groups of these sizes on.
    bounds: FxHashMap<Sizes, Cost>,
    /// The list that is looked at.
    radices: Vec<u32>,
    best: (Cost, Vec<u32>),
    work: u64,
}

impl Search {
    fn cost(&self, load: u64, radix: u32) -> Cost {
        [load.div_ceil(self.channels), load, 1, radix.into()]
    }

    /// What a stage after the first costs at the least.
    fn stage_bound(&self, (size, uneven): Sizes, radix: u32) -> Cost {
        let load = |size: u32| {
            let (size, radix) = (u64::from(size), u64::from(radix.min(size)));
            let half = radix / 2;
            let first = half * (size / radix) + half.min(size % radix);
            (self.ranks * first).div_ceil(size) * (radix - half)
        };
        self.cost(load(size.max(1)).max(load(size + u32::from(uneven))), radix)
    }

    /// What all stages from groups of these sizes on cost at the least, the first not among them.
    fn bound(&mut self, sizes: Sizes) -> Cost {
        if let Some(&bound) = self.bounds.get(&sizes) {
            return bound;
        }
        let largest = sizes.0 + u32::from(sizes.1);
        let mut bound = [if largest > 1 { u64::MAX } else { 0 }; 4];
        for radix in 2..=largest {
            // The least load of a radix rises with it, whatever the sizes.
            let least = self.ranks * one_stage::line_wavelengths(radix) / u64::from(radix);
            if self.cost(least, radix) >= bound {
                break;
            }
            let stage = self.stage_bound(sizes, radix);
            bound = bound.min(sum(stage, self.bound(cut_sizes(sizes, radix))));
        }
        self.bounds.insert(sizes, bound);
        bound
    }

    /// Tries all radices for the next stage of groups with these holdings.
    fn extend(&mut self, sizes: Sizes, groups: &[Holdings], cost: Cost) {
        let largest = sizes.0 + u32::from(sizes.1);
        if largest <= 1 {
            if cost < self.best.0 {
                self.best = (cost, self.radices.clone());
            }
            return;
        }
        let is_first = self.radices.is_empty();
        let mut candidates = Vec::new();
        for radix in 2..=largest {
            let stage = if is_first {
                self.cost(first_bound(self.ranks, radix.into()), radix)
            } else {
                self.stage_bound(sizes, radix)
            };
            let rest = self.bound(cut_sizes(sizes, radix));
            candidates.push((sum(cost, sum(stage, rest)), Reverse(radix)));
        }
        candidates.sort_unstable();
        for (bound, Reverse(radix)) in candidates {
            interrupt::check();
            let is_over = self.work > MOST_WORK && !self.best.1.is_empty();
            if bound >= self.best.0 || is_over {
                break;
            }
            let mut load = 0;
            let mut children = Vec::new();
            for group in groups {
                self.work += group.len() as u64;
                load = load.max(cut(group, radix, &mut children));
            }
            if is_first {
                load = first_bound(self.ranks, radix.into());
            }
            let sizes = cut_sizes(sizes, radix);
            let stage = self.cost(load, radix);
            if sum(cost, sum(stage, self.bound(sizes))) >= self.best.0 {
                continue;
            }
            children.sort_unstable();
            children.dedup();
            let known = self.best.clone();
            self.radices.push(radix);
            self.extend(sizes, &children, sum(cost, stage));
            self.radices.pop();
            // The best later stages are the same whatever the first takes, which is counted only
            // where they may be worth it.
            if is_first && self.ranks % u64::from(radix) != 0 && self.best.0 < known.0 {
                let rest: Cost = std::array::from_fn(|part| self.best.0[part] - stage[part]);
                // What beats the best takes fewer slots, or as many with no more load.
                let fewer = (known.0[0] - rest[0] - 1).saturating_mul(self.channels);
                let alike = known.0[1].saturating_sub(rest[1]);
                let most = fewer.max(alike.min(fewer.saturating_add(self.channels)));
                let first = self.first_fit(radix, most);
                self.best.0 = sum(self.cost(first, radix), rest);
                if self.best.0 >= known.0 {
                    self.best = known;
                }
            }
        }
    }

    /// What [`first_fit`] takes for stage 1 in both directions; more than `most` if more than that,
    /// and the bound where the search is over.
    fn first_fit(&mut self, radix: u32, most: u64) -> u64 {
        self.work += 2 * self.ranks * u64::from(radix).pow(2);
        if self.work > MOST_WORK {
            return first_bound(self.ranks, radix.into());
        }
        let ranks = self.ranks as u32;
        let ways = shorter_arcs(ranks, radix);
        let mut load = 0;
        for lightpaths in &ways {
            let mut change = vec![0; ranks as usize + 1];
            for &(links, first) in lightpaths {
                add_links(&mut change, first, (first + links) % ranks, 1);
            }
            load = load.max(greatest(&change));
        }
        if load > most {
            return load;
        }
        let taken = ways.map(|lightpaths| first_fit(ranks, lightpaths, most));
        taken[0].max(taken[1])
    }
}

fn sum(one: Cost, other: Cost) -> Cost {
    std::array::from_fn(|part| one[part] + other[part])
}

fn cut_sizes((size, uneven): Sizes, radix: u32) -> Sizes {
    (size / radix, uneven || size % radix != 0)
}

/// What some link carries at the least in stage 1.
fn first_bound(ranks: u64, radix: u64) -> u64 {
    let half = radix / 2;
    let first = half * (ranks / radix) + half.min(ranks % radix);
    (first * (radix - half) + (ranks - first) * half).div_ceil(4)
}

/// Appends the holdings of the children of a group, one of each size, and returns the greatest load
/// of the links between its ranks, as [`stage_loads`] counts it pair by pair.
fn cut(group: &[u32], radix: u32, children: &mut Vec<Holdings>) -> u64 {
    let size = group.len() - 1;
    let parts = size.min(radix as usize);
    let (least, larger) = (size / parts, size % parts);
    // The first ranks of a larger or smaller child hold what they and the same positions of all
    // siblings held; position 0 of a smaller one gets positions 0 and 1 of a larger one.
    let child = |part: usize| {
        let start = part * least + part.min(larger);
        &group[start..=start + least + usize::from(part < larger)]
    };
    let held = |parts: std::ops::Range<usize>, most: usize| -> Holdings {
        let mut held = vec![0; most + 1];
        for part in parts {
            let child = child(part);
            for (held, until) in held.iter_mut().zip(child) {
                *held += until - child[0];
            }
        }
        held
    };
    let of_larger = held(0..larger, least + 1);
    let of_smaller = held(larger..parts, least);
    // What larger children send to the first ranks of a smaller one.
    let to_smaller = |ranks: usize| if ranks > 0 { of_larger[ranks + 1] } else { 0 };
    let all = [
        (0..=least + 1)
            .map(|ranks| of_larger[ranks] + of_smaller[ranks.min(least)])
            .collect(),
        (0..=least)
            .map(|ranks| of_smaller[ranks] + to_smaller(ranks))
            .collect::<Holdings>(),
    ];
    // The same of siblings before the child that is looked at.
    let mut earlier: [Holdings; 2] = [vec![0; least + 2], (0..=least).map(to_smaller).collect()];
    let mut load = 0;
    for part in 0..parts {
        let (child, kind) = (child(part), usize::from(part >= larger));
        let (before, after) = (part as u64, (parts - 1 - part) as u64);
        for ranks in 1..child.len() {
            let own = child[ranks] - child[0];
            let upwards =
                u64::from(child[ranks]) * after + u64::from(child[0] - earlier[kind][ranks]);
            let downwards = u64::from(group[size] - child[ranks]) * before
                + u64::from(all[kind][ranks] - earlier[kind][ranks] - own);
            load = load.max(upwards).max(downwards);
            earlier[kind][ranks] += own;
        }
    }
    let [of_larger, of_smaller] = all;
    children.extend((larger > 0).then_some(of_larger));
    children.push(of_smaller);
    load
}

/// The lightpaths of stage 1 in each direction: their links, and the first of these.
fn shorter_arcs(ranks: u32, radix: u32) -> [Vec<(u32, u32)>; 2] {
    let (mut ways, mut opposite) = ([Vec::new(), Vec::new()], Vec::new());
    let ring = Group {
        start: 0,
        len: ranks,
    };
    for_each_pair(ring, radix, |source, destination| {
        let clockwise = (destination + ranks - source) % ranks;
        match clockwise.cmp(&(ranks - clockwise)) {
            Ordering::Less => ways[0].push((clockwise, source)),
            Ordering::Greater => ways[1].push((ranks - clockwise, destination)),
            Ordering::Equal => opposite.push((source.min(destination), source, destination)),
        }
    });
    // Couples of opposite ranks go alternately both ways.
    opposite.sort_unstable();
    for (couple, pair) in opposite.chunk_by(|one, other| one.0 == other.0).enumerate() {
        for &(_, source, destination) in pair {
            let first = [source, destination][couple % 2];
            ways[couple % 2].push((ranks / 2, first));
        }
    }
    ways
}

/// The wavelengths that first-fit takes in one direction, the longest lightpaths first, as in a
/// plan; `most + 1` where it takes more than `most`.
fn first_fit(ranks: u32, mut lightpaths: Vec<(u32, u32)>, most: u64) -> u64 {
    lightpaths.sort_unstable_by_key(|&(links, first)| (Reverse(links), first));
    // The wavelengths of the lightpaths that start and end at each link.
    let mut ring = vec![[const { Vec::<usize>::new() }; 2]; ranks as usize];
    // A lightpath that shares a link with the next and is at least as long covers one of its ends.
    let mut ends = [0; 2];
    let mut covered: Vec<u8> = Vec::new();
    // Those that cover no end, and perhaps others.
    let mut free = BinaryHeap::new();
    let mut is_queued: Vec<bool> = Vec::new();
    for (links, first) in lightpaths {
        interrupt::check();
        let goals = [first, (first + links - 1) % ranks];
        for (end, goal) in ends.iter_mut().zip(goals) {
            while *end != goal {
                for &wavelength in &ring[*end as usize][1] {
                    covered[wavelength] -= 1;
                    if covered[wavelength] == 0 && !is_queued[wavelength] {
                        is_queued[wavelength] = true;
                        free.push(Reverse(wavelength));
                    }
                }
                *end = (*end + 1) % ranks;
                for &wavelength in &ring[*end as usize][0] {
                    covered[wavelength] += 1;
                }
            }
        }
        let wavelength = loop {
            let Some(Reverse(wavelength)) = free.pop() else {
                covered.push(0);
                is_queued.push(false);
                break covered.len() - 1;
            };
            is_queued[wavelength] = false;
            if covered[wavelength] == 0 {
                break wavelength;
            }
        };
        covered[wavelength] = 2;
        ring[goals[0] as usize][0].push(wavelength);
        ring[goals[1] as usize][1].push(wavelength);
        if covered.len() as u64 > most {
            break;
        }
    }
    covered.len() as u64
}
