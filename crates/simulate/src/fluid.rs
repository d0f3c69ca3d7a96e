//! Flow-level simulator: flows share the links of their routes max-min fairly.
//!
//! # The model
//!
//! A flow waits for the latencies of its links, then moves its bytes at a rate r(t) until the
//! integral of r equals its size. At every instant, the rates are the max-min fair rates.
//!
//! **Definition.** Flow f has the route R_f and the weight w_f; link l has the capacity C_l. Rates
//! are *feasible* if the sum of r_f over the flows on l is at most C_l for each link l. Feasible
//! rates are *max-min fair* if increasing the rate of any flow f requires decreasing the rate of a
//! flow g with r_g / w_g <= r_f / w_f. A cap on the rate of a flow counts as a link that only this
//! flow uses. (Bertsekas and Gallager, Data Networks, section 6.5.2.)
//!
//! **Bottlenecks.** Feasible rates are max-min fair if and only if each flow f has a *bottleneck*:
//! a full link on R_f on which no flow has a higher r / w than f. *If:* a higher rate of f lowers
//! the rate of some g on the bottleneck of f, and r_g / w_g <= r_f / w_f. *Only if:* without a
//! bottleneck, each full link of f has a flow with a higher r / w, which can give f some of its
//! rate.
//!
//! **Levels.** Hence each link l has a level mu_l, infinite if the link is not full, with
//! r_f = w_f x_f and x_f = min of mu_l over R_f, where mu_l solves the link's *equation*
//!
//! ```text
//! sum over f on l of w_f min(mu_l, y_fl) = C_l
//! y_fl = min of mu_k over the other links k of f
//! ```
//!
//! (and is infinite if the sum never exceeds C_l). Conversely, levels that solve all equations give
//! max-min fair rates: no link exceeds its capacity, and f has a bottleneck in a link whose level
//! is x_f, because this link is full and its flows are at that level or lower. Hence the x_f are
//! unique.
//!
//! **Relaxation.** A link is *settled* if its level solves its equation with the present levels of
//! the other links. *Relaxing* a link sets its level to the solution of its equation. After some
//! flows start or end, or a link is relaxed, a link k stays settled if the x_f of the flows on k do
//! not change, because min(mu_k, y_fk) is x_f. Therefore only links whose flows start, end or
//! change their x_f must be relaxed, until no such link is left. All other links keep their level,
//! in particular all links outside the connected component of the change.
//!
//! *Termination.* Let m_l be the levels of the solution (the least if several solve an equation),
//! v_1 < v_2 < ... their distinct values, and x*_f and y*_fl the values that follow from them. A
//! *round* relaxes every link that is not settled at least once. Suppose that (i) mu_l >= min(m_l,
//! v_i+1) for each link l, and (ii) x_f = x*_f for each flow with x*_f <= v_i. (For v_0 = 0, this
//! holds after one round: below v_1 no link can be full.) Then min(t, y_fl) <= min(t, y*_fl) for t
//! <= v_i+1 on links with m_l > t, and y_fl >= min(y*_fl, v_i+1) on all links. Hence:
//!
//! 1. Relaxing preserves (i), because up to t the sum of a link does not exceed the sum in the
//!    solution. It preserves (ii), because on a link b with m_b <= v_i the sum at m_b equals C_b,
//!    with every flow at its x*_f.
//! 2. After a round, a link with m_l > v_i+1 has mu_l > v_i+1, because its sum at v_i+1 is below
//!    C_l; and this remains true.
//! 3. After a second round, each link b with m_b = v_i+1 has been relaxed. Its sum at m_b is C_b,
//!    so its flows have x_f = x*_f because of b or of another link with m_l = v_i+1. Hence (ii)
//!    holds for v_i+1.
//! 4. After a third round, (i) holds for v_i+2 for the same reason as in 1.
//!
//! Three rounds for each distinct level are therefore enough in any order. In the order of the
//! levels, a link is relaxed little more than once, because a level depends only on lower levels.
//!
//! **Classes.** Flows with the same route and weight have the same rate. They form one class, whose
//! weight is the sum of their weights. Each class stores a single number: the bytes that each flow
//! has moved since the class began. A flow ends when this number has increased by the size of the
//! flow since the start of the flow.
//!
//! # Time
//!
//! The interface uses whole picoseconds, rounded to the nearest. Inside the simulator, instants,
//! rates and volumes are binary floating-point numbers of 53 bits, because exact rates would be
//! fractions that grow with every event. Three rules prevent visible effects of rounding:
//!
//! * Two levels with a relative difference below 2^-40 are equal. Rates are then max-min fair for
//!   capacities with a relative error of 1e-12. A flow that uses only the small remainder which
//!   thousands of other flows leave on a link may deviate by this fraction of the link's whole
//!   rate.
//! * Ends and starts within 2^-10 ps + 2^-40 t after the first event at t belong to the same
//!   instant t. Rounding errors stay below this window for thousands of dependent events, and a
//!   chain of n events deviates by less than n windows.
//! * Events of one instant are ordered by the indices of their flows. The order depends on nothing
//!   else, so every run gives exactly the same result.
//!
//! # Start rules
//!
//! If flows are in steps, a [`StartRule`] defines when a flow from rank a to rank b may start.
//!
//! ```
//! use opticoll_fabric::network::{Link, Routed, Sharing};
//! use opticoll_simulate::fluid;
//! use opticoll_simulate::fluid::{Flow, Flows, FlowOptions};
//! use opticoll_base::units::{Bytes, Time};
//! // Two flows share a link of 10 Gb/s until the short flow ends; then the other uses all of it.
//! let link = Link {
//!     rate: "10Gb/s".parse()?,
//!     latency: Time::ZERO,
//!     sharing: Sharing::Shared,
//! };
//! let network = Routed::new(3, vec![link], [((0, 2), vec![0]), ((1, 2), vec![0])]);
//! let mut flows = Flows::default();
//! flows.push(Flow::new(0, 2, Bytes::new(1000)), &[]);
//! flows.push(Flow::new(1, 2, Bytes::new(3000)), &[]);
//! let outcome = fluid::simulate_flows(&network, &flows, &FlowOptions::default())?;
//! assert_eq!(outcome.flows.end, ["1.6us".parse()?, "3.2us".parse()?]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod classes;
mod conversion;
mod driven;
mod endpoint;
mod engine;
mod exclusive_links;
mod flow_log;
mod flows;
mod ledger;
mod lower_bound;
mod meter;
mod non_interfering;
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
use crate::in_network::Groups;
use crate::outcome::{ChangedSetting, FluidOutcome};
use opticoll_base::units::{Bytes, Rate, Time, UnitError};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::schedule::Schedule;

