//! Replays of traces over a network or a cost model.
//!
//! The specification of a network determines the time of a message:
//!
//! * `zero`: messages take no time.
//! * `hockney:latency=1us,rate=10Gb/s` ([`Hockney`]): a message takes latency + bytes / rate,
//!   regardless of other messages.
//! * `loggp:latency=1us,gap=200ns,rate=10Gb/s` ([`LogGp`]): a message takes the same time, but each
//!   rank has only one sending port and one receiving port.
//! * `lightpath_grid:ports=2,...`: a message takes the same time as with `hockney`, from the
//!   moment when both ends are ready, and occupies both ends. The program also spends time on setup
//!   and teardown of lightpaths ([`Setup`]); the setting `paths` decides when they are torn down.
//! * A fabric with links, a `wdm_ring` or a graph of fibres: the simulator of the fabric computes
//!   the time.
//! * A graph of fibres with burst settings: each message requests a lightpath ([`OverBursts`]).
//!
//! **Simulated networks:**
//!
//! * An electrical fabric with the simulator `fluid`: each message is a flow over its route, and
//!   flows share links by max-min fairness. A message leaves when it arrives, because it occupies
//!   its links until then.
//! * An electrical fabric with the simulator `packet`: the terminal of the sending rank cuts each
//!   message into chunks. A message has left when the terminal has sent its last chunk.
//! * A ring or graph of fibres: collectives run as planned and wait until the links that they use
//!   are free. Every other message requests a lightpath ([`opticoll_simulate::on_demand`]) and
//!   waits if no lightpath is free. The message leaves when it arrives.
//!
//! On these networks a message from a rank to itself takes no time.
//!
//! [`EndCosts`] states how much time ranks spend on messages, and which messages are eager.

use std::fmt;

use super::bursts::OverBursts;
use super::cost::{Hockney, LogGp, Zero};
use super::error::TraceError;
use super::expand::{
    Algorithms, ChosenAlgorithm, CollectiveTarget, Expanded, Ran, Setup, expand_on, expand_plan,
};
use super::program::Program;
use super::replay::{Eager, EndCosts, ReplaySettings, Replayed, replay};
use super::trace::Trace;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::Medium;
use opticoll_fabric::family::lightpath_grid;
use opticoll_fabric::family::lightpath_grid::LightpathGrid;
use opticoll_fabric::family::message_cost::MessageCost;
use opticoll_plan::plan::Plan;
use opticoll_simulate::burst::BurstError;
use opticoll_simulate::fluid::Endpoint;
use opticoll_simulate::live::{Live, MessageEvent, MessageTimes, PlannedCollective, ReadyMessage};
use opticoll_simulate::table::Details;
use opticoll_simulate::{SimulationError, Simulator, TimingModel};

/// Content of a trace file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceContent {
    /// MPI calls, including collectives.
    Calls(Trace),
    /// Only messages and local work, from a GOAL file.
    Messages(Program),
}

impl TraceContent {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            TraceContent::Calls(trace) => trace.ranks.len() as u32,
            TraceContent::Messages(program) => program.ranks(),
        }
    }
}

/// Network or cost model that transports messages.
#[derive(Debug, Clone, PartialEq)]
pub enum TransportModel {
    /// Formula for the time of each message.
    Messages(MessageCost),
    /// Lightpaths that programs set up and tear down.
    Lightpaths(LightpathGrid),
    /// Simulated fabric.
    Fabric(Box<Fabric>),
    /// Burst-switched network in which messages request lightpaths.
    Bursts(Box<OverBursts>),
}

