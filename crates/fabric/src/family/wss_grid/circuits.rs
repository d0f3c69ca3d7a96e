//! Circuits of the switch grid. A burst takes latency + bytes / rate. If the laser must be tuned
//! first, the burst also takes 2 * control + tuning + lock. A central controller has a queue, which
//! slots cannot model, so the simulators of slots reject a grid with a controller.

use super::{LIGHT, TunedLight, WssGrid};
use crate::fabric::Transmission;
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::network::named_routes::NamedRoutes;
use opticoll_base::units::{Time, UnitError};

impl Circuits for WssGrid {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        &[
            ("two_tier", ReconfigurationCharge::ChangedCircuit),
            ("every_step", ReconfigurationCharge::EachCircuit),
            ("free", ReconfigurationCharge::Never),
        ]
    }

    /// Returns one line per transmitter. Each plane is a row with one line per rank.
    fn lines(&self) -> Lines {
        Lines {
            shape: [("plane", 2), ("rank", self.ranks())],
            channels: 1,
            capacity: Capacity::Time,
            held_for_delay: false,
        }
    }

    fn transmission(&self) -> Transmission {
        Transmission::at(self.rate)
    }

    fn transmission_of(&self, hop: &Hop, _routes: &NamedRoutes) -> Transmission {
        Transmission::at(self.rate_between([hop.from, hop.to], TunedLight::from(hop.light)))
    }

    fn is_degraded(&self) -> bool {
        !self.degraded.is_empty()
    }

    fn delay(&self) -> Result<Time, UnitError> {
        Ok(self.latency)
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
        "on a wss_grid use two_tier (tune where the circuit changes), every_step or free"
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.setup_time()?,
            teardown: Time::ZERO,
            slow_switches: Some(self.slow_switch),
            first_free: false,
        })
    }

    fn circuit(&self, hop: &Hop, _routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let ranks = self.ranks();
        let light = TunedLight::from(hop.light);
        let exists = hop.from.max(hop.to) < ranks
            && light.plane < 2
            && u32::from(light.wavelength) < self.wavelengths;
        if !exists {
            return Err(NoCircuit::Absent(
                "a rank, its transceiver or wavelength does not exist",
            ));
        }
        let line = u32::from(light.plane) * ranks + hop.from;
        Ok(Circuit {
            delay: self.latency,
            lines: [line..line + 1, 0..0].into(),
        })
    }

    /// Assigns the transmitter of `from` and the receiver of `to` in the plane of the light.
    fn tuning(&self, hop: &Hop, _routes: &NamedRoutes) -> Tuning {
        let light = TunedLight::from(hop.light);
        let port = |rank: u32, end: u64, other: u32| Port {
            pool: u64::from(rank) << 9 | end << 8 | u64::from(light.plane),
            size: 1,
            state: u64::from(other) << 16 | u64::from(light.wavelength),
        };
        Tuning {
            is_fixed: false,
            transmitter: port(hop.from, 0, hop.to),
            receiver: port(hop.to, 1, hop.from),
            channel: 0,
            plane: 0,
        }
    }
}
