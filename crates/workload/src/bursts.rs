//! Replays over an optical burst-switched network. Every message requests a lightpath; other
//! messages and background bursts may block the request ([`OnRequest`]).
//!
//! Rank r runs on host r. The settings are the settings of lightpaths and bursts
//! ([`Congestion::from_texts`]). The setting `offered_load=0`, which is the default of replays,
//! turns background bursts off. A replay simulates a single replication, with the given seed.
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! use opticoll_workload::bursts::OverBursts;
//! let medium = Medium::parse("wdm_ladder:rungs=4,hosts=4,wavelengths=8,rate=10Gb/s")?;
//! let settings = [("offered_load", "0.4"), ("ports", "2"), ("retries", "5")];
//! let over = OverBursts::new(&medium, settings)?;
//! assert_eq!((over.network.hosts(), over.congestion.retries), (32, 5));
//! # Ok::<(), opticoll_simulate::burst::BurstError>(())
//! ```

use opticoll_fabric::families::Medium;
use opticoll_simulate::burst::collective::{Congestion, OnRequest};
use opticoll_simulate::burst::{BurstError, BurstNetwork, BurstSettings, BurstWork};

/// Burst-switched network, and the settings of a replay on it.
#[derive(Debug, Clone, PartialEq)]
pub struct OverBursts {
    /// Network of nodes, hosts and wavelengths.
    pub network: BurstNetwork,
    /// Setup times and ports of lightpaths, and the reaction to a blocked request.
    pub congestion: Congestion,
    /// Settings of the background bursts.
    pub settings: BurstSettings,
    /// Background traffic: random bursts, or none.
    pub work: BurstWork,
}

impl OverBursts {
    /// Creates the network of `medium` and parses the settings of a replay, each given as (name,
    /// text).
    ///
    /// # Errors
    /// Fails if the medium is not a burst-switched network, or if a setting is unknown or invalid.
    /// Also fails for the settings `congestion`, `degrade_after` and `replications`, which apply
    /// only to collectives that run in phases.
    pub fn new<'a>(
        medium: &Medium,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<OverBursts, BurstError> {
        let mut texts = Vec::new();
        let mut has_background = false;
        for (name, text) in settings {
            let phase_settings = ["congestion", "degrade_after", "replications"];
            if let Some(&setting) = phase_settings.iter().find(|&&setting| setting == name) {
                let problem = "in a replay each message requests one lightpath at a time; leave it \
                               out";
                return Err(BurstError::Setting {
                    setting,
                    problem: problem.into(),
                });
            }
            if name == "offered_load" {
                has_background = text.trim().parse() != Ok(0.0);
                if !has_background {
                    continue;
                }
            }
            texts.push((name, text));
        }
        let (congestion, settings) = Congestion::from_texts(texts)?;
        Ok(OverBursts {
            network: BurstNetwork::of(medium)?
                .with_routes(settings.routes)
                .into_owned(),
            congestion,
            settings,
            work: match has_background {
                true => BurstWork::Random,
                false => BurstWork::Given(Vec::new()),
            },
        })
    }

    /// Creates the simulator of the network, without any messages.
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
