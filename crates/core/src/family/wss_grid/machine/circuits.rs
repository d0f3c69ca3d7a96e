//! Bursts through the switches, slot by slot: they take latency + bytes / rate, and before that
//! 2 control + tuning + lock where the laser is tuned.

use super::{LIGHT, TunedLight, WssGrid};
use crate::fabric::circuits::{Change, Charge, Circuits, Lines, Message, Sharing};
use crate::fabric::light::{Hop, LightKind};
use crate::units::{Rate, Time, UnitError};

impl Circuits for WssGrid {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn policies(&self) -> &'static [&'static str] {
        &["two_tier", "every_step", "free"]
    }

    /// Transmitters: a row for each plane.
    fn lines(&self) -> Lines {
        Lines {
            row: "plane",
            rows: 2,
            ranks: self.ranks(),
        }
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn sharing(&self) -> Sharing {
        Sharing::SameCircuit
    }

    fn refused(&self, hops: &[Hop]) -> Option<(usize, &'static str)> {
        let exists = |hop: &Hop| {
            let light = TunedLight::from(hop.light);
            hop.from.max(hop.to) < self.ranks()
                && light.plane < 2
                && u32::from(light.wavelength) < self.wavelengths
        };
        let wrong = hops.iter().position(|hop| !exists(hop))?;
        Some((
            wrong,
            "a rank, its transceiver or wavelength does not exist",
        ))
    }

    fn charge(&self, policy: &str) -> Result<Charge, &'static str> {
        match policy {
            "every_step" => Ok(Charge::EachCircuit),
            "two_tier" => Ok(Charge::ChangedCircuit),
            "free" => Ok(Charge::Never),
            _ => Err(
                "on a wss_grid use two_tier (tune where the circuit changes), every_step or free",
            ),
        }
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            set_up: self.control.times(2)?.plus(self.tuning)?.plus(self.lock)?,
            release: Time::ZERO,
            once: Some(self.slow_switch),
        })
    }

    fn measure(&self, messages: &mut [Message]) -> Result<(), UnitError> {
        let ranks = self.ranks();
        for message in messages {
            let plane = u32::from(TunedLight::from(message.hop.light).plane);
            let line = plane * ranks + message.hop.from;
            message.taken = self.latency.plus(message.sending)?;
            message.busy = message.sending;
            message.lines = [line..line + 1, 0..0];
        }
        Ok(())
    }
}
