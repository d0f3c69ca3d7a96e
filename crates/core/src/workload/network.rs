//! From a spelling of a network and a trace to a replay.
//!
//! A network is a fabric, or a cost model spelled the same way:
//!
//! | spelling | what a message costs |
//! |---|---|
//! | `zero` | nothing |
//! | `hockney:latency=1us,rate=10Gb/s` | [`Hockney`]: latency and bytes at the rate, however many others |
//! | `loggp:latency=1us,gap=200ns,rate=10Gb/s` | [`LogGp`]: the same through one port each way at each rank |
//! | `light_path_grid:ports=2,...` | as `hockney` from when both ends are ready, holding both, after and before the times that the program spends on setting up and releasing light paths ([`SetUp`]); the setting `paths` says when they go |
//!
//! What a rank spends on a message, and which messages leave at once, are the [`Ends`] of all of them.

use std::fmt;

use super::bursts::{OnBursts, OverBursts};
use super::carrier::{Costs, Eager, Ends, Found, OnFabric, WithEnds, complete};
use super::cost::{CostModel, Delivery, Hockney, LogGp, Message, Zero};
use super::error::TraceError;
use super::expand::{Algorithms, Chosen, SetUp, Target, expand_on};
use super::program::Program;
use super::replay::{Replayed, Settings, replay_over};
use super::trace::Trace;
use crate::fabric::{Fabric, FabricError, light_path_grid};
use crate::simulate::fluid::Endpoint;
use crate::simulate::{Method, Paths, SimulationError, default_simulator};
use crate::spec::Spec;
use crate::spelling::same_name;
use crate::units::{Bytes, Rate, Time, UnitError};

/// What a trace was read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Calls, with collectives.
    Calls(Trace),
    /// Messages and local work only: GOAL.
    Messages(Program),
}

impl Source {
    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            Source::Calls(trace) => trace.ranks.len() as u32,
            Source::Messages(program) => program.ranks(),
        }
    }
}

/// What messages go over.
#[derive(Debug, Clone, PartialEq)]
pub enum Network {
    /// A network that costs nothing.
    Zero,
    /// Latency and rate.
    Hockney {
        /// From the first bit sent to the first bit received.
        latency: Time,
        /// Of each message.
        rate: Rate,
    },
    /// Latency, gap and rate, with ports.
    LogGp {
        /// From the first bit sent to the first bit received.
        latency: Time,
        /// Between the begins of two messages at a port.
        gap: Time,
        /// Of a port.
        rate: Rate,
    },
    /// Light paths that are set up and released.
    LightPaths {
        /// How many ranks there are; `None`: any number.
        ranks: Option<u32>,
        /// From the first bit sent to the first bit received.
        latency: Time,
        /// Of a path, each way.
        rate: Rate,
        /// Setting up and releasing.
        set_up: SetUp,
    },
    /// A fabric that is simulated.
    Fabric(Box<Fabric>),
    /// A network of bursts, in which messages ask for light paths.
    Bursts(Box<OverBursts>),
}

impl Network {
    /// Reads a spelling, such as `zero`, `hockney:latency=1us,rate=10Gb/s` or that of a fabric.
    ///
    /// # Errors
    /// An unknown name, an option that is wrong or missing.
    pub fn parse(text: &str) -> Result<Network, FabricError> {
        let spec: Spec = text.parse()?;
        let named = |name: &str| same_name(spec.name(), name);
        if named("zero") {
            spec.only(&[])?;
            return Ok(Network::Zero);
        }
        if named("hockney") {
            spec.only(&["latency", "rate"])?;
            return Ok(Network::Hockney {
                latency: time(&spec, "latency", Time::ZERO)?,
                rate: rate(&spec, "hockney")?,
            });
        }
        if named("loggp") {
            spec.only(&["latency", "gap", "rate"])?;
            return Ok(Network::LogGp {
                latency: time(&spec, "latency", Time::ZERO)?,
                gap: time(&spec, "gap", Time::ZERO)?,
                rate: rate(&spec, "loggp")?,
            });
        }
        // Over light paths a program brings its own ranks.
        let any_ranks = named(light_path_grid::RECORD.name) && spec.option("ranks").is_none();
        let complete = match any_ranks {
            true => spec.clone().with("ranks", 1).to_string(),
            false => text.into(),
        };
        Ok(match Fabric::parse(&complete)? {
            Fabric::LightPathGrid(grid) => Network::LightPaths {
                ranks: (!any_ranks).then_some(grid.ranks),
                latency: grid.latency,
                rate: grid.rate,
                set_up: SetUp {
                    establish: grid.establish,
                    release: grid.release,
                    ports: grid.ports,
                    paths: Paths::Released,
                },
            },
            fabric => Network::Fabric(Box::new(fabric)),
        })
    }

