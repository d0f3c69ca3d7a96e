//! Flows over routes share links max-min fairly.
//!
//! # The model
//!
//! A flow waits for the latencies of its links, then moves its bytes at a rate r(t) until the
//! integral of r is its size. At every instant the rates are the max-min fair ones.
//!
//! **Definition.** Flow f has the route R_f and the weight w_f; link l has the capacity C_l. Rates
//! are *feasible* if sum of r_f over flows on l <= C_l for each l. They are *max-min fair* if no flow
//! can have more without a flow g of no higher r_g / w_g having less. A rate cap is a link of the
//! flow's own. (Bertsekas and Gallager, Data Networks, section 6.5.2.)
//!
//! **Bottlenecks.** Feasible rates are max-min fair if and only if each flow f has a *bottleneck*: a
//! full link on R_f on which no flow has a higher r / w than f. *If:* more for f means that on its
//! full bottleneck some g has less, and r_g / w_g <= r_f / w_f. *Only if:* were there none, each full
//! link of f would carry a flow with a higher r / w, from which a little could be given to f.
//!
//! **Levels.** So there is a level mu_l for each link, infinite where it is not full, with
//! r_f = w_f * x_f and x_f = min of mu_l over R_f, and mu_l solves the link's *equation*
//!
//! ```text
//! sum over f on l of w_f * min(mu_l, y_fl) = C_l,    y_fl = min of mu_k over the other links k of f
//! ```
//!
//! (and may be infinite if the sum never exceeds C_l). Conversely, levels that solve all equations
//! give max-min fair rates: no link is over its capacity, and f has a bottleneck in a link whose level
//! is x_f: it is full, and its flows are at that level or lower. Hence the x_f are unique.
//!
//! **Relaxation.** A link is *settled* if its level solves its equation with the levels of the others
//! as they are. To *relax* it is to give it the level that does. Let some flows start or end, or a link
//! be relaxed: a link k stays settled if no x_f changes of the flows on it, since min(mu_k, y_fk) is
//! x_f. So only links whose flows start, end or change their x_f need be relaxed, until none is left;
//! all others keep their level, in particular those outside the connected component of the change.
//!
//! *It ends.* Let m_l be the levels of the solution, the least where several would do, v_1 < v_2 < ...
//! their distinct values, x*_f and y*_fl what follows from them; a *round* relaxes every link that is
//! not settled at least once. Suppose that (i) each mu_l >= min(m_l, v_i+1), and (ii) each flow with
//! x*_f <= v_i has x_f = x*_f. (With v_0 = 0 one round makes it so: below v_1 no link can be full.)
//! Then min(t, y_fl) <= min(t, y*_fl) for t <= v_i+1 on links with m_l > t, and y_fl >=
//! min(y*_fl, v_i+1) on all. Hence:
//!
//! 1. Relaxing keeps (i), since up to t the sum of a link is not above that of the solution. It keeps
//!    (ii), since on a link b with m_b <= v_i the sum at m_b is just C_b, with every flow at its x*_f.
//! 2. After a round, a link with m_l > v_i+1 has mu_l > v_i+1, as its sum at v_i+1 is below C_l; and
//!    this stays.
//! 3. After another one, each link b with m_b = v_i+1 has been relaxed: its sum at m_b is C_b, so its
//!    flows have x_f = x*_f, by it or by another link with m_l = v_i+1. So (ii) holds for v_i+1.
//! 4. After a third one, (i) holds for v_i+2 in the same way as in 1.
//!
//! So three rounds for each distinct level do, whatever the order. In the order of the levels a link is
//! relaxed little more than once, because a level depends on lower ones only.
//!
//! **Classes.** Flows with one route and weight have one rate; they are one class with the sum of their
//! weights. What each has moved since the class began is one number, so each ends when that
//! number reaches its value at the start plus the size.
//!
//! # Time
//!
//! Times at the interface are whole picoseconds, to the nearest. Inside, instants, rates and
//! volumes are binary floating-point numbers of 53 bits, since exact rates would be fractions that
//! grow with every event. Three rules keep rounding from being seen:
//!
//! * two levels within 2^-40 of one another, relatively, are one: rates are max-min fair for capacities
//!   that are off by 1e-12, relatively. A flow that gets what thousands of others leave of a link
//!   may be off by that share of the whole link;
//! * ends and starts within 2^-10 ps + 2^-40 t after the first one at t are one instant, t. Errors
//!   of rounding stay below that for thousands of dependent events, and a chain of n events is off
//!   by less than n times that;
//! * what happens at one instant is ordered by the flows' numbers. Nothing depends on anything else,
//!   so a run is repeated exactly.
//!
//! # Start rules
//!
//! When a flow of step s from a to b may start, with a schedule: see [`StartRule`].
//!
//! ```
//! use opticoll_fabric::network::{Link, Routed, Sharing};
//! use opticoll_simulate::fluid;
//! use opticoll_simulate::fluid::{Flow, Flows, FlowOptions};
//! use opticoll_base::units::{Bytes, Time};
//! // Two flows share a link of 10 Gb/s; the short one ends first, the other has all of it then.
//! let link = Link { rate: "10Gb/s".parse()?, latency: Time::ZERO, sharing: Sharing::Shared };
//! let network = Routed::new(3, vec![link], [((0, 2), vec![0]), ((1, 2), vec![0])]);
//! let mut flows = Flows::default();
//! flows.push(Flow::new(0, 2, Bytes::new(1000)), &[]);
//! flows.push(Flow::new(1, 2, Bytes::new(3000)), &[]);
//! let outcome = fluid::simulate_flows(&network, &flows, &FlowOptions::default())?;
//! assert_eq!(outcome.flows.end, ["1.6us".parse()?, "3.2us".parse()?]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alone;
mod classes;
mod disjoint;
mod driven;
mod endpoint;
mod engine;
mod flow_log;
mod flows;
mod instant;
mod least;
mod ledger;
mod meter;
mod plan;
mod program;
mod queue;
mod quotient;
mod quotient_network;
mod schedule;
mod shares;
mod steps;
mod times;

