//! How bursts are generated, signalled and given wavelengths: typed for programs, as text for people.

use std::fmt::Display;

use super::BurstError;
use crate::setting::{
    HelpLevel, SettingDeclaration, SettingRecord, SettingValues, find, names, one_of, parsed,
    positive, settings, whole, words,
};
use opticoll_base::names::{same_name, shown, suggest};
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};

opticoll_base::named_enum! {
    /// What generates bursts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BurstSource {
        /// The same before a queue and one transmitter.
        Transmitter = "transmitter",
        /// A Poisson process at each host; bursts of one host may overlap.
        Poisson = "poisson",
        /// Send, pause for an exponential time, send again: a finite source.
        OnOff = "on_off",
    }

    /// How the lengths of bursts are distributed, about the same mean.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Length {
        /// All are of the mean length.
        Constant = "constant",
        /// Exponential.
        Exponential = "exponential",
        /// Uniform from nothing to twice the mean.
        Uniform = "uniform",
    }

    /// To whom a host sends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Destinations {
        /// To each other host alike.
        Everyone = "everyone",
        /// To each host of other nodes alike.
        OtherNodes = "other_nodes",
    }

    /// Who asks whom before a burst is sent; see [the model](super).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Signalling {
        /// Two ways: the whole route is granted or blocked before the burst is sent.
        TwoWay = "two_way",
        /// Just enough time: one way, links are held from when the burst comes.
        Jet = "jet",
        /// Just in time: one way, links are held from when control comes.
        Jit = "jit",
    }

    /// What a transmitter does whose setup was blocked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AfterBlocking {
        /// It is silent for as long as the burst would have taken: what hosts offer does not depend on
        /// what is lost.
        Silent = "silent",
        /// It goes on at once. What it sends next comes just when the network is full.
        Next = "next",
    }

    /// Which of the free wavelengths is taken. On a link, free is a wavelength without reservation
    /// in the interval needed; without converters, and with the whole route known, one that is so on all links.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WavelengthChoice {
        /// The lowest.
        FirstFit = "first_fit",
        /// Each alike.
        Random = "random",
        /// LAUC: of those with no reservation at or after the interval, the one whose last ends latest;
        /// on several links the latest sum. Voids stay unused.
        Horizon = "horizon",
        /// LAUC-VF: the one whose last reservation before the interval ends latest, voids included.
        LaucVf = "lauc_vf",
        /// The one that succeeded most often of all tries between these nodes, counted with one success more in
        /// two more tries; the lowest of equals. A try succeeds if the burst goes all the way, whichever link would
        /// have blocked it. Better ones that turn out not to be free on the whole route count as tried. All tries
        /// count alike, however long ago, so that scores settle only after thousands for each pair.
        Pwa = "pwa",
        /// The first from W s / N on, in a circle, at node s of N.
        SourceOffset = "source_offset",
    }

    /// Which way bursts go.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BurstRouting {
        /// The fabric's own route.
        Fixed = "fixed",
        /// Of the routes with the fewest links, the one whose fullest link has the fewest wavelengths held
        /// now or later, when control is sent; the fabric's own, then the lowest links of equals.
        LeastLoaded = "least_loaded",
    }
}

/// How bursts are put together from packets, one burst per pair of hosts at a time: it is
/// ready as soon as it has the size, or when its first packet has waited for the time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstAssembly {
    /// Bytes of each packet.
    pub packet: Bytes,
    /// Bytes that are enough. None: only the time-out counts.
    pub size: Option<Bytes>,
    /// The longest wait. None: only the size counts.
    pub time_out: Option<Time>,
}

/// What can change a burst's wavelength.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converters {
    /// Nothing.
    None,
    /// Every node, for every burst.
    Full,
    /// Each node, for so many bursts at once. A burst keeps its wavelength where it can.
    /// Where the whole route is known, it takes as few converters as possible.
    PerNode(u32),
}

