//! Circuits of the lightpath grid: a message takes latency + bytes / rate.

use super::{LIGHT, LightpathGrid, PortsLight};
use crate::fabric::Transmission;
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::network::named_routes::NamedRoutes;
use opticoll_base::units::{Time, UnitError};

impl Circuits for LightpathGrid {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        &[
            (
                "setup_teardown",
                ReconfigurationCharge::Groups { each_slot: false },
            ),
            (
                "every_step",
                ReconfigurationCharge::Groups { each_slot: true },
            ),
            ("per_port", ReconfigurationCharge::ChangedPort),
            ("free", ReconfigurationCharge::Never),
        ]
    }

    /// Returns one line per port of each rank. Row i contains port i of every rank.
    fn lines(&self) -> Lines {
        Lines {
            shape: [("port", self.ports), ("rank", self.ranks)],
            channels: 1,
            capacity: Capacity::Time,
            held_for_delay: false,
        }
    }

    fn transmission(&self) -> Transmission {
        Transmission::at(self.rate)
    }

    fn delay(&self) -> Result<Time, UnitError> {
        Ok(self.latency)
    }

    fn keeps_paths(&self) -> bool {
        true
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.budget
    }

    fn losses(&self, _hop: &Hop, _routes: &NamedRoutes, _splits: u32) -> Vec<PassedLoss> {
        let budget = self.budget.as_ref();
        budget.map_or_else(Vec::new, super::losses)
    }

    fn sharing(&self) -> LightSharing {
        LightSharing::SameCircuit
    }

    fn other_policies(&self) -> &'static str {
        "on a lightpath_grid use setup_teardown (by groups of slots), every_step, per_port or \
         free"
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.setup,
            teardown: self.teardown,
            ..Change::default()
        })
    }

    fn circuit(&self, hop: &Hop, _routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let light = PortsLight::from(hop.light);
        let source_port = u32::from(light.source_port);
        let exists = hop.from.max(hop.to) < self.ranks
            && source_port < self.ports
            && u32::from(light.destination_port) < self.ports;
        if !exists {
            return Err(NoCircuit::Absent(
                "a rank or one of its ports does not exist",
            ));
        }
        let line = source_port * self.ranks + hop.from;
        Ok(Circuit {
            delay: self.latency,
            lines: [line..line + 1, 0..0].into(),
        })
    }

    /// Assigns the two ports that the light names. A port both sends and receives.
    fn tuning(&self, hop: &Hop, _routes: &NamedRoutes) -> Tuning {
        let light = PortsLight::from(hop.light);
        let source = u64::from(hop.from) << 32 | u64::from(light.source_port);
        let destination = u64::from(hop.to) << 32 | u64::from(light.destination_port);
        let port = |pool, state| Port {
            pool,
            size: 1,
            state,
        };
        Tuning {
            is_fixed: false,
            transmitter: port(source, destination),
            receiver: port(destination, source),
            channel: 0,
            plane: 0,
        }
    }
}
