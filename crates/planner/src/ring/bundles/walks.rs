//! Channels for lightpaths that stand for all their rotations by multiples of g ranks: closed walks.
//!
//! Let g divide N. Fold the ring to a circle of g *classes*: rank r is in class r mod g. A lightpath of l links from
//! class q, turned by all multiples of g, is a walk from class q to class q + l, and its N / g copies load a link
//! from class x to x + 1 as often as the walk passes it. If lightpaths pass no link of the circle more than s times,
//! walks of one link that stand for dark links bring all links to s. Then as many walks begin at a class as end
//! there, so that they join to closed ones (Euler). A closed walk of D links, D = g t, where t divides N / g, takes t channels:
//! lightpaths follow one another on it without a gap, and all return to where they began after D links, on
//! the circle as on the ring. The lightpath that begins o links after the start of its walk is, where it leaves rank r, on
//! channel (r - o) / g mod t: the copies on one channel are D links apart.

/// A lightpath of a class, with the walk of which it is a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The first channel of its walk.
    first: u32,
    /// How many the walk takes.
    channels: u32,
    /// Links before it on the walk, from class 0 on.
    offset: u32,
}

impl Place {
    /// The channel of the copy that leaves a rank.
    pub(super) fn channel(self, ranks: u32, group: u32, rank: u32) -> u32 {
        let turns = (rank + ranks - self.offset % ranks) % ranks / group;
        self.first + turns % self.channels
    }
}

/// A walk that is part of a closed one: a lightpath by its index, or a dark link.
#[derive(Debug, Clone, Copy)]
struct Step {
    lightpath: Option<usize>,
    length: u32,
}

/// Channels of lightpaths, each with its class and length, that pass no link of the circle of `group` classes more than
/// `channels` times, on so many channels; `groups` is N / g. `None` where closed walks have lengths that do not divide N.
pub(super) fn places(
    group: u32,
    groups: u32,
    channels: u32,
    lightpaths: &[(u32, u32)],
) -> Option<Vec<Place>> {
    let mut dark = vec![channels; group as usize];
    let mut leaving: Vec<Vec<Step>> = vec![Vec::new(); group as usize];
    for (index, &(class, length)) in lightpaths.iter().enumerate() {
        for link in 0..group {
            let passes = passes(group, class, length, link);
            dark[link as usize] = dark[link as usize].checked_sub(passes)?;
        }
        let lightpath = Some(index);
        leaving[class as usize].push(Step { lightpath, length });
    }
    for (leaving, dark) in leaving.iter_mut().zip(dark) {
        let link = Step {
            lightpath: None,
            length: 1,
        };
        leaving.extend(std::iter::repeat_n(link, dark as usize));
    }
    let mut places = vec![None; lightpaths.len()];
    let mut first = 0;
    for class in 0..group {
        if leaving[class as usize].is_empty() {
            continue;
        }
        let whole = closed_walk(group, class, &mut leaving);
        for (class, walk) in parts(group, groups, class, whole)? {
            let channels = links(&walk) / group;
            let mut offset = class;
            for step in walk {
                if let Some(index) = step.lightpath {
                    places[index] = Some(Place {
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
    places.into_iter().collect()
}

fn links(walk: &[Step]) -> u32 {
    walk.iter().map(|step| step.length).sum()
}

/// Closed walks, with the classes at which they begin, that a closed walk consists of and whose channels divide the groups:
/// itself, or where it comes to a class again what lies between, where that has such a number of channels.
fn parts(group: u32, groups: u32, class: u32, whole: Vec<Step>) -> Option<Vec<(u32, Vec<Step>)>> {
    let fits = |walk: &[Step]| groups % (links(walk) / group) == 0;
    if fits(&whole) {
        return Some(vec![(class, whole)]);
    }
    let mut parts = Vec::new();
    // The classes before each step that is left, and the one after the last.
    let (mut rest, mut classes) = (Vec::new(), vec![class]);
    for step in whole {
        let to = (classes[classes.len() - 1] + step.length) % group;
        rest.push(step);
        let known = (0..classes.len())
            .rev()
            .find(|&at| classes[at] == to && fits(&rest[at..]));
        match known {
            Some(at) => {
                parts.push((to, rest.split_off(at)));
                classes.truncate(at + 1);
            }
            None => classes.push(to),
        }
    }
    rest.is_empty().then_some(parts)
}

/// How often a lightpath passes the link behind a class.
pub(super) fn passes(group: u32, class: u32, length: u32, link: u32) -> u32 {
    let before = (link + group - class) % group;
    length / group + u32::from(before < length % group)
}

/// A walk from a class back to it over all steps that it can reach, which it takes away.
fn closed_walk(group: u32, class: u32, leaving: &mut [Vec<Step>]) -> Vec<Step> {
    let mut open: Vec<(u32, Option<Step>)> = vec![(class, None)];
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

    /// No two copies share a link of a channel, and all channels are there.
    #[test]
    fn copies_share_no_link_of_a_channel() {
        for (ranks, group, channels, lightpaths) in [
            (64, 2, 8, vec![(0, 8), (1, 7), (0, 1)]),
            (64, 4, 8, vec![(1, 11), (2, 3), (3, 6), (0, 5)]),
            (36, 3, 4, vec![(0, 3), (1, 3), (2, 4), (1, 1)]),
            (24, 1, 6, vec![(0, 1), (0, 2), (0, 3)]),
        ] {
            let places = places(group, ranks / group, channels, &lightpaths).unwrap();
            let mut lit = vec![false; (ranks * channels) as usize];
            for (place, (class, length)) in places.iter().zip(&lightpaths) {
                for rank in (*class..ranks).step_by(group as usize) {
                    let channel = place.channel(ranks, group, rank);
                    assert!(channel < channels);
                    for link in rank..rank + length {
                        let link = &mut lit[(channel * ranks + link % ranks) as usize];
                        assert!(!std::mem::replace(link, true), "{class} {length}");
                    }
                }
            }
        }
    }

    #[test]
    fn more_than_the_channels_and_walks_that_do_not_divide_have_no_places() {
        assert!(places(2, 32, 2, &[(0, 3), (0, 3)]).is_none());
        // Classes 0 and 1 with closed walks of 6 and 2 links on all channels: 3 does not divide 32.
        assert!(places(2, 32, 4, &[(0, 6), (1, 2)]).is_none());
    }
}
