//! The network with the bursts that go on beside lightpaths, and the waits after blocking.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::settings::Congestion;
use crate::burst::engine::BurstEngine;
use crate::burst::replication::{LONGEST_PS, WARM_UP};
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstError, BurstNetwork, BurstWork};
use opticoll_base::hash::hash;
use opticoll_base::units::Time;

/// What back-off draws depend on besides the seed, so that they are none of the bursts'.
const BACK_OFF: u64 = 0x6261_636b_5f6f_6666;

/// A network in which bursts have gone on for long when the first lightpath is asked for.
pub(super) struct Beside<'a> {
    pub(super) engine: BurstEngine<'a>,
    congestion: &'a Congestion,
    random: Pcg64Mcg,
    /// When lightpaths may be asked for.
    pub(super) start: u64,
}

impl<'a> Beside<'a> {
    /// The replication of a number.
    pub(super) fn new(
        network: &'a BurstNetwork,
        work: &BurstWork,
        settings: &'a BurstSettings,
        congestion: &'a Congestion,
        number: u32,
    ) -> Result<Beside<'a>, BurstError> {
        let mean_length = network.rate().transmission(settings.size)?.ps();
        let mut engine = BurstEngine::new(network, settings, work, mean_length, number);
        engine.expect_paths();
        let seed = hash(hash(settings.seed).wrapping_add(u64::from(number)) ^ BACK_OFF);
        let mut start = 0;
        if *work == BurstWork::Random {
            // Not when a certain burst has come: just then the network is fuller than at other times.
            let hosts = f64::from(network.hosts());
            let each = settings
                .warm_up
                .map_or(WARM_UP as f64, |all| all as f64 / hosts);
            start = (each * mean_length as f64 / settings.offered_load).round() as u64;
            engine.run_until(start);
            engine.begin_measuring();
        }
        Ok(Beside {
            engine,
            congestion,
            random: Pcg64Mcg::seed_from_u64(seed),
            start,
        })
    }

    /// Lets the bursts go on until before an instant.
    pub(super) fn run_until(&mut self, at: u64) -> Result<(), BurstError> {
        if at as f64 > LONGEST_PS {
            return Err(BurstError::Setting {
                setting: "size",
                problem: "what is sent would take more than 46 simulated days".into(),
            });
        }
        self.engine.run_until(at);
        Ok(())
    }

    /// From the beginning until now.
    pub(super) fn elapsed(&self) -> Time {
        Time::from_ps(self.engine.now - self.start)
    }

    /// How long to wait after so many blocked requests, in picoseconds.
    pub(super) fn back_off(&mut self, blocked: u32) -> u64 {
        let doubled = 1u64.checked_shl(blocked - 1).unwrap_or(u64::MAX);
        let mean = self.congestion.back_off.ps().saturating_mul(doubled);
        let mean = mean.min(self.congestion.longest_back_off.ps());
        // A multiple of 2^-53 from 1/2 to 3/2.
        let factor = 0.5 + (self.random.random::<u64>() >> 11) as f64 / (1u64 << 53) as f64;
        ((mean as f64 * factor).round() as u64).max(1)
    }
}
