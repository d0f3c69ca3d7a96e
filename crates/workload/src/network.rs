//! From a trace and what its messages go over to a replay.
//!
//! | specification | what a message costs |
//! |---|---|
//! | `zero` | nothing |
//! | `hockney:latency=1us,rate=10Gb/s` | [`Hockney`]: latency and bytes at the rate, however many others |
//! | `loggp:latency=1us,gap=200ns,rate=10Gb/s` | [`LogGp`]: the same through one port each way at each rank |
//! | `light_path_grid:ports=2,...` | as `hockney` from when both ends are ready, holding both, after and before the times that the program spends on setting up and releasing lightpaths ([`SetUp`]); the setting `paths` says when they go |
//! | a fabric with links, or a `wdm_ring` | what its simulator says |
//! | links with `wavelengths` | what a lightpath on request costs ([`OverBursts`]) |
//!
//! **Simulated networks:**
//!
//! * an electrical fabric under `fluid`: each message is a flow over its route; flows share links max-min
//!   fairly; a message has left when it has arrived, since it holds the links all along;
//! * under `packet`: each message is handed to its rank's terminal, which cuts it into chunks; it has left
//!   when the last chunk is on the terminal's link;
//! * a ring of wavelengths: collectives are carried out by their plans, and wait until the links that they use are
//!   free; each other message asks for a lightpath ([`opticoll_simulate::on_demand`]) and waits for one if there is none;
//!   it has left when it has arrived.
//!
//! A message to the rank itself costs nothing there.
//!
//! What a rank spends on a message, and which messages leave at once, are the [`EndCosts`] of all of them.

use std::fmt;

use super::bursts::OverBursts;
use super::cost::{Hockney, LogGp, Zero};
use super::error::TraceError;
use super::expand::{
    Algorithms, ChosenAlgorithm, CollectiveTarget, Expanded, SetUp, expand_on, expand_plan,
};
use super::program::Program;
use super::replay::{Eager, EndCosts, ReplaySettings, Replayed, replay};
use super::trace::Trace;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::Medium;
use opticoll_fabric::family::light_path_grid;
use opticoll_fabric::family::light_path_grid::LightPathGrid;
use opticoll_fabric::family::message_cost::MessageCost;
use opticoll_plan::plan::Plan;
use opticoll_simulate::burst::BurstError;
use opticoll_simulate::fluid::Endpoint;
use opticoll_simulate::live::{Live, MessageEvent, MessageTimes, PlannedCollective, ReadyMessage};
use opticoll_simulate::table::Details;
use opticoll_simulate::{Method, SimulationError, Simulator};

/// What a trace was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceContent {
    /// Calls, with collectives.
    Calls(Trace),
    /// Messages and local work only: GOAL.
    Messages(Program),
}

impl TraceContent {
    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            TraceContent::Calls(trace) => trace.ranks.len() as u32,
            TraceContent::Messages(program) => program.ranks(),
        }
    }
}

/// What messages go over.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// A cost of each message alone.
    Messages(MessageCost),
    /// Lightpaths that programs set up and release.
    LightPaths(LightPathGrid),
    /// A fabric that is simulated.
    Fabric(Box<Fabric>),
    /// A network of bursts, in which messages ask for lightpaths.
    Bursts(Box<OverBursts>),
}

impl Transport {
    /// The way of messages over what a specification names; settings of bursts are for networks of bursts.
    ///
    /// # Errors
    /// Settings of bursts elsewhere, or that do not fit.
    pub fn new<'a>(
        medium: Medium,
        of_bursts: Option<impl IntoIterator<Item = (&'a str, &'a str)>>,
    ) -> Result<Transport, BurstError> {
        Ok(match (medium, of_bursts) {
            (medium, Some(settings)) => {
                Transport::Bursts(Box::new(OverBursts::new(&medium, settings)?))
            }
            (medium @ Medium::Bursts(_), None) => {
                Transport::Bursts(Box::new(OverBursts::new(&medium, [])?))
            }
            (Medium::Messages(cost), None) => Transport::Messages(cost),
            (Medium::Fabric(fabric), None) => match fabric.downcast::<LightPathGrid>() {
                Some(grid) => Transport::LightPaths(grid.clone()),
                None => Transport::Fabric(Box::new(fabric)),
            },
        })
    }

    /// A fabric without its number of ranks whose messages cost about as much; `None` where they cost
    /// nothing, and of a fabric, on which plans are made. Of Hockney's model every pair of ranks has a cable, of
    /// LogGP's every rank has one, of a network of bursts every rank has its ports.
    fn shape(&self) -> Option<Spec> {
        let cables = |family: &str, latency: Time, rate: &dyn fmt::Display| {
            let spec = Spec::new(family).with("rate", rate);
            spec.with("latency", latency)
        };
        // Two cables, one behind the other, lie between the ranks of a crossbar.
        let half = |latency: Time| Time::from_ps(latency.ps() / 2);
        Some(match self {
            Transport::Messages(MessageCost::Zero) => return None,
            Transport::Messages(MessageCost::Hockney { latency, rate }) => {
                cables("fully_connected", *latency, rate)
            }
            Transport::Messages(MessageCost::LogGp { latency, rate, .. }) => {
                cables("crossbar", half(*latency), rate)
            }
            Transport::LightPaths(grid) => {
                let spec = cables(light_path_grid::RECORD.name, grid.latency, &grid.rate);
                spec.with("ports", grid.ports)
                    .with("establish", grid.establish)
                    .with("release", grid.release)
            }
            Transport::Bursts(over) => {
                let congestion = &over.congestion;
                let rate = over.network.rate();
                cables(light_path_grid::RECORD.name, congestion.latency, &rate)
                    .with("ports", congestion.ports)
                    .with("establish", congestion.establish)
                    .with("release", congestion.release)
            }
            Transport::Fabric(_) => return None,
        })
    }

    /// The fabric, if it is one.
    pub fn fabric(&self) -> Option<&Fabric> {
        match self {
            Transport::Fabric(fabric) => Some(fabric),
            _ => None,
        }
    }
}