pub use driven::DrivenFlows;
pub use endpoint::Endpoint;
use engine::FluidEngine;
use flow_log::FlowLog;
use flows::Dependencies;
pub use flows::{Flow, Flows};
use ledger::FlowLedger;
pub use lower_bound::schedule_lower_bound;
pub use meter::LinkBin;
pub use plan::simulate_plan;
pub use program::{FlowMembers, StepFlow, Steps};
use quotient::QuotientLimits;
use schedule::ScheduledSteps;
use steps::Stepped;
pub use times::{MessageTime, message_times};

/// Tolerance when a simulated time is compared with its lower bound, relative to the bound. The
/// time may be lower than the bound, because ends within a rounding window count as simultaneous.
pub const ROUNDING: f64 = 1e-12;

/// Reason why the flow simulator refuses flows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FluidError {
    /// The source or destination of a flow is no rank.
    #[error(
        "flow {flow}: rank {rank} does not exist; the network has {ranks} ranks, counted from 0"
    )]
    Rank {
        /// Index of the flow.
        flow: usize,
        /// Source or destination that is no rank.
        rank: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// A flow has the same source and destination.
    #[error("flow {flow} goes from rank {rank} to itself; leave it out, a copy in place is free")]
    SelfFlow {
        /// Index of the flow.
        flow: usize,
        /// Rank that is both source and destination.
        rank: u32,
    },
    /// A flow waits for a flow that does not exist.
    #[error(
        "flow {flow} waits for flow {after}, which does not exist; there are {flows} flows, \
         counted from 0"
    )]
    UnknownDependency {
        /// Index of the flow.
        flow: usize,
        /// Index of the unknown flow.
        after: u32,
        /// Number of flows.
        flows: usize,
    },
    /// Flows wait for each other in a cycle.
    #[error("flow {flow} waits for itself, through the flows it waits for; none of them can start")]
    Cycle {
        /// Index of a flow on the cycle.
        flow: usize,
    },
    /// A route of the network contains a link that the network does not have.
    #[error(
        "the route from rank {source_rank} to {destination} uses link {link}, which the network \
         does not have"
    )]
    Link {
        /// Index of the link.
        link: u32,
        /// Sending rank.
        source_rank: u32,
        /// Receiving rank.
        destination: u32,
    },
    /// The schedule is for another number of ranks.
    #[error("the schedule is for {schedule} ranks, but the network has {network} ranks")]
    Ranks {
        /// Number of ranks of the schedule.
        schedule: u32,
        /// Number of ranks of the network.
        network: u32,
    },
    /// The switches cannot carry out a multicast or an aggregation.
    #[error(
        "the switches of the network cannot carry out the multicast or aggregation that begins \
         with transfer {transfer}; verify the plan"
    )]
    Group {
        /// Index of the first transfer.
        transfer: usize,
    },
    /// There are more flows than 32 bits can number.
    #[error("too many flows: they are numbered with 32 bits")]
    TooMany,
    /// The bins of link use have no length.
    #[error("a bin of link use must take some time; give a bin such as 1us")]
    Bin,
    /// The caller starts the flows, but the options contain endpoint costs.
    #[error(
        "the program that sends messages sets their endpoint costs; leave the setting endpoint out"
    )]
    Endpoint,
    /// The start rule `link` does not support an option.
    #[error(
        "under the start rule link each flow has its links to itself: leave endpoint, background \
         and link_bin out, or name another start rule"
    )]
    UnsupportedByLinkRule,
    /// The simulated time exceeds the time limit.
    #[error("the flows take longer than {limit}")]
    TooLong {
        /// Time limit, from [`FlowOptions::limit`].
        limit: Time,
    },
    /// A time or size that does not fit into 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Rule that determines when a flow may start. The flow belongs to step s and leads from rank a to
