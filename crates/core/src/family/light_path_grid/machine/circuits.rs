//! Messages over light paths, slot by slot: they take latency + bytes / rate.

use super::{LIGHT, LightPathGrid, PortsLight};
use crate::fabric::circuits::{Change, Charge, Circuits, Lines, Message, Sharing};
use crate::fabric::light::{Hop, LightKind};
use crate::units::{Rate, UnitError};

impl Circuits for LightPathGrid {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn policies(&self) -> &'static [&'static str] {
        &["establish_release", "every_step", "free"]
    }

    /// Ports: a row for each port of a rank.
    fn lines(&self) -> Lines {
        Lines {
            row: "port",
            rows: self.ports,
            ranks: self.ranks,
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
            let light = PortsLight::from(hop.light);
            hop.from.max(hop.to) < self.ranks
                && u32::from(light.source_port) < self.ports
                && u32::from(light.destination_port) < self.ports
        };
        let wrong = hops.iter().position(|hop| !exists(hop))?;
        Some((wrong, "a rank or one of its ports does not exist"))
    }

    fn charge(&self, policy: &str) -> Result<Charge, &'static str> {
        match policy {
            "every_step" => Ok(Charge::Groups { each_slot: true }),
            "establish_release" => Ok(Charge::Groups { each_slot: false }),
            "free" => Ok(Charge::Never),
            _ => Err(
                "on a light_path_grid use establish_release (by groups of slots), every_step or free",
            ),
        }
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            set_up: self.establish,
            release: self.release,
            once: None,
        })
    }

    fn measure(&self, messages: &mut [Message]) -> Result<(), UnitError> {
        for message in messages {
            let port = u32::from(PortsLight::from(message.hop.light).source_port);
            let line = port * self.ranks + message.hop.from;
            message.taken = self.latency.plus(message.sending)?;
            message.busy = message.sending;
            message.lines = [line..line + 1, 0..0];
        }
        Ok(())
    }

    fn ports(&self, hops: &[Hop]) -> Vec<[(u32, u32); 2]> {
        let ports = |hop: &Hop| {
            let light = PortsLight::from(hop.light);
            [
                (hop.from, light.source_port.into()),
                (hop.to, light.destination_port.into()),
            ]
        };
        hops.iter().map(ports).collect()
    }
}
