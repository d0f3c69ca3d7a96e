//! Settings of the lightpaths of jobs: ports, times and the reaction to blocked requests.

use crate::PolicyRecord;
use crate::burst::BurstError;
use crate::burst::settings;
use crate::burst::settings::BurstSettings;
use crate::setting::{HelpLevel, SettingDeclaration, find, names, settings};
use opticoll_base::names::suggest;
use opticoll_base::units::Time;

/// Reaction of a job to a blocked request, described in [the model](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingPolicy {
    /// Each lightpath is requested separately. Granted lightpaths stay reserved while blocked
    /// lightpaths wait and are requested again.
    Retry,
    /// All lightpaths of a phase are granted at one instant, or none of them.
    AllOrNothing,
    /// Requests as under `AllOrNothing`. After `degrade_after` blocked requests, the phase is cut
    /// into parts with fewer ports, and later into parts with fewer lightpaths.
    Degrade,
}

/// All reactions to a blocked request, with their names.
pub const POLICIES: &[PolicyRecord<BlockingPolicy>] = &[
    PolicyRecord {
        name: "all_or_nothing",
        summary: "All lightpaths of a phase are granted at one instant, or none; a waiting phase \
        holds none",
        citation: "",
        policy: BlockingPolicy::AllOrNothing,
    },
    PolicyRecord {
        name: "retry",
        summary: "Each lightpath is requested separately; granted lightpaths are kept while \
        others are retried",
        citation: "",
        policy: BlockingPolicy::Retry,
    },
    PolicyRecord {
        name: "degrade",
        summary: "As all_or_nothing; after some blocked requests, the phase needs fewer ports or \
        lightpaths",
        citation: "",
        policy: BlockingPolicy::Degrade,
    },
];

/// Settings of lightpaths: ports, times, and the reaction to blocked requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// Reaction to a blocked request.
    pub policy: BlockingPolicy,
    /// Maximum number of other hosts to or from which a host has lightpaths at the same time.
    pub ports: u32,
    /// Time of a message in addition to its propagation and transmission.
    pub latency: Time,
    /// Setup time of the lightpaths of a phase, after they are granted.
    pub setup: Time,
    /// Time from the end of a phase until its wavelengths are free.
    pub teardown: Time,
    /// Maximum number of retries of a blocked request.
    pub retries: u32,
    /// Mean wait after the first blocked request. Each further blocked request doubles the mean
    /// wait.
    pub back_off: Time,
    /// Upper limit of the mean wait.
    pub max_back_off: Time,
    /// Number of blocked requests after which the policy `degrade` cuts a phase.
    pub degrade_after: u32,
}

impl Default for Congestion {
    /// Returns the latency, setup time and release time of the paper that [the model](super) names.
    /// The mean wait is at first 10 ms (setup time plus release time), and at most 1 s.
    fn default() -> Congestion {
        Congestion {
            policy: BlockingPolicy::AllOrNothing,
            ports: 1,
            latency: Time::from_ps(100_000_000),
            setup: Time::from_ps(5_000_000_000),
            teardown: Time::from_ps(5_000_000_000),
            retries: 20,
            back_off: Time::from_ps(10_000_000_000),
            max_back_off: Time::from_ps(1_000_000_000_000),
            degrade_after: 3,
        }
    }
}

/// Declarations of all settings of lightpaths.
pub const SETTINGS: &[SettingDeclaration<Congestion>] = settings! {
    Congestion, HelpLevel::All, &["burst"];
    "congestion" .policy: "Reaction to a blocked request: all_or_nothing, retry or degrade",
        records(POLICIES), "all_or_nothing" => HelpLevel::Usual;
    "ports" .ports: "Number of circuits that a host can have at the same time",
        whole(1, 1 << 20), "1" => HelpLevel::Usual;
    "latency" .latency: "Latency of a message in addition to propagation", time, "100us";
    "setup" .setup: "Setup time of granted circuits", time, "5ms";
    "teardown" .teardown: "Time to release the wavelengths of a completed phase", time, "5ms";
    "retries" .retries: "Maximum number of retries of a blocked request",
        whole(0, 1 << 20), "20" => HelpLevel::Usual;
    "back_off" .back_off: "Mean waiting time after the first blocked request, doubled after each \
    further blocked request",
        time, "10ms";
    "max_back_off" .max_back_off: "Maximum of the mean waiting time", time, "1s";
    "degrade_after" .degrade_after: "Number of blocked requests after which degrade requests \
        fewer lightpaths",
        whole(1, 1 << 20), "3";
};

/// Settings of bursts that have no effect if a collective is simulated.
const MEASUREMENT_SETTINGS: &[&str] = &["bursts", "relative_error"];

impl Congestion {
    /// Reads the settings of lightpaths and of bursts from pairs of name and value; see
    /// [`SETTINGS`] and [`settings::SETTINGS`].
    ///
    /// # Errors
    /// Returns an error for an unknown setting, an invalid value, or a setting that has no effect.
    pub fn from_texts<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(Congestion, BurstSettings), BurstError> {
        let mut congestion = Congestion::default();
        let mut burst_texts = Vec::new();
        for (name, text) in texts {
            let refuse = |setting, problem| BurstError::Setting { setting, problem };
            if let Some(setting) = find(SETTINGS, name) {
                let applied = setting.apply(&mut congestion, text);
                applied.map_err(|problem| refuse(setting.record.name, problem))?;
                continue;
            }
            if let Some(setting) = MEASUREMENT_SETTINGS.iter().find(|other| **other == name) {
                let problem = "bursts go on until the collective has ended; leave it out".into();
                return Err(refuse(setting, problem));
            }
            if find(settings::SETTINGS, name).is_none() {
                let known = names(SETTINGS).chain(names(settings::SETTINGS));
                return Err(BurstError::Unknown {
                    name: name.into(),
                    hint: suggest(name, known),
                });
            }
            burst_texts.push((name, text));
        }
        Ok((congestion, BurstSettings::from_texts(burst_texts)?))
    }

    /// Checks that the settings are valid and consistent.
    pub(super) fn check(&self) -> Result<(), BurstError> {
        let refuse = |setting, problem: &str| {
            Err(BurstError::Setting {
                setting,
                problem: problem.into(),
            })
        };
        if self.ports == 0 {
            return refuse("ports", "a host needs at least one");
        }
        if self.degrade_after == 0 {
            return refuse("degrade_after", "must be at least 1");
        }
        if self.back_off == Time::ZERO {
            return refuse(
                "back_off",
                "without a wait all retries would come at one instant; give 1us or more",
            );
        }
        if self.max_back_off < self.back_off {
            return refuse("max_back_off", "must not be less than back_off");
        }
        Ok(())
    }
}