/// All of them. Times are zero by default: bursts are long against propagation and processing.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstSettings {
    /// What generates bursts.
    pub source: BurstSource,
    /// Bursts per time and host, times their length: Erlang.
    pub offered_load: f64,
    /// The mean size of a burst.
    pub size: Bytes,
    /// The distribution about it.
    pub length: Length,
    /// To whom.
    pub destinations: Destinations,
    /// Bursts put together from packets; then size and length have no say.
    pub assembly: Option<BurstAssembly>,
    /// Who asks whom.
    pub signalling: Signalling,
    /// What follows a setup that was blocked. For two-way signalling.
    pub blocked: AfterBlocking,
    /// Time between control and burst beyond what is needed. For one-way signalling.
    pub offset: Time,
    /// How long a node works on a control message.
    pub processing: Time,
    /// How long a switch takes to be set.
    pub switching: Time,
    /// Which wavelength.
    pub assignment: WavelengthChoice,
    /// What can change it.
    pub converters: Converters,
    /// Which way.
    pub routing: BurstRouting,
    /// Bursts that a host can receive at once. None: any number.
    pub receivers: Option<u32>,
    /// Bursts to measure, at most.
    pub bursts: u64,
    /// Bursts before them, in each replication. None: 1000 for each host.
    pub warm_up: Option<u64>,
    /// Enough are measured when half the confidence interval is at most this share of the loss.
    pub relative_error: Option<f64>,
    /// Runs of their own, side by side.
    pub replications: u32,
    /// What all draws depend on.
    pub seed: u64,
    /// Keep every burst with what it held.
    pub record: bool,
}

impl Default for BurstSettings {
    fn default() -> BurstSettings {
        BurstSettings {
            source: BurstSource::Transmitter,
            offered_load: 0.9,
            size: Bytes::new(125_000_000),
            length: Length::Constant,
            destinations: Destinations::Everyone,
            assembly: None,
            signalling: Signalling::TwoWay,
            blocked: AfterBlocking::Silent,
            offset: Time::ZERO,
            processing: Time::ZERO,
            switching: Time::ZERO,
            assignment: WavelengthChoice::FirstFit,
            converters: Converters::None,
            routing: BurstRouting::Fixed,
            receivers: None,
            bursts: 1_000_000,
            warm_up: None,
            relative_error: None,
            replications: 4,
            seed: 1,
            record: false,
        }
    }
}

/// All settings that are given as text.
pub const SETTINGS: &[SettingDeclaration<BurstSettings>] = settings! {
    BurstSettings, HelpLevel::All, &["burst"];
    "source" .source: "Generator of bursts: transmitter (Poisson, one at a time per host), poisson or on_off",
        words(&BurstSource::WORDS), "transmitter";
    "offered_load" .offered_load: "Offered load of a host in erlang: bursts per time, times their length", positive, "0.9" => HelpLevel::Usual;
    "size" .size: "Mean size of a burst", bytes, "125MB" => HelpLevel::Usual;
    "length" .length: "Distribution of burst lengths about their mean: constant, exponential or uniform",
        words(&Length::WORDS), "constant";
    "destinations" .destinations: "Hosts that a host sends to: everyone, or those of other_nodes",
        words(&Destinations::WORDS), "everyone";
    "assembly" .assembly: "Assembly of bursts from packets, ready by size, by time-out or by the first of both: packets:packet=1MB,size=125MB,time_out=1s",
        text("none, or packets:packet=1MB,size=125MB,time_out=1s", assembly), "none";
    "signalling" .signalling: "Signalling before a burst: two_way (the whole path first), jet or jit (one way)",
        words(&Signalling::WORDS), "two_way" => HelpLevel::Usual;
    "blocked" .blocked: "Reaction of a transmitter to a blocked setup of two_way: silent (idle for the burst's duration) or next (sends the next burst at once)",
        words(&AfterBlocking::WORDS), "silent";
    "offset" .offset: "Time between control message and burst beyond what is needed; for jet and jit",
        time, "0s";
    "processing" .processing: "Processing time of a control message at a node", time, "0s";
    "switching" .switching: "Setup time of a switch", time, "0s";
    "assignment" .assignment: "Assignment of a free wavelength: first_fit, random, horizon, lauc_vf, pwa or source_offset",
        words(&WavelengthChoice::WORDS), "first_fit" => HelpLevel::Usual;
    "converters" .converters: "Number of bursts whose wavelength a node can convert at the same time: none, full or a number",
        text("none, full or a whole number", converters), "none";
    "routing" .routing: "Routing of bursts: fixed, or least_loaded of the shortest routes", words(&BurstRouting::WORDS), "fixed" => HelpLevel::Usual;
    "receivers" .receivers: "Number of bursts that a host can receive at the same time, or unlimited",
        text("unlimited or a whole number from 1 to 65536", receivers), "unlimited";
    "bursts" .bursts: "Maximum number of measured bursts, such as 1e7", whole(1, 1 << 50), "1e6";
    "warm_up" .warm_up: "Number of bursts of each replication before measurement, such as 1e5",
        whole(0, 1 << 50) Some, "1000 for each host";
    "relative_error" .relative_error: "Relative error at which measurement stops: half the confidence interval of the burst loss ratio",
        positive Some, "none: all bursts";
    "replications" .replications: "Number of independent replications",
        whole(1, 1 << 10), "4" => HelpLevel::Usual;
    "seed" .seed: "Seed of all random draws", whole(0, u64::MAX), "1";
};

