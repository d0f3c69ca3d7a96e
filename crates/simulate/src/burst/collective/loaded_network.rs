//! Network in which bursts are sent while lightpaths are requested, and the waits (back-off) after
//! blocked requests.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::settings::Congestion;
use crate::burst::engine::BurstEngine;
use crate::burst::replication::{MAX_TIME_PS, WARM_UP_BURSTS};
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstError, BurstNetwork, BurstWork};
use opticoll_base::hash::hash;
use opticoll_base::units::Time;

/// Number that makes the seed of the back-off draws differ from the seed of the bursts.
const BACK_OFF_SEED: u64 = 0x6261_636b_5f6f_6666;

/// Network in which bursts are sent for a warm-up time before the first lightpath is requested.
pub(super) struct LoadedNetwork<'a> {
    pub(super) engine: BurstEngine<'a>,
    congestion: &'a Congestion,
    random: Pcg64Mcg,
    /// Time from which lightpaths can be requested, in picoseconds.
    pub(super) start: u64,
}

impl<'a> LoadedNetwork<'a> {
    /// Creates the network of replication `number`, and simulates the bursts of the warm-up.
    pub(super) fn new(
        network: &'a BurstNetwork,
        work: &BurstWork,
        settings: &'a BurstSettings,
        congestion: &'a Congestion,
        number: u32,
    ) -> Result<LoadedNetwork<'a>, BurstError> {
        let mean_length = network.rate().transmission(settings.size)?.ps();
        let mut engine = BurstEngine::new(network, settings, work, mean_length, number);
        engine.allow_lightpaths();
        let seed = hash(hash(settings.seed).wrapping_add(u64::from(number)) ^ BACK_OFF_SEED);
        let mut start = 0;
        if *work == BurstWork::Random {
            // At the arrival of a burst, the network would be fuller than at other times.
            let hosts = f64::from(network.hosts());
            let each = settings
                .warm_up
                .map_or(WARM_UP_BURSTS as f64, |all| all as f64 / hosts);
            start = (each * mean_length as f64 / settings.offered_load).round() as u64;
            engine.run_until(start);
            engine.begin_measuring();
        }
        Ok(LoadedNetwork {
            engine,
            congestion,
            random: Pcg64Mcg::seed_from_u64(seed),
            start,
        })
    }

    /// Processes the events of bursts before the time `at`, in picoseconds.
    pub(super) fn run_until(&mut self, at: u64) -> Result<(), BurstError> {
        if at as f64 > MAX_TIME_PS {
            return Err(BurstError::Setting {
                setting: "size",
                problem: "the messages and bursts would take more than 46 simulated days".into(),
            });
        }
        self.engine.run_until(at);
        Ok(())
    }

    pub(super) fn elapsed(&self) -> Time {
        Time::from_ps(self.engine.now - self.start)
    }

    /// Draws a wait in picoseconds; `blocked` is the number of times that the request was blocked.
    pub(super) fn back_off(&mut self, blocked: u32) -> u64 {
        let doubled = 1u64.checked_shl(blocked - 1).unwrap_or(u64::MAX);
        let mean = self.congestion.back_off.ps().saturating_mul(doubled);
        let mean = mean.min(self.congestion.max_back_off.ps());
        // The factor is a multiple of 2^-53, at least 1/2 and less than 3/2.
        let factor = 0.5 + (self.random.random::<u64>() >> 11) as f64 / (1u64 << 53) as f64;
        ((mean as f64 * factor).round() as u64).max(1)
    }
}