impl TransportModel {
    /// Creates the transport for `medium`; a burst-switched network if burst settings are given.
    ///
    /// # Errors
    /// Fails if burst settings are invalid, or are given for a medium other than a graph of fibres.
    /// Without burst settings, fails for several hosts at each rank.
    pub fn new<'a>(
        medium: Medium,
        burst_settings: Option<impl IntoIterator<Item = (&'a str, &'a str)>>,
    ) -> Result<TransportModel, BurstError> {
        Ok(match (medium, burst_settings) {
            (medium, Some(settings)) => {
                TransportModel::Bursts(Box::new(OverBursts::new(&medium, settings)?))
            }
            (Medium::Messages(cost), None) => TransportModel::Messages(cost),
            (medium, None) => {
                let fabric = medium.fabric()?;
                match fabric.downcast::<LightpathGrid>() {
                    Some(grid) => TransportModel::Lightpaths(grid.clone()),
                    None => TransportModel::Fabric(Box::new(fabric)),
                }
            }
        })
    }

    /// Returns the specification of a fabric on which messages take about the same time, without a
    /// number of ranks. Hockney's model corresponds to links between all pairs of ranks, and LogGP
    /// to one link per rank. A grid or a burst-switched network corresponds to lightpaths through
    /// the ports of each rank. Returns `None` if messages take no time, and for a fabric, on which
    /// collectives are planned directly.
    fn similar_fabric(&self) -> Option<Spec> {
        let cables = |family: &str, latency: Time, rate: &dyn fmt::Display| {
            let spec = Spec::new(family).with("rate", rate);
            spec.with("latency", latency)
        };
        // A path between two ranks of a crossbar has two links.
        let half = |latency: Time| Time::from_ps(latency.ps() / 2);
        Some(match self {
            TransportModel::Messages(MessageCost::Zero) => return None,
            TransportModel::Messages(MessageCost::Hockney { latency, rate }) => {
                cables("fully_connected", *latency, rate)
            }
            TransportModel::Messages(MessageCost::LogGp { latency, rate, .. }) => {
                cables("crossbar", half(*latency), rate)
            }
            TransportModel::Lightpaths(grid) => {
                let spec = cables(lightpath_grid::RECORD.name, grid.latency, &grid.rate);
                spec.with("ports", grid.ports)
                    .with("setup", grid.setup)
                    .with("teardown", grid.teardown)
            }
            TransportModel::Bursts(over) => {
                let congestion = &over.congestion;
                let rate = over.network.rate();
                cables(lightpath_grid::RECORD.name, congestion.latency, &rate)
                    .with("ports", congestion.ports)
                    .with("setup", congestion.setup)
                    .with("teardown", congestion.teardown)
            }
            TransportModel::Fabric(_) => return None,
        })
    }

    /// Returns the fabric, or `None` for other transports.
    pub fn fabric(&self) -> Option<&Fabric> {
        match self {
            TransportModel::Fabric(fabric) => Some(fabric),
            _ => None,
        }
    }
}

impl fmt::Display for TransportModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportModel::Messages(cost) => Medium::Messages(*cost).fmt(formatter),
            TransportModel::Lightpaths(grid) => Fabric::new(grid.clone()).fmt(formatter),
            TransportModel::Fabric(fabric) => fabric.fmt(formatter),
            TransportModel::Bursts(over) => formatter.write_str(over.network.specification()),
        }
    }
}

/// Returns the simulator settings of a replay. If the setting `endpoint` applies and is not given,
/// sets it to the overhead of the replay and the gap of the cost model.
fn with_overhead(request: &ReplayRequest<'_>) -> TimingModel {
    let mut method = request.method.clone();
    let flows = match request.network {
        TransportModel::Fabric(fabric) => {
            Simulator::selected_for_messages(fabric, &method).has_setting("endpoint")
        }
        TransportModel::Messages(cost) => *cost != MessageCost::Zero,
        _ => false,
    };
    if flows && method.fluid.endpoint.is_none() {
        let overhead = request.settings.ends.overhead;
        let gap = match request.network {
            TransportModel::Messages(MessageCost::LogGp { gap, .. }) => *gap,
            _ => Time::ZERO,
        };
        method.fluid.endpoint = Some(Endpoint {
            latency: Time::ZERO,
            send_overhead: overhead,
            receive_overhead: overhead,
            gap,
            rate: None,
            eager_threshold: Bytes::new(u64::MAX),
        });
        if (overhead, gap) == (Time::ZERO, Time::ZERO) {
            method.fluid.endpoint = None;
        }
    }
    method
}

/// Parameters of a replay.
#[derive(Debug, Clone)]
pub struct ReplayRequest<'a> {
    /// Network or cost model that transports messages.
    pub network: &'a TransportModel,
    /// Simulator of the fabric, with its settings.
    pub method: &'a TimingModel,
    /// Algorithm for each collective.
    pub algorithms: &'a Algorithms,
    /// Settings of the replay.
    pub settings: ReplaySettings,
}

opticoll_simulate::totals! {
    /// Result of a replay, and the results of the network.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ReplayOutcome {
        /// Specification of the network.
        pub network: String,
        /// Name of the simulator or of the cost model.
        pub simulator: &'static str,
        /// Number of nodes of the replayed program: sends, receives, pieces of local work.
        pub nodes: usize,
        /// Times, messages and bytes.
        pub replayed: Replayed,
        /// Algorithms of the collectives.
        pub collectives: Vec<ChosenAlgorithm>,
        /// Results of the simulated network, or the ranks' setups of lightpaths.
        pub found: Details,
    }
}

opticoll_simulate::totals! {
    /// Setups of lightpaths by the ranks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LightpathSetups {
        /// Number of setups, each of any number of lightpaths.
        pub setups: u64,
        /// Time spent on setup and teardown, summed over ranks.
        pub setup: Time,
    }
}

