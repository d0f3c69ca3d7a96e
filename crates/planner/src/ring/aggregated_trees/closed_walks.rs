//! Channel assignment for lightpaths and their rotations by multiples of g ranks.
//!
//! Let g divide the number N of ranks. Map the ring to a circle of g positions: the position of
//! rank r is its *residue* r mod g. A lightpath of l links that starts at residue q corresponds to
//! a walk from position q to position q + l. The N / g rotations of the lightpath load each link
//! from residue x to residue x + 1 once for each time that the walk passes this link of the circle.
//!
//! Assume that the walks of all lightpaths pass each link of the circle at most s times. Add walks
//! of one link, which stand for dark links, until every link is passed exactly s times. Then the
//! number of walks that begin at a position equals the number of walks that end at the position. By
//! Euler's theorem, the walks can be joined to closed walks.
//!
//! A closed walk of D = g t links needs t channels if t divides N / g. On each channel, the
//! lightpaths follow one another without a gap, and after D links the sequence repeats. Consider a
//! lightpath whose first link is o links after residue 0 of the walk. The rotation that starts at
//! rank r uses channel (r - o) / g mod t. Rotations on the same channel start D links apart.

/// Position of a lightpath on a closed walk, and the channels of the walk. The position determines
/// the channel of each rotated copy of the lightpath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalkPosition {
    /// Index of the first channel of the walk.
    first: u32,
    /// Number of channels of the walk.
    channels: u32,
    /// Number of links from residue 0 to the lightpath's first link along the walk: o in the
    /// formula of the module.
    offset: u32,
}

impl WalkPosition {
    /// Returns the index of the channel of the rotated copy that starts at `rank`. The ring has
    /// `ranks` ranks, and a group has `group` ranks.
    pub(super) fn channel(self, ranks: u32, group: u32, rank: u32) -> u32 {
        let rotations = (rank + ranks - self.offset % ranks) % ranks / group;
        self.first + rotations % self.channels
    }
}

/// Part of a closed walk: a lightpath or a dark link.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Index of the lightpath; `None` for a dark link.
    lightpath: Option<usize>,
    length: u32,
}

/// Assigns channels to lightpaths and to all their rotations by multiples of `group` ranks. The
/// ring has `groups` groups. Each entry of `lightpaths` is the start rank modulo `group` and the
/// number of links. Returns `None` if the assignment with `channels` channels fails.
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

/// Divides the closed walk `whole`, which begins at `residue`, into shorter closed walks. Each of
/// these walks has l links such that l / `group` divides `groups`. Each entry of the result is the
/// residue at which a walk begins, and the walk. Returns `None` if no such division is found.
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
    // `residues[i]` is the residue before `open_steps[i]`.
    let (mut open_steps, mut residues) = (Vec::new(), vec![residue]);
    for step in whole {
        let to = (residues[residues.len() - 1] + step.length) % group;
        open_steps.push(step);
        let revisited = (0..residues.len())
            .rev()
            .find(|&at| residues[at] == to && fits(&open_steps[at..]));
        match revisited {
            Some(at) => {
                parts.push((to, open_steps.split_off(at)));
                residues.truncate(at + 1);
            }
            None => residues.push(to),
        }
    }
    open_steps.is_empty().then_some(parts)
}

/// Returns the number of rotations of a lightpath that pass a link. `link` and `residue` are the
/// ranks, modulo `group`, at which the link and the lightpath start. The lightpath has `length`
/// links.
pub(super) fn passes(group: u32, residue: u32, length: u32, link: u32) -> u32 {
    let before = (link + group - residue) % group;
    length / group + u32::from(before < length % group)
}

/// Returns a closed walk over all steps that are reachable from `residue`. Removes these steps from
/// `leaving`, which is indexed by the residue at which a step starts.
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
        // A closed walk of 6 links needs 3 channels, and 3 does not divide the 32 groups.
        assert!(walk_positions(2, 32, 4, &[(0, 6), (1, 2)]).is_none());
    }
}
