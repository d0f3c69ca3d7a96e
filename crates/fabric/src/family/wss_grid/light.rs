//! Light of tunable circuits: plane and wavelength.

use super::Plane;
use crate::fabric::light::{Light, LightField, LightKind};

/// Format of the light of a burst: plane and wavelength.
pub const LIGHT: LightKind = LightKind {
    words: &[],
    form: "{plane}.{wavelength}",
    example: "row.3",
    relays: true,
    fields: &[
        LightField {
            name: "plane",
            bits: 8,
            names: &[Plane::Row.name(), Plane::Column.name()],
            star: false,
            shifts: false,
            meaning: "the switches that the light passes",
        },
        LightField {
            name: "wavelength",
            bits: 16,
            names: &[],
            star: false,
            shifts: true,
            meaning: "the wavelength to which the laser is tuned",
        },
    ],
};

/// Light of a burst: plane and wavelength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TunedLight {
    /// Index of the plane; see [`Plane::numbered`].
    pub plane: u8,
    /// Index of the wavelength to which the laser is tuned.
    pub wavelength: u16,
}

impl From<Light> for TunedLight {
    #[inline]
    fn from(Light(word): Light) -> TunedLight {
        TunedLight {
            plane: (word >> 16) as u8,
            wavelength: word as u16,
        }
    }
}

impl From<TunedLight> for Light {
    #[inline]
    fn from(light: TunedLight) -> Light {
        Light(u32::from(light.plane) << 16 | u32::from(light.wavelength))
    }
}