use std::str::FromStr;

use thiserror::Error;

use super::{PolicyRecord, SimulationError, find_by_name};
use crate::outcome::{ChangedSetting, FluidOutcome};
use opticoll_base::units::{Bytes, Rate, Time, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::NetworkWithRoutes;
use opticoll_plan::schedule::Schedule;

pub use driven::DrivenFlows;
pub use endpoint::Endpoint;
use engine::FluidEngine;
use flow_log::FlowLog;
use flows::Dependencies;
pub use flows::{Flow, Flows};
pub use least::least_schedule;
use ledger::FlowLedger;
pub use meter::LinkBin;
pub use plan::simulate_plan;
pub use program::{StepFlow, Steps};
use quotient::Worth;
use schedule::ScheduledSteps;
use steps::Stepped;
pub use times::{MessageTime, message_times};

/// The share of its time by which a plan may seem faster than a bound that it meets: ends within so little of each
/// other are taken for one instant.
pub const ROUNDING: f64 = 1e-12;

/// Why flows were refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FluidError {
    /// An end of a flow is no rank.
    #[error("flow {flow}: {rank} is no rank; the network has {ranks}, counted from 0")]
    Rank {
        /// The flow's index.
        flow: usize,
        /// The end.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// A flow goes nowhere.
    #[error("flow {flow} goes from rank {rank} to itself; leave it out, a copy in place is free")]
    SelfFlow {
        /// The flow's index.
        flow: usize,
        /// Both of its ends.
        rank: u32,
    },
    /// A flow waits for one that does not exist.
    #[error("flow {flow} waits for flow {after}; there are {flows}, counted from 0")]
    UnknownDependency {
        /// The flow's index.
        flow: usize,
        /// What it waits for.
        after: u32,
        /// The number of flows.
        flows: usize,
    },
    /// Flows wait for one another in a circle.
    #[error("flow {flow} waits for itself, through the flows it waits for; none of them can start")]
    Cycle {
        /// A flow on the circle.
        flow: usize,
    },
    /// A network's route has a link that the network does not have.
    #[error(
        "the route from rank {source_rank} to {destination} uses link {link}, which the network does not have"
    )]
    Link {
        /// The link's index.
        link: u32,
        /// The sending rank.
        source_rank: u32,
        /// The receiving rank.
        destination: u32,
    },
    /// The schedule is for another number of ranks.
    #[error("the schedule is for {schedule} ranks, the network has {network}")]
    Ranks {
        /// Ranks of the schedule.
        schedule: u32,
        /// Ranks of the network.
        network: u32,
    },
    /// More flows than 32 bits count.
    #[error("too many flows: they are numbered with 32 bits")]
    TooMany,
    /// The use of links is to be kept in bins of no length.
    #[error("a bin of link use must take some time; give a bin such as 1us")]
    Bin,
    /// Costs at the ends are asked of flows that are started from outside.
    #[error(
        "costs at the ends of messages are those of the program that sends them; leave the endpoint out"
    )]
    Endpoint,
    /// Settings that the rule `link` leaves no room for.
    #[error(
        "under the start rule link each flow has its links to itself: leave endpoint, background and link_bin out, or \
         name another start rule"
    )]
    Alone,
    /// The run was to be given up at a time that it has reached.
    #[error("the flows take longer than {limit}")]
    TooLong {
        /// [`FlowOptions::limit`].
        limit: Time,
    },
    /// A time or size left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// When a flow of step s from rank a to rank b may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StartRule {
    /// When a and b have ended all their flows of earlier steps, sent and received: MPI's
    /// `Sendrecv` with messages too large to be buffered.
    #[default]
    Rendezvous,
    /// When a has.
    Sender,
    /// When everybody has: a barrier between steps.
    Step,
    /// When a has what it sends, and the flows before it on the links from a to b have ended: links are
    /// busy with one flow at a time, for latency and bytes.
    Link,
}

