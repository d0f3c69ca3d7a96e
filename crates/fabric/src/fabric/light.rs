//! Light: properties of a transfer's lightpath, such as direction, fibre and wavelength, packed
//! into a 32-bit word. The family of the fabric determines the fields of the word.
//!
//! The first field has the highest bits, so words sort like the tuples of their fields.
//! [`LightKind::form`] describes the text of light in plan files: names of fields in braces,
//! separated by `.` and blanks.
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

/// Light of a transfer: properties of the lightpath, such as direction, fibre and wavelength. A
/// [`LightKind`] defines the fields that are packed into the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Light(pub u32);

impl Light {
    /// Value for transfers over electrical links, which have no light.
    pub const NONE: Light = Light(0);
}

/// Field of [`Light`], such as the wavelength.
#[derive(Debug, PartialEq, Eq)]
pub struct LightField {
    /// Name of the field and of its column in tables.
    pub name: &'static str,
    /// Width in bits. The field can also represent values that do not exist on the fabric, so that
    /// the verifier can report them.
    pub bits: u8,
    /// Names of the values, indexed by value. Empty if values are printed as numbers.
    pub names: &'static [&'static str],
    /// True if the maximum value is printed as `*`, which means that the field has no single value.
    pub star: bool,
    /// True if the field may increase from copy to copy of a repetition in a plan.
    pub shifts: bool,
    /// Meaning of the field, in words.
    pub meaning: &'static str,
}

impl LightField {
    /// Creates a field whose values are printed as numbers.
    pub const fn new(name: &'static str, bits: u8, meaning: &'static str) -> LightField {
        LightField {
            name,
            bits,
            names: &[],
            star: false,
            shifts: false,
            meaning,
        }
    }

    /// Returns the field with names of its values.
    pub const fn names(self, names: &'static [&'static str]) -> LightField {
        LightField { names, ..self }
    }

    /// Returns the field with its maximum value printed as `*`.
    pub const fn star(self) -> LightField {
        LightField { star: true, ..self }
    }

    /// Returns the field as one that may increase from copy to copy of a repetition.
    pub const fn shifts(self) -> LightField {
        LightField {
            shifts: true,
            ..self
        }
    }

    /// Returns the maximum value of the field.
    pub const fn max_value(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    /// Returns the maximum value that is printed as a number: the maximum value of the field, or
    /// the value below if the maximum value is printed as `*`.
    pub const fn max_number(&self) -> u32 {
        self.max_value() - self.star as u32
    }
}

/// Format of [`Light`] in the plans of a fabric.
#[derive(Debug, PartialEq, Eq)]
pub struct LightKind {
    /// Text format of light in plan files, such as `{direction} {fibre}.{wavelength}`.
    pub form: &'static str,
    /// Example of light in this text format.
    pub example: &'static str,
    /// True if relay ranks may forward a transfer, which then uses several circuits.
    pub relays: bool,
    /// Fields in the order of [`LightKind::form`], at most [`MAX_FIELDS`].
    pub fields: &'static [LightField],
    /// Special values of light, and the word by which plan files write each of them.
    pub words: &'static [(&'static str, Light)],
}

