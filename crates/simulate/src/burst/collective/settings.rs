//! Settings of lightpaths: ports, times and the reaction to blocking.

use crate::PolicyRecord;
use crate::burst::BurstError;
use crate::burst::settings;
use crate::burst::settings::BurstSettings;
use crate::setting::{HelpLevel, SettingDeclaration, find, names, settings};
use opticoll_base::names::suggest;
use opticoll_base::units::Time;

/// Reaction to blocking; see [the model](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingPolicy {
    /// Each lightpath is requested by itself; granted lightpaths are held meanwhile.
    Retry,
    /// All lightpaths of a phase are granted at one instant, or none.
    AllOrNothing,
    /// All or nothing, with fewer ports and then fewer lightpaths after some blocked requests.
    Degrade,
}

/// All policies; the first is the default.
pub const POLICIES: &[PolicyRecord<BlockingPolicy>] = &[
    PolicyRecord {
        name: "all_or_nothing",
        summary: "All lightpaths of a phase at one instant, or none; a waiting job holds nothing",
        citation: "",
        policy: BlockingPolicy::AllOrNothing,
    },
    PolicyRecord {
        name: "retry",
        summary: "Each lightpath by itself; granted lightpaths are held while others are requested \
                  again",
        citation: "",
        policy: BlockingPolicy::Retry,
    },
    PolicyRecord {
        name: "degrade",
        summary: "As all_or_nothing; after some blocked requests with a port fewer, then with half \
                  the lightpaths",
        citation: "",
        policy: BlockingPolicy::Degrade,
    },
];

/// Lightpaths of a collective, and the reaction to blocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// Reaction to blocking.
    pub policy: BlockingPolicy,
    /// Maximum number of lightpaths of a host at the same time.
    pub ports: u32,
    /// Time of a message in addition to propagation and transmission.
    pub latency: Time,
    /// Time from the grant of a phase's lightpaths until they carry light.
    pub setup: Time,
    /// Time from the end of a phase until its wavelengths are free.
    pub teardown: Time,
    /// Maximum number of retries of a blocked request.
    pub retries: u32,
    /// Mean wait after the first blocking.
    pub back_off: Time,
    /// Maximum of the mean wait.
    pub max_back_off: Time,
    /// Number of blocked requests after which a phase is cut.
    pub degrade_after: u32,
}

impl Default for Congestion {
    /// Returns latency, setup and release times of the paper, with waits from one to one hundred
    /// times these 10 ms.
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

/// Settings that can be given as text.
pub const SETTINGS: &[SettingDeclaration<Congestion>] = settings! {
    Congestion, HelpLevel::All, &["burst"];
    "congestion" .policy: "Reaction to a blocked request: all_or_nothing, retry or degrade",
        records(POLICIES), "all_or_nothing" => HelpLevel::Usual;
    "ports" .ports: "Number of circuits that a host can have at the same time",
        whole(1, 1 << 20), "1" => HelpLevel::Usual;
    "latency" .latency: "Latency of a message beyond propagation", time, "100us";
    "setup" .setup: "Setup time of granted circuits", time, "5ms";
    "teardown" .teardown: "Time to release the wavelengths of a completed phase", time, "5ms";
    "retries" .retries: "Maximum number of retries of a blocked request",
        whole(0, 1 << 20), "20" => HelpLevel::Usual;
    "back_off" .back_off: "Mean wait after the first blocking, doubled after each further one",
        time, "10ms";
    "max_back_off" .max_back_off: "Maximum of the mean wait", time, "1s";
    "degrade_after" .degrade_after: "Number of blocked requests after which degrade requests \
        fewer lightpaths",
        whole(1, 1 << 20), "3";
};

/// Settings of bursts that have no effect beside a collective, which runs to its end.
const MEASUREMENT_SETTINGS: &[&str] = &["bursts", "relative_error"];

impl Congestion {
    /// Reads the settings of lightpaths and of the bursts beside them from names and texts; see
    /// [`SETTINGS`] and [`settings::SETTINGS`].
    ///
    /// # Errors
    /// Returns an error for an unknown setting, a setting without effect here, or an invalid value.
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
