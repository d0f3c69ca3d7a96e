//! Light of tunable circuits: plane and wavelength.

use super::Plane;
use crate::fabric::light::{Light, LightField, LightKind, light_numbers};

/// Format of the light of a burst: plane and wavelength.
pub const LIGHT: LightKind = LightKind {
    words: &[],
    form: "{plane}.{wavelength}",
    example: "row.3",
    relays: true,
    fields: &[
        LightField::new("plane", 8, "the switches that the light passes")
            .names(&[Plane::Row.name(), Plane::Column.name()]),
        LightField::new(
            "wavelength",
            16,
            "the wavelength to which the laser is tuned",
        )
        .shifts(),
    ],
};

light_numbers! {
    /// Light of a burst: plane and wavelength.
    pub struct TunedLight {
        /// Index of the plane; see [`Plane::numbered`].
        pub plane: u8 = 8,
        /// Index of the wavelength to which the laser is tuned.
        pub wavelength: u16 = 16,
    }
}