/// All start rules, in the order of [`StartRule::ALL`]; the first is the default.
pub const START_RULES: &[PolicyRecord<StartRule>] = &[
    PolicyRecord {
        name: "rendezvous",
        summary: "A flow starts when its source and destination have finished their earlier steps",
        citation: "MPI standard, MPI_Sendrecv with synchronous messages",
        policy: StartRule::Rendezvous,
    },
    PolicyRecord {
        name: "sender",
        summary: "A flow starts when its source has finished its earlier steps",
        citation: "opticoll",
        policy: StartRule::Sender,
    },
    PolicyRecord {
        name: "step",
        summary: "A flow starts when all flows of earlier steps have ended",
        citation: "Valiant, A bridging model for parallel computation, CACM 1990",
        policy: StartRule::Step,
    },
    PolicyRecord {
        name: "link",
        summary: "A flow starts when its source has what it sends and its links have ended their earlier flows",
        citation: "Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer, MICRO 2024",
        policy: StartRule::Link,
    },
];

impl StartRule {
    /// All start rules, in the order of [`START_RULES`].
    pub const ALL: [StartRule; 4] = [
        StartRule::Rendezvous,
        StartRule::Sender,
        StartRule::Step,
        StartRule::Link,
    ];

    /// The name as typed.
    pub fn name(self) -> &'static str {
        START_RULES[self as usize].name
    }
}

impl FromStr for StartRule {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<StartRule, SimulationError> {
        let known = START_RULES.iter().map(|one| (one.name, one.policy));
        find_by_name("start rule", name, known)
    }
}

/// How much of a full link a flow gets, compared with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weights {
    /// As much as every other: plain max-min fairness.
    #[default]
    Equal,
    /// In proportion to 1 / latency of its route, as window-controlled transport does (SimGrid's
    /// CM02). A route without latency has weight 1.
    InverseLatency,
}

impl FromStr for Weights {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<Weights, SimulationError> {
        let known = [
            ("equal", Weights::Equal),
            ("inverse_latency", Weights::InverseLatency),
        ];
        find_by_name("weights", name, known.into_iter())
    }
}

/// Traffic beside the flows, for which nothing waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundFlow {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank, another one.
    pub destination: u32,
    /// Its highest rate. None: its fair share.
    pub rate: Option<Rate>,
    /// When it begins; there is no latency.
    pub from: Time,
    /// When it ends. None: with the last flow.
    pub until: Option<Time>,
}

