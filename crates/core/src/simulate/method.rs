//! How a plan is timed: a simulator and its settings, typed for programs and as text for people.
//!
//! Each setting is declared by one [`SettingRecord`]: the command line, scenario files and Python take
//! the settings that are recorded here, and a simulator refuses those that are not its own.

use std::sync::LazyLock;

use super::background::{self, Background};
use super::fluid::{self, Endpoint, LinkBin, StartRule, Weights};
use super::packet;
use super::{Paths, Policy, SIMULATORS, SimulationError};
use crate::spec::Spec;
use crate::spelling::{same_name, suggest};
use crate::units::{Bytes, Rate, Time};

/// How a plan is timed; what is left out has its default for the plan's fabric.
#[derive(Debug, Clone, Default)]
pub struct Method {
    /// The simulator, by its recorded name: circuit on rings of wavelengths, fluid on electrical
    /// fabrics.
    pub simulator: Option<&'static str>,
    /// When reconfiguration is charged: every_step. For light only.
    pub policy: Option<Policy>,
    /// When light paths go: released. For grids of light paths only.
    pub paths: Option<Paths>,
    /// When a flow may start: rendezvous. For flows only.
    pub start: Option<StartRule>,
    /// Weights, costs and records of flows: the plain model. For flows only.
    pub fluid: fluid::Options,
    /// Traffic beside the plan. For flows and packets.
    pub background: Vec<Background>,
    /// When to give up: `fluid` and `control` end with an error where a plan takes longer.
    pub limit: Option<Time>,
    /// The model of packets, its own traffic aside. For packets only.
    pub packet: packet::Settings,
}

impl From<Policy> for Method {
    /// The method of light with a policy.
    fn from(policy: Policy) -> Method {
        Method {
            policy: Some(policy),
            ..Method::default()
        }
    }
}

/// The declaration of a setting.
#[derive(Clone, Copy)]
pub struct SettingRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// How values are spelled, where the summary does not say it all; otherwise empty.
    pub values: &'static str,
    /// What holds where it is not given.
    pub default: &'static str,
    /// The simulators that know it.
    pub simulators: &'static [&'static str],
    rule: Rule,
}

/// What a setting does.
#[derive(Clone, Copy)]
enum Rule {
    /// How a text is applied, and whether a method has it.
    Own(
        fn(&mut Method, &str) -> Result<(), SimulationError>,
        fn(&Method) -> bool,
    ),
    /// It is one of the settings of packets.
    Packet,
}

impl SettingRecord {
    fn apply(&self, method: &mut Method, text: &str) -> Result<(), SimulationError> {
        match self.rule {
            Rule::Own(apply, _) => apply(method, text),
            Rule::Packet => {
                let problem = method.packet.set(self.name, text);
                problem.map_err(|problem| SimulationError::Text { problem })
            }
        }
    }

    fn given(&self, method: &Method) -> bool {
        match self.rule {
            Rule::Own(_, given) => given(method),
            Rule::Packet => method.packet.has(self.name),
        }
    }
}

/// All settings.
pub static SETTINGS: LazyLock<Vec<SettingRecord>> = LazyLock::new(|| {
    let packets = packet::SETTINGS.iter().map(|one| SettingRecord {
        name: one.name,
        summary: one.summary,
        values: "",
        default: one.default,
        simulators: &["packet"],
        rule: Rule::Packet,
    });
    OWN.iter().copied().chain(packets).collect()
});

const OWN: &[SettingRecord] = &[
    SettingRecord {
        name: "policy",
        summary: "Reconfiguration: every_step, on_change, per_port, free, two_tier or establish_release",
        values: "",
        default: "every_step; two_tier on a wss_grid, establish_release on a light_path_grid",
        simulators: &["circuit", "closed_form", "control"],
        rule: Rule::Own(
            |method, text| {
                method.policy = Some(text.parse()?);
                Ok(())
            },
            |method| method.policy.is_some(),
        ),
    },
    SettingRecord {
        name: "paths",
        summary: "When light paths go: released, kept or warm (kept by an earlier run)",
        values: "released after their group of slots; kept, the most recently used, until their port is \
                 needed; or warm, kept by an earlier run of the same plan",
        default: "released",
        simulators: &["circuit"],
        rule: Rule::Own(
            |method, text| {
                method.paths = Some(text.parse()?);
                Ok(())
            },
            |method| method.paths.is_some(),
        ),
    },
    SettingRecord {
        name: "start",
        summary: "When a message may start: rendezvous, sender or step",
        values: "",
        default: "rendezvous",
        simulators: &["fluid"],
        rule: Rule::Own(
            |method, text| {
                method.start = Some(text.parse()?);
                Ok(())
            },
            |method| method.start.is_some(),
        ),
    },
    SettingRecord {
        name: "weights",
        summary: "Shares of a full link: equal, or inverse_latency (1 / latency of the route)",
        values: "",
        default: "equal",
        simulators: &["fluid"],
        rule: Rule::Own(
            |method, text| {
                method.fluid.weights = text.parse()?;
                Ok(())
            },
            |method| method.fluid.weights != Weights::Equal,
        ),
    },
    SettingRecord {
        name: "endpoint",
        summary: "Costs of a message at its ends, such as loggp:overhead=500ns,eager=64KiB",
        values: "none, or loggp:latency=1us,overhead=500ns,gap=200ns,rate=10GB/s,eager=64KiB with \
                 each left out 0 or unbounded; also send_overhead and receive_overhead",
        default: "none",
        simulators: &["fluid"],
        rule: Rule::Own(
            |method, text| {
                method.fluid.endpoint = endpoint(text)?;
                Ok(())
            },
            |method| method.fluid.endpoint.is_some(),
        ),
    },
    SettingRecord {
        name: "background",
        summary: "Traffic beside the plan, such as nearest:rate=1GB/s",
        values: "PATTERN:rate=1GB/s,start=0s,end=1ms with PATTERN one of nearest, shift:by=4, \
                 group_shift, permutation:seed=1, hot_spot:rank=0 or pair:from=0,to=5; for packets \
                 also uniform, and bytes=2KiB,period=2us,messages=100 instead of a rate; several \
                 with a semicolon between them",
        default: "none",
        simulators: &["fluid", "packet"],
        rule: Rule::Own(
            |method, text| {
                method.background = background::parse(text)?;
                Ok(())
            },
            |method| !method.background.is_empty() || !method.fluid.background.is_empty(),
        ),
    },
    SettingRecord {
        name: "link_bin",
        summary: "Keep what each link carries over time, in bins of this length, such as 10us",
        values: "a time, or fitted for 200 to 400 bins",
        default: "none",
        simulators: &["fluid"],
        rule: Rule::Own(
            |method, text| {
                method.fluid.link_bin = link_bin(text)?;
                Ok(())
            },
            |method| method.fluid.link_bin.is_some(),
        ),
    },
];

