//! How a plan is timed: a simulator and its settings, typed for programs and as text for people.
//!
//! Each setting is declared by one [`SettingRecord`]: the command line, scenario files and Python take
//! the settings that are recorded here, and a simulator refuses those that are not its own.

use std::fmt;

use super::background::{self, Background};
use super::fluid::{self, Endpoint, LinkBin, StartRule, Weights};
use super::live::Live;
use super::packet::{self, PacketProgress};
use super::setting::{
    self, HelpLevel, SettingDeclaration, SettingRecord, SettingValues, parsed, said, settings,
};
use super::{POLICIES, Paths, Policy, SimulationError, default_policy};
use crate::outcome::Outcome;
use opticoll_base::names::{same_name, shown, suggest};
use opticoll_base::spec::{Spec, SpecError};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// How a plan is timed; what is left out has its default for the plan's fabric.
#[derive(Debug, Clone, Default)]
pub struct Method {
    /// The simulator: the first that applies.
    pub simulator: Option<&'static Simulator>,
    /// When reconfiguration is charged: every_step. For light only.
    pub policy: Option<Policy>,
    /// When lightpaths go: released. For grids of lightpaths only.
    pub paths: Option<Paths>,
    /// When a flow may start: rendezvous. For flows only.
    pub start: Option<StartRule>,
    /// Weights, costs and records of flows: the plain model. For flows only.
    pub fluid: fluid::FlowOptions,
    /// What every step takes beside its messages. For steps one after the other only.
    pub step_overhead: Time,
    /// Traffic beside the plan. For flows and packets.
    pub background: Vec<Background>,
    /// When to give up: `fluid`, `control` and `circuit` end with an error where a plan takes longer.
    pub limit: Option<Time>,
    /// The model of packets, its own traffic aside. For packets only.
    pub packet: packet::PacketSettings,
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

/// All settings of simulators of plans.
pub fn settings() -> impl Iterator<Item = &'static SettingRecord> {
    let packets = packet::SETTINGS.iter().map(|setting| &setting.record);
    OWN.iter().map(|setting| &setting.record).chain(packets)
}

/// The settings that are not those of packets alone.
const OWN: &[SettingDeclaration<Method>] = settings! {
    Method, HelpLevel::All, &["fluid"];
    "policy" ["circuit", "control"] .policy: "Rule by which reconfiguration is charged, such as \
        every_step, per_port or free; see `opticoll list policies`",
        named(POLICIES) Some,
        "the fabric's own: every_step, two_tier, establish_release or all_stop" => HelpLevel::Usual;
    "paths" ["circuit"] .paths: "Rule by which circuits are torn down: released, kept or warm \
        (kept by an earlier run)",
        text("released after their group of slots; kept, the most recently used, until \
              their port is needed; or warm, kept by an earlier run of the same plan", paths) Some, "released";
    "start" .start: "Rule by which messages start on links: rendezvous, sender, step or link",
        named(fluid::START_RULES) Some, "rendezvous" => HelpLevel::Usual;
    "weights" .fluid.weights: "Weights by which flows share a full link: equal or \
        inverse_latency (1 / latency of the route)",
        text("equal or inverse_latency", weights), "equal";
    "endpoint" .fluid.endpoint: "Costs of a message at its two hosts, such as \
        loggp:overhead=500ns,eager=64KiB",
        text("none, or \
              loggp:latency=1us,overhead=500ns,gap=200ns,rate=10GB/s,eager=64KiB with \
              each left out 0 or unbounded; also send_overhead and receive_overhead", endpoint), "none";
    "background" ["fluid", "packet"] .background: "Background traffic, such as nearest:rate=1GB/s",
        text("none, or PATTERN:rate=1GB/s,start=0s,end=1ms with PATTERN one of nearest, \
              shift:by=4, group_shift, permutation:seed=1, hot_spot:rank=0 or \
              pair:from=0,to=5; for packets also uniform, and \
              bytes=2KiB,period=2us,messages=100 instead of a rate; several with a \
              semicolon between them", traffic), "none";
    "link_bin" .fluid.link_bin: "Length of the time bins in which the bytes of each link are \
        recorded, such as 10us",
        text("a time, or fitted for 200 to 400 bins", link_bin), "none";
    "step_overhead" ["bulk_synchronous"] .step_overhead: "Time of each step beside its messages, \
        for synchronisation and start-up",
        time, "0s";
};

