//! The settings of a packet simulation by name and text, as the command line and scenario files give
//! them. Each is one record; what is not set is as in [`Options::default`].
//!
//! ```
//! use opticoll::simulate::packet::{Routing, Settings};
//! let mut settings = Settings::default();
//! settings.set("routing", "valiant")?;
//! settings.set("buffers", "16KiB,32KiB,16KiB")?;
//! assert_eq!(settings.options.routing, Routing::NonMinimal);
//! assert!(settings.set("buffers", "16KiB").is_err());
//! # Ok::<(), String>(())
//! ```

use std::str::FromStr;

use super::{Arbitration, Buffers, Issue, Options, Overheads, RouterDelay, Routing, Traffic};
use crate::hash::shuffled;
use crate::spelling::{same_name, shown, suggest};
use crate::units::{Bytes, Time, UnitError};

/// Everything that settings say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The parameters of the model.
    pub options: Options,
    /// How a rank issues the messages of a step.
    pub issue: Issue,
    /// What a rank spends before each send.
    pub overhead: Time,
    /// Where ranks are.
    pub placement: Placement,
    /// Traffic beside the collective.
    pub background: Vec<Traffic>,
    /// What was set to something else than its default: name, text, default.
    pub changed: Vec<(&'static str, String, &'static str)>,
}

/// Where ranks are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placement {
    /// Rank r at terminal r.
    #[default]
    Natural,
    /// Shuffled with a seed.
    Shuffled(u64),
    /// The terminal of each rank.
    Given(Vec<u32>),
}

impl Placement {
    /// The terminal of each of so many ranks; `None` where it is the rank's number.
    pub fn terminals(&self, ranks: u32) -> Option<Vec<u32>> {
        match self {
            Placement::Natural => None,
            Placement::Shuffled(seed) => Some(shuffled(ranks, *seed)),
            Placement::Given(terminals) => Some(terminals.clone()),
        }
    }
}

/// The declaration of a setting.
pub struct Setting {
    /// As typed.
    pub name: &'static str,
    /// One sentence: meaning and values.
    pub summary: &'static str,
    /// What holds where nothing is given.
    pub default: &'static str,
    apply: fn(&mut Settings, &str) -> Result<(), String>,
}

/// All settings of packets alone.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "routing",
        summary: "The way of chunks on a dragonfly: minimal, valiant, adaptive or progressive",
        default: "minimal",
        apply: |settings, text| choose(&mut settings.options.routing, text, ROUTINGS),
    },
    Setting {
        name: "packet",
        summary: "Bytes of a packet",
        default: "2048B",
        apply: |settings, text| unit(&mut settings.options.packet, text),
    },
    Setting {
        name: "chunk",
        summary: "Bytes of a chunk, which is routed, buffered and sent as one",
        default: "512B",
        apply: |settings, text| unit(&mut settings.options.chunk, text),
    },
    Setting {
        name: "buffers",
        summary: "Of each virtual channel of local, global and terminal links",
        default: "16KiB,32KiB,16KiB",
        apply: buffers,
    },
    Setting {
        name: "router_delay",
        summary: "The time that a chunk takes through a router",
        default: "50ns",
        apply: |settings, text| unit(&mut settings.options.router_delay, text),
    },
    Setting {
        name: "router_delay_rule",
        summary: "Whether that keeps the output port busy: pipelined or occupies_port",
        default: "pipelined",
        apply: |settings, text| choose(&mut settings.options.router_delay_rule, text, RULES),
    },
    Setting {
        name: "credit_delay",
        summary: "The time that a credit takes beside the latency of its link",
        default: "1.42ns",
        apply: |settings, text| unit(&mut settings.options.credit_delay, text),
    },
    Setting {
        name: "arbitration",
        summary: "Which virtual channel a free link serves: ahead, strict or round_robin",
        default: "ahead",
        apply: |settings, text| choose(&mut settings.options.arbitration, text, ARBITRATIONS),
    },
    Setting {
        name: "small_delays",
        summary: "Delays of hand-overs inside terminals and routers: codes or none",
        default: "codes",
        apply: |settings, text| choose(&mut settings.options.overheads, text, OVERHEADS),
    },
    Setting {
        name: "jitter",
        summary: "A seed to draw the small delays from their ranges",
        default: "none",
        apply: |settings, text| {
            settings.options.jitter = Some(number(text, u64::MAX)?);
            Ok(())
        },
    },
    Setting {
        name: "routing_seed",
        summary: "What the random groups of routing depend on",
        default: "1",
        apply: |settings, text| {
            settings.options.seed = number(text, u64::MAX)?;
            Ok(())
        },
    },
    Setting {
        name: "virtual_channels",
        summary: "At most so many on a link, to see what they are for",
        default: "as many as routes need",
        apply: |settings, text| {
            settings.options.virtual_channels = Some(number(text, u32::MAX)?);
            Ok(())
        },
    },
    Setting {
        name: "cores",
        summary: "Threads that the groups of a dragonfly are divided among, for minimal and valiant \
                  routes; the result is the same",
        default: "1",
        apply: |settings, text| {
            settings.options.cores = match number(text, u8::MAX)? {
                0 => return Err("must be at least 1".into()),
                cores => cores.into(),
            };
            Ok(())
        },
    },
    Setting {
        name: "issue",
        summary: "How a rank sends the messages of a step: sequential (each when the one before \
                  has left) or together",
        default: "sequential",
        apply: |settings, text| choose(&mut settings.issue, text, ISSUES),
    },
    Setting {
        name: "overhead",
        summary: "The time that a rank spends before each send",
        default: "0s",
        apply: |settings, text| unit(&mut settings.overhead, text),
    },
    Setting {
        name: "placement",
        summary: "The terminals of the ranks: natural, shuffled-SEED, or all joined by -",
        default: "natural",
        apply: placement,
    },
];