/// Replays a trace over a network.
///
/// # Errors
/// Fails like [`expand_on`] and [`replay`]. Also fails for a cost model with simulator settings.
/// With lightpaths, also fails for an eager limit, and for a trace that is not a sequence of calls.
pub fn run(
    source: &TraceContent,
    request: &ReplayRequest<'_>,
) -> Result<ReplayOutcome, TraceError> {
    run_and_list(source, request).map(|(outcome, _)| outcome)
}

/// Replays a trace as [`run`] does. Also returns the algorithms of each communicator.
pub(crate) fn run_and_list(
    source: &TraceContent,
    request: &ReplayRequest<'_>,
) -> Result<(ReplayOutcome, Ran), TraceError> {
    let trace = source.ranks();
    match request.network.fabric().map(|fabric| fabric.ranks()) {
        Some(fabric) if trace > fabric => return Err(TraceError::Ranks { trace, fabric }),
        _ => {}
    }
    let resembles = request.network.similar_fabric();
    let method = with_overhead(request);
    let target = CollectiveTarget {
        fabric: request.network.fabric(),
        resembles: resembles.as_ref(),
        method: Some(&method),
        setup: match request.network {
            TransportModel::Lightpaths(grid) => Some(Setup {
                setup: grid.setup,
                teardown: grid.teardown,
                ports: grid.ports,
                paths: request.method.paths.unwrap_or_default(),
            }),
            _ => None,
        },
    };
    match source {
        TraceContent::Calls(trace) if target.setup.is_some() && !trace.after.is_empty() => {
            Err(no_calls())
        }
        TraceContent::Calls(trace) => {
            let expanded = expand_on(trace, request.algorithms, target)?;
            let outcome = replay_program(&expanded.program, request)?;
            let outcome = ReplayOutcome {
                collectives: expanded.chosen,
                ..outcome
            };
            Ok((outcome, expanded.ran))
        }
        TraceContent::Messages(_) if target.setup.is_some() => Err(no_calls()),
        TraceContent::Messages(program) => Ok((replay_program(program, request)?, Ran::new())),
    }
}

/// Returns the error for a trace that is not a sequence of calls, in a replay over lightpaths.
fn no_calls() -> TraceError {
    let problem = "GOAL and Chakra traces have no sequence of calls, for whose messages lightpaths \
                   could be set up together; replay the event table or OTF2 archive of the run";
    TraceError::Refused(problem.into())
}

/// Executes a plan once on the fabric of the plan, for a collective of `size` bytes.
///
/// # Errors
/// Fails if the verifier or the simulator rejects the plan, or if a time exceeds 64 bits.
pub fn carry_out(
    plan: &Plan,
    size: Bytes,
    request: &ReplayRequest<'_>,
) -> Result<ReplayOutcome, TraceError> {
    let method = with_overhead(request);
    let Expanded {
        program, chosen, ..
    } = expand_plan(plan, size, &method)?;
    let simulator = Simulator::selected(&plan.fabric, &method).name;
    let replayed = replay(
        &program,
        &mut AsPlanned::default(),
        request.settings.clone(),
    )?;
    Ok(ReplayOutcome {
        collectives: chosen,
        ..outcome(replayed, simulator, Details::default(), &program, request)
    })
}

fn replay_program(
    program: &Program,
    request: &ReplayRequest<'_>,
) -> Result<ReplayOutcome, TraceError> {
    match *request.network {
        TransportModel::Messages(cost) => {
            let name = cost.family();
            match cost {
                MessageCost::Zero => modelled(program, name, Zero, request),
                MessageCost::Hockney { latency, rate } => {
                    modelled(program, name, Hockney { latency, rate }, request)
                }
                MessageCost::LogGp { latency, gap, rate } => {
                    let mut model = LogGp::new(program.ranks(), latency, rate);
                    model.gap = gap;
                    modelled(program, name, model, request)
                }
            }
        }
        TransportModel::Lightpaths(ref grid) => {
            let (trace, fabric) = (program.ranks(), grid.ranks);
            if trace > fabric {
                return Err(TraceError::Ranks { trace, fabric });
            }
            if request.settings.ends.eager != Eager::All {
                let problem = "a lightpath joins two ranks that are both ready: no message is \
                               eager; leave the eager limit out";
                return Err(TraceError::Refused(problem.into()));
            }
            let ends = EndCosts {
                eager: Eager::Never,
                ..request.settings.ends
            };
            let method = TimingModel {
                paths: None,
                ..request.method.clone()
            };
            let request = ReplayRequest {
                settings: ReplaySettings {
                    ends,
                    ..request.settings.clone()
                },
                method: &method,
                ..request.clone()
            };
            let model = OverLight(Hockney {
                latency: grid.latency,
                rate: grid.rate,
            });
            modelled(program, lightpath_grid::RECORD.name, model, &request)
        }
        TransportModel::Fabric(ref fabric) => {
            let (model, simulator) = on_fabric(fabric, request.method)?;
            simulated(program, model, simulator, request)
        }
        TransportModel::Bursts(ref over) => {
            let model = over_bursts(over, request.method)?;
            simulated(program, model, "burst", request)
        }
    }
}