impl Method {
    /// The method that names and texts give: `simulator`, and the settings of [`SETTINGS`].
    ///
    /// # Errors
    /// An unknown simulator or setting, or a value that is none; see [`SimulationError::setting`].
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Method, SimulationError> {
        let mut method = Method::default();
        for (name, text) in settings {
            if name == "simulator" {
                method.simulator = Some(simulator(text)?);
                continue;
            }
            let record = SETTINGS.iter().find(|record| record.name == name);
            let record = record.ok_or_else(|| SimulationError::Unknown {
                what: "setting",
                name: name.into(),
                hint: suggest(name, SETTINGS.iter().map(|record| record.name)),
            })?;
            record
                .apply(&mut method, text)
                .map_err(|problem| SimulationError::Value {
                    setting: record.name,
                    problem: Box::new(problem),
                })?;
        }
        Ok(method)
    }

    /// Refuses what traffic alone, packet by packet, has no use for.
    ///
    /// # Errors
    /// A setting of other simulators, or of plans.
    pub fn for_packets_alone(&self) -> Result<(), SimulationError> {
        self.known_to("packet")?;
        let of_plans = ["issue", "overhead", "placement", "background"];
        self.lacks(
            &of_plans,
            "packet",
            "plans; there is none beside traffic alone",
        )
    }

    /// Refuses settings of something else that is not there; `of` says of what.
    ///
    /// # Errors
    /// The first of them.
    pub fn lacks(
        &self,
        names: &[&str],
        simulator: &'static str,
        of: &str,
    ) -> Result<(), SimulationError> {
        let mut given = SETTINGS.iter().filter(|record| record.given(self));
        match given.find(|record| names.contains(&record.name)) {
            None => Ok(()),
            Some(record) => Err(SimulationError::Setting {
                simulator,
                setting: record.name,
                of: of.into(),
            }),
        }
    }

    /// Refuses settings that a simulator does not know.
    ///
    /// # Errors
    /// The first of them.
    pub fn known_to(&self, simulator: &'static str) -> Result<(), SimulationError> {
        let foreign = SETTINGS
            .iter()
            .find(|record| record.given(self) && !record.simulators.contains(&simulator));
        match foreign {
            None => Ok(()),
            Some(record) => Err(SimulationError::Setting {
                simulator,
                setting: record.name,
                of: record.simulators.join(" and "),
            }),
        }
    }
}

/// The recorded name of a simulator.
pub(super) fn simulator(name: &str) -> Result<&'static str, SimulationError> {
    let mut known = SIMULATORS.iter().map(|record| record.name);
    known
        .find(|known| same_name(known, name))
        .ok_or_else(|| SimulationError::Unknown {
            what: "simulator",
            name: name.into(),
            hint: suggest(name, SIMULATORS.iter().map(|record| record.name)),
        })
}

/// The bins that a text names; `none` for no bins.
fn link_bin(text: &str) -> Result<Option<LinkBin>, SimulationError> {
    Ok(match text {
        none if same_name(none, "none") => None,
        fitted if same_name(fitted, "fitted") => Some(LinkBin::Fitted),
        length => Some(LinkBin::Length(length.parse()?)),
    })
}

/// The costs at the ends that a spelling names; `none` for the plain model.
fn endpoint(text: &str) -> Result<Option<Endpoint>, SimulationError> {
    let spec: Spec = text.parse()?;
    if same_name(spec.name(), "none") {
        spec.only(&[])?;
        return Ok(None);
    }
    if !same_name(spec.name(), "loggp") {
        return Err(SimulationError::Unknown {
            what: "endpoint model",
            name: spec.name().into(),
            hint: suggest(spec.name(), ["loggp", "none"]),
        });
    }
    spec.only(&[
        "latency",
        "overhead",
        "send_overhead",
        "receive_overhead",
        "gap",
        "rate",
        "eager",
    ])?;
    let overhead = spec.value("overhead")?.unwrap_or(Time::ZERO);
    Ok(Some(Endpoint {
        latency: spec.value("latency")?.unwrap_or(Time::ZERO),
        send_overhead: spec.value("send_overhead")?.unwrap_or(overhead),
        receive_overhead: spec.value("receive_overhead")?.unwrap_or(overhead),
        gap: spec.value("gap")?.unwrap_or(Time::ZERO),
        rate: spec.value::<Rate>("rate")?,
        eager_threshold: spec.value("eager")?.unwrap_or(Bytes::new(u64::MAX)),
    }))
}
