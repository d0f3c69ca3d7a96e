//! Circuits of the passive star. A transfer takes latency + bytes / rate at every rank that
//! receives the wavelength.

use super::{LIGHT, PassiveStar, StarLight};
use crate::fabric::Transmission;
use crate::fabric::circuits::{
    Capacity, Change, Circuit, Circuits, LightSharing, Lines, NoCircuit, Port,
    ReconfigurationCharge, Tuning,
};
use crate::fabric::light::{Hop, LightKind};
use crate::fabric::loss::{LossBudget, PassedLoss};
use crate::network::named_routes::NamedRoutes;
use opticoll_base::units::{Time, UnitError};

impl Circuits for PassiveStar {
    fn light(&self) -> &'static LightKind {
        &LIGHT
    }

    fn carries_one_chunk(&self) -> bool {
        true
    }

    fn policies(&self) -> &'static [(&'static str, ReconfigurationCharge)] {
        &[
            ("every_step", ReconfigurationCharge::EverySlot),
            ("on_change", ReconfigurationCharge::NewConfiguration),
            ("per_port", ReconfigurationCharge::ChangedPort),
            ("free", ReconfigurationCharge::Never),
        ]
    }

    /// Returns one line per wavelength: each row has the coupler as its only line.
    fn lines(&self) -> Lines {
        Lines {
            shape: [("wavelength", self.wavelengths), ("coupler", 1)],
            channels: 1,
            capacity: Capacity::Slots(1),
            held_for_delay: false,
        }
    }

    fn transmission(&self) -> Transmission {
        Transmission::at(self.rate)
    }

    fn delay(&self) -> Result<Time, UnitError> {
        Ok(self.latency)
    }

    fn loss_budget(&self) -> Option<LossBudget> {
        self.budget
    }

    fn losses(&self, _hop: &Hop, _routes: &NamedRoutes, _splits: u32) -> Vec<PassedLoss> {
        let budget = self.budget.as_ref();
        budget.map_or_else(Vec::new, |budget| super::losses(budget, self.ranks))
    }

    /// Returns the rule that transfers of the same chunks on one wavelength share light.
    fn sharing(&self) -> LightSharing {
        LightSharing::Tree {
            light: u32::MAX,
            branches: false,
        }
    }

    fn other_policies(&self) -> &'static str {
        "on a passive_star use every_step, on_change, per_port or free"
    }

    fn change(&self) -> Result<Change, UnitError> {
        Ok(Change {
            setup: self.reconfiguration,
            ..Change::default()
        })
    }

    fn circuit(&self, hop: &Hop, _routes: &NamedRoutes) -> Result<Circuit, NoCircuit> {
        let wavelength = u32::from(StarLight::from(hop.light).wavelength);
        if hop.from.max(hop.to) >= self.ranks || wavelength >= self.wavelengths {
            return Err(NoCircuit::Absent("a rank or its wavelength does not exist"));
        }
        Ok(Circuit {
            delay: self.latency,
            lines: [wavelength..wavelength + 1, 0..0].into(),
        })
    }

    /// Assigns any transmitter of the source and any receiver of the destination. Both are tuned to
    /// the wavelength of the light.
    fn tuning(&self, hop: &Hop, _routes: &NamedRoutes) -> Tuning {
        let wavelength = StarLight::from(hop.light).wavelength;
        let port = |rank: u32, end: u64, size: u32| Port {
            pool: u64::from(rank) << 1 | end,
            size,
            state: wavelength.into(),
        };
        Tuning {
            is_fixed: false,
            transmitter: port(hop.from, 0, self.transmitters),
            receiver: port(hop.to, 1, self.receivers),
            channel: 0,
            plane: 0,
        }
    }
}
