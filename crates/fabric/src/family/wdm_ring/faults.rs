//! Faults of a ring: cut links, dead channels, and links or channels with a reduced rate.
//!
//! `broken=3-4` is a cable cut between ranks 3 and 4: no light passes in either direction, on any
//! fibre. `3-4cw` and `3-4ccw` cut only one direction. `dead=5` is wavelength 5 on every fibre;
//! `dead=1.5` is wavelength 5 on fibre 1 of each direction, on the whole ring. Several items are
//! joined by `+`.
//!
//! `degraded=3-4@10Gb/s` reduces the rate of all wavelengths of a cable. `3>4@10Gb/s` is one
//! direction of the cable, and `w5@10Gb/s` or `w1.5@10Gb/s` is a wavelength on the whole ring.
//!
//! `without` has the syntax of fabrics with links: `3-4`, `3>4` or `rank 3 <-> rank 4` for cuts,
//! and `5` or `rank 5` for a failed rank.

use std::collections::BTreeMap;

use super::Direction;
use crate::fabric::channels;
use crate::fabric::channels::Channel;
use crate::fabric::part;
use opticoll_base::names::terminal_text;
use opticoll_base::spec::{Spec, SpecError, whole_number};
use opticoll_base::units::Rate;

/// Link between two neighbours that is cut in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokenLink {
    /// Position of the link. Position i is between ranks (or nodes) i and i + 1, modulo their
    /// number.
    pub position: u32,
    /// Direction in which no light passes.
    pub direction: Direction,
}

/// Links and channels with a reduced rate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Degraded {
    /// Reduced rate of each degraded link between nodes, for all wavelengths.
    pub links: BTreeMap<BrokenLink, Rate>,
    /// Reduced rate of each degraded channel, on the whole ring.
    pub channels: BTreeMap<Channel, Rate>,
}

impl Degraded {
    /// Returns whether any link or channel has a reduced rate.
    pub fn has_slower_parts(&self) -> bool {
        !self.links.is_empty() || !self.channels.is_empty()
    }
}

/// Parses the option `degraded`. Keeps only the lowest rate of each link or channel.
pub(super) fn read_degraded(
    spec: &Spec,
    ranks: u32,
    (fibres, wavelengths): (u32, u32),
    full: Rate,
) -> Result<Degraded, SpecError> {
    let refuse = |problem: String| spec.refuse("degraded", problem);
    let mut degraded = Degraded::default();
    for (name, rate) in part::read_degraded(spec, |name| Ok((name.to_owned(), full)))? {
        let name = name.as_str();
        if let Some(ends) = part::ends_of(name, rank) {
            for link in links_between(spec, "degraded", ranks, ends)? {
                let slowest = degraded.links.entry(link).or_insert(rate);
                *slowest = rate.min(*slowest);
            }
            continue;
        }
        let wavelength = channels::wavelength_named(name).ok_or_else(|| {
            let name = terminal_text(name);
            refuse(format!(
                "`{name}`: write links such as 3-4 or one way 3>4, or wavelengths such as w5 or \
                 w1.5"
            ))
        })?;
        for channel in channels::parse(spec, "degraded", wavelength, (fibres, wavelengths))? {
            let slowest = degraded.channels.entry(channel).or_insert(rate);
            *slowest = rate.min(*slowest);
        }
    }
    Ok(degraded)
}

/// Formats degraded parts such that [`read_degraded`] parses them.
pub(super) fn print_degraded(degraded: &Degraded, ranks: u32) -> String {
    let links: Vec<(&BrokenLink, &Rate)> = degraded.links.iter().collect();
    let links = links.chunk_by(|(link_before, slow), (next, rate)| {
        (link_before.position, slow) == (next.position, rate)
    });
    let links = links.map(|directions| {
        let (link, rate) = directions[0];
        let (lower, upper) = (link.position, (link.position + 1) % ranks);
        match (directions.len(), link.direction) {
            (1, Direction::Clockwise) => format!("{lower}>{upper}@{rate}"),
            (1, Direction::CounterClockwise) => format!("{upper}>{lower}@{rate}"),
            _ => format!("{lower}-{upper}@{rate}"),
        }
    });
    let channels = channels::slower_texts(&degraded.channels);
    links.chain(channels).collect::<Vec<String>>().join("+")
}

fn rank(text: &str) -> Option<u32> {
    whole_number(text.strip_prefix("rank ").unwrap_or(text))
}

