//! What of a ring is out of order: links that are cut, and wavelengths that nobody can use.
//!
//! `broken=3-4` is a cable cut between ranks 3 and 4: nothing goes through in either direction, on
//! any fibre. `3-4cw` and `3-4ccw` are one direction of it. `dead=5` is wavelength 5 on every fibre,
//! `dead=1.5` the same on fibre 1 of each direction, on the whole ring. Several are joined by `+`.
//!
//! `without` has the words of fabrics with links: `3-4`, `3>4` or `rank 3 <-> rank 4` for cuts, `5` or `rank 5` for a rank
//! that failed.

use super::Direction;
use crate::fabric::part;
use crate::names::shown;
use crate::spec::{Spec, SpecError, whole};

/// A direction of the ring that nothing crosses between two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokenLink {
    /// The lower of the two neighbours, or N - 1 for the pair of N - 1 and 0.
    pub position: u32,
    /// The way that is cut.
    pub direction: Direction,
}

/// A wavelength that cannot be used on a fibre of either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadChannel {
    /// The fibre of each direction.
    pub fibre: u32,
    /// The wavelength.
    pub wavelength: u32,
}

/// A rank by its number or name.
fn rank(text: &str) -> Option<u32> {
    whole(text.strip_prefix("rank ").unwrap_or(text))
}

/// The items listed under `without`.
fn without(spec: &Spec) -> impl Iterator<Item = &str> {
    let list = spec.option("without").into_iter();
    list.flat_map(|list| list.split('+')).map(str::trim)
}

/// The ranks listed under `without`, in order and each once.
pub(super) fn read_failed(spec: &Spec, ranks: u32) -> Result<Vec<u32>, SpecError> {
    let refuse = |problem: &str| Err(spec.refuse("without", problem));
    let mut failed = Vec::new();
    for item in without(spec).filter(|item| part::ends_of(item, rank).is_none()) {
        match rank(item) {
            Some(rank) if rank < ranks => failed.push(rank),
            Some(rank) => {
                return refuse(&format!("there is no rank {rank}; ranks are below {ranks}"));
            }
            None => {
                let item = shown(item);
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

/// The links listed under `broken` and `without`, in order and each once.
pub(super) fn read_broken(spec: &Spec, ranks: u32) -> Result<Vec<BrokenLink>, SpecError> {
    let mut broken = Vec::new();
    for (from, to, both_ways) in without(spec).filter_map(|item| part::ends_of(item, rank)) {
        let position = position(spec, "without", ranks, from, to)?;
        let onward = Direction::BOTH[usize::from(position != from)];
        let directions = Direction::BOTH.into_iter();
        let cut = directions.filter(|direction| both_ways || *direction == onward);
        broken.extend(cut.map(|direction| BrokenLink {
            position,
            direction,
        }));
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
            .and_then(|(one, other)| Some((whole(one)?, whole(other)?)))
            .ok_or_else(|| {
                spec.refuse(
                    "broken",
                    format!(
                        "`{}` is no pair of neighbours such as 3-4, 3-4cw or 3-4ccw",
                        shown(item)
                    ),
                )
            })
            .and_then(|(one, other)| position(spec, "broken", ranks, one, other))?;
        broken.extend(directions.iter().map(|&direction| BrokenLink {
            position,
            direction,
        }));
    }
    broken.sort_unstable();
    broken.dedup();
    Ok(broken)
}

/// The place between two neighbours. On a ring of two, 0-1 and 1-0 are its two places.
fn position(spec: &Spec, option: &str, ranks: u32, one: u32, other: u32) -> Result<u32, SpecError> {
    if one.max(other) >= ranks {
        let problem = format!("ranks are below {ranks}");
        return Err(spec.refuse(option, problem));
    }
    if ranks > 1 && (one + 1) % ranks == other {
        Ok(one)
    } else if ranks > 1 && (other + 1) % ranks == one {
        Ok(other)
    } else {
        Err(spec.refuse(option, format!("{one} and {other} are no neighbours")))
    }
}

/// The channels listed under `dead`, in order and each once.
pub(super) fn read_dead(
    spec: &Spec,
    fibres: u32,
    wavelengths: u32,
) -> Result<Vec<DeadChannel>, SpecError> {
    let Some(list) = spec.option("dead") else {
        return Ok(Vec::new());
    };
    let number = |text: &str, what: &str, count: u32| match whole(text) {
        Some(number) if number < count => Ok(number),
        Some(_) => Err(spec.refuse("dead", format!("{what} count from 0 and are below {count}"))),
        None => Err(spec.refuse(
            "dead",
            format!(
                "`{}` is no whole number; expected wavelengths such as 5, or fibre.5",
                shown(text)
            ),
        )),
    };
    let mut dead = Vec::new();
    for item in list.split('+') {
        let (on, wavelength) = match item.split_once('.') {
            Some((fibre, wavelength)) => {
                let fibre = number(fibre, "fibres", fibres)?;
                (fibre..fibre + 1, wavelength)
            }
            None => (0..fibres, item),
        };
        let wavelength = number(wavelength, "wavelengths", wavelengths)?;
        dead.extend(on.map(|fibre| DeadChannel { fibre, wavelength }));
    }
    dead.sort_unstable();
    dead.dedup();
    if dead.len() as u64 == u64::from(fibres) * u64::from(wavelengths) {
        return Err(spec.refuse("dead", "no wavelength is left"));
    }
    Ok(dead)
}

/// As [`read_broken`] reads it.
pub(super) fn print_broken(broken: &[BrokenLink], ranks: u32) -> String {
    let places = broken.chunk_by(|one, other| one.position == other.position);
    let items: Vec<String> = places
        .map(|place| {
            let position = place[0].position;
            let direction = match place {
                [one] => one.direction.name(),
                _ => "",
            };
            format!("{position}-{}{direction}", (position + 1) % ranks)
        })
        .collect();
    items.join("+")
}

/// As [`read_dead`] reads it.
pub(super) fn print_dead(dead: &[DeadChannel], fibres: u32) -> String {
    let on_all = |wavelength: u32| {
        let on = dead.iter().filter(|one| one.wavelength == wavelength);
        on.count() as u32 == fibres
    };
    let items: Vec<String> = dead
        .iter()
        .filter(|one| one.fibre == 0 || !on_all(one.wavelength))
        .map(|one| {
            if on_all(one.wavelength) {
                one.wavelength.to_string()
            } else {
                format!("{}.{}", one.fibre, one.wavelength)
            }
        })
        .collect();
    items.join("+")
}