impl fmt::Display for Transport {
    /// The complete specification.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Messages(cost) => Medium::Messages(*cost).fmt(formatter),
            Transport::LightPaths(grid) => Fabric::new(grid.clone()).fmt(formatter),
            Transport::Fabric(fabric) => fabric.fmt(formatter),
            Transport::Bursts(over) => formatter.write_str(over.network.specification()),
        }
    }
}

/// The method of a replay, with what messages cost at their ends where flows are simulated and nothing
/// else is said.
fn with_overhead(request: &ReplayRequest<'_>) -> Method {
    let mut method = request.method.clone();
    let flows = match request.network {
        Transport::Fabric(fabric) => Simulator::chosen(fabric, &method).has_setting("endpoint"),
        Transport::Messages(cost) => *cost != MessageCost::Zero,
        _ => false,
    };
    if flows && method.fluid.endpoint.is_none() {
        let overhead = request.settings.ends.overhead;
        let gap = match request.network {
            Transport::Messages(MessageCost::LogGp { gap, .. }) => *gap,
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

/// A replay that is asked for.
#[derive(Debug, Clone)]
pub struct ReplayRequest<'a> {
    /// What messages go over.
    pub network: &'a Transport,
    /// The simulator of a fabric and its settings.
    pub method: &'a Method,
    /// How collectives become messages.
    pub algorithms: &'a Algorithms,
    /// How to replay.
    pub settings: ReplaySettings,
}

opticoll_simulate::totals! {
    /// A replay with what the network says of it.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Done {
        /// Specification of the network.
        pub network: String,
        /// The simulator, or the name of the cost model.
        pub simulator: &'static str,
        /// Nodes of the program that was replayed: messages, receives, pieces of local work.
        pub nodes: usize,
        /// Times, messages and bytes.
        pub replayed: Replayed,
        /// By which algorithms its collectives ran.
        pub collectives: Vec<ChosenAlgorithm>,
        /// What a simulated network has found, or what setting up circuits cost the ranks.
        pub found: Details,
    }
}

opticoll_simulate::totals! {
    /// What it cost the ranks to set circuits up themselves.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OwnSetUps {
        /// How often circuits were set up.
        pub set_ups: u64,
        /// Time that setting up and releasing took, summed over ranks.
        pub setting_up: Time,
    }
}

/// Replays a trace over a network.
///
/// # Errors
/// As [`expand_on`] and [`replay`]; a setting of a simulator where there is none; an eager limit or
/// messages without calls over lightpaths.
pub fn run(source: &TraceContent, request: &ReplayRequest<'_>) -> Result<Done, TraceError> {
    let trace = source.ranks();
    match request.network.fabric().map(|fabric| fabric.ranks()) {
        Some(fabric) if trace > fabric => return Err(TraceError::Ranks { trace, fabric }),
        _ => {}
    }
    let resembles = request.network.shape();
    let method = with_overhead(request);
    let target = CollectiveTarget {
        fabric: request.network.fabric(),
        resembles: resembles.as_ref(),
        method: Some(&method),
        set_up: match request.network {
            Transport::LightPaths(grid) => Some(SetUp {
                establish: grid.establish,
                release: grid.release,
                ports: grid.ports,
                paths: request.method.paths.unwrap_or_default(),
            }),
            _ => None,
        },
    };
    match source {
        TraceContent::Calls(trace) if target.set_up.is_some() && !trace.after.is_empty() => {
            Err(without_calls())
        }
        TraceContent::Calls(trace) => {
            let expanded = expand_on(trace, request.algorithms, target)?;
            let done = replay_program(&expanded.program, request)?;
            Ok(Done {
                collectives: expanded.chosen,
                ..done
            })
        }
        TraceContent::Messages(_) if target.set_up.is_some() => Err(without_calls()),
        TraceContent::Messages(program) => replay_program(program, request),
    }
}

