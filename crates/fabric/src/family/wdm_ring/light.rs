//! Light of a lightpath around the ring, and the assignment of channels to its rotations.
//!
//! Channels are numbered fibre by fibre: `fibre * wavelengths + wavelength`.

use super::{Direction, WdmRing};
pub use crate::fabric::light::CONVERTED;
use crate::fabric::light::{Hop, Light, LightField, LightKind, NumberedChannels, PACKET, Rotation};

/// Format of the light of a lightpath: direction, fibre and wavelength.
pub const LIGHT: LightKind = LightKind {
    // Only servers joined by light have a packet network. On a plain fabric, the light has a fibre
    // that does not exist.
    words: &[(PACKET, Light(0x1ff_ffff))],
    form: "{direction} {fibre}.{wavelength}",
    example: "cw 0.12",
    relays: false,
    fields: &[
        LightField::new("direction", 1, "the direction around the ring").names(&[
            Direction::Clockwise.name(),
            Direction::CounterClockwise.name(),
        ]),
        LightField::new("fibre", 8, "the fibre of that direction").shifts(),
        LightField::new(
            "wavelength",
            16,
            "the wavelength on that fibre; `*`: converters may change it at every rank",
        )
        .star()
        .shifts(),
    ],
};

/// Light of a lightpath around the ring: direction, fibre and wavelength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WdmLight {
    /// Direction around the ring.
    pub direction: Direction,
    /// Index of the fibre in this direction.
    pub fibre: u8,
    /// Index of the wavelength on this fibre, or [`CONVERTED`].
    pub wavelength: u16,
}

impl From<Light> for WdmLight {
    #[inline]
    fn from(Light(word): Light) -> WdmLight {
        WdmLight {
            direction: Direction::BOTH[(word >> 24 & 1) as usize],
            fibre: (word >> 16) as u8,
            wavelength: word as u16,
        }
    }
}

impl From<WdmLight> for Light {
    #[inline]
    fn from(light: WdmLight) -> Light {
        let direction = (light.direction as u32) << 24;
        Light(direction | u32::from(light.fibre) << 16 | u32::from(light.wavelength))
    }
}

impl WdmLight {
    /// Returns light in `direction` on the first channel, before a channel is assigned.
    pub fn towards(direction: Direction) -> Light {
        Light::from(WdmLight {
            direction,
            fibre: 0,
            wavelength: 0,
        })
    }

    /// Returns light in the opposite direction on the same fibre and wavelength.
    pub const fn opposite(self) -> WdmLight {
        WdmLight {
            direction: self.direction.opposite(),
            ..self
        }
    }
}

impl WdmRing {
    /// Returns light in `direction` on the usable channel with number `channel`. On rings with
    /// converters, the wavelength is [`CONVERTED`].
    pub fn light(&self, direction: Direction, channel: u32) -> Light {
        let (fibre, wavelength) = self.channel(channel);
        Light::from(WdmLight {
            direction,
            fibre,
            wavelength: match self.converters {
                true => CONVERTED,
                false => wavelength,
            },
        })
    }

    /// Returns the light with wavelength [`CONVERTED`] for each fibre in `direction`.
    pub fn converted(&self, direction: Direction) -> impl Iterator<Item = WdmLight> {
        (0..self.fibres).map(move |fibre| WdmLight {
            direction,
            fibre: fibre as u8,
            wavelength: CONVERTED,
        })
    }

    /// Returns the index of the light's channel among the usable channels. Returns `None` if the
    /// ring has no such channel.
    pub fn usable_channel(&self, light: Light) -> Option<u32> {
        let number = self.channel_number(light)?;
        let numbers = self
            .dead
            .iter()
            .map(|dead| dead.fibre * self.wavelengths + dead.wavelength);
        let dead_before = numbers.filter(|dead| *dead < number).count();
        Some(number - dead_before as u32)
    }

    /// Returns `light` with its usable channel number increased by `by`.
    pub fn shift_usable_channel(&self, light: Light, by: u32) -> Light {
        let lightpath = WdmLight::from(light);
        self.usable_channel(light).map_or(light, |channel| {
            let (fibre, wavelength) = self.channel(channel + by);
            Light::from(WdmLight {
                fibre,
                wavelength,
                ..lightpath
            })
        })
    }

    /// Returns `light` on the channel with number `channel`. If the channel does not exist, the
    /// result has a wavelength that does not exist.
    fn on_channel(&self, light: WdmLight, channel: u32) -> Light {
        let fibre = (channel / self.wavelengths).min(self.fibres - 1);
        let wavelength = channel - fibre * self.wavelengths;
        Light::from(WdmLight {
            fibre: fibre as u8,
            wavelength: wavelength.min(u32::from(CONVERTED) - 1) as u16,
            ..light
        })
    }
}

impl NumberedChannels for WdmRing {
    /// Returns the channel number of `light`. Returns `None` if the wavelength is [`CONVERTED`], or
    /// if the fibre or wavelength does not exist.
    fn channel_number(&self, light: Light) -> Option<u32> {
        let light = WdmLight::from(light);
        let (fibre, wavelength) = (u32::from(light.fibre), u32::from(light.wavelength));
        let exists =
            fibre < self.fibres && wavelength < self.wavelengths && light.wavelength != CONVERTED;
        exists.then_some(fibre * self.wavelengths + wavelength)
    }

    fn shift_channel(&self, light: Light, by: u32) -> Light {
        let lightpath = WdmLight::from(light);
        self.channel_number(light)
            .map_or(light, |channel| self.on_channel(lightpath, channel + by))
    }
}

impl Rotation for WdmRing {
    /// Returns the number of links of the lightpath. Returns 1 for the wavelength [`CONVERTED`],
    /// which occupies no particular channel.
    fn span(&self, hop: &Hop) -> u32 {
        let light = WdmLight::from(hop.light);
        if light.wavelength == CONVERTED {
            return 1;
        }
        let (from, to) = (hop.from % self.ranks, hop.to % self.ranks);
        self.hops(from, to, light.direction).max(1)
    }

    fn rotate_back(&self, light: Light, span: u32, by: u32) -> Option<Light> {
        let lightpath = WdmLight::from(light);
        if lightpath.wavelength == CONVERTED {
            return Some(light);
        }
        let first = self.channel_number(light)?.checked_sub(by)?;
        (first + span <= self.channels()).then(|| self.on_channel(lightpath, first))
    }
}