impl BurstSettings {
    /// The settings that names and texts give; see [`SETTINGS`].
    ///
    /// # Errors
    /// An unknown setting, or a value that is none; see [`BurstError::setting`].
    pub fn from_texts<'a>(
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<BurstSettings, BurstError> {
        let mut settings = BurstSettings::default();
        for (name, text) in texts {
            let setting = find(SETTINGS, name).ok_or_else(|| BurstError::Unknown {
                name: name.into(),
                hint: suggest(name, names(SETTINGS)),
            })?;
            let applied = setting.apply(&mut settings, text);
            applied.map_err(|problem| BurstError::Setting {
                setting: setting.record.name,
                problem,
            })?;
        }
        Ok(settings)
    }

    /// Refuses what no run can have.
    pub(super) fn check(&self) -> Result<(), BurstError> {
        let refuse = |setting, problem: &str| {
            Err(BurstError::Setting {
                setting,
                problem: problem.into(),
            })
        };
        if !(self.offered_load.is_finite() && self.offered_load > 0.0) {
            return refuse("offered_load", "must be greater than 0");
        }
        if self.offered_load >= 1.0 && self.source != BurstSource::Poisson {
            return refuse(
                "offered_load",
                "one transmitter sends less than one burst at a time: use an offered load below 1, or \
                 source poisson",
            );
        }
        if self.size.get() == 0 {
            return refuse("size", "a burst has at least one byte");
        }
        if self.offset > Time::ZERO && self.signalling == Signalling::TwoWay {
            return refuse("offset", "only one-way signalling has one: use jet or jit");
        }
        if self.assembly.is_some() && self.source == BurstSource::OnOff {
            return refuse(
                "assembly",
                "on_off sources send whole bursts: use transmitter or poisson",
            );
        }
        if let Some(assembly) = self.assembly {
            assembly
                .check()
                .or_else(|problem| refuse("assembly", problem))?;
        }
        if self.replications == 0 || self.bursts == 0 {
            return refuse("bursts", "at least one burst in one replication");
        }
        if self.receivers == Some(0) {
            return refuse("receivers", "must be at least 1");
        }
        match self.relative_error {
            Some(error) if !(error.is_finite() && error > 0.0) => {
                refuse("relative_error", "must be greater than 0")
            }
            _ => Ok(()),
        }
    }
}

impl BurstAssembly {
    fn check(&self) -> Result<(), &'static str> {
        match (self.size, self.time_out) {
            _ if self.packet.get() == 0 => Err("a packet has at least one byte"),
            (None, None) => Err("give size=..., time_out=... or both, or no burst is ever ready"),
            (_, Some(Time::ZERO)) => Err("time_out must be longer than nothing"),
            _ => Ok(()),
        }
    }
}

fn receivers(text: &str) -> Result<Option<u32>, String> {
    match same_name(text, "unlimited") {
        true => Ok(None),
        false => whole(text, 1, 1 << 16).map(Some),
    }
}

fn converters(text: &str) -> Result<Converters, String> {
    if same_name(text, "none") {
        return Ok(Converters::None);
    }
    if same_name(text, "full") {
        return Ok(Converters::Full);
    }
    match whole(text, 0, 1 << 16) {
        Ok(0) => Ok(Converters::None),
        Ok(count) => Ok(Converters::PerNode(count)),
        Err(_) => Err(format!(
            "`{}` is neither none nor full nor a number of converters per node",
            shown(text)
        )),
    }
}

fn assembly(text: &str) -> Result<Option<BurstAssembly>, String> {
    let refused = |problem: &dyn Display| problem.to_string();
    let spec: Spec = text.parse().map_err(|problem| refused(&problem))?;
    if same_name(spec.name(), "none") {
        spec.only(&[]).map_err(|problem| refused(&problem))?;
        return Ok(None);
    }
    if !same_name(spec.name(), "packets") {
        let hint = suggest(spec.name(), ["packets", "none"]);
        return Err(format!("unknown value `{}`{hint}", shown(spec.name())));
    }
    spec.only(&["packet", "size", "time_out"])
        .map_err(|problem| refused(&problem))?;
    let assembly = BurstAssembly {
        packet: spec
            .option("packet")
            .map_or(Ok(Bytes::new(1_000_000)), parsed)?,
        size: spec.option("size").map(parsed).transpose()?,
        time_out: spec.option("time_out").map(parsed).transpose()?,
    };
    assembly.check()?;
    Ok(Some(assembly))
}
