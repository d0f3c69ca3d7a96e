//! Circuits of the WDM ring. The time of a lightpath is the propagation delay of its links between
//! nodes, plus the time to transmit and convert its bytes ([`Transmission`]).

use super::{CONVERTED, Direction, LIGHT, WdmLight, WdmRing};
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, RingShape, Tuning, wavelength_policies,
};
use crate::fabric::light::{Hop, LightKind, NumberedChannels, Rotation};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::fabric::{Light, Transmission};
use crate::network::named_routes::NamedRoutes;
use opticoll_base::units::{Time, UnitError};

impl Circuits for WdmRing {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        Some(self)
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

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        wavelength_policies(self.converters)
    }

    /// Returns two rows of lines: row 0 contains the clockwise links, row 1 the counter-clockwise
    /// links. Line i of a row is the link that starts at rank i.
    fn lines(&self) -> Lines {
        Lines {
            shape: [("direction", 2), ("rank", self.ranks)],
            channels: self.fibres * self.wavelengths,
            capacity: Capacity::Slots(self.channels()),
            held_for_delay: true,
        }
    }

    fn transmission(&self) -> Transmission {
        Transmission {
            rate: self.rate,
            conversion: self.conversion,
            flit: self.flit,
            packet: self.packet,
        }
    }

    fn delay(&self) -> Result<Time, UnitError> {
        let spans = (1..self.ranks).filter_map(|rank| {
            let both = Direction::BOTH.map(|direction| self.span(0, rank, direction));
            both.into_iter().min().filter(|span| self.reaches(*span))
        });
        self.propagation.times(spans.max().unwrap_or(0).into())
    }

    fn transmission_of(&self, hop: &Hop, _routes: &NamedRoutes) -> Transmission {
        Transmission {
            rate: self.rate_of(hop.from, hop.to, WdmLight::from(hop.light)),
            ..self.transmission()
        }
    }

    fn is_degraded(&self) -> bool {
        self.degraded.has_slower_parts()
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.budget
    }

    fn losses(&self, hop: &Hop, _routes: &NamedRoutes, splits: u32) -> Vec<PassedLoss> {
        let budget = self.budget.as_ref();
        budget.map_or_else(Vec::new, |budget| self.losses_of(budget, hop, splits))
    }

    fn splits(&self, tree: &[Hop], _routes: &NamedRoutes) -> Vec<u32> {
        self.splits_before(tree)
    }

    fn sharing(&self) -> LightSharing {
        match self.multicast {
            true => LightSharing::Tree {
                light: u32::MAX,
                branches: false,
            },
            false => LightSharing::SameCircuit,
        }
    }

    fn has_channel(&self, light: Light) -> bool {
        WdmLight::from(light).wavelength != CONVERTED
    }

    fn fibre(&self, light: Light) -> Option<(u32, u32)> {
        let fibre = u32::from(WdmLight::from(light).fibre);
        self.converters.then(|| (fibre, self.wavelengths_of(fibre)))
    }

    fn other_policies(&self) -> &'static str {
        match self.converters {
            true => "with converters a lightpath has no wavelength of its own; use on_change",
            false => {
                "two_tier is for the tunable lasers of a wss_grid, setup_teardown for the \
                 ports of a lightpath_grid; on a ring use per_port or on_change"
            }
        }
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.reconfiguration,
            ..Change::default()
        })
    }

    fn circuit(&self, hop: &Hop, _routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let absent = |problem| Err(NoCircuit::Absent(problem));
        let Hop { from, to, .. } = *hop;
        if from.max(to) >= self.ranks {
            return absent("an end is not a rank");
        }
        let light = WdmLight::from(hop.light);
        let converted = self.converters && light.wavelength == CONVERTED;
        let has_wavelength = converted || u32::from(light.wavelength) < self.wavelengths;
        if u32::from(light.fibre) >= self.fibres || !has_wavelength {
            return absent("its channel does not exist");
        }
        let links = self.hops(from, to, light.direction);
        // The counter-clockwise links of the lightpath start at the ranks after the
        // destination, up to the source.
        let (row, first) = match light.direction {
            Direction::Clockwise => (0, from),
            Direction::CounterClockwise if to + 1 == self.ranks => (self.ranks, 0),
            Direction::CounterClockwise => (self.ranks, to + 1),
        };
        let to_end = links.min(self.ranks - first);
        Ok(Circuit {
            delay: self
                .propagation
                .times(self.span(from, to, light.direction).into())?,
            lines: [row + first..row + first + to_end, row..row + links - to_end].into(),
        })
    }

    /// Assigns the ring resonators for the lightpath's channel at both ends. If the ring limits the
    /// ports of a rank, assigns any port of the rank instead; each port can be tuned to any
    /// channel.
    fn tuning(&self, hop: &Hop, _routes: &NamedRoutes) -> Tuning {
        let channels = self.fibres * self.wavelengths;
        let light = WdmLight::from(hop.light);
        let channel = u32::from(light.fibre) * self.wavelengths + u32::from(light.wavelength);
        let tuned = u64::from(light.direction as u32 * channels + channel);
        let is_converted = light.wavelength == CONVERTED;
        // Converted light may take any wavelength of its fibre.
        let resonators = match is_converted {
            true => self.wavelengths_of(light.fibre.into()),
            false => 1,
        };
        let port = |rank: u32, end: u64, other: u32| {
            let ports = u64::from(rank) << 1 | end;
            // Resonators have consecutive numbers. Resonators for light that changes its
            // wavelength have a separate range of numbers.
            let resonator = match is_converted {
                false => ports * 2 * u64::from(channels) + tuned,
                true => 1 << 63 | ports << 32 | tuned,
            };
            Port {
                pool: self.ports.map_or(resonator, |_| ports),
                size: self.ports.unwrap_or(resonators),
                state: u64::from(other) << 32 | tuned,
            }
        };
        Tuning {
            is_fixed: false,
            transmitter: port(hop.from, 0, hop.to),
            receiver: port(hop.to, 1, hop.from),
            channel,
            plane: 0,
        }
    }
}
