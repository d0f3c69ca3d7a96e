//! Matchings of chunks: as few as possible, with chunks of similar size in one matching.
//!
//! **Minimum number.** Let D be the maximum number of chunks that a rank sends or receives. D
//! matchings suffice (König). Chunks are assigned in descending order of size, each to the first
//! matching in which both its ranks are free. If no matching has both ranks free, the source is
//! free in some matching a and the destination in some matching b. Consider the path of alternating
//! chunks of a and b that begins at the destination, and exchange a and b along this path. Then
//! both ranks are free in a. The path does not reach the source, because it reaches sources by
//! chunks of a only.
//!
//! **Similar sizes.** A matching takes the time of its largest chunk. The chunks of two matchings
//! form paths and cycles, and the chunks of one path or cycle that belong to different matchings
//! may be exchanged. First, of each path and cycle, the chunks whose third powers have the larger
//! sum move to the first matching, so that large chunks are together. Then the total time is
//! reduced: one of the two matchings contains the largest chunk in any case, so the other matching
//! receives, of each path and cycle, the chunks with the smaller maximum. No other exchange leaves
//! a shorter total time. Both steps are applied to pairs of matchings until nothing changes or the
//! work limit is reached.

use opticoll_base::interrupt;

/// Marks a rank that has no partner in a matching.
const NONE: u32 = u32::MAX;

/// Maximum work of exchanges between matchings for all chunk sizes together, in chunks visited: a
/// few seconds.
pub(super) const MAX_WORK: u64 = 1 << 26;

/// A set of pairs of ranks with amounts. Each rank is the source of at most one pair and the
/// destination of at most one pair.
#[derive(Debug, Clone)]
pub(super) struct Matching {
    /// Each pair as (destination, amount); indexed by source.
    to: Vec<(u32, u64)>,
    /// Source of each destination; indexed by destination.
    from: Vec<u32>,
}

impl Matching {
    fn new(ranks: u32) -> Matching {
        Matching {
            to: vec![(NONE, 0); ranks as usize],
            from: vec![NONE; ranks as usize],
        }
    }

    pub(super) fn longest(&self) -> u64 {
        self.to.iter().map(|(_, amount)| *amount).max().unwrap_or(0)
    }

    fn cube(&self, source: u32) -> f64 {
        let amount = self.to[source as usize].1 as f64;
        amount * amount * amount
    }

    fn cubes(&self) -> f64 {
        (0..self.to.len() as u32)
            .map(|source| self.cube(source))
            .sum()
    }

    /// Returns (source, destination, amount) of each pair.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let pairs = (0u32..).zip(&self.to);
        let pairs = pairs.filter(|(_, (destination, _))| *destination != NONE);
        pairs.map(|(source, &(destination, amount))| (source, destination, amount))
    }

    fn enter(&mut self, source: u32, destination: u32, amount: u64) {
        self.to[source as usize] = (destination, amount);
        self.from[destination as usize] = source;
    }

    /// Adds a pair that [`Matching::leave`] removed from another matching.
    fn take_over(&mut self, source: u32, (destination, amount): (u32, u64)) {
        if destination != NONE {
            self.enter(source, destination, amount);
        }
    }

    fn leave(&mut self, source: u32) -> (u32, u64) {
        let removed = std::mem::replace(&mut self.to[source as usize], (NONE, 0));
        if removed.0 != NONE {
            self.from[removed.0 as usize] = NONE;
        }
        removed
    }
}

/// Returns the minimum number of matchings, with chunks of similar size in one matching. Chunks are
/// given as (source, destination, amount).
pub(super) fn similar_sizes(
    ranks: u32,
    chunks: &[(u32, u32, u64)],
    work: &mut u64,
) -> Vec<Matching> {
    let mut matchings = fewest(ranks, chunks);
    // Each of the two steps may use half of the work.
    let mut first = *work / 2;
    *work -= first;
    exchange_until_stable(
        &mut matchings,
        ranks,
        Matching::cubes,
        gather_large,
        &mut first,
    );
    *work += first;
    let longest = |matching: &Matching| matching.longest() as f64;
    exchange_until_stable(&mut matchings, ranks, longest, shorten, work);
    matchings
}

