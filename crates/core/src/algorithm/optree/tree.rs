//! The trees of OpTree: groups, radices, loads, and the search for the best real tree.
//!
//! ```
//! use opticoll::algorithm::optree::tree;
//! // The 16-rank example of the OpTree paper: 8 and 16 wavelengths for 4x4.
//! assert_eq!(tree::stage_loads(16, &[4, 4]), [8, 16]);
//! ```

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
/// wavelengths per direction at the least. Antipodal ties are broken by parity here, which may differ
/// by one from the routes of a finished plan.
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

/// Adds an arc's load: the shorter way; antipodal pairs alternate by the parity of their lower rank.
fn add_arc(change: &mut [Vec<i64>; 2], ranks: u32, source: u32, destination: u32, load: i64) {
    let clockwise = (destination + ranks - source) % ranks;
    let is_clockwise = match (2 * clockwise).cmp(&ranks) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => source.min(destination) % 2 == 0,
    };
    // Links are numbered by the lower end: link i joins i and i + 1.
    let (direction, from, to) = if is_clockwise {
        (0, source, destination)
    } else {
        (1, destination, source)
    };
    change[direction][from as usize] += load;
    change[direction][to as usize] -= load;
    if from > to {
        change[direction][0] += load;
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

/// How many of the most promising trees are examined link by link.
const EXAMINED: usize = 48;

/// The tree expected to need the fewest slots for `channels` wavelengths per direction; of equal
/// ones that with the least load, then the flattest.
///
/// Trees are non-increasing lists of radices (a large radix is cheapest in stage 1, where traffic
/// may go both ways around) whose product is from N to 1.5 N. A closed estimate picks the most
/// promising; their loads are then computed link by link. Stages on segments need exactly their
/// load in wavelengths; stage 1 goes around the ring and may need more, which only `thirds` tells.
pub fn best_radices(ranks: u32, channels: u32) -> Vec<u32> {
    let mut candidates = Vec::new();
    list_trees(ranks, &mut Vec::new(), 1, &mut candidates);
    let estimate = |radices: &Vec<u32>| -> f64 {
        let channels = f64::from(channels);
        radices
            .iter()
            .enumerate()
            .map(|(stage, &radix)| {
                let (radix, halves) = (f64::from(radix), if stage == 0 { 8.0 } else { 4.0 });
                (f64::from(ranks) * radix / halves / channels).max(1.0)
            })
            .sum()
    };
    candidates.sort_by(|one, other| estimate(one).total_cmp(&estimate(other)));
    candidates.truncate(EXAMINED);
    let cost = |radices: &Vec<u32>| {
        let loads = stage_loads(ranks, radices);
        let first = radices.first().map_or(0, |&radix| thirds(ranks, radix));
        let needs = loads.iter().enumerate().map(
            |(stage, &load)| {
                if stage == 0 { load.max(first) } else { load }
            },
        );
        let slots: u64 = needs.map(|need| need.div_ceil(u64::from(channels))).sum();
        (slots, loads.iter().sum::<u64>(), radices.len())
    };
    candidates.into_iter().min_by_key(cost).unwrap_or_default()
}

/// What stage 1 needs beyond its load: around the ring three lightpaths fit on a wavelength only
/// if none is longer than N / 3, so unequal thirds need N / 2 wavelengths where their load is N / 3.
fn thirds(ranks: u32, radix: u32) -> u64 {
    if radix == 3 && ranks % 3 != 0 {
        u64::from(ranks / 2)
    } else {
        0
    }
}

/// Appends all non-increasing lists that extend `radices` (whose product is `leaves`) to a product
/// from N to 1.5 N and that no shorter list would already serve.
fn list_trees(ranks: u32, radices: &mut Vec<u32>, leaves: u64, found: &mut Vec<Vec<u32>>) {
    let ranks_wide = u64::from(ranks);
    if leaves >= ranks_wide {
        if !radices.is_empty() && 2 * leaves <= 3 * ranks_wide.max(2) {
            found.push(radices.clone());
        }
        return;
    }
    let most = radices.last().copied().unwrap_or(ranks).min(ranks);
    for radix in 2..=most {
        if 2 * leaves * u64::from(radix) > 3 * ranks_wide && leaves * u64::from(radix) > 2 {
            break;
        }
        radices.push(radix);
        list_trees(ranks, radices, leaves * u64::from(radix), found);
        radices.pop();
    }
}
