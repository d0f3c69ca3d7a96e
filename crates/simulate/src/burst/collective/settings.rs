//! Ports, times of lightpaths, and what follows blocking: typed for programs, as text for people.

use crate::PolicyRecord;
use crate::burst::BurstError;
use crate::burst::settings;
use crate::burst::settings::BurstSettings;
use crate::setting::{
    HelpLevel, SettingDeclaration, SettingRecord, SettingValues, find, named_by, names, parsed,
    settings, whole,
};
use opticoll_base::names::suggest;
use opticoll_base::units::Time;

/// What follows blocking; see [the model](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingPolicy {
    /// Path by path, each tried again by itself; granted ones are held meanwhile.
    Retry,
    /// All paths of a phase at one instant, or none.
    AllOrNothing,
    /// The same, with fewer ports and then fewer paths after some blocked requests.
    Degrade,
}

/// All policies; the first is the default.
pub const POLICIES: &[PolicyRecord<BlockingPolicy>] = &[
    PolicyRecord {
        name: "all_or_nothing",
        summary: "All lightpaths of a phase at one instant or none; who waits holds nothing",
        citation: "",
        policy: BlockingPolicy::AllOrNothing,
    },
    PolicyRecord {
        name: "retry",
        summary: "Each lightpath by itself; those granted are held while others are tried again",
        citation: "",
        policy: BlockingPolicy::Retry,
    },
    PolicyRecord {
        name: "degrade",
        summary: "As all_or_nothing, with a port fewer and then half the paths after some blocked requests",
        citation: "",
        policy: BlockingPolicy::Degrade,
    },
];

/// What a collective needs of lightpaths, and what it does where they are blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion {
    /// What follows blocking.
    pub policy: BlockingPolicy,
    /// Lightpaths that a host of a collective can hold at once.
    pub ports: u32,
    /// Of a message, beyond propagation and transmission.
    pub latency: Time,
    /// From when the paths of a phase are granted until they carry light.
    pub establish: Time,
    /// From the end of a phase until its wavelengths are free.
    pub release: Time,
    /// How often a blocked request is made again, at most.
    pub retries: u32,
    /// The wait after the first blocking, on average.
    pub back_off: Time,
    /// The longest wait, on average.
    pub longest_back_off: Time,
    /// Blocked requests after which a phase is cut.
    pub degrade_after: u32,
}

impl Default for Congestion {
    /// Latency, establishment and release as in the paper; waits from one to a hundred times those 10 ms.
    fn default() -> Congestion {
        Congestion {
            policy: BlockingPolicy::AllOrNothing,
            ports: 1,
            latency: Time::from_ps(100_000_000),
            establish: Time::from_ps(5_000_000_000),
            release: Time::from_ps(5_000_000_000),
            retries: 20,
            back_off: Time::from_ps(10_000_000_000),
            longest_back_off: Time::from_ps(1_000_000_000_000),
            degrade_after: 3,
        }
    }
}

/// All settings that are given as text.
pub const SETTINGS: &[SettingDeclaration<Congestion>] = settings! {
    Congestion, HelpLevel::All, &["burst"];
    "congestion" .policy: "Reaction to a blocked request: all_or_nothing, retry or degrade",
        records(POLICIES), "all_or_nothing" => HelpLevel::Usual;
    "ports" .ports: "Number of circuits that a host can have at the same time", whole(1, 1 << 20), "1" => HelpLevel::Usual;
    "latency" .latency: "Latency of a message beyond propagation", time, "100us";
    "establish" .establish: "Setup time of granted circuits", time, "5ms";
    "release" .release: "Release time of the wavelengths of a phase that ended", time, "5ms";
    "retries" .retries: "Maximum number of retries of a blocked request", whole(0, 1 << 20), "20" => HelpLevel::Usual;
    "back_off" .back_off: "Mean wait after the first blocking, doubled after each further one", time, "10ms";
    "longest_back_off" .longest_back_off: "Maximum of the mean wait", time, "1s";
    "degrade_after" .degrade_after: "Number of blocked requests after which degrade cuts a phase", whole(1, 1 << 20), "3";
};

/// Settings of bursts that a collective, which runs to its end, leaves without effect.
const OF_MEASUREMENTS: &[&str] = &["bursts", "relative_error"];

impl Congestion {
    /// The settings of lightpaths and of the bursts beside them that names and texts give; see
    /// [`SETTINGS`] and [`settings::SETTINGS`].
    ///
    /// # Errors
    /// An unknown setting, one without effect here, or a value that is none.
    pub fn from_texts<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(Congestion, BurstSettings), BurstError> {
        let mut congestion = Congestion::default();
        let mut of_bursts = Vec::new();
        for (name, text) in texts {
            let refuse = |setting, problem| BurstError::Setting { setting, problem };
            if let Some(own) = find(SETTINGS, name) {
                let applied = own.apply(&mut congestion, text);
                applied.map_err(|problem| refuse(own.record.name, problem))?;
                continue;
            }
            if let Some(setting) = OF_MEASUREMENTS.iter().find(|one| **one == name) {
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
            of_bursts.push((name, text));
        }
        Ok((congestion, BurstSettings::from_texts(of_bursts)?))
    }

    /// Refuses what no run can have.
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
        if self.longest_back_off < self.back_off {
            return refuse("longest_back_off", "must not be less than back_off");
        }
        Ok(())
    }
}
