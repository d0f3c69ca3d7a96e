//! Channels for lightpaths and their rotations by multiples of g ranks, found as closed walks.
//!
//! Let g divide N. Fold the ring to a circle of g positions: rank r is at position r mod g, its
//! *residue*. A lightpath of l links from residue q, rotated by all multiples of g, is a walk from
//! position q to position q + l, and its N / g copies load a link from residue x to x + 1 as often
//! as the walk passes the link. If the lightpaths pass no link of the circle more than s times,
//! walks of one link that stand for dark links raise all links to exactly s. Then as many walks
//! begin at a position as end there, so that they join to closed walks (Euler). A closed walk of
//! D = g t links takes t channels if t divides N / g: its lightpaths follow one another without a
//! gap, and after D links all return to where they began, on the circle as on the ring. The copy
//! that leaves rank r, of the lightpath that begins o links after the start of the walk, is on
//! channel (r - o) / g mod t; the copies on one channel are D links apart.

/// Position of a lightpath on its closed walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalkPosition {
    /// First channel of the walk.
    first: u32,
    /// Number of channels of the walk.
    channels: u32,
    /// Links of the walk before the lightpath, counted from residue 0.
    offset: u32,
}

impl WalkPosition {
    /// Returns the channel of the copy that leaves `rank`.
    pub(super) fn channel(self, ranks: u32, group: u32, rank: u32) -> u32 {
        let rotations = (rank + ranks - self.offset % ranks) % ranks / group;
        self.first + rotations % self.channels
    }
}

/// Part of a closed walk: a lightpath, given by its index, or a dark link.
#[derive(Debug, Clone, Copy)]
struct Step {
    lightpath: Option<usize>,
    length: u32,
}

/// Returns the positions of lightpaths, each given by its residue and length, on closed walks over
/// `channels` channels. The lightpaths must pass no link of the circle of `group` positions more
/// than `channels` times; `groups` is N / g. `None` if they do, or if closed walks have lengths
/// that do not divide N.
pub(super) fn walk_positions(
    group: u32,
    groups: u32,
    channels: u32,
    lightpaths: &[(u32, u32)],
) -> Option<Vec<WalkPosition>> {
    let mut dark = vec![channels; group as usize];
    let mut leaving: Vec<Vec<Step>> = vec![Vec::new(); group as usize];
    for (index, &(residue, length)) in lightpaths.iter().enumerate() {
        for link in 0..group {
            let passes = passes(group, residue, length, link);
            dark[link as usize] = dark[link as usize].checked_sub(passes)?;
        }
        let lightpath = Some(index);
        leaving[residue as usize].push(Step { lightpath, length });
    }
    for (leaving, dark) in leaving.iter_mut().zip(dark) {
        let link = Step {
            lightpath: None,
            length: 1,
        };
        leaving.extend(std::iter::repeat_n(link, dark as usize));
    }
    let mut positions = vec![None; lightpaths.len()];
    let mut first = 0;
    for residue in 0..group {
        if leaving[residue as usize].is_empty() {
            continue;
        }
        let whole = closed_walk(group, residue, &mut leaving);
        for (residue, walk) in closed_parts(group, groups, residue, whole)? {
            let channels = length(&walk) / group;
            let mut offset = residue;
            for step in walk {
                if let Some(index) = step.lightpath {
                    positions[index] = Some(WalkPosition {
                        first,
                        channels,
                        offset,
                    });
                }
                offset += step.length;
            }
            first += channels;
        }
    }
    positions.into_iter().collect()
}

fn length(walk: &[Step]) -> u32 {
    walk.iter().map(|step| step.length).sum()
}

/// Divides a closed walk into closed walks whose numbers of channels divide `groups`, each with the
/// residue at which it begins. Whenever the walk returns to a residue, the steps since then are
/// split off if they fit. `None` if steps remain.
fn closed_parts(
    group: u32,
    groups: u32,
    residue: u32,
    whole: Vec<Step>,
) -> Option<Vec<(u32, Vec<Step>)>> {
    let fits = |walk: &[Step]| groups % (length(walk) / group) == 0;
    if fits(&whole) {
        return Some(vec![(residue, whole)]);
    }
    let mut parts = Vec::new();
    // Residues before each remaining step, and the residue after the last.
    let (mut rest, mut residues) = (Vec::new(), vec![residue]);
    for step in whole {
        let to = (residues[residues.len() - 1] + step.length) % group;
        rest.push(step);
        let revisited = (0..residues.len())
            .rev()
            .find(|&at| residues[at] == to && fits(&rest[at..]));
        match revisited {
            Some(at) => {
                parts.push((to, rest.split_off(at)));
                residues.truncate(at + 1);
            }
            None => residues.push(to),
        }
    }
    rest.is_empty().then_some(parts)
}

/// Returns how often a lightpath passes the link from residue `link` to the next.
pub(super) fn passes(group: u32, residue: u32, length: u32, link: u32) -> u32 {
    let before = (link + group - residue) % group;
    length / group + u32::from(before < length % group)
}

/// Returns a closed walk over all steps that can be reached from a residue, and removes the steps
/// from `leaving`.
fn closed_walk(group: u32, residue: u32, leaving: &mut [Vec<Step>]) -> Vec<Step> {
    let mut open: Vec<(u32, Option<Step>)> = vec![(residue, None)];
    let mut walk = Vec::new();
    while let Some(&(at, arrived_by)) = open.last() {
        match leaving[at as usize].pop() {
            Some(step) => open.push(((at + step.length) % group, Some(step))),
            None => {
                open.pop();
                walk.extend(arrived_by);
            }
        }
    }
    walk.reverse();
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No two copies share a link of a channel, and no channel exceeds the given number.
    #[test]
    fn copies_share_no_link_of_a_channel() {
        for (ranks, group, channels, lightpaths) in [
            (64, 2, 8, vec![(0, 8), (1, 7), (0, 1)]),
            (64, 4, 8, vec![(1, 11), (2, 3), (3, 6), (0, 5)]),
            (36, 3, 4, vec![(0, 3), (1, 3), (2, 4), (1, 1)]),
            (24, 1, 6, vec![(0, 1), (0, 2), (0, 3)]),
        ] {
            let walk_positions =
                walk_positions(group, ranks / group, channels, &lightpaths).unwrap();
            let mut lit = vec![false; (ranks * channels) as usize];
            for (position, (residue, length)) in walk_positions.iter().zip(&lightpaths) {
                for rank in (*residue..ranks).step_by(group as usize) {
                    let channel = position.channel(ranks, group, rank);
                    assert!(channel < channels);
                    for link in rank..rank + length {
                        let link = &mut lit[(channel * ranks + link % ranks) as usize];
                        assert!(!std::mem::replace(link, true), "{residue} {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn more_than_the_channels_and_walks_that_do_not_divide_have_no_places() {
        assert!(walk_positions(2, 32, 2, &[(0, 3), (0, 3)]).is_none());
        // Residues 0 and 1 with closed walks of 6 and 2 links on all channels: 3 does not divide
        // 32.
        assert!(walk_positions(2, 32, 4, &[(0, 6), (1, 2)]).is_none());
    }
}
