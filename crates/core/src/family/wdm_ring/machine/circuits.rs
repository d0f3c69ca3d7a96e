//! Lightpaths around the ring, slot by slot: they take conversion + propagation * hops + bytes / rate.

use super::{CONVERTED, Direction, LIGHT, WdmLight, WdmRing};
use crate::fabric::circuits::{Change, Charge, Circuits, Lines, Message, RingShape, Sharing};
use crate::fabric::light::{Hop, LightKind, Rotation};
use crate::units::{Rate, Time, UnitError};

impl Circuits for WdmRing {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn rotation(&self) -> Option<&dyn Rotation> {
        self.is_even().then_some(self)
    }

    fn carries_one_chunk(&self) -> bool {
        true
    }

    fn ring_shape(&self) -> Option<RingShape> {
        Some(RingShape {
            ranks: self.ranks,
            channels: self.channels(),
            longest: self.longest(),
        })
    }

    fn policies(&self) -> &'static [&'static str] {
        &["every_step", "on_change", "per_port", "free"]
    }

    /// Row 0 clockwise, row 1 counter-clockwise; line i of a row is the link that starts at rank i.
    fn lines(&self) -> Lines {
        Lines {
            row: "direction",
            rows: 2,
            ranks: self.ranks,
        }
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn sharing(&self) -> Sharing {
        match self.multicast {
            true => Sharing::Tree,
            false => Sharing::Alone,
        }
    }

    fn refused(&self, hops: &[Hop]) -> Option<(usize, &'static str)> {
        let has_channel = |hop: &Hop| {
            let light = WdmLight::from(hop.light);
            let converted = self.converters && light.wavelength == CONVERTED;
            u32::from(light.fibre) < self.fibres
                && (converted || u32::from(light.wavelength) < self.wavelengths)
        };
        let is_rank = |hop: &Hop| hop.from.max(hop.to) < self.ranks;
        let wrong = hops
            .iter()
            .position(|hop| !(is_rank(hop) && has_channel(hop)))?;
        Some(match is_rank(&hops[wrong]) {
            true => (wrong, "its channel does not exist"),
            false => (wrong, "an end is no rank"),
        })
    }

    fn charge(&self, policy: &str) -> Result<Charge, &'static str> {
        match policy {
            "every_step" => Ok(Charge::EverySlot),
            "on_change" => Ok(Charge::NewSetting),
            "per_port" if self.converters => {
                Err("with converters a lightpath has no wavelength of its own; use on_change")
            }
            "per_port" => Ok(Charge::ChangedPort),
            "free" => Ok(Charge::Never),
            "two_tier" => Err(
                "it is for the tunable lasers of a wss_grid; on a ring use per_port or on_change",
            ),
            _ => {
                Err("it is for the ports of a light_path_grid; on a ring use per_port or on_change")
            }
        }
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            set_up: self.reconfiguration,
            release: Time::ZERO,
            once: None,
        })
    }

    fn measure(&self, messages: &mut [Message]) -> Result<(), UnitError> {
        for message in messages {
            let Hop {
                from, to, light, ..
            } = message.hop;
            let direction = WdmLight::from(light).direction;
            let hops = self.hops(from, to, direction);
            let flight = self.propagation.times(hops.into())?;
            message.taken = self.conversion.plus(flight)?.plus(message.sending)?;
            message.busy = message.taken;
            // Counter-clockwise the links start at the ranks after the destination, up to the source.
            let (row, first) = match direction {
                Direction::Clockwise => (0, from),
                Direction::CounterClockwise if to + 1 == self.ranks => (self.ranks, 0),
                Direction::CounterClockwise => (self.ranks, to + 1),
            };
            let to_end = hops.min(self.ranks - first);
            message.lines = [row + first..row + first + to_end, row..row + hops - to_end];
        }
        Ok(())
    }
}
