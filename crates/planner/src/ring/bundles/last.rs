//! The last slot of a tree: every rank that is left hears from one of the two ends of its gap.
//!
//! The nearer end takes fewer links, but links of one class may be full while others have room. So some ranks hear
//! from the farther end: a search that changes one rank after another, always the one after which channels are
//! exceeded least, and none again soon (tabu search; Glover, ORSA Journal on Computing 1989).

use std::collections::BTreeMap;

use super::filling::{BundleSlot, Family, lit};
use super::gaps::OpenGap;
use super::grouping::Grouping;
use super::walks;
use opticoll_base::interrupt;

/// So many changes without a better slot end the search.
const PATIENCE: usize = 100;

/// The same, times ranks and links that are looked at for each change.
const MOST_WORK: usize = 1_000_000;

/// Where channels are exceeded by more in all, the search ends at once.
const MOST_EXCESS: u32 = 100;

/// A changed rank stays as it is for so many changes.
const TABU: usize = 12;

/// A channel that is exceeded counts so many times one that is not.
const EXCEEDED: u64 = 64;

/// Lightpaths of one direction, class and length, with what they load.
struct Kind {
    direction: usize,
    length: u32,
    /// How often one passes each link of its direction.
    passes: Vec<u32>,
    /// The edges of the tree that it carries.
    edges: u32,
}

/// A rank that hears from one of two ends, the near one first.
struct Left {
    /// The kind of lightpath from each end, and that end.
    ways: [(usize, u32); 2],
    from: usize,
    /// The change from which on it may change again.
    free: usize,
}

/// A slot in the making.
struct LastSlot<'a> {
    grouping: &'a Grouping,
    volume: u32,
    /// How many may be used.
    channels: u32,
    kinds: Vec<Kind>,
    loads: [Vec<u32>; 2],
    left: Vec<Left>,
}

/// The last slot for such gaps, with so many pieces on a lightpath at most; `None` where none was found.
pub(super) fn last_slot(grouping: &Grouping, volume: u32, gaps: &[OpenGap]) -> Option<BundleSlot> {
    let slot = balanced(grouping, volume, gaps, 0)?;
    // Where closed walks have no channels, one channel less is used.
    slot.lit()
        .or_else(|| balanced(grouping, volume, gaps, 1)?.lit())
}

/// The slot with so many channels that are not used.
fn balanced<'a>(
    grouping: &'a Grouping,
    volume: u32,
    gaps: &[OpenGap],
    dark: u32,
) -> Option<LastSlot<'a>> {
    let mut slot = LastSlot::new(grouping, volume, gaps)?;
    slot.channels = slot.channels.checked_sub(dark)?;
    slot.balance()?;
    Some(slot)
}

