//! Method by which a plan is timed: a simulator and its settings. Programs set typed fields, and
//! users give settings as text.
//!
//! Each setting is declared by one [`SettingRecord`]. The command line, scenario files and Python
//! accept exactly these settings. A simulator rejects settings of other simulators.

use std::fmt;

use super::background::{self, Background};
use super::fluid::{self, Endpoint, LinkBin, StartRule, Weights};
use super::library_cost::ProtocolRule;
use super::live::Live;
use super::packet::{self, PacketProgress};
use super::setting::{
    self, HelpLevel, SettingDeclaration, SettingRecord, parse_word, settings, with_message,
};
use super::{POLICIES, Paths, Policy, SimulationError, default_policy};
use crate::outcome::Outcome;
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_base::spec::{Spec, SpecError};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// Method by which a plan is timed. A setting that is not given has its default on the plan's
/// fabric.
#[derive(Debug, Clone, Default)]
pub struct TimingModel {
    /// Simulator to use. `None` selects the first simulator that applies to the fabric.
    pub simulator: Option<&'static Simulator>,
    /// Rule that defines when a reconfiguration costs time, for circuits. `None` selects the
    /// fabric's default.
    pub policy: Option<Policy>,
    /// Rule by which circuits are torn down, for grids of lightpaths. `None` selects `released`.
    pub paths: Option<Paths>,
    /// Start rule of messages; only for `fluid`. `None` selects `rendezvous`.
    pub start: Option<StartRule>,
    /// Weights of flows, costs at endpoints, and recordings; only for `fluid`.
    pub fluid: fluid::FlowOptions,
    /// Time that every step costs in addition to its messages; only for `bulk_synchronous`.
    pub step_overhead: Time,
    /// Rule that selects the protocol of the fabric's library; only for `bulk_synchronous`.
    pub protocol: ProtocolRule,
    /// Background traffic; only for `fluid` and `packet`.
    pub background: Vec<Background>,
    /// Simulated time at which `fluid`, `control` and `circuit` stop with an error; `None` sets no
    /// limit.
    pub limit: Option<Time>,
    /// Settings of the `packet` simulator, except background traffic.
    pub packet: packet::PacketSettings,
}

impl From<Policy> for TimingModel {
    /// Creates the method with the given policy and otherwise default settings.
    fn from(policy: Policy) -> TimingModel {
        TimingModel {
            policy: Some(policy),
            ..TimingModel::default()
        }
    }
}

/// Returns the records of all settings of the simulators that time plans.
pub fn settings() -> impl Iterator<Item = &'static SettingRecord> {
    let packets = packet::SETTINGS.iter().map(|setting| &setting.record);
    PLAN_SETTINGS
        .iter()
        .map(|setting| &setting.record)
        .chain(packets)
}

/// Settings of the simulators that time plans, except the settings of `packet`.
const PLAN_SETTINGS: &[SettingDeclaration<TimingModel>] = settings! {
    TimingModel, HelpLevel::All, &["fluid"];
    "policy" ["circuit", "control"] .policy: "Rule by which reconfiguration is charged, such as \
        every_step, per_port or free; see `opticoll list policies`",
        named(POLICIES) Some,
        "the fabric's own: every_step, two_tier, setup_teardown or all_stop" => HelpLevel::Usual;
    "paths" ["circuit"] .paths: "Rule by which circuits are torn down: released, kept or warm \
        (kept by an earlier run)",
        text("released after their group of slots; kept, the most recently used, until \
              their port is needed; or warm, kept by an earlier run of the same plan",
            paths) Some,
        "released";
    "start" .start: "Rule by which messages start on links: rendezvous, sender, step or link",
        named(fluid::START_RULES) Some, "rendezvous" => HelpLevel::Usual;
    "weights" .fluid.weights: "Weights by which flows share a full link: equal or \
        inverse_latency (1 / latency of the route)",
        text("equal or inverse_latency", weights), "equal";
    "endpoint" .fluid.endpoint: "Costs of a message at its sender and its receiver, such as \
        loggp:overhead=500ns,eager=64KiB",
        text("none, or loggp:latency=1us,overhead=500ns,gap=200ns,rate=10GB/s,eager=64KiB; in \
              place of overhead also send_overhead and receive_overhead; a time that is left out \
              is 0, rate and eager are then unlimited",
            endpoint),
        "none";
    "background" ["fluid", "packet"] .background: "Background traffic, such as nearest:rate=1GB/s",
        text("none, or PATTERN:rate=1GB/s,start=0s,end=1ms with PATTERN one of nearest, \
              shift:by=4, group_shift, permutation:seed=1, hot_spot:rank=0 or \
              pair:from=0,to=5; for packets also uniform, and \
              bytes=2KiB,period=2us,messages=100 instead of a rate; several with a \
              semicolon between them", traffic), "none";
    "link_bin" .fluid.link_bin: "Length of the time bins in which the bytes of each link are \
        recorded, such as 10us",
        text("a time, or fitted for 200 to 400 bins", link_bin), "none";
    "step_overhead" ["bulk_synchronous"] .step_overhead: "Time of each step in addition to its \
                                                          messages, for synchronisation and \
                                                          start-up",
        time, "0s";
    "protocol" ["bulk_synchronous"] .protocol: "Protocol of the library that the fabric names: \
        the fastest for the plan (auto), ll, ll128, simple, or the one that NCCL selects (nccl)",
        words(&ProtocolRule::WORDS), "auto";
};