    /// A fabric without its number of ranks whose messages cost about as much; `None` where they cost
    /// nothing. Of Hockney's model every pair of ranks has a cable, of LogGP's every rank has one, of a
    /// network of bursts every rank has its ports; of an electrical fabric or a grid of tunable circuits
    /// every rank has a cable of the bandwidth that it injects.
    fn shape(&self) -> Option<Spec> {
        let cables = |family: &str, latency: Time, rate: &dyn fmt::Display| {
            let spec = Spec::new(family).with("rate", rate);
            spec.with("latency", latency)
        };
        // Two cables, one behind the other, lie between the ranks of a crossbar.
        let half = |latency: Time| Time::from_ps(latency.ps() / 2);
        Some(match self {
            Network::Zero => return None,
            Network::Hockney { latency, rate } => cables("fully_connected", *latency, rate),
            Network::LogGp { latency, rate, .. } => cables("crossbar", half(*latency), rate),
            Network::LightPaths {
                latency,
                rate,
                set_up,
                ..
            } => cables(light_path_grid::RECORD.name, *latency, rate)
                .with("ports", set_up.ports)
                .with("establish", set_up.establish)
                .with("release", set_up.release),
            Network::Bursts(over) => {
                let congestion = &over.congestion;
                let rate = over.network.rate();
                cables(light_path_grid::RECORD.name, congestion.latency, &rate)
                    .with("ports", congestion.ports)
                    .with("establish", congestion.establish)
                    .with("release", congestion.release)
            }
            Network::Fabric(fabric) => match fabric.ring() {
                Some(ring) => {
                    let spec = ring.spec();
                    // Places of faults mean nothing among fewer ranks.
                    let kept = spec
                        .options()
                        .filter(|(key, _)| !["ranks", "broken"].contains(key));
                    kept.fold(Spec::new(spec.name()), |spec, (key, value)| {
                        spec.with(key, value)
                    })
                }
                None => {
                    let rate = format!("{}b/s", fabric.injection_bandwidth());
                    cables("crossbar", half(latency_across(fabric)), &rate)
                }
            },
        })
    }

    /// The fabric, if it is one.
    pub fn fabric(&self) -> Option<&Fabric> {
        match self {
            Network::Fabric(fabric) => Some(fabric),
            _ => None,
        }
    }
}

impl fmt::Display for Network {
    /// The complete spelling.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Zero => write!(formatter, "zero"),
            Network::Hockney { latency, rate } => {
                write!(formatter, "hockney:latency={latency},rate={rate}")
            }
            Network::LogGp { latency, gap, rate } => {
                write!(formatter, "loggp:latency={latency},gap={gap},rate={rate}")
            }
            Network::LightPaths {
                ranks,
                latency,
                rate,
                set_up,
            } => {
                let SetUp {
                    establish,
                    release,
                    ports,
                    paths: _,
                } = set_up;
                let ranks = ranks.map_or(String::new(), |ranks| format!("ranks={ranks},"));
                write!(
                    formatter,
                    "light_path_grid:{ranks}ports={ports},latency={latency},rate={rate},\
                     establish={establish},release={release}"
                )
            }
            Network::Fabric(fabric) => fabric.fmt(formatter),
            Network::Bursts(over) => formatter.write_str(over.network.spelling()),
        }
    }
}

