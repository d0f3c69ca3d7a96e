//! Settings of burst simulations: generation of bursts, signalling and assignment of wavelengths.

use std::fmt::Display;

use super::BurstError;
use crate::setting::{
    HelpLevel, SettingDeclaration, find, names, parse_value, parse_whole, settings,
};
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};

opticoll_base::named_enum! {
    /// Rule by which hosts generate bursts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BurstSource {
        /// Poisson process at each host, with a queue before the host's single transmitter.
        Transmitter = "transmitter",
        /// Poisson process at each host. Bursts of the same host may overlap.
        Poisson = "poisson",
        /// Host that sends a burst, pauses for an exponentially distributed time, and sends again.
        OnOff = "on_off",
    }

    /// Distribution of the lengths of bursts; all distributions have the same mean.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Length {
        /// All bursts have the mean length.
        Constant = "constant",
        /// Exponential distribution.
        Exponential = "exponential",
        /// Uniform distribution from 0 to twice the mean.
        Uniform = "uniform",
    }

    /// Hosts to which a host sends, all with equal probabilities.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Destinations {
        /// All other hosts.
        Everyone = "everyone",
        /// All hosts of other nodes.
        OtherNodes = "other_nodes",
    }

    /// Signalling before a burst is sent, described in [the model](super).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Signalling {
        /// Two-way signalling: the whole route is granted or blocked before the burst is sent.
        TwoWay = "two_way",
        /// Just enough time, one-way: a link is reserved from the arrival of the burst.
        Jet = "jet",
        /// Just in time, one-way: a link is reserved from the arrival of the control message.
        Jit = "jit",
    }

    /// Reaction of a transmitter to a blocked setup.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum AfterBlocking {
        /// The transmitter is idle for the burst's duration: the offered load is independent of the
        /// loss.
        Silent = "silent",
        /// The transmitter sends the next burst at once, which offers more bursts to a full
        /// network.
        Next = "next",
    }

    /// Rule that selects one of the free wavelengths. A wavelength is free on a link if it has no
    /// reservation in the time interval of the burst. If the whole route is assigned at once and
    /// there are no converters, the wavelength must be free on all links.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WavelengthChoice {
        /// The lowest free wavelength.
        FirstFit = "first_fit",
        /// A random free wavelength, all with equal probabilities.
        Random = "random",
        /// LAUC: among the wavelengths without reservations in or after the interval, the
        /// wavelength whose last reservation ends latest. For several links, the ends of the last
        /// reservations are summed. Gaps between reservations stay unused.
        Horizon = "horizon",
        /// LAUC-VF: the wavelength whose last reservation before the interval ends latest. The
        /// interval may be in a gap between two reservations.
        LaucVf = "lauc_vf",
        /// PWA: the wavelength with the highest success rate between the source node and the
        /// destination node; among equals, the lowest. The rate is (successes + 1) / (tries + 2). A
        /// try succeeds if the burst is not blocked on any link. Wavelengths with a higher rate
        /// that are not free on the whole route count as failed tries. All tries have equal
        /// weights, so rates settle only after thousands of tries per pair of nodes.
        Pwa = "pwa",
        /// The first free wavelength in cyclic order, starting at W s / N. W is the number of
        /// wavelengths, s is the source node, and N is the number of nodes.
        SourceOffset = "source_offset",
    }

    /// Rule that selects the route of a burst.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BurstRouting {
        /// The route of the fabric; if `routes` is greater than 1, the next routes, too.
        Fixed = "fixed",
        /// Least loaded of the routes with the fewest links: the route whose most loaded link has
        /// the fewest wavelengths reserved at the time of the control message or later. Among
        /// equals, the fabric's route comes first, and then the route with the lowest link indices.
        LeastLoaded = "least_loaded",
    }
}

/// Assembly of bursts from packets. Each pair of hosts assembles one burst at a time. A burst is
/// ready when it has reached its size, or when its first packet has waited for the time-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstAssembly {
    /// Size of each packet.
    pub packet: Bytes,
    /// Size in bytes at which a burst is ready. If it is `None`, bursts are assembled by time-out
    /// only.
    pub size: Option<Bytes>,
    /// Maximum wait of a burst's first packet. If it is `None`, bursts are assembled by size only.
    pub time_out: Option<Time>,
}

