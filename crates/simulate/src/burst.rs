//! Networks that switch bursts of light: who gets a wavelength, and what is lost.
//!
//! # The model
//!
//! **Network.** Nodes are joined by directed links of W wavelengths each, all of one rate; hosts
//! are attached to nodes ([`BurstNetwork`]). A burst of length L (its bytes at the rate) needs, on every link
//! of its route, one wavelength for a half-open interval of time. Nothing is buffered on the way.
//! Bursts between hosts of one node need no link.
//!
//! **Signalling.** A control message is sent ahead at time t. It is worked on by each of the h nodes that
//! have an output link on the route, for d (*processing*) each; a switch takes d_s (*switching*) to be
//! set. With p_i the propagation up to link i (counted from 0), control reaches that link
//! at c_i = t + (i + 1) d + p_i, and the burst at b_i = t + T + p_i:
//!
//! | signalling | link i is held | who knows what | a burst that is blocked |
//! |---|---|---|---|
//! | [`Jet`](Signalling::Jet) | [b_i, b_i + L) | each link when control is there | is lost; links held so far stay held, in vain |
//! | [`Jit`](Signalling::Jit) | [c_i, b_i + L) | the same | the same |
//! | [`TwoWay`](Signalling::TwoWay) | [t, b_i + L) | all links of the route at t | holds nothing; it was not sent |
//!
//! T = h d + d_s + *offset* where control goes one way: the least with which no burst overtakes its
//! control message, and what the setting adds. With two ways it is a round trip, 2 (p_h + h d) + d_s. The whole
//! route is granted or blocked at one instant, so two setups never race.
//!
//! **Sources.** The offered load is that of a host: bursts per time, times L. Bursts are generated
//! by a Poisson process at each host and sent at once ([`BurstSource::Poisson`]), or wait for the
//! host's one transmitter, first come first served, without limit ([`BurstSource::Transmitter`]);
//! or a host sends, pauses for an exponential time, and sends again ([`BurstSource::OnOff`]). A
//! transmitter is taken from t until its burst's last bit has left, and after a blocked setup as [`AfterBlocking`] says.
//! Bursts may be put together from packets ([`BurstAssembly`]), or be given one by one ([`BurstWork::Given`]).
//!
//! **Wavelengths.** Without converters a burst keeps its wavelength; see [`WavelengthChoice`] and [`Converters`].
//!
//! **Receivers.** A host receives any number of bursts at once, or so many as it has receivers; each
//! is held like a link after the last.
//!
//! **Time** is in whole picoseconds; events of one time happen in the order in which they entered the event queue.
//! Random numbers are those of `rand_pcg` and logarithms those of `libm`, so that a run is repeated exactly on any
//! machine.
//!
//! **Replications** run side by side with seeds of their own, in rounds; each round of each
//! replication is a batch. Results are the same for any number of threads.
//!
//! The model follows Qiao and Yoo, Optical burst switching (JET), 1999; Wei and McFarland, Just-in-time
//! signaling for WDM optical burst switching networks, 2000; Xiong, Vandenhoute and Cankaya, Control
//! architecture in optical burst-switched WDM networks (LAUC, LAUC-VF), 2000; Wang, Morikawa and
//! Aoyama, Priority-based wavelength assignment (PWA), 2003.
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! use opticoll_simulate::burst;
//! use opticoll_simulate::burst::{BurstNetwork, BurstSettings, BurstWork};
//! let medium = Medium::parse("ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s")?;
//! let network = BurstNetwork::of(&medium)?;
//! let settings = BurstSettings { bursts: 20_000, ..BurstSettings::default() };
//! let outcome = burst::simulate(&network, &BurstWork::Random, &settings, 1, |_| true)?;
//! assert_eq!(outcome.lost, 0);
//! assert!(outcome.loss_high < 1e-3);
//! # Ok::<(), burst::BurstError>(())
//! ```

mod channels;
mod choice;
pub mod collective;
mod engine;
pub mod erlang;
mod interval;
mod network;
mod outcome;
mod replication;
mod routing;
mod settings;
mod source;
mod special;

use thiserror::Error;

use opticoll_base::names::shown;
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::fabric::FabricError;

pub use interval::interval;
pub use network::{BurstLink, BurstNetwork};
pub use outcome::{
    BurstHolding, BurstLinkUse, BurstOutcome, BurstRecord, HopShare, Moment, PairShare, Share,
};
pub use replication::{BurstProgress, check, simulate};
pub use settings::{
    AfterBlocking, BurstAssembly, BurstRouting, BurstSettings, BurstSource, Converters,
    Destinations, Length, SETTINGS, Signalling, WavelengthChoice,
};

/// Why a simulation was refused or broken off.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BurstError {
    /// The specification names no fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The specification or an option of it is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A quantity is none, or too large.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A fabric that bursts cannot travel.
    #[error("bursts cannot travel {}: {problem}", shown(family))]
    Network {
        /// The family.
        family: String,
        /// Why, and what would do.
        problem: String,
    },
    /// No setting has this name.
    #[error("unknown setting `{}`{hint}", shown(name))]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The value of a setting does not fit.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong, and what would do.
        problem: String,
    },
    /// A given burst that does not fit the network.
    #[error("burst {burst}: {problem}")]
    Burst {
        /// Its number in the order given.
        burst: usize,
        /// What is wrong.
        problem: String,
    },
    /// A lightpath for a message was blocked too often.
    #[error(
        "the lightpath from host {} to {} was blocked {tries} times, the last after {at}; allow \
         more retries, wait longer (back_off), or have less traffic beside it",
        hosts.0,
        hosts.1
    )]
    GaveUp {
        /// From which host to which.
        hosts: (u32, u32),
        /// How often it was asked for.
        tries: u32,
        /// When last, from the beginning.
        at: Time,
    },
    /// The caller wanted no more.
    #[error("the simulation was stopped after {bursts} bursts")]
    Stopped {
        /// Bursts whose end was known.
        bursts: u64,
    },
}

impl BurstError {
    /// The setting at fault, where it is one.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            BurstError::Setting { setting, .. } => Some(setting),
            BurstError::Fabric(_) | BurstError::Spec(_) | BurstError::Network { .. } => {
                Some("fabric")
            }
            _ => None,
        }
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BurstWork {
    /// What the settings' source draws.
    Random,
    /// Bursts one by one, in order of time; the settings say whether they wait for transmitters.
    Given(Vec<Burst>),
}

/// A burst as it is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// When it is ready to be sent.
    pub time: Time,
    /// The host that sends it.
    pub source: u32,
    /// Another host.
    pub destination: u32,
    /// For how long it occupies a wavelength, not zero.
    pub length: Time,
}
