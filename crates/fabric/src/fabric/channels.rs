//! Channels of fibres: wavelengths that have failed or have a reduced rate.
//!
//! `dead=5` is wavelength 5 on every fibre; `dead=1.5` is wavelength 5 on fibre 1 of every link.
//! `degraded=w5@10Gb/s` or `w1.5@10Gb/s` reduces the rate of a wavelength in the same way. Several
//! items are joined by `+`.

use std::collections::BTreeMap;

use opticoll_base::names::terminal_text;
use opticoll_base::spec::{Spec, SpecError, whole_number};
use opticoll_base::units::Rate;

/// Channel of a fibre, on all links of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// Index of the fibre among the parallel fibres of every link.
    pub fibre: u32,
    /// Index of the wavelength.
    pub wavelength: u32,
}

/// Returns (fibre, wavelength) of the usable channel with index `index`. Usable channels are
/// numbered from 0, fibre by fibre, without the channels `dead`, which are sorted.
pub(crate) fn usable(index: u32, wavelengths: u32, dead: &[Channel]) -> (u8, u16) {
    let mut place = index;
    for dead in dead {
        if dead.fibre * wavelengths + dead.wavelength <= place {
            place += 1;
        }
    }
    ((place / wavelengths) as u8, (place % wavelengths) as u16)
}

/// Returns the number of usable wavelengths of the fibre with index `fibre`.
pub(crate) fn usable_wavelengths(fibre: u32, wavelengths: u32, dead: &[Channel]) -> u32 {
    let dead = dead.iter().filter(|dead| dead.fibre == fibre);
    wavelengths - dead.count() as u32
}

/// Returns the wavelength that an item of the option `degraded` names, such as `5` in `w5`. Returns
/// `None` if the item does not name a wavelength.
pub(crate) fn wavelength_named(item: &str) -> Option<&str> {
    item.strip_prefix("wavelength ").or(item.strip_prefix('w'))
}

/// Parses the dead channels in the option `dead`, sorted and without duplicates.
pub(crate) fn read_dead(
    spec: &Spec,
    (fibres, wavelengths): (u32, u32),
) -> Result<Vec<Channel>, SpecError> {
    let Some(list) = spec.option("dead") else {
        return Ok(Vec::new());
    };
    let mut dead = Vec::new();
    for item in list.split('+') {
        dead.extend(parse(spec, "dead", item, (fibres, wavelengths))?);
    }
    dead.sort_unstable();
    dead.dedup();
    if dead.len() as u64 == u64::from(fibres) * u64::from(wavelengths) {
        return Err(spec.refuse("dead", "no wavelength is left"));
    }
    Ok(dead)
}

/// Parses the channels of `5` (wavelength 5, all fibres) or `1.5` (wavelength 5, fibre 1).
pub(crate) fn parse(
    spec: &Spec,
    option: &str,
    item: &str,
    (fibres, wavelengths): (u32, u32),
) -> Result<impl Iterator<Item = Channel>, SpecError> {
    let number = |text: &str, what: &str, count: u32| match whole_number(text) {
        Some(number) if number < count => Ok(number),
        Some(_) => Err(spec.refuse(option, format!("{what} count from 0 and are below {count}"))),
        None => Err(spec.refuse(
            option,
            format!(
                "`{}` is not a whole number; expected wavelengths such as 5, or fibre.5",
                terminal_text(text)
            ),
        )),
    };
    let (on, wavelength) = match item.split_once('.') {
        Some((fibre, wavelength)) => {
            let fibre = number(fibre, "fibres", fibres)?;
            (fibre..fibre + 1, wavelength)
        }
        None => (0..fibres, item),
    };
    let wavelength = number(wavelength, "wavelengths", wavelengths)?;
    Ok(on.map(move |fibre| Channel { fibre, wavelength }))
}

/// Formats dead channels such that [`read_dead`] parses them.
pub(crate) fn print_dead(dead: &[Channel], fibres: u32) -> String {
    let on_all = |wavelength: u32| {
        let on = dead
            .iter()
            .filter(|channel| channel.wavelength == wavelength);
        on.count() as u32 == fibres
    };
    let items: Vec<String> = dead
        .iter()
        .filter(|channel| channel.fibre == 0 || !on_all(channel.wavelength))
        .map(|channel| {
            if on_all(channel.wavelength) {
                channel.wavelength.to_string()
            } else {
                format!("{}.{}", channel.fibre, channel.wavelength)
            }
        })
        .collect();
    items.join("+")
}

/// Returns the items of the option `degraded` for slower channels, such as `w1.5@10Gb/s`.
pub(crate) fn slower_texts(slower: &BTreeMap<Channel, Rate>) -> impl Iterator<Item = String> {
    let items = slower.iter();
    items.map(|(channel, rate)| format!("w{}.{}@{rate}", channel.fibre, channel.wavelength))
}