/// Routings as typed.
const ROUTINGS: &[(&str, Routing)] = &[
    ("minimal", Routing::Minimal),
    ("valiant", Routing::NonMinimal),
    ("adaptive", Routing::Adaptive),
    ("progressive", Routing::Progressive),
];
const RULES: &[(&str, RouterDelay)] = &[
    ("pipelined", RouterDelay::Pipelined),
    ("occupies_port", RouterDelay::OccupiesPort),
];
const ARBITRATIONS: &[(&str, Arbitration)] = &[
    ("ahead", Arbitration::Ahead),
    ("strict", Arbitration::Strict),
    ("round_robin", Arbitration::RoundRobin),
];
const OVERHEADS: &[(&str, Overheads)] = &[("codes", Overheads::CODES), ("none", Overheads::NONE)];
const ISSUES: &[(&str, Issue)] = &[
    ("sequential", Issue::Sequential),
    ("together", Issue::Together),
];

impl Issue {
    /// As typed.
    pub fn name(self) -> &'static str {
        ISSUES[self as usize].0
    }
}

impl Settings {
    /// Sets what has a name to what a text says.
    ///
    /// # Errors
    /// No setting has this name, or why its value does not fit.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(setting) = SETTINGS.iter().find(|one| same_name(one.name, name)) else {
            return Err(suggest(name, SETTINGS.iter().map(|one| one.name)));
        };
        let text = text.trim();
        let refused = |problem: String| format!("`{}` {problem}", shown(text));
        (setting.apply)(self, text).map_err(refused)?;
        let mut alone = Settings::default();
        (setting.apply)(&mut alone, text).map_err(refused)?;
        self.changed.retain(|(other, ..)| *other != setting.name);
        if alone != Settings::default() {
            self.changed
                .push((setting.name, text.into(), setting.default));
        }
        Ok(())
    }

    /// Whether what has this name was set to something else than its default.
    pub fn has(&self, name: &str) -> bool {
        self.changed.iter().any(|(other, ..)| *other == name)
    }
}

fn choose<T: Copy>(place: &mut T, text: &str, known: &[(&str, T)]) -> Result<(), String> {
    let found = known.iter().find(|(name, _)| same_name(name, text));
    let names = known.iter().map(|(name, _)| *name);
    *place = found
        .ok_or_else(|| format!("is not known{}", suggest(text, names)))?
        .1;
    Ok(())
}

fn unit<T: FromStr<Err = UnitError>>(place: &mut T, text: &str) -> Result<(), String> {
    *place = text
        .parse()
        .map_err(|error| format!("does not fit: {error}"))?;
    Ok(())
}

fn number<T: FromStr + std::fmt::Display>(text: &str, most: T) -> Result<T, String> {
    let parsed = text.parse();
    parsed.map_err(|_| format!("must be a whole number from 0 to {most}"))
}

fn buffers(settings: &mut Settings, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [local, global, terminal] = parts[..] else {
        return Err("must be three sizes, such as 16KiB,32KiB,16KiB".into());
    };
    let mut sizes = [Bytes::new(0); 3];
    for (size, part) in sizes.iter_mut().zip([local, global, terminal]) {
        unit(size, part.trim())?;
    }
    let [local, global, terminal] = sizes;
    settings.options.buffers = Buffers {
        local,
        global,
        terminal,
    };
    Ok(())
}

fn placement(settings: &mut Settings, text: &str) -> Result<(), String> {
    let shuffled = text.strip_prefix("shuffled");
    settings.placement = match (text, shuffled) {
        ("natural", _) => Placement::Natural,
        (_, Some("")) => Placement::Shuffled(1),
        (_, Some(seed)) => Placement::Shuffled(number(seed.trim_start_matches('-'), u64::MAX)?),
        _ => {
            let terminals: Option<Vec<u32>> = text.split('-').map(|one| one.parse().ok()).collect();
            let problem = "must be natural, shuffled-SEED, or all terminals joined by -";
            Placement::Given(terminals.ok_or(problem)?)
        }
    };
    Ok(())
}
