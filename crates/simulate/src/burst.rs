//! Optical burst switching: assignment of wavelengths to bursts, and burst loss.
//!
//! # The model
//!
//! **Network.** Nodes are connected by directed links of W wavelengths each, all with the same
//! rate. Hosts are attached to nodes ([`BurstNetwork`]). On a graph of fibres, the W wavelengths
//! are the channels of a link: fibres times wavelengths. A burst of length L (its bytes divided by
//! the rate) needs one wavelength on every link of its route, for a half-open time interval. No
//! node buffers bursts. Bursts between hosts of the same node need no link.
//!
//! **Signalling.** The source sends a control message at time t. Each of the h nodes with an output
//! link on the route processes the message for a time d (*processing*). Setting a switch takes d_s
//! (*switching*). Let p_i be the propagation delay from the source to the start of link i, and T
//! the time from the control message to the burst. The first link is link 0. The control message
//! reaches link i at c_i = t + (i + 1) d + p_i, and the burst reaches link i at
//! b_i = t + T + p_i:
//!
//! | signalling | link i is reserved | decision | blocked burst |
//! |---|---|---|---|
//! | [`Jet`](Signalling::Jet) | [b_i, b_i + L) | link by link | lost; earlier links stay reserved |
//! | [`Jit`](Signalling::Jit) | [c_i, b_i + L) | link by link | lost; earlier links stay reserved |
//! | [`TwoWay`](Signalling::TwoWay) | [t, b_i + L) | whole route at t | not sent |
//!
//! With one-way signalling, T = h d + d_s + *offset*. Without `offset`, this is the minimum with
//! which no burst overtakes its control message. With two-way signalling, T is the round trip 2
//! (p_h + h d) + d_s. The whole route is granted or blocked at one instant, so setups
//! in progress never compete with each other.
//!
//! **Routes.** With two-way signalling, a request may try several routes at the instant t, one
//! after another, until one is granted ([`BurstSettings::routes`]). The fabric's route comes first,
//! then the other routes without repeated nodes, by their number of links. A blocked burst counts
//! among the bursts of its first route.
//!
//! **Sources.** The offered load is defined per host: the number of bursts per unit of time, times
//! L. [`BurstSource`] lists three kinds of sources. Bursts of a Poisson process at each host are
//! sent at once ([`BurstSource::Poisson`]) or wait in an unlimited first-come-first-served queue
//! for the host's single transmitter ([`BurstSource::Transmitter`]). A host of the third kind
//! sends, pauses for an exponentially distributed time, and sends again ([`BurstSource::OnOff`]). A
//! transmitter is busy from t until the last bit of its burst has left; [`AfterBlocking`] defines
//! for how long it is busy after a blocked setup. Bursts may be assembled from packets
//! ([`BurstAssembly`]) or given by the caller ([`BurstWork::Given`]).
//!
//! **Wavelengths.** Without converters, a burst has the same wavelength on all links. See
//! [`WavelengthChoice`] and [`Converters`].
//!
//! **Receivers.** A host has an unlimited or a given number of receivers, and receives as many
//! bursts at the same time. A receiver is reserved like a link that follows the last link of the
//! route.
//!
//! **Time** is a whole number of picoseconds. Events of the same time happen in the order in which
//! they were inserted into the event queue. Random numbers come from `rand_pcg` and logarithms from
//! `libm`, so that results are reproducible on any machine.
//!
//! **Replications** run in parallel, in rounds, each with a different seed. The bursts of one
//! replication in one round are one batch for the confidence interval. Results do not depend on the
//! number of threads.
//!
//! Sources of the model: Qiao and Yoo, Optical burst switching (JET), 1999; Wei and McFarland,
//! Just-in-time signaling for WDM optical burst switching networks, 2000; Xiong, Vandenhoute and
//! Cankaya, Control architecture in optical burst-switched WDM networks (LAUC, LAUC-VF), 2000;
//! Wang, Morikawa and Aoyama, Priority-based wavelength assignment (PWA), 2003.
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! use opticoll_simulate::burst;
//! use opticoll_simulate::burst::{BurstNetwork, BurstSettings, BurstWork};
//! let medium = Medium::parse("wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s")?;
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

use opticoll_base::names::terminal_text;
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Time, UnitError};
use opticoll_fabric::fabric::FabricError;

pub use interval::interval;
pub use network::{BurstLink, BurstNetwork};
pub use outcome::{
    BurstLinkUse, BurstOutcome, BurstRecord, ChannelReservation, HopShare, Moment, PairShare, Share,
};
pub use replication::{BurstProgress, check, simulate};
pub use settings::{
    AfterBlocking, BurstAssembly, BurstRouting, BurstSettings, BurstSource, Converters,
    Destinations, Length, SETTINGS, Signalling, WavelengthChoice,
};

/// Error of a burst simulation: invalid input, or a simulation that stopped early.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BurstError {
    /// The specification does not describe a valid fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The specification or one of its options is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A quantity cannot be read or exceeds its range.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The fabric has no links that bursts can use.
    #[error("bursts cannot travel {}: {problem}", terminal_text(family))]
    Network {
        /// Family of the fabric.
        family: String,
        /// Reason, with a fabric to use instead.
        problem: String,
    },
    /// There is no setting with this name.
    #[error("unknown setting `{}`{hint}", terminal_text(name))]
    Unknown {
        /// The unknown name.
        name: String,
        /// Suggestion of the nearest known name, or a list of all names.
        hint: String,
    },
    /// The value of a setting is invalid.
    #[error("{setting}: {problem}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Reason, with the values that the setting accepts.
        problem: String,
    },
    /// A given burst is not valid on the network.
    #[error("burst {burst}: {problem}")]
    Burst {
        /// Index of the burst among the given bursts.
        burst: usize,
        /// Reason why the burst is not valid.
        problem: String,
    },
    /// A lightpath was blocked more often than `retries` allows.
    #[error(
        "the lightpath from host {} to {} was blocked {tries} times, the last after {at}; allow \
         more retries, wait longer (back_off), or reduce the background traffic",
        hosts.0,
        hosts.1
    )]
    GaveUp {
        /// Source host and destination host of the lightpath.
        hosts: (u32, u32),
        /// Number of requests for the lightpath.
        tries: u32,
        /// Time of the last request, from the start of the simulation.
        at: Time,
    },
    /// The caller stopped the simulation by returning false from `progress`.
    #[error("the simulation was stopped after {bursts} bursts")]
    Stopped {
        /// Number of bursts that had arrived or been lost.
        bursts: u64,
    },
}

impl BurstError {
    /// Returns the name of the setting that caused the error, or `None` if no setting did.
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

/// Bursts that a simulation sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BurstWork {
    /// Bursts that are drawn at random, as the setting `source` defines.
    Random,
    /// Bursts given in the order of their times. The setting `source` defines whether they wait for
    /// transmitters.
    Given(Vec<Burst>),
}

/// Burst that a host sends to another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Time from which the burst is ready to be sent.
    pub time: Time,
    /// Host that sends the burst.
    pub source: u32,
    /// Host that receives the burst; must differ from `source`.
    pub destination: u32,
    /// Duration of the burst on a wavelength; must be positive.
    pub length: Time,
}