/// rank b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StartRule {
    /// The flow starts when a and b have ended all flows of earlier steps that they send or
    /// receive. This is MPI's `Sendrecv` with messages that are too large to be buffered.
    #[default]
    Rendezvous,
    /// The flow starts when a has ended all flows of earlier steps that a sends or receives.
    Sender,
    /// The flow starts when all flows of earlier steps have ended: a barrier between steps.
    Step,
    /// The flow starts when a has received the data of the flow and the earlier flows on its links
    /// have ended. A link carries one flow at a time, for its latency and its bytes.
    Link,
}

/// Start rules, in the order of [`StartRule::ALL`]; the first is the default.
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
        summary: "A flow starts when its source has its data and its links have ended their \
                  earlier flows",
        citation: "Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer, MICRO 2024",
        policy: StartRule::Link,
    },
];

impl StartRule {
    /// Start rules, in the order of [`START_RULES`].
    pub const ALL: [StartRule; 4] = [
        StartRule::Rendezvous,
        StartRule::Sender,
        StartRule::Step,
        StartRule::Link,
    ];

    /// Returns the rule's name, as typed by users.
    pub fn name(self) -> &'static str {
        START_RULES[self as usize].name
    }
}

impl FromStr for StartRule {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<StartRule, SimulationError> {
        let known = START_RULES
            .iter()
            .map(|record| (record.name, record.policy));
        find_by_name("start rule", name, known)
    }
}

/// Rule that assigns weights to the flows that share a full link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weights {
    /// All flows have the same weight: plain max-min fairness.
    #[default]
    Equal,
    /// The weight of a flow is 1 / latency of its route, as in window-controlled transport
    /// (SimGrid's CM02). A route without latency has weight 1.
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

/// Background flow, for which no other flow waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundFlow {
    /// Sending rank.
    pub source: u32,
    /// Receiving rank, which differs from the sending rank.
    pub destination: u32,
    /// Maximum rate; `None` if only the links limit the rate.
    pub rate: Option<Rate>,
    /// Start of the flow. The flow moves bytes from this time on, without a latency.
    pub from: Time,
    /// End of the flow; `None` if the flow ends when all flows other than background flows have
    /// ended.
    pub until: Option<Time>,
}