/// Declares light as a struct of whole numbers, with the width of each field in bits, the first
/// field in the highest bits, and the conversions from and to [`Light`].
macro_rules! light_numbers {
    ($(#[$about:meta])* pub struct $name:ident {
        $($(#[$meaning:meta])* pub $field:ident: $number:ty = $bits:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            $($(#[$meaning])* pub $field: $number,)+
        }

        impl From<Light> for $name {
            #[inline]
            fn from(Light(word): Light) -> $name {
                let mut below = 0 $(+ $bits)+;
                $(
                    below -= $bits;
                    let $field = (word >> below & ((1 << $bits) - 1)) as $number;
                )+
                $name { $($field,)+ }
            }
        }

        impl From<$name> for Light {
            #[inline]
            fn from(light: $name) -> Light {
                let mut word = 0;
                $(word = word << $bits | u32::from(light.$field);)+
                Light(word)
            }
        }
    };
}
pub(crate) use light_numbers;

/// Wavelength of light that converters may move to any wavelength on every link.
pub const CONVERTED: u16 = u16::MAX;

/// Word for messages over a packet network in plan files.
pub const PACKET: &str = "packet";

/// Maximum number of fields of a [`LightKind`].
pub const MAX_FIELDS: usize = 4;

/// Circuit of a transfer, or of a part of its route: light from one rank to another rank in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// Properties of the lightpath, such as its wavelength.
    pub light: Light,
    /// Number of the named route that the light takes, or
    /// [`FABRIC_ROUTE`](crate::network::named_routes::FABRIC_ROUTE).
    pub route: u32,
    /// Number of the slot.
    pub slot: u32,
}

/// Numbering of channels, on fabrics where any channel could replace the channel of a lightpath.
pub trait NumberedChannels {
    /// Returns the channel number of `light`, or `None` if the fabric has no such channel.
    fn channel_number(&self, light: Light) -> Option<u32>;

    /// Returns `light` with its channel number increased by `by`. Returns `light` unchanged if the
    /// new channel does not exist.
    fn shift_channel(&self, light: Light, by: u32) -> Light;
}

/// Rule that assigns channels to the rotations of a lightpath, on fabrics that look the same from
/// every rank.
pub trait Rotation: NumberedChannels {
    /// Returns the number of consecutive channels that `hop` and all of its rotations occupy.
    fn span(&self, hop: &Hop) -> u32;

    /// Returns `light` with its channel number decreased by `by`. Returns `None` if the new channel
    /// or one of the `span` - 1 channels after the new channel does not exist.
    fn rotate_back(&self, light: Light, span: u32, by: u32) -> Option<Light>;
}

impl LightKind {
    /// Returns the position of the lowest bit of the field with index `field`.
    const fn shift(&self, field: usize) -> u32 {
        let (mut shift, mut below) = (0, field + 1);
        while below < self.fields.len() {
            shift += self.fields[below].bits as u32;
            below += 1;
        }
        shift
    }

    /// Returns the bit mask of the field with index `field`.
    const fn bits(&self, field: usize) -> u32 {
        self.fields[field].max_value() << self.shift(field)
    }

    /// Returns the value of the field with index `field` in `light`.
    pub const fn value(&self, light: Light, field: usize) -> u32 {
        light.0 >> self.shift(field) & self.fields[field].max_value()
    }

    /// Returns the light of messages over a packet network, which use no circuit. Returns `None` if
    /// plans cannot name such messages.
    pub fn packet(&self) -> Option<Light> {
        let packet = self.words.iter().find(|(word, _)| *word == PACKET);
        packet.map(|(_, light)| *light)
    }

    /// Returns `light` with the field of index `field` set to `value`, which must fit in the field.
    pub const fn with(&self, light: Light, field: usize, value: u32) -> Light {
        Light(light.0 & !self.bits(field) | value << self.shift(field))
    }

    /// Returns the bit mask of all fields for which `wanted` is true.
    pub fn mask(&self, wanted: impl Fn(&LightField) -> bool) -> u32 {
        let fields = (0..self.fields.len()).filter(|&field| wanted(&self.fields[field]));
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// Returns the bit mask of the fields before the last blank of [`LightKind::form`].
    pub fn leading(&self) -> u32 {
        let words = self.form.rsplit_once(' ').map_or("", |(words, _)| words);
        let fields = 0..words.matches('{').count();
        fields.fold(0, |mask, field| mask | self.bits(field))
    }

    /// Appends the text of `light`, as in plan files.
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

    /// Returns the text of `light`, as in plan files.
    pub fn text(&self, light: Light) -> String {
        let mut text = String::new();
        self.write(light, &mut text);
        text
    }
}