/// Wavelength converters of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converters {
    /// No converters.
    None,
    /// Unlimited number of converters at every node.
    Full,
    /// Number of converters at every node. A converter serves one burst at a time. A burst keeps
    /// its wavelength if possible. If wavelengths are assigned to the whole route at once, the
    /// burst uses as few converters as possible.
    PerNode(u32),
}

/// Settings of a burst simulation. The default of all delays is 0, because bursts are long compared
/// with propagation and processing.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstSettings {
    /// Rule by which hosts generate bursts.
    pub source: BurstSource,
    /// Offered load of a host in erlang: the number of bursts per unit of time, times the length of
    /// a burst.
    pub offered_load: f64,
    /// Mean size of a burst.
    pub size: Bytes,
    /// Distribution of burst lengths.
    pub length: Length,
    /// Hosts to which a host sends.
    pub destinations: Destinations,
    /// Assembly of bursts from packets. With assembly, `size` and `length` have no effect.
    pub assembly: Option<BurstAssembly>,
    /// Signalling before a burst is sent.
    pub signalling: Signalling,
    /// Reaction of a transmitter to a blocked setup, for two-way signalling.
    pub blocked: AfterBlocking,
    /// Time between control message and burst in addition to the necessary minimum, for one-way
    /// signalling.
    pub offset: Time,
    /// Time in which a node processes a control message.
    pub processing: Time,
    /// Time to set a switch.
    pub switching: Time,
    /// Choice among the free wavelengths.
    pub assignment: WavelengthChoice,
    /// Wavelength converters; `None` means those of the network.
    pub converters: Option<Converters>,
    /// Routing of bursts.
    pub routing: BurstRouting,
    /// Number of routes that a request tries one after another, for two-way signalling.
    pub routes: u32,
    /// Number of bursts that a host can receive at the same time; `None` sets no limit besides the
    /// limit of the network.
    pub receivers: Option<u32>,
    /// Maximum number of measured bursts.
    pub bursts: u64,
    /// Number of bursts of each replication before the measurement; `None` means 1000 per host.
    pub warm_up: Option<u64>,
    /// Relative error at which the measurement stops: half the width of the confidence interval,
    /// divided by the loss. `None` measures all bursts.
    pub relative_error: Option<f64>,
    /// Number of independent replications.
    pub replications: u32,
    /// Seed of all random draws.
    pub seed: u64,
    /// True if the result contains every burst of the first replication, with its reservations.
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
            converters: None,
            routing: BurstRouting::Fixed,
            routes: 1,
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