fn without_items(spec: &Spec) -> impl Iterator<Item = &str> {
    let list = spec.option("without").into_iter();
    list.flat_map(|list| list.split('+')).map(str::trim)
}

/// Parses the failed ranks in the option `without`, sorted and without duplicates.
pub(super) fn read_failed(spec: &Spec, ranks: u32) -> Result<Vec<u32>, SpecError> {
    let refuse = |problem: &str| Err(spec.refuse("without", problem));
    let mut failed = Vec::new();
    for item in without_items(spec).filter(|item| part::ends_of(item, rank).is_none()) {
        match rank(item) {
            Some(rank) if rank < ranks => failed.push(rank),
            Some(rank) => {
                return refuse(&format!("there is no rank {rank}; ranks are below {ranks}"));
            }
            None => {
                let item = terminal_text(item);
                return refuse(&format!(
                    "`{item}`: write ranks such as 5, cuts such as 3-4 or one way 3>4"
                ));
            }
        }
    }
    failed.sort_unstable();
    failed.dedup();
    match failed.len() as u32 == ranks {
        true => refuse("no rank is left"),
        false => Ok(failed),
    }
}

/// Parses the broken links in the options `broken` and `without`, sorted and without duplicates.
pub(super) fn read_broken(spec: &Spec, ranks: u32) -> Result<Vec<BrokenLink>, SpecError> {
    let mut broken = Vec::new();
    for ends in without_items(spec).filter_map(|item| part::ends_of(item, rank)) {
        broken.extend(links_between(spec, "without", ranks, ends)?);
    }
    for item in spec
        .option("broken")
        .into_iter()
        .flat_map(|list| list.split('+'))
    {
        let (ends, directions) = if let Some(ends) = item.strip_suffix("ccw") {
            (ends, &Direction::BOTH[1..])
        } else if let Some(ends) = item.strip_suffix("cw") {
            (ends, &Direction::BOTH[..1])
        } else {
            (item, &Direction::BOTH[..])
        };
        let position = ends
            .split_once('-')
            .and_then(|(first, second)| Some((whole_number(first)?, whole_number(second)?)))
            .ok_or_else(|| {
                spec.refuse(
                    "broken",
                    format!(
                        "`{}` is not a pair of neighbours such as 3-4, 3-4cw or 3-4ccw",
                        terminal_text(item)
                    ),
                )
            })
            .and_then(|(first, second)| position(spec, "broken", ranks, first, second))?;
        broken.extend(directions.iter().map(|&direction| BrokenLink {
            position,
            direction,
        }));
    }
    broken.sort_unstable();
    broken.dedup();
    Ok(broken)
}

/// Returns the link from rank `from` to its neighbour `to`, or both links if `both_ways`.
fn links_between(
    spec: &Spec,
    option: &str,
    ranks: u32,
    (from, to, both_ways): (u32, u32, bool),
) -> Result<impl Iterator<Item = BrokenLink>, SpecError> {
    let position = position(spec, option, ranks, from, to)?;
    let onward = Direction::BOTH[usize::from(position != from)];
    let directions = Direction::BOTH.into_iter();
    let cut = directions.filter(move |direction| both_ways || *direction == onward);
    Ok(cut.map(move |direction| BrokenLink {
        position,
        direction,
    }))
}

/// Returns the position of the links between two neighbours: the rank whose clockwise neighbour is
/// the other rank. On a ring of two ranks, the order decides: for `first` 0 and `second` 1 the
/// position is 0, and for `first` 1 and `second` 0 the position is 1.
fn position(
    spec: &Spec,
    option: &str,
    ranks: u32,
    first: u32,
    second: u32,
) -> Result<u32, SpecError> {
    if first.max(second) >= ranks {
        let problem = format!("ranks are below {ranks}");
        return Err(spec.refuse(option, problem));
    }
    if ranks > 1 && (first + 1) % ranks == second {
        Ok(first)
    } else if ranks > 1 && (second + 1) % ranks == first {
        Ok(second)
    } else {
        Err(spec.refuse(option, format!("{first} and {second} are not neighbours")))
    }
}

/// Formats broken links such that [`read_broken`] parses them.
pub(super) fn print_broken(broken: &[BrokenLink], ranks: u32) -> String {
    let places = broken.chunk_by(|link, next| link.position == next.position);
    let items: Vec<String> = places
        .map(|place| {
            let position = place[0].position;
            let direction = match place {
                [link] => link.direction.name(),
                _ => "",
            };
            format!("{position}-{}{direction}", (position + 1) % ranks)
        })
        .collect();
    items.join("+")
}