impl<'a> LastSlot<'a> {
    /// Every rank hears from the nearer end; `None` where that takes more links than there are.
    fn new(grouping: &'a Grouping, volume: u32, gaps: &[OpenGap]) -> Option<LastSlot<'a>> {
        let nearest = |size: u32| (1..=size).map(move |place| place.min(size + 1 - place));
        let links: u64 = gaps
            .iter()
            .flat_map(|gap| nearest(gap.size))
            .map(u64::from)
            .sum();
        let too_far = gaps
            .iter()
            .any(|gap| gap.size.div_ceil(2) > grouping.longest);
        if links as f32 > grouping.room(volume) || too_far {
            return None;
        }
        let mut slot = LastSlot {
            grouping,
            volume,
            channels: grouping.channels(),
            kinds: Vec::new(),
            loads: [0, 1].map(|_| vec![0; grouping.group as usize]),
            left: Vec::new(),
        };
        let mut known = BTreeMap::new();
        for gap in gaps {
            for place in 1..=gap.size {
                let lengths = [place, gap.size + 1 - place];
                let from = usize::from(lengths[1] < lengths[0]);
                let ways = [0, 1].map(|direction| {
                    let end = gap.end(direction == 0);
                    let class = grouping.class(end, direction == 0);
                    let key = (direction, class, lengths[direction]);
                    let kind = *known.entry(key).or_insert_with(|| slot.kind(key));
                    (kind, end % grouping.ranks)
                });
                slot.kinds[ways[from].0].edges += 1;
                slot.left.push(Left {
                    ways,
                    from,
                    free: 0,
                });
            }
        }
        for kind in 0..slot.kinds.len() {
            let edges = std::mem::take(&mut slot.kinds[kind].edges);
            slot.set(kind, edges);
        }
        Some(slot)
    }

    /// With channels for all lightpaths, if there are.
    fn lit(&self) -> Option<BundleSlot> {
        let mut senders: Vec<Vec<u32>> = self.kinds.iter().map(|_| Vec::new()).collect();
        for one in &self.left {
            let (kind, end) = one.ways[one.from];
            senders[kind].push(end);
        }
        let kinds = self.kinds.iter().zip(senders);
        let used = kinds.filter(|(_, senders)| !senders.is_empty());
        let families = used.map(|(kind, senders)| {
            let count = self.lightpaths(kind.edges);
            let family = Family::new(kind.direction == 0, kind.length, senders);
            (family, count)
        });
        lit(self.grouping, self.volume, families.collect())
    }

    /// Another kind of lightpath, by direction, class and length.
    fn kind(&mut self, (direction, class, length): (usize, u32, u32)) -> usize {
        let group = self.grouping.group;
        self.kinds.push(Kind {
            direction,
            length,
            passes: (0..group)
                .map(|link| walks::passes(group, class, length, link))
                .collect(),
            edges: 0,
        });
        self.kinds.len() - 1
    }

    fn lightpaths(&self, edges: u32) -> u32 {
        (edges * self.grouping.bundle()).div_ceil(self.volume)
    }

    /// Sets how many edges lightpaths of a kind carry.
    fn set(&mut self, kind: usize, edges: u32) {
        let (before, after) = (
            self.lightpaths(self.kinds[kind].edges),
            self.lightpaths(edges),
        );
        let kind = &mut self.kinds[kind];
        kind.edges = edges;
        for (load, passes) in self.loads[kind.direction].iter_mut().zip(&kind.passes) {
            *load = *load + after * passes - before * passes;
        }
    }

    /// What a link costs with such a load.
    fn cost(&self, load: u32) -> u64 {
        let over = u64::from(load.saturating_sub(self.channels));
        EXCEEDED * over * over + u64::from(load) * u64::from(load)
    }

    /// What the links of a direction cost more with so many lightpaths of a kind more, or fewer.
    fn change(&self, kind: usize, edges: u32) -> i64 {
        let Kind {
            direction,
            passes,
            edges: before,
            ..
        } = &self.kinds[kind];
        let (before, after) = (self.lightpaths(*before), self.lightpaths(edges));
        if before == after {
            return 0;
        }
        let loads = self.loads[*direction].iter().zip(passes);
        let changes = loads.map(|(&load, passes)| {
            let then = load + after * passes - before * passes;
            self.cost(then) as i64 - self.cost(load) as i64
        });
        changes.sum()
    }

    /// By how much channels are exceeded.
    fn excess(&self) -> u32 {
        let most = self.channels;
        let loads = self.loads.iter().flatten();
        loads.map(|load| load.saturating_sub(most)).sum()
    }

    /// Changes ranks until no channels are exceeded.
    fn balance(&mut self) -> Option<()> {
        let (mut best, mut since) = (self.excess(), 0);
        let work = self.left.len() * self.grouping.group as usize;
        let patience = (MOST_WORK / work.max(1)).min(PATIENCE);
        if best > MOST_EXCESS {
            return None;
        }
        for change in 0.. {
            if best == 0 {
                return Some(());
            }
            interrupt::check();
            let mut least: Option<(i64, usize)> = None;
            let free = self.left.iter().enumerate();
            for (index, one) in free.filter(|(_, one)| one.free <= change) {
                let (from, to) = (one.ways[one.from].0, one.ways[1 - one.from].0);
                if self.kinds[to].length > self.grouping.longest {
                    continue;
                }
                let (fewer, more) = (self.kinds[from].edges - 1, self.kinds[to].edges + 1);
                let found = (self.change(from, fewer) + self.change(to, more), index);
                least = Some(least.map_or(found, |least| least.min(found)));
            }
            let (_, index) = least?;
            let one = &mut self.left[index];
            let (from, to) = (one.ways[one.from].0, one.ways[1 - one.from].0);
            one.from = 1 - one.from;
            one.free = change + TABU;
            self.set(from, self.kinds[from].edges - 1);
            self.set(to, self.kinds[to].edges + 1);
            let excess = self.excess();
            since = if excess < best { 0 } else { since + 1 };
            best = best.min(excess);
            if since > patience {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::gaps::gaps_between;
    use super::*;

    fn grouping(ranks: u32, wavelengths: u32, group: u32) -> Grouping {
        let spec = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
        let fabric = opticoll_fabric::fabric::Fabric::parse(&spec).unwrap();
        Grouping::new(crate::ring_of(&fabric).unwrap(), group)
    }

    /// Every rank that is left hears once, from an end of its gap, and no link has more lightpaths than channels.
    #[test]
    fn every_rank_that_is_left_hears_once() {
        for (ranks, wavelengths, group, pieces, volume, holders) in [
            (24, 8, 1, 1, 4, vec![0, 6, 13, 20]),
            (24, 12, 2, 1, 2, vec![0, 5, 9, 13, 16, 21]),
            (64, 16, 4, 2, 8, (0..64).step_by(5).collect()),
            (
                64,
                24,
                4,
                1,
                4,
                (0..64).filter(|rank| rank % 7 < 2).collect(),
            ),
        ] {
            let grouping = grouping(ranks, wavelengths, group).in_pieces(pieces);
            let gaps = gaps_between(ranks, &holders);
            let slot = last_slot(&grouping, volume, &gaps);
            let slot = slot.unwrap_or_else(|| panic!("{ranks} ranks in groups of {group}"));
            let mut heard: Vec<u32> = Vec::new();
            let mut loads = [0, 1].map(|_| vec![0; group as usize]);
            for family in &slot.families {
                let bundles = family.senders.len() as u32;
                let lightpaths = family.lightpaths.len() as u32;
                assert!(lightpaths * volume >= bundles * group * pieces);
                for &sender in &family.senders {
                    assert!(holders.contains(&sender));
                    heard.push(match family.clockwise {
                        true => (sender + family.length) % ranks,
                        false => (sender + ranks - family.length) % ranks,
                    });
                }
                let class = grouping.class(family.senders[0], family.clockwise);
                for step in 0..family.length {
                    let link = (class + step) % group;
                    loads[usize::from(!family.clockwise)][link as usize] += lightpaths;
                }
            }
            heard.sort_unstable();
            let left: Vec<u32> = (0..ranks).filter(|rank| !holders.contains(rank)).collect();
            assert_eq!(heard, left);
            assert!(loads.iter().flatten().all(|load| *load <= wavelengths));
        }
    }

    /// Eleven ranks take 36 links at least, and there are 24 in all.
    #[test]
    fn gaps_that_take_more_links_than_there_are_have_no_last_slot() {
        let grouping = grouping(12, 3, 1);
        assert!(last_slot(&grouping, 4, &gaps_between(12, &[0])).is_none());
    }
}
