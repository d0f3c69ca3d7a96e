//! Settings of packet simulations as names and texts, for the command line and scenario files. Each
//! setting is one record. A setting that is not given has the value of [`PacketOptions::default`].
//!
//! ```
//! use opticoll_simulate::packet::{PacketRouting, PacketSettings};
//! let mut settings = PacketSettings::default();
//! settings.set("routing", "valiant")?;
//! settings.set("buffers", "16KiB,32KiB,16KiB")?;
//! assert_eq!(settings.options.routing, PacketRouting::NonMinimal);
//! assert!(settings.set("buffers", "16KiB").is_err());
//! # Ok::<(), String>(())
//! ```

use super::{
    Arbitration, Buffers, Issue, Overheads, PacketOptions, PacketRouting, RouterDelay, Traffic,
};
use crate::setting::{
    HelpLevel, SettingDeclaration, SettingRecord, find, names, parse_value, parse_whole, settings,
};
use opticoll_base::hash::shuffled;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::units::Time;

/// Values of all settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketSettings {
    /// Parameters of the model.
    pub options: PacketOptions,
    /// Order in which a rank sends the messages of a step.
    pub issue: Issue,
    /// Time that a rank spends before each message that it sends.
    pub overhead: Time,
    /// Rule that assigns ranks to terminals.
    pub placement: RankPlacement,
    /// Traffic in addition to the collective.
    pub background: Vec<Traffic>,
    /// Settings that differ from their defaults: name, text of the value, text of the default.
    pub changed: Vec<(&'static str, String, &'static str)>,
}

/// Rule that assigns ranks to terminals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RankPlacement {
    /// Rank r is at terminal r.
    #[default]
    Natural,
    /// The terminals of the ranks are shuffled with this seed.
    Shuffled(u64),
    /// The terminal of each rank is given, indexed by rank.
    Given(Vec<u32>),
}

impl RankPlacement {
    /// Returns the terminal of each of `ranks` ranks, or `None` if rank r is at terminal r.
    pub fn terminals(&self, ranks: u32) -> Option<Vec<u32>> {
        match self {
            RankPlacement::Natural => None,
            RankPlacement::Shuffled(seed) => Some(shuffled(ranks, *seed)),
            RankPlacement::Given(terminals) => Some(terminals.clone()),
        }
    }
}

/// Settings that only packet simulations have.
pub const SETTINGS: &[SettingDeclaration<PacketSettings>] = settings! {
    PacketSettings, HelpLevel::All, &["packet"];
    "routing" .options.routing: "Routing of chunks on a dragonfly: minimal, valiant, adaptive or \
        progressive",
        words(&PacketRouting::WORDS), "minimal";
    "packet" .options.packet: "Size of a packet", bytes, "2048B";
    "chunk" .options.chunk: "Size of a chunk, the unit that routers route, buffer and send",
        bytes, "512B";
    "buffers" .options.buffers: "Buffer sizes of each virtual channel of local, global and \
        terminal links",
        text("three sizes, such as 16KiB,32KiB,16KiB", buffers), "16KiB,32KiB,16KiB";
    "router_delay" .options.router_delay: "Delay of a chunk in a router", time, "50ns";
    "router_delay_rule" .options.router_delay_rule: "Effect of the router delay on the output \
        port: pipelined or occupies_port",
        words(&RouterDelay::WORDS), "pipelined";
    "credit_delay" .options.credit_delay: "Delay of a credit in addition to the latency of its \
    link",
        time, "1.42ns";
    "arbitration" .options.arbitration: "Order in which a free link serves virtual channels: \
        ahead, strict or round_robin",
        words(&Arbitration::WORDS), "ahead";
    "small_delays" .options.overheads: "Small delays inside terminals and routers: codes \
        (as in CODES) or none",
        words(OVERHEADS), "codes";
    "jitter" .options.jitter: "Seed of random variations of the small delays",
        text("none, or a whole number", jitter), "none";
    "routing_seed" .options.seed: "Seed of the random intermediate groups of routes",
        whole(0, u64::MAX), "1";
    "virtual_channels" .options.virtual_channels: "Maximum number of virtual channels of a link",
        whole(1, u32::MAX as u64) Some, "the number that routes need";
    "cores" .options.cores: "Number of threads that simulate a dragonfly with minimal or valiant \
        routes; the result does not depend on it",
        whole(1, u8::MAX as u64), "1";
    "issue" .issue: "Order in which a rank sends the messages of a step: sequential (each after \
        the previous one has left) or together",
        words(&Issue::WORDS), "sequential";
    "overhead" .overhead: "Time that a rank spends before each send", time, "0s";
    "placement" .placement: "Terminals of the ranks: natural, shuffled-SEED, or a list of all \
        terminals joined by -",
        text("natural, shuffled-SEED, or all terminals joined by -", placement), "natural";
};

fn jitter(text: &str) -> Result<Option<u64>, String> {
    match same_name(text, "none") {
        true => Ok(None),
        false => parse_whole(text, 0, u64::MAX).map(Some),
    }
}

const OVERHEADS: &[(&str, Overheads)] = &[("codes", Overheads::CODES), ("none", Overheads::NONE)];

impl PacketSettings {
    /// Sets the setting `name` to the value that `text` describes.
    ///
    /// # Errors
    /// Returns an error if no setting has this name or the setting does not accept the value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let setting = find(SETTINGS, name).ok_or_else(|| suggest(name, names(SETTINGS)))?;
        setting.apply(self, text)?;
        let SettingRecord { name, default, .. } = setting.record;
        self.changed.retain(|(other, ..)| *other != name);
        if (setting.differs)(self) {
            self.changed.push((name, text.trim().into(), default));
        }
        Ok(())
    }
}

fn buffers(text: &str) -> Result<Buffers, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [local, global, terminal] = parts[..] else {
        return Err("must be three sizes, such as 16KiB,32KiB,16KiB".into());
    };
    Ok(Buffers {
        local: parse_value(local)?,
        global: parse_value(global)?,
        terminal: parse_value(terminal)?,
    })
}

fn placement(text: &str) -> Result<RankPlacement, String> {
    Ok(match (text, text.strip_prefix("shuffled")) {
        ("natural", _) => RankPlacement::Natural,
        (_, Some("")) => RankPlacement::Shuffled(1),
        (_, Some(seed)) => {
            RankPlacement::Shuffled(parse_whole(seed.trim_start_matches('-'), 0, u64::MAX)?)
        }
        _ => {
            let terminals: Option<Vec<u32>> =
                text.split('-').map(|number| number.parse().ok()).collect();
            let problem = "must be natural, shuffled-SEED, or all terminals joined by -";
            RankPlacement::Given(terminals.ok_or(problem)?)
        }
    })
}
