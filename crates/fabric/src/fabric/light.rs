//! Light as plans hold it: a word for each transfer, with the fields that the kind of circuit names.
//!
//! The first field has the highest bits, so that words sort as the tuples of their fields do. What a kind
//! looks like in a plan file is its `form`: names of fields in braces, parted by `.` and blanks.
//!
//! ```
//! use opticoll_fabric::family::wdm_ring::{Direction, WdmLight};
//! use opticoll_fabric::fabric::{Fabric, Light};
//! let ring = Fabric::parse("wdm_ring:ranks=4,wavelengths=8")?;
//! let light = Light::from(WdmLight { direction: Direction::Clockwise, fibre: 0, wavelength: 5 });
//! let kind = ring.light().expect("light goes around a ring");
//! assert_eq!(kind.text(light), "cw 0.5");
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

use std::fmt::Write;

/// The light of a transfer: the fields of a [`LightKind`] in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Light(pub u32);

impl Light {
    /// What stands for light where there is none.
    pub const NONE: Light = Light(0);
}

/// A field of light.
#[derive(Debug, PartialEq, Eq)]
pub struct LightField {
    /// The name, also of the column.
    pub name: &'static str,
    /// Its width; numbers beyond what a fabric has are held, for the verifier reports them.
    pub bits: u8,
    /// Names of its values from 0 on; empty where they are numbers.
    pub names: &'static [&'static str],
    /// Whether the greatest value is written `*`: light that has no single value there.
    pub star: bool,
    /// Whether the copies of a repetition may count on in it.
    pub shifts: bool,
    /// What it is, in words.
    pub meaning: &'static str,
}

impl LightField {
    /// The greatest value that is held.
    pub const fn most(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// The greatest number: `*` is none.
    pub const fn most_number(&self) -> u32 {
        self.most() - self.star as u32
    }
}

/// What says how light goes on a fabric.
#[derive(Debug, PartialEq, Eq)]
pub struct LightKind {
    /// How a plan file writes it, such as `{direction} {fibre}.{wavelength}`.
    pub form: &'static str,
    /// Light that is written so.
    pub example: &'static str,
    /// Whether ranks may relay transfers with light of their own.
    pub relays: bool,
    /// The fields in the order of [`LightKind::form`], at most [`MOST_FIELDS`].
    pub fields: &'static [LightField],
    /// Light that is a word in place of its form.
    pub words: &'static [(&'static str, Light)],
}

/// The most fields of a kind of light.
pub const MOST_FIELDS: usize = 4;

/// A transfer, or a part of its way: light from one rank to another in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// The light that carries it.
    pub light: Light,
    /// The slot.
    pub slot: u32,
}

/// Channels side by side, numbered one after the other: a lightpath on one of them could be on any other.
pub trait NumberedChannels {
    /// The number of the channel of light; none where it is on no channel of the fabric.
    fn channel_number(&self, light: Light) -> Option<u32>;

    /// Light `by` channels further; light on no channel of the fabric stays.
    fn further(&self, light: Light, by: u32) -> Light;
}

/// What a rotation of the ranks does to light, on fabrics that look the same from every rank.
pub trait Rotation: NumberedChannels {
    /// On how many channels side by side the rotations of a hop are.
    fn span(&self, hop: &Hop) -> u32;

    /// Light `by` channels back, where the `span` channels from there on exist.
    fn turn_back(&self, light: Light, span: u32, by: u32) -> Option<Light>;
}

impl LightKind {
    /// The bits below a field.
    const fn shift(&self, field: usize) -> u32 {
        let (mut shift, mut below) = (0, field + 1);
        while below < self.fields.len() {
            shift += self.fields[below].bits as u32;
            below += 1;
        }
        shift
    }

    /// The bits of a field.
    const fn bits(&self, field: usize) -> u32 {
        self.fields[field].most() << self.shift(field)
    }

    /// The value of a field.
    pub const fn value(&self, light: Light, field: usize) -> u32 {
        light.0 >> self.shift(field) & self.fields[field].most()
    }

    /// The same light with another value of a field, which must hold it.
    pub const fn with(&self, light: Light, field: usize, value: u32) -> Light {
        Light(light.0 & !self.bits(field) | value << self.shift(field))
    }

    /// The bits of the fields that `wanted` picks.
    pub fn mask(&self, wanted: impl Fn(&LightField) -> bool) -> u32 {
        let fields = (0..self.fields.len()).filter(|&field| wanted(&self.fields[field]));
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// The bits of the fields that are written in words before the last.
    pub fn leading(&self) -> u32 {
        let words = self.form.rsplit_once(' ').map_or("", |(words, _)| words);
        let fields = 0..words.matches('{').count();
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// Appends light as a plan file writes it.
    pub fn write(&self, light: Light, text: &mut String) {
        if let Some((word, _)) = self.words.iter().find(|(_, one)| *one == light) {
            return text.push_str(word);
        }
        let mut form = self.form;
        for (index, field) in self.fields.iter().enumerate() {
            let (before, rest) = form.split_once('{').unwrap_or((form, ""));
            form = rest.split_once('}').map_or("", |(_, rest)| rest);
            text.push_str(before);
            let value = self.value(light, index);
            match field.names.get(value as usize) {
                Some(name) => text.push_str(name),
                None if field.star && value == field.most() => text.push('*'),
                None => {
                    let _ = write!(text, "{value}");
                }
            }
        }
    }

    /// Light as a plan file writes it.
    pub fn text(&self, light: Light) -> String {
        let mut text = String::new();
        self.write(light, &mut text);
        text
    }
}