/// Simulator settings that apply to plans only. A replay has its own costs at the ends of messages,
/// and its own calls and steps.
const PLAN_SETTINGS: [&str; 4] = ["start", "endpoint", "issue", "overhead"];

/// Creates the simulator of `fabric` for single messages. Also returns the name of the simulator.
///
/// # Errors
/// Fails if the fabric or the simulator does not support single messages, or if a setting does not
/// apply.
pub fn on_fabric<'a>(
    fabric: &'a Fabric,
    method: &'a TimingModel,
) -> Result<(Box<dyn Live + 'a>, &'static str), SimulationError> {
    let applies_to = "plans; a replay has an overhead and an eager limit of its own";
    let simulator = Simulator::for_messages(fabric, method)?;
    let live = simulator.live.ok_or_else(|| {
        let hint = "replays run message by message: fluid and packet on electrical fabrics, \
            circuit on a wdm_ring or a graph of fibres";
        simulator.not_on(fabric, hint)
    })?;
    method.check_absent(&PLAN_SETTINGS, simulator.name, applies_to)?;
    Ok((live(fabric, method)?, simulator.name))
}

/// Network that executes a single planned collective in the time of its plan.
#[derive(Default)]
struct AsPlanned(Option<MessageEvent>);

impl Live for AsPlanned {
    fn send(
        &mut self,
        _number: u32,
        _message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let problem = "a plan that is executed sends no messages of its own";
        Err(SimulationError::refused("replay", problem))
    }

    fn carry_out(
        &mut self,
        number: u32,
        planned: PlannedCollective,
        ready: Time,
    ) -> Result<(), SimulationError> {
        let end = ready.plus(planned.time)?;
        self.0 = Some(MessageEvent::arrival(number, end));
        Ok(())
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(self.0.as_ref().map(|event| event.time))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        happened.extend(self.0.take());
        Ok(())
    }
}

/// Cost model of lightpaths. A lightpath occupies both ends until the last byte arrives, so the
/// sender becomes free at that moment.
struct OverLight(Hockney);

impl Live for OverLight {
    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let delivery = self.0.send(number, message)?;
        Ok(delivery.map(|MessageTimes { arrives, .. }| MessageTimes {
            leaves: arrives,
            arrives,
        }))
    }
}

/// Returns the outcome of a replay, with an empty list of collectives.
fn outcome(
    replayed: Replayed,
    simulator: &'static str,
    found: Details,
    program: &Program,
    request: &ReplayRequest<'_>,
) -> ReplayOutcome {
    ReplayOutcome {
        network: request.network.to_string(),
        simulator,
        nodes: program.len(),
        replayed,
        collectives: Vec::new(),
        found,
    }
}

fn modelled(
    program: &Program,
    name: &'static str,
    mut model: impl Live,
    request: &ReplayRequest<'_>,
) -> Result<ReplayOutcome, TraceError> {
    if let Some(simulator) = request.method.simulator {
        return Err(TraceError::Network(SimulationError::Fabric {
            simulator: simulator.name,
            family: name,
            hint: "it is a formula for each message; leave the simulator out",
        }));
    }
    request.method.check_known_to(name)?;
    let replayed = replay(program, &mut model, request.settings.clone())?;
    let ranks = &replayed.ranks;
    let setups = ranks.setups.iter().sum();
    let mut setup = Time::ZERO;
    for spent in &ranks.setup {
        setup = setup.plus(*spent)?;
    }
    let lightpaths = LightpathSetups { setups, setup };
    let details = match setups {
        0 => Details::default(),
        _ => Details::default().with(lightpaths),
    };
    Ok(outcome(replayed, name, details, program, request))
}

fn simulated(
    program: &Program,
    mut model: Box<dyn Live + '_>,
    simulator: &'static str,
    request: &ReplayRequest<'_>,
) -> Result<ReplayOutcome, TraceError> {
    if !program.routes.is_empty() {
        model.take_routes(&program.routes)?;
    }
    let replayed = replay(program, &mut *model, request.settings.clone())?;
    let details = model.close(replayed.time)?;
    Ok(outcome(replayed, simulator, details, program, request))
}

fn over_bursts<'a>(
    over: &'a OverBursts,
    method: &TimingModel,
) -> Result<Box<dyn Live + 'a>, SimulationError> {
    if let Some(simulator) = method.simulator {
        return Err(SimulationError::Fabric {
            simulator: simulator.name,
            family: "networks of bursts",
            hint: "its simulator is burst",
        });
    }
    method.check_known_to("burst")?;
    Ok(Box::new(over.start()?))
}