impl TimingModel {
    /// Parses `text` and assigns its value to the setting `name`.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), SimulationError> {
        let (name, applied) = match (
            setting::find(PLAN_SETTINGS, name),
            setting::find(packet::SETTINGS, name),
        ) {
            (Some(setting), _) => (setting.record.name, setting.apply(self, text)),
            (None, Some(packets)) => (packets.record.name, self.packet.set(name, text)),
            (None, None) => {
                return Err(SimulationError::Unknown {
                    what: "setting",
                    name: name.into(),
                    hint: suggest(name, settings().map(|record| record.name)),
                });
            }
        };
        applied.map_err(|problem| SimulationError::invalid_value(name, problem))
    }

    /// Returns the records of the settings that differ from their defaults.
    fn given(&self) -> impl Iterator<Item = &'static SettingRecord> {
        let plans = PLAN_SETTINGS
            .iter()
            .filter(|setting| (setting.differs)(self));
        let packets = packet::SETTINGS.iter();
        let packets = packets.filter(|setting| (setting.differs)(&self.packet));
        plans
            .map(|setting| &setting.record)
            .chain(packets.map(|setting| &setting.record))
    }

    /// Checks that all given settings apply to a packet simulation of traffic without a plan.
    ///
    /// # Errors
    /// Returns an error that names the first setting of another simulator or of plans.
    pub fn check_without_plan(&self) -> Result<(), SimulationError> {
        self.check_known_to("packet")?;
        let plan_settings = ["issue", "overhead", "placement", "background"];
        self.check_absent(
            &plan_settings,
            "packet",
            "plans; traffic without a collective has no plan",
        )
    }

    /// Checks that no setting of `names` is given. For the error message, `of` names the owner of
    /// these settings, such as plans.
    ///
    /// # Errors
    /// Returns an error that names the first of `names` that is given.
    pub fn check_absent(
        &self,
        names: &[&str],
        simulator: &'static str,
        of: &str,
    ) -> Result<(), SimulationError> {
        match self.given().find(|record| names.contains(&record.name)) {
            None => Ok(()),
            Some(record) => Err(SimulationError::unknown_setting(simulator, record.name, of)),
        }
    }

    /// Checks that `simulator` knows every given setting.
    ///
    /// # Errors
    /// Returns an error that names the first setting that the simulator does not know.
    pub fn check_known_to(&self, simulator: &'static str) -> Result<(), SimulationError> {
        let unknown = self
            .given()
            .find(|record| !record.simulators.contains(&simulator));
        match unknown {
            None => Ok(()),
            Some(record) => {
                let of = record.simulators.join(" and ");
                Err(SimulationError::unknown_setting(
                    simulator,
                    record.name,
                    &of,
                ))
            }
        }
    }
}

fn paths(text: &str) -> Result<Paths, String> {
    parse_word(text, &Paths::WORDS)
}

fn weights(text: &str) -> Result<Weights, String> {
    with_message(text.parse())
}

