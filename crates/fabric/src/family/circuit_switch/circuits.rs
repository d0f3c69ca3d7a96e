//! Circuits of the switch. A message takes the startup time once, and latency + bytes / rate for
//! each circuit. On the packet network, a message takes the latency of this network + bytes / rate.

use super::{CircuitSwitch, FirstConfiguration, Forwarding, LIGHT, SwitchedLight};
use crate::fabric::Transmission;
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, Light, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::network::named_routes::NamedRoutes;
use opticoll_base::units::{Time, UnitError};

impl Circuits for CircuitSwitch {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        &[
            (
                "all_stop",
                ReconfigurationCharge::Groups { each_slot: false },
            ),
            ("planes", ReconfigurationCharge::ChangedPlane),
            ("per_port", ReconfigurationCharge::ChangedPort),
            ("every_step", ReconfigurationCharge::EverySlot),
            ("free", ReconfigurationCharge::Never),
        ]
    }

    /// Returns one line per output port. Row i contains port i of every rank. If there is a packet
    /// network, the last row contains the ports to this network.
    fn lines(&self) -> Lines {
        Lines {
            shape: [
                ("port", self.ports + u32::from(self.packet_rate.is_some())),
                ("rank", self.ranks),
            ],
            channels: 1,
            capacity: Capacity::Time,
            held_for_delay: false,
        }
    }

    fn transmission(&self) -> Transmission {
        Transmission::at(self.rate)
    }

    /// Returns the time model at the lower rate of the two ports of the circuit.
    fn transmission_of(&self, hop: &Hop, _routes: &NamedRoutes) -> Transmission {
        let light = SwitchedLight::from(hop.light);
        let out = self.rate_of(hop.from, light.source_port.into());
        let into = self.rate_of(hop.to, light.destination_port.into());
        Transmission::at(out.min(into))
    }

    fn is_degraded(&self) -> bool {
        !self.degraded.is_empty()
    }

    fn delay(&self) -> Result<Time, UnitError> {
        Ok(self.latency)
    }

    fn startup(&self) -> Time {
        self.startup
    }

    fn cuts_through(&self) -> bool {
        self.forwarding == Forwarding::CutThrough
    }

    fn side_network(&self) -> Option<(Light, Transmission)> {
        let rate = self.packet_rate?;
        Some((SwitchedLight::PACKET, Transmission::at(rate)))
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.budget
    }

    fn losses(&self, hop: &Hop, _routes: &NamedRoutes, _splits: u32) -> Vec<PassedLoss> {
        let lit = self.budget.filter(|_| hop.light != SwitchedLight::PACKET);
        lit.map_or_else(Vec::new, |budget| super::losses(&budget))
    }

    fn sharing(&self) -> LightSharing {
        LightSharing::SameCircuit
    }

    fn other_policies(&self) -> &'static str {
        "on a circuit_switch use all_stop (by groups of slots), planes, per_port, every_step or \
         free"
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.reconfiguration.time()?,
            first_free: self.first_configuration == FirstConfiguration::Free,
            ..Change::default()
        })
    }

    fn circuit(&self, hop: &Hop, _routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let light = SwitchedLight::from(hop.light);
        let ports = [light.source_port, light.destination_port].map(u32::from);
        let is_beside = hop.light == SwitchedLight::PACKET;
        let has_ports = match is_beside {
            true => self.packet_rate.is_some(),
            false => ports[0].max(ports[1]) < self.ports,
        };
        if hop.from.max(hop.to) >= self.ranks || !has_ports {
            return Err(NoCircuit::Absent(
                "a rank or one of its ports does not exist",
            ));
        }
        let (row, delay) = match is_beside {
            true => (self.ports, self.packet_latency),
            false => (ports[0], self.latency),
        };
        let line = row * self.ranks + hop.from;
        Ok(Circuit {
            delay,
            lines: [line..line + 1, 0..0].into(),
        })
    }

    /// Assigns the sender's output port and the receiver's input port that the light names.
    fn tuning(&self, hop: &Hop, _routes: &NamedRoutes) -> Tuning {
        let light = SwitchedLight::from(hop.light);
        let is_fixed = hop.light == SwitchedLight::PACKET;
        let end =
            |rank: u32, port: u16, end: u64| u64::from(rank) << 10 | u64::from(port) << 1 | end;
        let out = end(hop.from, light.source_port, 0);
        let into = end(hop.to, light.destination_port, 1);
        let port = |pool, state| Port {
            pool,
            size: 1,
            state: if is_fixed { 0 } else { state },
        };
        Tuning {
            transmitter: port(out, into),
            receiver: port(into, out),
            channel: 0,
            plane: match is_fixed {
                true => u32::MAX,
                false => self.switch_number(hop.from, light.source_port.into()),
            },
            is_fixed,
        }
    }
}