/// Settings of a run. The default is the plain model, with flows recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowOptions {
    /// Shares of a full link.
    pub weights: Weights,
    /// Costs at the ranks.
    pub endpoint: Option<Endpoint>,
    /// Traffic beside the flows.
    pub background: Vec<BackgroundFlow>,
    /// Whether to keep start, end, bottleneck and predecessor of each flow (32 bytes each, but not of
    /// those of replayed steps until they are asked for), and with them the critical path.
    pub record_flows: bool,
    /// Whether to keep the use of each link over time, and in which bins. Every step is simulated then,
    /// repeated ones too.
    pub link_bin: Option<LinkBin>,
    /// When to give up: a run that takes longer is an error, [`FluidError::TooLong`].
    pub limit: Option<Time>,
}

impl Default for FlowOptions {
    fn default() -> FlowOptions {
        FlowOptions {
            weights: Weights::Equal,
            endpoint: None,
            background: Vec::new(),
            record_flows: true,
            link_bin: None,
            limit: None,
        }
    }
}

impl FlowOptions {
    /// Whether there is nothing but flows and links, and no use of links over time is kept: then not
    /// every flow need be simulated by itself.
    fn is_plain(&self) -> bool {
        self.endpoint.is_none() && self.background.is_empty() && self.link_bin.is_none()
    }

    /// Refuses an instant (ps) that is past the limit, by more than what rounding does.
    fn check_limit(&self, now: f64) -> Result<(), FluidError> {
        match self.limit {
            Some(limit) if now > limit.ps() as f64 * (1.0 + 1e-9) + 1.0 => {
                Err(FluidError::TooLong { limit })
            }
            _ => Ok(()),
        }
    }

    /// Every setting that differs from the plain model.
    pub fn settings(&self) -> Vec<ChangedSetting> {
        let mut settings = Vec::new();
        let mut differs = |name, value: String, plain| {
            settings.push(ChangedSetting { name, value, plain });
        };
        if self.weights == Weights::InverseLatency {
            differs("weights", "1/route latency".into(), "equal");
        }
        if let Some(flow) = self.background.first() {
            let rate = flow
                .rate
                .map_or("its share".into(), |rate| rate.to_string());
            let until = flow
                .until
                .map_or("the end".into(), |until| until.to_string());
            let BackgroundFlow {
                source,
                destination,
                from,
                ..
            } = flow;
            let mut value = format!("{source} -> {destination}, {rate}, {from} to {until}");
            if self.background.len() > 1 {
                value += &format!(", and {} more", self.background.len() - 1);
            }
            differs("background", value, "none");
        }
        if let Some(endpoint) = &self.endpoint {
            let rate = endpoint.rate.map_or("none".into(), |rate| rate.to_string());
            differs("message_latency", endpoint.latency.to_string(), "0s");
            differs("send_overhead", endpoint.send_overhead.to_string(), "0s");
            differs(
                "receive_overhead",
                endpoint.receive_overhead.to_string(),
                "0s",
            );
            differs("message_gap", endpoint.gap.to_string(), "0s");
            differs("message_rate", rate, "none");
            differs(
                "eager_threshold",
                endpoint.eager_threshold.to_string(),
                "none",
            );
        }
        settings
    }
}

/// Runs flows that wait for one another.
///
/// # Errors
/// Ends that are no ranks or the same one, unknown dependencies, flows that wait for one another in
/// a circle, a route with an unknown link, a time beyond 64 bits.
pub fn simulate_flows(
    network: &dyn Network,
    flows: &Flows,
    options: &FlowOptions,
) -> Result<FluidOutcome, FluidError> {
    check_background(network, options)?;
    let mut program = Dependencies::new(flows, network.ranks())?;
    let mut engine = FluidEngine::new(network, options)?;
    engine.run(&mut program)?;
    let counts = (flows.len() as u64, 0);
    let closed = engine
        .ledger
        .close(network, options, "dependencies", counts);
    closed.map(with_flows)
}