/// Declarations of all settings.
pub const SETTINGS: &[SettingDeclaration<BurstSettings>] = settings! {
    BurstSettings, HelpLevel::All, &["burst"];
    "source" .source: "Generator of bursts: transmitter (Poisson, one at a time per host), \
        poisson or on_off",
        words(&BurstSource::WORDS), "transmitter";
    "offered_load" .offered_load: "Offered load of a host in erlang: burst rate times burst length",
        positive, "0.9" => HelpLevel::Usual;
    "size" .size: "Mean size of a burst", bytes, "125MB" => HelpLevel::Usual;
    "length" .length: "Distribution of burst lengths about their mean: constant, exponential or \
        uniform",
        words(&Length::WORDS), "constant";
    "destinations" .destinations: "Hosts to which a host sends: everyone, or the hosts of \
        other_nodes",
        words(&Destinations::WORDS), "everyone";
    "assembly" .assembly: "Assembly of bursts from packets; a burst is complete when its size or \
    its time-out is reached: packets:packet=1MB,size=125MB,time_out=1s",
        text("none, or packets:packet=1MB,size=125MB,time_out=1s", assembly), "none";
    "signalling" .signalling: "Signalling before a burst: two_way (the whole route is reserved \
        first), jet or jit (one way)",
        words(&Signalling::WORDS), "two_way" => HelpLevel::Usual;
    "blocked" .blocked: "Reaction of a transmitter to a blocked setup of two_way: silent (idle \
        for the burst's duration) or next (sends the next burst at once)",
        words(&AfterBlocking::WORDS), "silent";
    "offset" .offset: "Additional time between control message and burst; \
        for jet and jit",
        time, "0s";
    "processing" .processing: "Processing time of a control message at a node", time, "0s";
    "switching" .switching: "Setup time of a switch", time, "0s";
    "assignment" .assignment: "Assignment of a free wavelength: first_fit, random, horizon, \
        lauc_vf, pwa or source_offset",
        words(&WavelengthChoice::WORDS), "first_fit" => HelpLevel::Usual;
    "converters" .converters: "Number of bursts whose wavelength a node can convert at the same \
        time: none, full, a number, or as the fabric states",
        text("fabric, none, full or a whole number", converters), "fabric";
    "routing" .routing: "Routing of bursts: fixed, or least_loaded of the shortest routes",
        words(&BurstRouting::WORDS), "fixed" => HelpLevel::Usual;
    "routes" .routes: "Number of routes that a request tries, the shortest first; for two_way",
        whole(1, 64), "1" => HelpLevel::Usual;
    "receivers" .receivers: "Number of bursts that a host can receive at the same time, or \
        unlimited",
        text("unlimited or a whole number from 1 to 65536", receivers), "unlimited";
    "bursts" .bursts: "Maximum number of measured bursts, such as 1e7", whole(1, 1 << 50), "1e6";
    "warm_up" .warm_up: "Number of bursts of each replication before measurement, such as 1e5",
        whole(0, 1 << 50) Some, "1000 for each host";
    "relative_error" .relative_error: "Relative error of the burst loss ratio (half its \
    confidence interval) at which measurement stops",
        positive Some, "none: all bursts";
    "replications" .replications: "Number of independent replications",
        whole(1, 1 << 10), "4" => HelpLevel::Usual;
    "seed" .seed: "Seed of all random draws", whole(0, u64::MAX), "1";
};

impl BurstSettings {
    /// Reads settings from pairs of name and value; see [`SETTINGS`].
    ///
    /// # Errors
    /// Returns an error for an unknown setting or an invalid value; [`BurstError::setting`] names
    /// the setting at fault.
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
                "one transmitter sends less than one burst at a time: use an offered load below 1, \
                 or source poisson",
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
        if self.routes > 1 && self.signalling != Signalling::TwoWay {
            return refuse(
                "routes",
                "one-way signalling cannot return to try another route: use two_way, or routes=1",
            );
        }
        if self.routes > 1 && self.routing == BurstRouting::LeastLoaded {
            return refuse(
                "routes",
                "least_loaded selects one route: use routing fixed, or routes=1",
            );
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
            (_, Some(Time::ZERO)) => Err("time_out must be greater than 0"),
            _ => Ok(()),
        }
    }
}

fn receivers(text: &str) -> Result<Option<u32>, String> {
    match same_name(text, "unlimited") {
        true => Ok(None),
        false => parse_whole(text, 1, 1 << 16).map(Some),
    }
}

fn converters(text: &str) -> Result<Option<Converters>, String> {
    if same_name(text, "fabric") {
        return Ok(None);
    }
    if same_name(text, "none") {
        return Ok(Some(Converters::None));
    }
    if same_name(text, "full") {
        return Ok(Some(Converters::Full));
    }
    match parse_whole(text, 0, 1 << 16) {
        Ok(0) => Ok(Some(Converters::None)),
        Ok(count) => Ok(Some(Converters::PerNode(count))),
        Err(_) => Err(format!(
            "`{}` is neither none nor full nor fabric nor a number of converters per node",
            terminal_text(text)
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
        return Err(format!(
            "unknown value `{}`{hint}",
            terminal_text(spec.name())
        ));
    }
    spec.only(&["packet", "size", "time_out"])
        .map_err(|problem| refused(&problem))?;
    let assembly = BurstAssembly {
        packet: spec
            .option("packet")
            .map_or(Ok(Bytes::new(1_000_000)), parse_value)?,
        size: spec.option("size").map(parse_value).transpose()?,
        time_out: spec.option("time_out").map(parse_value).transpose()?,
    };
    assembly.check()?;
    Ok(Some(assembly))
}