/// Sorts the matchings by `order`, the largest value first, and applies `exchange` to all pairs of
/// matchings. Repeats this until nothing changes or the work limit is reached.
fn exchange_until_stable(
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

/// Exchanges chunks between two matchings so that `large` contains the larger chunks of each path
/// and cycle. Returns whether anything changed.
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

/// Exchanges chunks between two matchings so that the matching with the shorter duration becomes as
/// short as possible. Returns whether the total time of both matchings decreased.
fn shorten(one: &mut Matching, other: &mut Matching) -> bool {
    let (long, short) = match one.longest() >= other.longest() {
        true => (one, other),
        false => (other, one),
    };
    let parts = alternating(long, short);
    let (mut exchanged, mut after) = (Vec::new(), 0);
    for part in &parts {
        let longest = |of: &Matching| part.iter().map(|rank| of.to[*rank as usize].1).max();
        let (long_largest, short_largest) = (longest(long), longest(short));
        after = after.max(long_largest.min(short_largest).unwrap_or(0));
        if long_largest < short_largest {
            exchanged.extend_from_slice(part);
        }
    }
    if after >= short.longest() {
        return false;
    }
    exchange(long, short, &exchanged);
    true
}

fn exchange(one: &mut Matching, other: &mut Matching, sources: &[u32]) {
    let removed = sources.iter();
    let removed: Vec<_> = removed
        .map(|source| (one.leave(*source), other.leave(*source)))
        .collect();
    for (&source, (of_one, of_other)) in sources.iter().zip(removed) {
        other.take_over(source, of_one);
        one.take_over(source, of_other);
    }
}

/// Returns the sources on each path and cycle that the pairs of two matchings form.
fn alternating(one: &Matching, other: &Matching) -> Vec<Vec<u32>> {
    let mut seen = vec![false; one.to.len()];
    let mut parts = Vec::new();
    for start in 0..one.to.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut part = vec![start as u32];
        // Follow `one` from the source and `other` back to a source, then in the opposite
        // direction.
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

/// Divides `chunks` into matchings. The number of matchings is the minimum: the maximum number of
/// chunks that a rank sends or receives.
fn fewest(ranks: u32, chunks: &[(u32, u32, u64)]) -> Vec<Matching> {
    let mut counts = [0, 1].map(|_| vec![0usize; ranks as usize]);
    for (source, destination, _) in chunks {
        counts[0][*source as usize] += 1;
        counts[1][*destination as usize] += 1;
    }
    let max_degree = counts.iter().flatten().max().copied().unwrap_or(0);
    let mut matchings = vec![Matching::new(ranks); max_degree];
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
        let has_free_source = |matching: &Matching| matching.to[source as usize].0 == NONE;
        let has_free_destination =
            |matching: &Matching| matching.from[destination as usize] == NONE;
        let mut candidates = matchings.iter();
        let place = candidates
            .position(|matching| has_free_source(matching) && has_free_destination(matching));
        let place = place.unwrap_or_else(|| {
            // A rank has at most as many chunks as there are matchings, and this chunk is not yet
            // in a matching. So the rank is free in some matching.
            let source_matching = matchings.iter().position(has_free_source).unwrap_or(0);
            let destination_matching = matchings.iter().position(has_free_destination).unwrap_or(0);
            free_destination(
                &mut matchings,
                [source_matching, destination_matching],
                destination,
            );
            source_matching
        });
        matchings[place].enter(source, destination, amount);
    }
    matchings
}

/// Exchanges the chunks of the matchings `one` and `other` along the path that starts at
/// `destination`. Before, `destination` has a chunk in `one` and none in `other`; afterwards, it is
/// free in `one`.
fn free_destination(matchings: &mut [Matching], [one, other]: [usize; 2], destination: u32) {
    let mut path = Vec::new();
    let (mut at, mut current) = (destination, one);
    loop {
        let source = matchings[current].from[at as usize];
        if source == NONE {
            break;
        }
        path.push((source, current));
        current = one + other - current;
        let next = matchings[current].to[source as usize].0;
        if next == NONE {
            break;
        }
        path.push((source, current));
        at = next;
        current = one + other - current;
    }
    let mut removed = Vec::with_capacity(path.len());
    for (source, current) in path {
        removed.push((
            source,
            one + other - current,
            matchings[current].leave(source),
        ));
    }
    for (source, current, (destination, amount)) in removed {
        matchings[current].enter(source, destination, amount);
    }
}