/// Runs flows in steps.
///
/// # Errors
/// Ends that are no ranks or the same one, a route with an unknown link, a time beyond 64 bits.
pub fn simulate_steps(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<FluidOutcome, FluidError> {
    log_steps(network, steps, None, rule, options).map(with_flows)
}

/// Runs flows in steps, which carry these chunks; what is written down of each flow comes beside the outcome, in
/// which its columns are empty.
fn log_steps(
    network: &dyn Network,
    steps: &dyn Steps,
    chunks: Option<(&Schedule, &NamedRoutes)>,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<(FluidOutcome, FlowLog), FluidError> {
    check_background(network, options)?;
    if rule == StartRule::Link {
        let mut ledger = FlowLedger::new(network, options.record_flows, None);
        let flows = alone::run(network, steps, chunks, options, &mut ledger)?;
        return ledger.close(network, options, rule.name(), (flows, 0));
    }
    if options.is_plain() && !steps.names_routes() {
        let mut ledger = FlowLedger::new(network, options.record_flows, None);
        if let Some(counts) = disjoint::run(network, steps, rule, options, &mut ledger)? {
            let (found, log) = ledger.close(network, options, rule.name(), counts)?;
            let found = FluidOutcome {
                disjoint: true,
                ..found
            };
            return Ok((found, log));
        }
        let worth = Worth::USUAL;
        if let Some((ledger, flows)) = quotient::run(network, steps, rule, options, &worth)? {
            return ledger.close(network, options, rule.name(), (flows, 0));
        }
    }
    log_each_flow(network, steps, rule, options)
}

/// As [`log_steps`], with each flow simulated by itself.
fn log_each_flow(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<(FluidOutcome, FlowLog), FluidError> {
    let eager = options
        .endpoint
        .map(|endpoint| endpoint.eager_threshold.get());
    let may_replay = options.is_plain() && !steps.names_routes();
    let mut program = Stepped::new(steps, network.ranks(), rule, eager, may_replay);
    let mut engine = FluidEngine::new(network, options)?;
    engine.run(&mut program)?;
    let mut ledger = engine.ledger;
    let counts = program.close(&mut ledger);
    ledger.close(network, options, rule.name(), counts)
}

/// Runs a schedule for a collective of some size. The transfers of a step with the same source,
/// destination and action are one flow, by the network's route.
///
/// # Errors
/// As [`simulate_steps`]; a network with another number of ranks.
pub fn simulate_schedule(
    network: &dyn Network,
    schedule: &Schedule,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<FluidOutcome, FluidError> {
    let routes = NamedRoutes::default();
    log_plan(network, schedule, &routes, size, rule, options).map(with_flows)
}

/// Runs a schedule over the routes that a plan names, with flows as in [`log_steps`].
fn log_plan(
    network: &dyn Network,
    schedule: &Schedule,
    routes: &NamedRoutes,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<(FluidOutcome, FlowLog), FluidError> {
    if schedule.collective.ranks() != network.ranks() {
        return Err(FluidError::Ranks {
            schedule: schedule.collective.ranks(),
            network: network.ranks(),
        });
    }
    let steps = ScheduledSteps::new(schedule, routes, size)?;
    let chunks = Some((schedule, routes));
    match routes.is_empty() {
        true => log_steps(network, &steps, chunks, rule, options),
        false => {
            let network = NetworkWithRoutes::new(network, routes);
            log_steps(&network, &steps, chunks, rule, options)
        }
    }
}

/// The outcome with a column entry for each flow.
fn with_flows((outcome, log): (FluidOutcome, FlowLog)) -> FluidOutcome {
    FluidOutcome {
        flows: log.into_columns(),
        ..outcome
    }
}

fn check_background(network: &dyn Network, options: &FlowOptions) -> Result<(), FluidError> {
    for (index, flow) in options.background.iter().enumerate() {
        check_ends(index, flow.source, flow.destination, network.ranks())?;
    }
    Ok(())
}

fn check_ends(flow: usize, source: u32, destination: u32, ranks: u32) -> Result<(), FluidError> {
    for rank in [source, destination] {
        if rank >= ranks {
            return Err(FluidError::Rank { flow, rank, ranks });
        }
    }
    if source == destination {
        return Err(FluidError::SelfFlow { flow, rank: source });
    }
    Ok(())
}