/// Refuses a program without calls over lightpaths.
fn without_calls() -> TraceError {
    let problem = "GOAL and Chakra traces have no calls one after another, for whose messages \
                   lightpaths could be set up together; replay the event table or OTF2 archive of \
                   the run";
    TraceError::Refused(problem.into())
}

/// Carries out a plan on its own fabric, for a collective of a size.
///
/// # Errors
/// The verifier or the simulator refuses the plan; a time that leaves 64 bits.
pub fn carry_out(
    plan: &Plan,
    size: Bytes,
    request: &ReplayRequest<'_>,
) -> Result<Done, TraceError> {
    let method = with_overhead(request);
    let Expanded { program, chosen } = expand_plan(plan, size, &method)?;
    let simulator = Simulator::chosen(&plan.fabric, &method).name;
    let replayed = replay(
        &program,
        &mut AsPlanned::default(),
        request.settings.clone(),
    )?;
    Ok(Done {
        collectives: chosen,
        ..done(replayed, simulator, Details::default(), &program, request)
    })
}

fn replay_program(program: &Program, request: &ReplayRequest<'_>) -> Result<Done, TraceError> {
    match *request.network {
        Transport::Messages(cost) => {
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
        Transport::LightPaths(ref grid) => {
            let (trace, fabric) = (program.ranks(), grid.ranks);
            if trace > fabric {
                return Err(TraceError::Ranks { trace, fabric });
            }
            if request.settings.ends.eager != Eager::All {
                let problem = "a lightpath joins two ranks that are both ready: no message is eager; \
                               leave the eager limit out";
                return Err(TraceError::Refused(problem.into()));
            }
            let ends = EndCosts {
                eager: Eager::Never,
                ..request.settings.ends
            };
            let method = Method {
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
            modelled(program, light_path_grid::RECORD.name, model, &request)
        }
        Transport::Fabric(ref fabric) => {
            let (model, simulator) = on_fabric(fabric, request.method)?;
            simulated(program, model, simulator, request)
        }
        Transport::Bursts(ref over) => {
            let model = over_bursts(over, request.method)?;
            simulated(program, model, "burst", request)
        }
    }
}

/// The settings of simulators that have no place in a replay, which has ends, calls and steps of its own.
const OF_PLANS: [&str; 4] = ["start", "endpoint", "issue", "overhead"];

/// Returns a fabric without messages under the simulator of a method, and the simulator's name.
///
/// # Errors
/// A fabric or simulator that knows no single messages, a setting that does not fit.
pub fn on_fabric<'a>(
    fabric: &'a Fabric,
    method: &'a Method,
) -> Result<(Box<dyn Live + 'a>, &'static str), SimulationError> {
    let of = "plans; the ends of a replay have an overhead and an eager limit of their own";
    let simulator = Simulator::of(fabric, method)?;
    let live = simulator.live.ok_or_else(|| {
        let hint = "replays run message by message: fluid and packet on electrical fabrics, circuit on a \
                    wdm_ring";
        simulator.not_on(fabric, hint)
    })?;
    method.check_absent(&OF_PLANS, simulator.name, of)?;
    Ok((live(fabric, method)?, simulator.name))
}

/// Carries out one collective, alone, in the time of its plan.
#[derive(Default)]
struct AsPlanned(Option<MessageEvent>);

impl Live for AsPlanned {
    fn send(
        &mut self,
        _number: u32,
        _message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let problem = "a plan that is carried out has no messages of its own";
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
        Ok(self.0.as_ref().map(|end| end.time))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        happened.extend(self.0.take());
        Ok(())
    }
}

/// A lightpath serves both ends until the last byte is there: its sender is free then, not before.
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

/// A replay without collectives of its own.
fn done(
    replayed: Replayed,
    simulator: &'static str,
    found: Details,
    program: &Program,
    request: &ReplayRequest<'_>,
) -> Done {
    Done {
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
) -> Result<Done, TraceError> {
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
    let set_ups = ranks.set_ups.iter().sum();
    let mut setting_up = Time::ZERO;
    for spent in &ranks.setting_up {
        setting_up = setting_up.plus(*spent)?;
    }
    let own = OwnSetUps {
        set_ups,
        setting_up,
    };
    let found = Details::default();
    let found = if set_ups > 0 { found.with(own) } else { found };
    Ok(done(replayed, name, found, program, request))
}

fn simulated(
    program: &Program,
    mut model: Box<dyn Live + '_>,
    simulator: &'static str,
    request: &ReplayRequest<'_>,
) -> Result<Done, TraceError> {
    if !program.routes.is_empty() {
        model.take_routes(&program.routes)?;
    }
    let replayed = replay(program, &mut *model, request.settings.clone())?;
    let found = model.close(replayed.time)?;
    Ok(done(replayed, simulator, found, program, request))
}

fn over_bursts<'a>(
    over: &'a OverBursts,
    method: &Method,
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
