//! Replays over a network that switches bursts of light: every message asks for a lightpath of its own, which
//! other messages and the bursts beside them may refuse ([`OnRequest`]).
//!
//! Rank r sits at host r. Beside the settings of lightpaths and of bursts ([`Congestion::from_texts`])
//! `offered_load=0`, the default here, stands for no bursts at all. One replication is run, that of the seed.
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! use opticoll_workload::bursts::OverBursts;
//! let medium = Medium::parse("ladder:rungs=4,hosts=4,wavelengths=8,rate=10Gb/s")?;
//! let over = OverBursts::new(&medium, [("offered_load", "0.4"), ("ports", "2"), ("retries", "5")])?;
//! assert_eq!((over.network.hosts(), over.congestion.retries), (32, 5));
//! # Ok::<(), opticoll_simulate::burst::BurstError>(())
//! ```

use opticoll_fabric::families::Medium;
use opticoll_simulate::burst::collective::{Congestion, OnRequest};
use opticoll_simulate::burst::{BurstError, BurstNetwork, BurstSettings, BurstWork};

/// A network of bursts with everything that a replay over it needs.
#[derive(Debug, Clone, PartialEq)]
pub struct OverBursts {
    /// Nodes, hosts, wavelengths.
    pub network: BurstNetwork,
    /// Times and ports of lightpaths, and what follows blocking.
    pub congestion: Congestion,
    /// The bursts beside.
    pub settings: BurstSettings,
    /// Whether there are any.
    pub work: BurstWork,
}

impl OverBursts {
    /// A network with settings by name.
    ///
    /// # Errors
    /// What is no network or setting; a policy of phases, which single messages do not have.
    pub fn new<'a>(
        medium: &Medium,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<OverBursts, BurstError> {
        let mut texts = Vec::new();
        let mut beside = false;
        for (name, text) in settings {
            let of_phases = ["congestion", "degrade_after", "replications"];
            if let Some(&setting) = of_phases.iter().find(|&&one| one == name) {
                let problem = "in a replay each message asks for one lightpath, once in each try; leave it out";
                return Err(BurstError::Setting {
                    setting,
                    problem: problem.into(),
                });
            }
            if name == "offered_load" {
                beside = text.trim().parse() != Ok(0.0);
                if !beside {
                    continue;
                }
            }
            texts.push((name, text));
        }
        let (congestion, settings) = Congestion::from_texts(texts)?;
        Ok(OverBursts {
            network: BurstNetwork::of(medium)?,
            congestion,
            settings,
            work: match beside {
                true => BurstWork::Random,
                false => BurstWork::Given(Vec::new()),
            },
        })
    }

    /// The network without messages.
    ///
    /// # Errors
    /// Settings that contradict each other or the network.
    pub fn start(&self) -> Result<OnRequest<'_>, BurstError> {
        let OverBursts {
            network,
            congestion,
            settings,
            work,
        } = self;
        OnRequest::new(network, work, settings, congestion)
    }
}