/// The latency between the first and the last rank.
fn latency_across(fabric: &Fabric) -> Time {
    if let Some(grid) = fabric.wss_grid() {
        return grid.latency;
    }
    let mut route = Vec::new();
    let Some(network) = fabric.network().filter(|network| network.ranks() > 1) else {
        return Time::ZERO;
    };
    network.route(0, network.ranks() - 1, &mut route);
    let latencies = route
        .iter()
        .map(|&link| network.links()[link as usize].latency.ps());
    Time::from_ps(latencies.fold(0, u64::saturating_add))
}

/// The method of a replay, with what messages cost at their ends where flows are simulated and nothing
/// else is said.
fn with_overhead(request: &Request<'_>) -> Method {
    let mut method = request.method.clone();
    let flows = match request.network {
        Network::Fabric(fabric) => method.simulator.unwrap_or(default_simulator(fabric)) == "fluid",
        Network::Hockney { .. } | Network::LogGp { .. } => true,
        _ => false,
    };
    if flows && method.fluid.endpoint.is_none() {
        let overhead = request.ends.overhead;
        let gap = match request.network {
            Network::LogGp { gap, .. } => *gap,
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

fn time(spec: &Spec, key: &str, default: Time) -> Result<Time, FabricError> {
    match spec.option(key) {
        None => Ok(default),
        Some(text) => Ok(text.parse().map_err(|error| spec.refuse(key, error))?),
    }
}

fn rate(spec: &Spec, family: &'static str) -> Result<Rate, FabricError> {
    let text = spec.option("rate").ok_or(FabricError::Missing {
        family,
        key: "rate",
        example: "rate=10Gb/s",
    })?;
    Ok(text.parse().map_err(|error| spec.refuse("rate", error))?)
}

/// A replay that is asked for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// What messages go over.
    pub network: &'a Network,
    /// The simulator of a fabric and its settings.
    pub method: &'a Method,
    /// How collectives become messages.
    pub algorithms: &'a Algorithms,
    /// What a message costs at its ends.
    pub ends: Ends,
    /// How to replay.
    pub settings: Settings,
}

/// A replay with what the network says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// Times, messages and bytes.
    pub replayed: Replayed,
    /// The simulator, or the name of the cost model.
    pub simulator: &'static str,
    /// What a simulated network has found.
    pub found: Option<Found>,
    /// Nodes of the program that was replayed.
    pub nodes: usize,
    /// By which algorithms its collectives ran.
    pub chosen: Vec<Chosen>,
}

/// Replays a trace over a network.
///
/// # Errors
/// As [`expand_on`] and [`replay_over`]; a setting of a simulator where there is none; an eager limit or
/// messages without calls over light paths.
pub fn run(source: &Source, request: &Request<'_>) -> Result<Done, TraceError> {
    let resembles = request.network.shape();
    let method = with_overhead(request);
    let target = Target {
        fabric: request.network.fabric(),
        resembles: resembles.as_ref(),
        method: Some(&method),
        set_up: match request.network {
            Network::LightPaths { set_up, .. } => Some(SetUp {
                paths: request.method.paths.unwrap_or(set_up.paths),
                ..*set_up
            }),
            _ => None,
        },
    };
    match source {
        Source::Calls(trace) => {
            let expanded = expand_on(trace, request.algorithms, target)?;
            let done = replay_program(&expanded.program, request)?;
            Ok(Done {
                chosen: expanded.chosen,
                ..done
            })
        }
        Source::Messages(_) if target.set_up.is_some() => Err(TraceError::NoCalls),
        Source::Messages(program) => replay_program(program, request),
    }
}

fn replay_program(program: &Program, request: &Request<'_>) -> Result<Done, TraceError> {
    match *request.network {
        Network::Zero => modelled(program, "zero", Zero, request),
        Network::Hockney { latency, rate } => {
            modelled(program, "hockney", hockney(latency, rate), request)
        }
        Network::LogGp { latency, gap, rate } => {
            let mut model = LogGp::new(program.ranks(), latency, rate);
            model.gap = gap;
            modelled(program, "loggp", model, request)
        }
        Network::LightPaths {
            ranks,
            latency,
            rate,
            ..
        } => {
            let (trace, fabric) = (program.ranks(), ranks.unwrap_or(u32::MAX));
            if trace > fabric {
                return Err(TraceError::Ranks { trace, fabric });
            }
            if request.ends.eager != Eager::All {
                return Err(TraceError::Eager);
            }
            let ends = Ends {
                eager: Eager::Never,
                ..request.ends
            };
            let method = Method {
                paths: None,
                ..request.method.clone()
            };
            let request = Request {
                ends,
                method: &method,
                ..request.clone()
            };
            let model = OverLight(hockney(latency, rate));
            modelled(program, "light_path_grid", model, &request)
        }
        Network::Fabric(ref fabric) => simulated(program, fabric, request),
        Network::Bursts(ref over) => over_bursts(program, over, request),
    }
}

/// A light path serves both ends until the last byte is there: its sender is free then, not before.
struct OverLight(Hockney);

impl CostModel for OverLight {
    fn send(&mut self, message: Message) -> Result<Delivery, UnitError> {
        let Delivery { arrives, .. } = self.0.send(message)?;
        Ok(Delivery {
            leaves: arrives,
            arrives,
        })
    }
}

const fn hockney(latency: Time, rate: Rate) -> Hockney {
    Hockney {
        latency,
        rate,
        eager_limit: None,
    }
}

fn modelled(
    program: &Program,
    name: &'static str,
    model: impl CostModel,
    request: &Request<'_>,
) -> Result<Done, TraceError> {
    if let Some(simulator) = request.method.simulator {
        return Err(TraceError::Network(SimulationError::WrongFabric {
            simulator,
            family: name,
            hint: "it is a formula for each message; leave the simulator out",
        }));
    }
    request.method.known_to(name)?;
    let ends = request.ends;
    let mut model = WithEnds { model, ends };
    let replayed = replay_over(program, &mut Costs(&mut model), request.settings)?;
    Ok(Done {
        replayed,
        simulator: name,
        found: None,
        nodes: program.len(),
        chosen: Vec::new(),
    })
}

fn simulated(
    program: &Program,
    fabric: &Fabric,
    request: &Request<'_>,
) -> Result<Done, TraceError> {
    let method = complete(fabric, request.method)?;
    let mut carrier = OnFabric::new(fabric, &method, request.ends)?;
    let replayed = replay_over(program, &mut carrier, request.settings)?;
    let simulator = carrier.simulator();
    let found = carrier.close(fabric, replayed.time)?;
    Ok(Done {
        replayed,
        simulator,
        found: Some(found),
        nodes: program.len(),
        chosen: Vec::new(),
    })
}

fn over_bursts(
    program: &Program,
    over: &OverBursts,
    request: &Request<'_>,
) -> Result<Done, TraceError> {
    if let Some(simulator) = request.method.simulator {
        return Err(TraceError::Network(SimulationError::WrongFabric {
            simulator,
            family: "networks of bursts",
            hint: "its simulator is burst",
        }));
    }
    request.method.known_to("burst")?;
    let mut carrier = OnBursts::new(over, request.ends).map_err(SimulationError::from)?;
    let replayed = replay_over(program, &mut carrier, request.settings)?;
    Ok(Done {
        replayed,
        simulator: "burst",
        found: Some(Found::Requests(carrier.used())),
        nodes: program.len(),
        chosen: Vec::new(),
    })
}
