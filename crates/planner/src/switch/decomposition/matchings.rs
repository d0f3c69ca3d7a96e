//! Chunks in matchings: as few as there can be, with chunks of like size together.
//!
//! **As few as there can be.** The most chunks of a rank, sent or received, are D. D matchings are
//! enough (König): the chunks, largest first, each go to the first matching in which both their
//! ranks are free. If there is none below D, some matching a has the source free and some b the
//! destination; along the path of chunks in a and b by turns that begins at the destination the two
//! are exchanged, and then both ranks are free in a. The path does not come to the source, since it
//! comes to sources over chunks of a only.
//!
//! **Of like size.** A matching takes the time of its largest chunk. Chunks of two matchings form
//! paths and cycles; of each the two halves may be exchanged. First the earlier of two matchings
//! takes the halves whose third powers add up to more, so that large chunks come together. Then
//! times are shortened: the largest chunk is in one of the two matchings in any case. The other
//! takes, of each path or cycle, the half whose largest chunk is the smaller: no exchange leaves
//! less time for the two. Both are done for pair after pair of matchings until nothing changes, or
//! there was enough work.

use opticoll_base::interrupt;

/// No rank.
const NONE: u32 = u32::MAX;

/// Exchanges between two matchings at most, of all lengths of chunks that are tried: chunks looked
/// at. Some seconds.
pub(super) const MOST_WORK: u64 = 1 << 26;

/// Pairs of ranks, each rank in one as source and in one as destination at most, with what they
/// send.
#[derive(Debug, Clone)]
pub(super) struct Matching {
    /// By source: destination and amount.
    to: Vec<(u32, u64)>,
    /// By destination: the source.
    from: Vec<u32>,
}

impl Matching {
    fn new(ranks: u32) -> Matching {
        Matching {
            to: vec![(NONE, 0); ranks as usize],
            from: vec![NONE; ranks as usize],
        }
    }

    /// The largest amount.
    pub(super) fn longest(&self) -> u64 {
        self.to.iter().map(|(_, amount)| *amount).max().unwrap_or(0)
    }

    /// The third power of what a rank sends.
    fn cube(&self, source: u32) -> f64 {
        let amount = self.to[source as usize].1 as f64;
        amount * amount * amount
    }

    /// Those of all ranks together.
    fn cubes(&self) -> f64 {
        (0..self.to.len() as u32)
            .map(|source| self.cube(source))
            .sum()
    }

    /// Source, destination and amount of each pair.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let pairs = (0u32..).zip(&self.to);
        let pairs = pairs.filter(|(_, (destination, _))| *destination != NONE);
        pairs.map(|(source, &(destination, amount))| (source, destination, amount))
    }

    fn enter(&mut self, source: u32, destination: u32, amount: u64) {
        self.to[source as usize] = (destination, amount);
        self.from[destination as usize] = source;
    }

    /// Enters what [`Matching::leave`] took from another.
    fn take_over(&mut self, source: u32, (destination, amount): (u32, u64)) {
        if destination != NONE {
            self.enter(source, destination, amount);
        }
    }

    fn leave(&mut self, source: u32) -> (u32, u64) {
        let left = std::mem::replace(&mut self.to[source as usize], (NONE, 0));
        if left.0 != NONE {
            self.from[left.0 as usize] = NONE;
        }
        left
    }
}

/// Matchings of chunks: source, destination and amount.
pub(super) fn of_like_size(
    ranks: u32,
    chunks: &[(u32, u32, u64)],
    work: &mut u64,
) -> Vec<Matching> {
    let mut matchings = fewest(ranks, chunks);
    // Half of what is left for each.
    let mut first = *work / 2;
    *work -= first;
    until_nothing_changes(
        &mut matchings,
        ranks,
        Matching::cubes,
        gather_large,
        &mut first,
    );
    *work += first;
    let longest = |one: &Matching| one.longest() as f64;
    until_nothing_changes(&mut matchings, ranks, longest, shorten, work);
    matchings
}

/// Exchanges for pair after pair of matchings, those of the most by `order` first, until nothing
/// changes.
fn until_nothing_changes(
    matchings: &mut [Matching],
    ranks: u32,
    order: fn(&Matching) -> f64,
    exchange: fn(&mut Matching, &mut Matching) -> bool,
    work: &mut u64,
) {
    let mut changed = true;
    while changed {
        changed = false;
        matchings.sort_by(|one, other| order(other).total_cmp(&order(one)));
        for one in 0..matchings.len() {
            for other in one + 1..matchings.len() {
                interrupt::check();
                *work = work.saturating_sub(u64::from(ranks));
                if *work == 0 {
                    return;
                }
                let (before, after) = matchings.split_at_mut(other);
                changed |= exchange(&mut before[one], &mut after[0]);
            }
        }
    }
}