impl Method {
    /// Applies a setting by name.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), SimulationError> {
        let (name, applied) = match (
            setting::find(OWN, name),
            setting::find(packet::SETTINGS, name),
        ) {
            (Some(own), _) => (own.record.name, own.apply(self, text)),
            (None, Some(packets)) => (packets.record.name, self.packet.set(name, text)),
            (None, None) => {
                return Err(SimulationError::Unknown {
                    what: "setting",
                    name: name.into(),
                    hint: suggest(name, settings().map(|record| record.name)),
                });
            }
        };
        applied.map_err(|problem| SimulationError::value(name, problem))
    }

    /// The settings that are given, in the order of their declaration.
    fn given(&self) -> impl Iterator<Item = &'static SettingRecord> {
        let own = OWN.iter().filter(|setting| (setting.differs)(self));
        let packets = packet::SETTINGS.iter();
        let packets = packets.filter(|setting| (setting.differs)(&self.packet));
        own.map(|setting| &setting.record)
            .chain(packets.map(|setting| &setting.record))
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
        match self.given().find(|record| names.contains(&record.name)) {
            None => Ok(()),
            Some(record) => Err(SimulationError::foreign(simulator, record.name, of)),
        }
    }

    /// Refuses settings that a simulator does not know.
    ///
    /// # Errors
    /// The first of them.
    pub fn known_to(&self, simulator: &'static str) -> Result<(), SimulationError> {
        let foreign = self
            .given()
            .find(|record| !record.simulators.contains(&simulator));
        match foreign {
            None => Ok(()),
            Some(record) => {
                let of = record.simulators.join(" and ");
                Err(SimulationError::foreign(simulator, record.name, &of))
            }
        }
    }
}

/// The rule of circuits that a text names.
fn paths(text: &str) -> Result<Paths, String> {
    setting::one_of(text, &Paths::WORDS)
}

/// The weights that a text names.
fn weights(text: &str) -> Result<Weights, String> {
    said(text.parse())
}

/// The bins that a text names; `none` for no bins.
fn link_bin(text: &str) -> Result<Option<LinkBin>, String> {
    Ok(match text {
        none if same_name(none, "none") => None,
        fitted if same_name(fitted, "fitted") => Some(LinkBin::Fitted),
        length => Some(LinkBin::Length(said(length.parse())?)),
    })
}

/// The background traffic that a text names; `none` for none.
fn traffic(text: &str) -> Result<Vec<Background>, String> {
    match same_name(text, "none") {
        true => Ok(Vec::new()),
        false => said(background::parse(text)),
    }
}

/// The costs at the ends that a specification names; `none` for the plain model.
fn endpoint(text: &str) -> Result<Option<Endpoint>, String> {
    let spec: Spec = said(text.parse())?;
    if same_name(spec.name(), "none") {
        return said(spec.only(&[])).map(|()| None);
    }
    if !same_name(spec.name(), "loggp") {
        let hint = suggest(spec.name(), ["loggp", "none"]);
        return Err(format!(
            "unknown endpoint model `{}`{hint}",
            shown(spec.name())
        ));
    }
    said(loggp(&spec)).map(Some)
}

fn loggp(spec: &Spec) -> Result<Endpoint, SpecError> {
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
    Ok(Endpoint {
        latency: spec.value("latency")?.unwrap_or(Time::ZERO),
        send_overhead: spec.value("send_overhead")?.unwrap_or(overhead),
        receive_overhead: spec.value("receive_overhead")?.unwrap_or(overhead),
        gap: spec.value("gap")?.unwrap_or(Time::ZERO),
        rate: spec.value("rate")?,
        eager_threshold: spec.value("eager")?.unwrap_or(Bytes::new(u64::MAX)),
    })
}

/// The declaration of a simulator.
pub struct Simulator {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Whether it runs on a fabric with the given settings.
    pub applies: fn(&Fabric, &Method) -> Result<(), Unfit>,
    /// Times a plan.
    pub run: Option<for<'a> fn(Case<'a>) -> Result<Outcome, SimulationError>>,
    /// Carries single messages.
    pub live: Option<StartLive>,
    /// Whether no plan takes less than the loads of its schedule's steps, which are known before it is placed.
    pub bounded_by_loads: bool,
    /// The rule by which it times, in words that follow a time.
    pub rule: fn(&Fabric, &Method) -> String,
    /// What is to be said beside a lower bound on its times.
    pub beside_bound: fn(&Fabric, &Method) -> Option<String>,
}

/// Starts a network without messages.
pub type StartLive =
    for<'a> fn(&'a Fabric, &'a Method) -> Result<Box<dyn Live + 'a>, SimulationError>;

/// Why a simulator does not run: the reason says what would do.
pub enum Unfit {
    /// It is for other fabrics.
    Fabric(&'static str),
    /// It is for other policies.
    Policy(Policy, &'static str),
}

/// A plan to be timed.
pub struct Case<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The collective's size.
    pub size: Bytes,
    /// The settings, which the simulator knows.
    pub method: &'a Method,
    /// Is told now and then how far the simulation is; it is broken off where that says no.
    pub watch: &'a mut dyn FnMut(&PacketProgress) -> bool,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Simulator {
    /// A simulator of circuits that carries nothing yet.
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        citation: &'static str,
        applies: fn(&Fabric, &Method) -> Result<(), Unfit>,
    ) -> Simulator {
        Simulator {
            name,
            summary,
            citation,
            applies,
            run: None,
            live: None,
            bounded_by_loads: false,
            rule: |fabric, method| {
                let policy = method.policy.unwrap_or(default_policy(fabric));
                format!("under {}", policy.name())
            },
            beside_bound: |_, _| None,
        }
    }
}