/// Parses the length of the time bins for the bytes of links; `none` means no bins.
fn link_bin(text: &str) -> Result<Option<LinkBin>, String> {
    Ok(match text {
        none if same_name(none, "none") => None,
        fitted if same_name(fitted, "fitted") => Some(LinkBin::Fitted),
        length => Some(LinkBin::Length(with_message(length.parse())?)),
    })
}

fn traffic(text: &str) -> Result<Vec<Background>, String> {
    match same_name(text, "none") {
        true => Ok(Vec::new()),
        false => with_message(background::parse(text)),
    }
}

/// Parses the costs of a message at its two hosts; `none` stands for no costs.
fn endpoint(text: &str) -> Result<Option<Endpoint>, String> {
    let spec: Spec = with_message(text.parse())?;
    if same_name(spec.name(), "none") {
        return with_message(spec.only(&[])).map(|()| None);
    }
    if !same_name(spec.name(), "loggp") {
        let hint = suggest(spec.name(), ["loggp", "none"]);
        return Err(format!(
            "unknown endpoint model `{}`{hint}",
            terminal_text(spec.name())
        ));
    }
    with_message(loggp(&spec)).map(Some)
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

/// Declaration of a simulator: its name, and the functions that run it.
pub struct Simulator {
    /// Name, as typed by users.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Source of the model.
    pub citation: &'static str,
    /// Function that returns the reason why the simulator cannot run on the fabric with the
    /// settings of the method.
    pub applies: fn(&Fabric, &TimingModel) -> Result<(), Unfit>,
    /// Function that times a plan; `None` if the simulator cannot time plans.
    pub run: Option<for<'a> fn(Case<'a>) -> Result<Outcome, SimulationError>>,
    /// Function that creates a network for single messages; `None` if the simulator has no such
    /// network.
    pub live: Option<StartLive>,
    /// True if the simulator carries out multicasts and aggregations.
    pub in_network: bool,
    /// True if a lower bound on a plan's time follows from the bytes that the schedule sends in
    /// each step, before routes and wavelengths are known.
    pub bounded_by_loads: bool,
    /// True if each step of a plan on links starts after the end of the previous step.
    pub runs_steps: bool,
    /// Function that describes the policy or start rule in words that can follow a time, such as
    /// `under free`.
    pub rule: fn(&Fabric, &TimingModel) -> String,
    /// Function that returns a note to print after a lower bound on the simulator's times.
    pub bound_note: fn(&Fabric, &TimingModel) -> Option<String>,
}

/// Function that creates a network that has not sent any message.
pub type StartLive =
    for<'a> fn(&'a Fabric, &'a TimingModel) -> Result<Box<dyn Live + 'a>, SimulationError>;

/// Reason why a simulator cannot run, with the simulator or policy to use instead.
pub enum Unfit {
    /// Reason why the fabric is not supported, and the simulator to use instead.
    Fabric(&'static str),
    /// Policy that is not supported, and the reason with a policy to use instead.
    Policy(Policy, &'static str),
}

/// Simulation of one plan, as input of a simulator.
pub struct Case<'a> {
    /// Plan to be timed.
    pub plan: &'a Plan,
    /// Size of the collective.
    pub size: Bytes,
    /// Method, with settings that the simulator knows.
    pub method: &'a TimingModel,
    /// Progress function, which the simulator calls from time to time. If the function returns
    /// false, the simulator stops.
    pub watch: &'a mut dyn FnMut(&PacketProgress) -> bool,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Simulator {
    /// Creates the declaration of a simulator of circuits, without `run` and `live`.
    pub(super) const fn new(
        name: &'static str,
        summary: &'static str,
        citation: &'static str,
        applies: fn(&Fabric, &TimingModel) -> Result<(), Unfit>,
    ) -> Simulator {
        Simulator {
            name,
            summary,
            citation,
            applies,
            run: None,
            live: None,
            in_network: false,
            bounded_by_loads: false,
            runs_steps: false,
            rule: |fabric, method| {
                let policy = method.policy.unwrap_or(default_policy(fabric));
                format!("under {}", policy.name())
            },
            bound_note: |_, _| None,
        }
    }
}
