//! The settings of a packet simulation by name and text, as the command line and scenario files give
//! them. Each is one record; what is not set is as in [`Options::default`].
//!
//! ```
//! use opticoll::simulate::packet::{Routing, PacketSettings};
//! let mut settings = PacketSettings::default();
//! settings.set("routing", "valiant")?;
//! settings.set("buffers", "16KiB,32KiB,16KiB")?;
//! assert_eq!(settings.options.routing, Routing::NonMinimal);
//! assert!(settings.set("buffers", "16KiB").is_err());
//! # Ok::<(), String>(())
//! ```

use super::{Arbitration, Buffers, Issue, Options, Overheads, RouterDelay, Routing, Traffic};
use crate::hash::shuffled;
use crate::simulate::setting::{
    Setting, SettingRecord, Values, find, names, one_of, parsed, set, whole, words,
};
use crate::spelling::suggest;
use crate::units::{Bytes, Time};

/// Everything that settings say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketSettings {
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

/// All settings of packets alone.
pub const SETTINGS: &[Setting<PacketSettings>] = &[
    setting(
        "routing",
        "The way of chunks on a dragonfly: minimal, valiant, adaptive or progressive",
        Values::Words(|| words(ROUTINGS)),
        "minimal",
        |settings, text| set(&mut settings.options.routing, one_of(text, ROUTINGS)),
    ),
    setting(
        "packet",
        "Bytes of a packet",
        Values::Bytes,
        "2048B",
        |settings, text| set(&mut settings.options.packet, parsed(text)),
    ),
    setting(
        "chunk",
        "Bytes of a chunk, which is routed, buffered and sent as one",
        Values::Bytes,
        "512B",
        |settings, text| set(&mut settings.options.chunk, parsed(text)),
    ),
    setting(
        "buffers",
        "Of each virtual channel of local, global and terminal links",
        Values::Text("three sizes, such as 16KiB,32KiB,16KiB"),
        "16KiB,32KiB,16KiB",
        buffers,
    ),
    setting(
        "router_delay",
        "The time that a chunk takes through a router",
        Values::Time,
        "50ns",
        |settings, text| set(&mut settings.options.router_delay, parsed(text)),
    ),
    setting(
        "router_delay_rule",
        "Whether that keeps the output port busy: pipelined or occupies_port",
        Values::Words(|| words(RULES)),
        "pipelined",
        |settings, text| set(&mut settings.options.router_delay_rule, one_of(text, RULES)),
    ),
    setting(
        "credit_delay",
        "The time that a credit takes beside the latency of its link",
        Values::Time,
        "1.42ns",
        |settings, text| set(&mut settings.options.credit_delay, parsed(text)),
    ),
    setting(
        "arbitration",
        "Which virtual channel a free link serves: ahead, strict or round_robin",
        Values::Words(|| words(ARBITRATIONS)),
        "ahead",
        |settings, text| {
            set(
                &mut settings.options.arbitration,
                one_of(text, ARBITRATIONS),
            )
        },
    ),
    setting(
        "small_delays",
        "Delays of hand-overs inside terminals and routers: codes or none",
        Values::Words(|| words(OVERHEADS)),
        "codes",
        |settings, text| set(&mut settings.options.overheads, one_of(text, OVERHEADS)),
    ),
    setting(
        "jitter",
        "A seed to draw the small delays from their ranges",
        Values::Whole(0, u64::MAX),
        "none",
        |settings, text| {
            settings.options.jitter = Some(whole(text, 0, u64::MAX)?);
            Ok(())
        },
    ),
    setting(
        "routing_seed",
        "What the random groups of routing depend on",
        Values::Whole(0, u64::MAX),
        "1",
        |settings, text| {
            settings.options.seed = whole(text, 0, u64::MAX)?;
            Ok(())
        },
    ),
    setting(
        "virtual_channels",
        "At most so many on a link, to see what they are for",
        Values::Whole(1, u32::MAX as u64),
        "as many as routes need",
        |settings, text| {
            settings.options.virtual_channels = Some(whole(text, 1, u32::MAX.into())? as u32);
            Ok(())
        },
    ),
    setting(
        "cores",
        "Threads that the groups of a dragonfly are divided among, for minimal and valiant \
                  routes; the result is the same",
        Values::Whole(1, u8::MAX as u64),
        "1",
        |settings, text| {
            settings.options.cores = whole(text, 1, u8::MAX.into())? as u32;
            Ok(())
        },
    ),
    setting(
        "issue",
        "How a rank sends the messages of a step: sequential (each when the one before \
                  has left) or together",
        Values::Words(|| words(ISSUES)),
        "sequential",
        |settings, text| set(&mut settings.issue, one_of(text, ISSUES)),
    ),
    setting(
        "overhead",
        "The time that a rank spends before each send",
        Values::Time,
        "0s",
        |settings, text| set(&mut settings.overhead, parsed(text)),
    ),
    setting(
        "placement",
        "The terminals of the ranks: natural, shuffled-SEED, or all joined by -",
        Values::Text("natural, shuffled-SEED, or all terminals joined by -"),
        "natural",
        placement,
    ),
];

/// A setting of packets.
const fn setting(
    name: &'static str,
    summary: &'static str,
    values: Values,
    default: &'static str,
    apply: fn(&mut PacketSettings, &str) -> Result<(), String>,
) -> Setting<PacketSettings> {
    Setting::new(name, summary, values, default, &["packet"], apply).further()
}

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

impl PacketSettings {
    /// Sets what has a name to what a text says.
    ///
    /// # Errors
    /// No setting has this name, or why its value does not fit.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let setting = find(SETTINGS, name).ok_or_else(|| suggest(name, names(SETTINGS)))?;
        setting.apply(self, text)?;
        let mut alone = PacketSettings::default();
        setting.apply(&mut alone, text)?;
        let SettingRecord { name, default, .. } = setting.record;
        self.changed.retain(|(other, ..)| *other != name);
        if alone != PacketSettings::default() {
            self.changed.push((name, text.trim().into(), default));
        }
        Ok(())
    }

    /// Whether what has this name was set to something else than its default.
    pub fn has(&self, name: &str) -> bool {
        self.changed.iter().any(|(other, ..)| *other == name)
    }
}

fn buffers(settings: &mut PacketSettings, text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').collect();
    let [local, global, terminal] = parts[..] else {
        return Err("must be three sizes, such as 16KiB,32KiB,16KiB".into());
    };
    let mut sizes = [Bytes::new(0); 3];
    for (size, part) in sizes.iter_mut().zip([local, global, terminal]) {
        set(size, parsed(part.trim()))?;
    }
    let [local, global, terminal] = sizes;
    settings.options.buffers = Buffers {
        local,
        global,
        terminal,
    };
    Ok(())
}

fn placement(settings: &mut PacketSettings, text: &str) -> Result<(), String> {
    let shuffled = text.strip_prefix("shuffled");
    settings.placement = match (text, shuffled) {
        ("natural", _) => Placement::Natural,
        (_, Some("")) => Placement::Shuffled(1),
        (_, Some(seed)) => Placement::Shuffled(whole(seed.trim_start_matches('-'), 0, u64::MAX)?),
        _ => {
            let terminals: Option<Vec<u32>> = text.split('-').map(|one| one.parse().ok()).collect();
            let problem = "must be natural, shuffled-SEED, or all terminals joined by -";
            Placement::Given(terminals.ok_or(problem)?)
        }
    };
    Ok(())
}