/// Gives the first of two matchings of each path and cycle the half of larger chunks; whether that
/// changes anything.
fn gather_large(large: &mut Matching, small: &mut Matching) -> bool {
    let mut exchanged = Vec::new();
    for part in alternating(large, small) {
        let cubes = |of: &Matching| part.iter().map(|rank| of.cube(*rank)).sum::<f64>();
        if cubes(large) < cubes(small) {
            exchanged.extend(part);
        }
    }
    exchange(large, small, &exchanged);
    !exchanged.is_empty()
}

/// Exchanges what leaves the shorter of two matchings the least; whether it takes less than before.
fn shorten(one: &mut Matching, other: &mut Matching) -> bool {
    let (long, short) = match one.longest() >= other.longest() {
        true => (one, other),
        false => (other, one),
    };
    let parts = alternating(long, short);
    let (mut exchanged, mut after) = (Vec::new(), 0);
    for part in &parts {
        let longest = |of: &Matching| part.iter().map(|rank| of.to[*rank as usize].1).max();
        let (of_long, of_short) = (longest(long), longest(short));
        after = after.max(of_long.min(of_short).unwrap_or(0));
        if of_long < of_short {
            exchanged.extend_from_slice(part);
        }
    }
    if after >= short.longest() {
        return false;
    }
    exchange(long, short, &exchanged);
    true
}

/// Exchanges what some sources send in two matchings.
fn exchange(one: &mut Matching, other: &mut Matching, sources: &[u32]) {
    let left = sources.iter();
    let left: Vec<_> = left
        .map(|source| (one.leave(*source), other.leave(*source)))
        .collect();
    for (&source, (of_one, of_other)) in sources.iter().zip(left) {
        other.take_over(source, of_one);
        one.take_over(source, of_other);
    }
}

/// The sources of each path and cycle of two matchings.
fn alternating(one: &Matching, other: &Matching) -> Vec<Vec<u32>> {
    let mut seen = vec![false; one.to.len()];
    let mut parts = Vec::new();
    for start in 0..one.to.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut part = vec![start as u32];
        // Along `one` from the source and back along `other`, then the other way about.
        for (away, back) in [(one, other), (other, one)] {
            let mut at = start;
            loop {
                let destination = away.to[at].0;
                if destination == NONE {
                    break;
                }
                let next = back.from[destination as usize];
                if next == NONE || std::mem::replace(&mut seen[next as usize], true) {
                    break;
                }
                part.push(next);
                at = next as usize;
            }
        }
        parts.push(part);
    }
    parts
}

/// As few matchings as the most chunks of a rank.
fn fewest(ranks: u32, chunks: &[(u32, u32, u64)]) -> Vec<Matching> {
    let mut counts = [0, 1].map(|_| vec![0usize; ranks as usize]);
    for (source, destination, _) in chunks {
        counts[0][*source as usize] += 1;
        counts[1][*destination as usize] += 1;
    }
    let most = counts.iter().flatten().max().copied().unwrap_or(0);
    let mut matchings = vec![Matching::new(ranks); most];
    let mut sorted = chunks.to_vec();
    sorted.sort_by_key(|(source, destination, amount)| {
        (
            std::cmp::Reverse(*amount),
            (destination + ranks - source) % ranks,
            *source,
        )
    });
    for (source, destination, amount) in sorted {
        interrupt::check();
        let no_source = |one: &Matching| one.to[source as usize].0 == NONE;
        let no_destination = |one: &Matching| one.from[destination as usize] == NONE;
        let mut both = matchings.iter();
        let place = both.position(|one| no_source(one) && no_destination(one));
        let place = place.unwrap_or_else(|| {
            // There are as many matchings as a rank has chunks: one is free, for this one is not
            // yet in any.
            let of_source = matchings.iter().position(no_source).unwrap_or(0);
            let of_destination = matchings.iter().position(no_destination).unwrap_or(0);
            free_destination(&mut matchings, [of_source, of_destination], destination);
            of_source
        });
        matchings[place].enter(source, destination, amount);
    }
    matchings
}

/// Exchanges two matchings along the path from a destination that has a chunk in the first and none
/// in the second.
fn free_destination(matchings: &mut [Matching], [one, other]: [usize; 2], destination: u32) {
    let mut path = Vec::new();
    let (mut at, mut own) = (destination, one);
    loop {
        let source = matchings[own].from[at as usize];
        if source == NONE {
            break;
        }
        path.push((source, own));
        own = one + other - own;
        let next = matchings[own].to[source as usize].0;
        if next == NONE {
            break;
        }
        path.push((source, own));
        at = next;
        own = one + other - own;
    }
    let mut left = Vec::with_capacity(path.len());
    for (source, own) in path {
        left.push((source, one + other - own, matchings[own].leave(source)));
    }
    for (source, own, (destination, amount)) in left {
        matchings[own].enter(source, destination, amount);
    }
}
