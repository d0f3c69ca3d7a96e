//! Light of a plan's transfers: a 32-bit word for each transfer, with the fields of the kind of
//! circuit.
//!
//! The first field has the highest bits, so words sort like the tuples of their fields. The `form`
//! of a kind describes its text in plan files: names of fields in braces, separated by `.` and
//! blanks.
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

/// Light of a transfer: the fields of a [`LightKind`] in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Light(pub u32);

impl Light {
    /// Value for transfers without light, on fabrics with links.
    pub const NONE: Light = Light(0);
}

/// Field of light.
#[derive(Debug, PartialEq, Eq)]
pub struct LightField {
    /// Name of the field and of its column in tables.
    pub name: &'static str,
    /// Width in bits. The field also holds values that the fabric does not have, because the
    /// verifier reports them.
    pub bits: u8,
    /// Names of the values from 0 on; empty if the values are printed as numbers.
    pub names: &'static [&'static str],
    /// True if the greatest value is written as `*`, which means light without a single value in
    /// this field.
    pub star: bool,
    /// True if this field may count up along the copies of a repetition.
    pub shifts: bool,
    /// Meaning of the field, in words.
    pub meaning: &'static str,
}

impl LightField {
    /// Returns the greatest value of the field.
    pub const fn max_value(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// Returns the greatest number of the field, which excludes `*`.
    pub const fn max_number(&self) -> u32 {
        self.max_value() - self.star as u32
    }
}

/// Format of the light of a fabric's plans.
#[derive(Debug, PartialEq, Eq)]
pub struct LightKind {
    /// Text form in plan files, such as `{direction} {fibre}.{wavelength}`.
    pub form: &'static str,
    /// Example of light in this form.
    pub example: &'static str,
    /// True if other ranks may relay a transfer over several circuits, each with its own light.
    pub relays: bool,
    /// Fields in the order of [`LightKind::form`], at most [`MAX_FIELDS`].
    pub fields: &'static [LightField],
    /// Light that is written as a word instead of the form.
    pub words: &'static [(&'static str, Light)],
}

/// Maximum number of fields of a kind of light.
pub const MAX_FIELDS: usize = 4;

/// Transfer, or part of the route of a transfer: light from one rank to another in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives.
    pub to: u32,
    /// Light that carries the data.
    pub light: Light,
    /// Slot.
    pub slot: u32,
}

/// Consecutive numbers of channels, on fabrics where a lightpath could use any channel instead of
/// its own.
pub trait NumberedChannels {
    /// Returns the number of the channel of light, or `None` if the fabric has no such channel.
    fn channel_number(&self, light: Light) -> Option<u32>;

    /// Returns light moved up by `by` channels. Returns `light` unchanged if the fabric has no such
    /// channel.
    fn shift_channel(&self, light: Light, by: u32) -> Light;
}

/// Effect of a rotation of the ranks on light, on fabrics that look the same from every rank.
pub trait Rotation: NumberedChannels {
    /// Returns the number of consecutive channels that the rotations of a hop occupy.
    fn span(&self, hop: &Hop) -> u32;

    /// Returns light moved down by `by` channels, or `None` if the fabric lacks one of the `span`
    /// channels from there on.
    fn rotate_back(&self, light: Light, span: u32, by: u32) -> Option<Light>;
}

impl LightKind {
    /// Returns the number of bits below a field.
    const fn shift(&self, field: usize) -> u32 {
        let (mut shift, mut below) = (0, field + 1);
        while below < self.fields.len() {
            shift += self.fields[below].bits as u32;
            below += 1;
        }
        shift
    }

    /// Returns the mask of a field.
    const fn bits(&self, field: usize) -> u32 {
        self.fields[field].max_value() << self.shift(field)
    }

    /// Returns the value of a field.
    pub const fn value(&self, light: Light, field: usize) -> u32 {
        light.0 >> self.shift(field) & self.fields[field].max_value()
    }

    /// Returns the light with another value of a field. The value must fit in the field.
    pub const fn with(&self, light: Light, field: usize, value: u32) -> Light {
        Light(light.0 & !self.bits(field) | value << self.shift(field))
    }

    /// Returns the mask of all fields for which `wanted` is true.
    pub fn mask(&self, wanted: impl Fn(&LightField) -> bool) -> u32 {
        let fields = (0..self.fields.len()).filter(|&field| wanted(&self.fields[field]));
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// Returns the mask of the fields that the form writes before its last blank.
    pub fn leading(&self) -> u32 {
        let words = self.form.rsplit_once(' ').map_or("", |(words, _)| words);
        let fields = 0..words.matches('{').count();
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// Appends the text of light in plan files.
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
                None if field.star && value == field.max_value() => text.push('*'),
                None => {
                    let _ = write!(text, "{value}");
                }
            }
        }
    }

    /// Returns the text of light in plan files.
    pub fn text(&self, light: Light) -> String {
        let mut text = String::new();
        self.write(light, &mut text);
        text
    }
}