/// Options of a run. By default, messages have no costs at the ranks, and flows are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowOptions {
    /// Weights of the flows that share a full link.
    pub weights: Weights,
    /// Costs of messages at the ranks; `None` if messages have no such costs.
    pub endpoint: Option<Endpoint>,
    /// Background traffic.
    pub background: Vec<BackgroundFlow>,
    /// True if the start, end, bottleneck and predecessor of each flow are recorded. The critical
    /// path is computed from this record, which takes 32 bytes for each flow. Flows of replayed
    /// steps take no memory until their columns are requested.
    pub record_flows: bool,
    /// Bins in which the use of each link over time is recorded; `None` if the use is not recorded.
    /// With bins, every step is simulated, even a repeated step.
    pub link_bin: Option<LinkBin>,
    /// Time limit. A run that takes longer ends with [`FluidError::TooLong`].
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
    /// Returns whether the options contain no endpoint costs, no background traffic and no bins of
    /// link use. If they contain any of these, each flow is simulated by itself.
    fn is_plain(&self) -> bool {
        self.endpoint.is_none() && self.background.is_empty() && self.link_bin.is_none()
    }

    /// Returns an error if `now` (ps) exceeds the time limit by more than rounding errors.
    fn check_limit(&self, now: f64) -> Result<(), FluidError> {
        match self.limit {
            Some(limit) if now > limit.ps() as f64 * (1.0 + 1e-9) + 1.0 => {
                Err(FluidError::TooLong { limit })
            }
            _ => Ok(()),
        }
    }

    /// Returns the settings that differ from the default model.
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

/// Simulates flows that wait for each other.
///
/// # Errors
/// A source or destination is no rank, or both are equal. A flow waits for an unknown flow. Flows
/// wait for each other in a cycle. A route contains an unknown link. A time exceeds 64 bits.
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

/// Simulates flows in steps.
///
/// # Errors
/// A source or destination is no rank, or both are equal. A link is unknown. A time exceeds 64
/// bits.
pub fn simulate_steps(
    network: &dyn Network,
    steps: &dyn Steps,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<FluidOutcome, FluidError> {
    log_steps(network, steps, None, rule, options).map(with_flows)
}

/// Simulates flows in steps. `chunks` contains the schedule and the routes, which define the chunks
/// of each flow; `None` if the steps name no chunks. Returns the outcome, without flow columns, and
/// the log of the flows.
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
        let flows = exclusive_links::run(network, steps, chunks, options, &mut ledger)?;
        return ledger.close(network, options, rule.name(), (flows, 0));
    }
    if options.is_plain() && !steps.names_routes() {
        let mut ledger = FlowLedger::new(network, options.record_flows, None);
        if let Some(counts) = non_interfering::run(network, steps, rule, options, &mut ledger)? {
            let (found, log) = ledger.close(network, options, rule.name(), counts)?;
            let found = FluidOutcome {
                disjoint: true,
                ..found
            };
            return Ok((found, log));
        }
        let limits = QuotientLimits::DEFAULT;
        if let Some((ledger, flows)) = quotient::run(network, steps, rule, options, &limits)? {
            return ledger.close(network, options, rule.name(), (flows, 0));
        }
    }
    log_each_flow(network, steps, rule, options)
}

/// Simulates flows in steps, as [`log_steps`] does, but never simulates several flows as one.
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

/// Simulates a schedule for a collective of the given size. The transfers of a step with the same
/// source, destination and action form one flow over the network's route.
///
/// # Errors
/// The errors of [`simulate_steps`], or the network has another number of ranks than the schedule.
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

/// Simulates a schedule over the routes that a plan names. Returns the result of [`log_steps`].
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
    let groups = Groups::of(network, schedule, routes);
    let groups = groups.map_err(|transfer| FluidError::Group { transfer })?;
    let steps = ScheduledSteps::new(schedule, routes, &groups, size)?;
    let chunks = Some((schedule, routes));
    match groups.routes.is_empty() {
        true => log_steps(network, &steps, chunks, rule, options),
        false => log_steps(&groups.on(network), &steps, chunks, rule, options),
    }
}

/// Adds the columns of all flows to the outcome.
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
