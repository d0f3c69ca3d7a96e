//! Bulk-synchronous simulator for electrical fabrics. Steps run one after another, and each step
//! takes as long as its most loaded links need.
//!
//! **Model.** All messages of a step start when the last message of the previous step has ended.
//! The duration of a message is
//!
//! latency of the route + max over the links of the route of (bytes of all messages of the step on
//! the link / rate of the link).
//!
//! A step ends when its last message ends. The setting `step_overhead` is a time that passes in
//! each step before its messages start, for example for a barrier or the launch of a kernel. On a
//! link that gives every flow its whole rate, only the message's own bytes count. The model has the
//! parameters alpha and beta of Hockney's model, with loads of links as in the cost of a schedule
//! in SCCL. The simulator solves no equations for rates: it visits every route of a step once.
//!
//! A multicast and an aggregation are one message each. The message loads each of its links once;
//! its latency is that of its longest route.
//!
//! **The time is achievable.** Let D(l) be the time that link l needs for all bytes of a step, and
//! let D be the largest D(l) on the route of a message. At the constant rate bytes / D, each
//! message ends as stated above. The rates of all messages on a link l sum up to at most the link's
//! rate: the sum of bytes / D is at most the sum of bytes / D(l), which is the rate of l. The
//! network can therefore execute the step in the computed time, and every lower bound on plans is
//! also a lower bound on this time.
//!
//! **Comparison with `fluid` under the start rule `step`.** `fluid` divides rates max-min fairly at
//! each instant. For every link l, a step of `fluid` takes at least D(l) plus the least latency of
//! the messages on l. If all messages of a step have the same latency, the step is therefore never
//! longer here than in `fluid`. Otherwise the step is longer here by at most the difference between
//! the largest and the least latency. If no two messages of a step share a link, both simulators
//! compute the same time for all latencies.
//!
//! **Libraries of collectives.** If the fabric states what a library costs on it
//! ([`Network::library`]), a message takes the time that `library_cost` defines instead, which is
//! never less, and the call has a launch and a copy. The setting `protocol` selects the protocol.

use super::in_network::Groups;
use super::library_cost::{Call, LibraryTime, MessageLoad, PlanTotals, ProtocolRule};
use super::timing_model::TimingModel;
use super::{SimulationError, check_routes, groups, library_cost, link_shares, require_network};
use crate::outcome::{
    ChangedSetting, Critical, Flowing, LinkColumns, LinkShares, Outcome, PathColumns, RankColumns,
};
use crate::table::Details;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::library::{Library, Protocol};
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_plan::schedule::Action;

/// Computes the time of a plan, step after step. Each step begins with the method's
/// `step_overhead`; the method's rule selects the protocol of the fabric's library.
///
/// # Errors
/// Returns an error for a fabric with circuits instead of links, transfers that leave the fabric, a
/// protocol that the fabric does not have, a time that exceeds 64 bits, or
/// [`SimulationError::Stopped`] if the time exceeds the limit of the method.
pub fn simulate(
    plan: &Plan,
    size: Bytes,
    method: &TimingModel,
) -> Result<Outcome, SimulationError> {
    let network = require_network(&plan.fabric, "bulk_synchronous")?;
    let (overhead, rule) = (method.step_overhead, method.protocol);
    let settings = StepSettings {
        overhead,
        limit: method.limit,
    };
    let mut outcome = match network.library() {
        Some(library) => with_library(plan, size, &settings, library, rule, false)?,
        None if rule == ProtocolRule::Auto => fastest(run(plan, size, &settings, vec![None])?.0)?,
        None => {
            let problem = "the fabric names no library of collectives; give one, as in \
                gpu_servers:model=dgx_h100,library=h100_sxm";
            return Err(SimulationError::invalid_value("protocol", problem));
        }
    };
    settings.check(outcome.time)?;
    if overhead > Time::ZERO {
        outcome.settings.push(ChangedSetting {
            name: "step_overhead",
            value: overhead.to_string(),
            plain: "0s",
        });
    }
    if rule != ProtocolRule::Auto {
        outcome.settings.push(ChangedSetting {
            name: "protocol",
            value: rule.name().into(),
            plain: ProtocolRule::Auto.name(),
        });
    }
    Ok(outcome)
}

/// Computes the time of NCCL's own collective that runs like `plan`, with the costs of `library`
/// and the protocol that NCCL selects. On an all_reduce, NCCL may select NVLS instead of the plan.
///
/// # Errors
/// Fails as [`simulate`] does.
pub fn library_time(
    plan: &Plan,
    size: Bytes,
    library: &Library,
) -> Result<LibraryTime, SimulationError> {
    let settings = StepSettings::default();
    let outcome = with_library(plan, size, &settings, library, ProtocolRule::Nccl, true)?;
    let parts = outcome.details.get::<LibraryTime>();
    Ok(parts.cloned().unwrap_or_default())
}

/// Returns a lower bound on the time of a plan with `steps` steps in which messages are sent. If
/// `in_network`, NVLS may run the plan.
pub fn least_time(network: &dyn Network, steps: u64, in_network: bool) -> Time {
    let latencies = network.links().iter().map(|link| link.latency.ps());
    let per_step = latencies.min().unwrap_or(0);
    let at_peak = Time::from_ps(per_step.saturating_mul(steps));
    match network.library().filter(|_| !in_network) {
        Some(library) => library_cost::least_time(library, steps).max(at_peak),
        None => at_peak,
    }
}

/// Time that passes in each step before its messages start, and the time from which on the
/// simulation stops.
#[derive(Default)]
struct StepSettings {
    overhead: Time,
    limit: Option<Time>,
}

/// Computes the time of a plan that `library` runs. If `nvls`, NCCL may replace the plan by NVLS.
fn with_library(
    plan: &Plan,
    size: Bytes,
    settings: &StepSettings,
    library: &Library,
    rule: ProtocolRule,
    nvls: bool,
) -> Result<Outcome, SimulationError> {
    let collective = &plan.schedule.collective;
    let timed = |protocols: &[Protocol], settings: &StepSettings| {
        let calls = protocols.iter().map(|&protocol| {
            let call = Call::new(library, protocol, collective, size)?;
            Ok(Some(call))
        });
        let calls = calls.collect::<Result<_, SimulationError>>()?;
        run(plan, size, settings, calls)
    };
    if library_cost::is_nvls(library, plan) {
        let parts = LibraryTime::nvls(library, collective.ranks(), size)?;
        let time = parts.total()?;
        settings.check(time)?;
        let at_peak = fastest(timed(&[Protocol::Nvls], settings)?.0)?;
        return Ok(Outcome {
            time: at_peak.time.max(time),
            details: at_peak.details.with(parts),
            ..at_peak
        });
    }
    let all = library_cost::protocols(library, collective.kind());
    match rule {
        ProtocolRule::LL => fastest(timed(&[Protocol::LL], settings)?.0),
        ProtocolRule::LL128 => fastest(timed(&[Protocol::LL128], settings)?.0),
        ProtocolRule::Simple => fastest(timed(&[Protocol::Simple], settings)?.0),
        ProtocolRule::Auto => fastest(timed(&all, settings)?.0),
        ProtocolRule::Nccl => {
            // The choice needs the totals of all steps.
            let (outcomes, totals) = timed(&all, &settings.unlimited())?;
            let nvls = nvls && collective.kind() == CollectiveKind::AllReduce;
            let tuned = library_cost::tuned(library, collective, &totals, nvls);
            if tuned != Protocol::Nvls {
                let is_tuned = |one: &Protocol| *one == tuned;
                let place = all.iter().position(is_tuned).unwrap_or_default();
                return fastest(outcomes.into_iter().skip(place).take(1));
            }
            let parts = LibraryTime::nvls(library, collective.ranks(), size)?;
            Ok(Outcome {
                details: Details::default().with(parts),
                ..fastest(outcomes)?
            })
        }
    }
}

/// Returns the outcome with the least time, the first of equal ones.
fn fastest(outcomes: impl IntoIterator<Item = Outcome>) -> Result<Outcome, SimulationError> {
    let fastest = outcomes.into_iter().min_by_key(|outcome| outcome.time);
    fastest.ok_or_else(|| SimulationError::Stopped("no protocol ends in time".into()))
}

impl StepSettings {
    fn unlimited(&self) -> StepSettings {
        StepSettings {
            overhead: self.overhead,
            limit: None,
        }
    }

    /// Returns an error if `time` exceeds the limit.
    fn check(&self, time: Time) -> Result<(), SimulationError> {
        match self.limit {
            Some(limit) if time > limit => {
                let problem = format!("the steps take longer than {limit}");
                Err(SimulationError::Stopped(problem))
            }
            _ => Ok(()),
        }
    }
}

/// Times of the steps of a plan, with the costs of a call of a library or without.
struct Timing<'a> {
    call: Option<Call<'a>>,
    parts: LibraryTime,
    time: Time,
    /// Start and end of each step.
    start: Vec<Time>,
    end: Vec<Time>,
    /// Time at which the last message of each rank ended.
    finish: Vec<Time>,
    critical_path: Vec<Critical>,
    /// Most loaded link of each message of the critical path.
    bounded: Vec<Option<u32>>,
}

impl<'a> Timing<'a> {
    fn new(call: Option<Call<'a>>, ranks: usize) -> Result<Timing<'a>, UnitError> {
        let mut parts = LibraryTime::default();
        if let Some(call) = &call {
            parts.protocol = Some(call.protocol().name());
            parts.launch_time = call.launch()?;
        }
        Ok(Timing {
            time: parts.launch_time,
            call,
            parts,
            start: Vec::new(),
            end: Vec::new(),
            finish: vec![Time::ZERO; ranks],
            critical_path: Vec::new(),
            bounded: Vec::new(),
        })
    }

    /// Adds a step, in which `overhead` passes before its messages start.
    fn add(
        &mut self,
        measured: &[Measured<'_>],
        groups: &Groups,
        overhead: Time,
    ) -> Result<(), UnitError> {
        let start = self.time;
        let mut begin = start.plus(overhead)?;
        if let Some(call) = &mut self.call {
            let opened = call.open_channels(measured.iter().map(|one| &one.load))?;
            self.parts.launch_time = self.parts.launch_time.plus(opened)?;
            begin = begin.plus(opened)?;
        }
        let mut last: Option<(Critical, Option<u32>, Time)> = None;
        for Measured {
            message,
            load,
            link,
        } in measured
        {
            let (duration, transfer) = match &self.call {
                Some(call) => {
                    let time = call.message(load)?;
                    (time.total, time.transfer)
                }
                None => (load.latency.plus(load.transmission)?, load.transmission),
            };
            let end = begin.plus(duration)?;
            let members = groups.members(message.transfer).unwrap_or_default();
            for &rank in [message.source, message.destination].iter().chain(members) {
                let finish = &mut self.finish[rank as usize];
                *finish = end.max(*finish);
            }
            if last.is_none_or(|(last, _, _)| last.end < end) {
                let critical = Critical {
                    transfer: message.transfer,
                    start,
                    end,
                };
                last = Some((critical, *link, transfer));
            }
        }
        if let Some((critical, link, transfer)) = last {
            let duration = Time::from_ps(critical.end.ps() - begin.ps());
            let waited = Time::from_ps(duration.ps().saturating_sub(transfer.ps()));
            let parts = &mut self.parts;
            parts.bytes_time = parts.bytes_time.plus(transfer)?;
            parts.latency_time = parts.latency_time.plus(waited)?.plus(overhead)?;
            self.time = critical.end;
            self.critical_path.push(critical);
            self.bounded.push(link);
        }
        self.start.push(start);
        self.end.push(self.time);
        Ok(())
    }

    /// Returns the outcome; `counted` has the bytes of all steps.
    fn outcome(mut self, counted: &Outcome, network: &dyn Network) -> Result<Outcome, UnitError> {
        if let Some(call) = &self.call {
            let copy = call.copy()?;
            self.parts.bytes_time = self.parts.bytes_time.plus(copy)?;
            self.time = self.time.plus(copy)?;
        }
        let shares = link_shares::shares(network, &counted.links.bytes, self.time);
        let mut details = Details::default().with(Flowing {
            bottleneck: link_shares::bottleneck(&self.critical_path, &self.bounded),
            most_loaded_link: link_shares::highest(&shares),
            links: LinkShares {
                utilisation: shares.clone(),
            },
            critical_path: PathColumns {
                bottleneck: self.bounded,
            },
            ..Flowing::default()
        });
        if self
            .call
            .is_some_and(|call| call.protocol() != Protocol::Nvls)
        {
            details = details.with(self.parts);
        }
        let mut outcome = Outcome {
            time: self.time,
            critical_path: self.critical_path,
            utilisation: link_shares::mean(network, &shares),
            details,
            ..counted.clone()
        };
        outcome.slots.reconfiguration = vec![Time::ZERO; self.start.len()];
        (outcome.slots.start, outcome.slots.end) = (self.start, self.end);
        outcome.ranks.finish = self.finish;
        Ok(outcome)
    }
}

/// Returns the number of channels of the plan's algorithm (option `channels`).
fn channels(plan: &Plan, network: &dyn Network) -> u32 {
    let spec = plan.algorithm.parse::<Spec>();
    let spec = spec.as_ref().ok();
    let channels = match spec.and_then(|spec| spec.option("channels")) {
        Some("all") => network.group_size(),
        Some(number) => number.parse().ok(),
        None => None,
    };
    channels.unwrap_or(1).max(1)
}

/// Message of a step, its load, and the most loaded link of its route.
struct Measured<'a> {
    message: &'a StepMessage,
    load: MessageLoad,
    link: Option<u32>,
}

/// Computes the time of a plan step by step, for each of several calls. A call of a library adds
/// its costs. Leaves out the calls whose time exceeds the limit.
fn run(
    plan: &Plan,
    size: Bytes,
    settings: &StepSettings,
    calls: Vec<Option<Call<'_>>>,
) -> Result<(Vec<Outcome>, PlanTotals), SimulationError> {
    let network = require_network(&plan.fabric, "bulk_synchronous")?;
    check_routes(plan, network)?;
    let ranks = network.ranks() as usize;
    let mut counted = Outcome {
        start: Some("step"),
        links: LinkColumns {
            busy: vec![Time::ZERO; network.links().len()],
            bytes: vec![0; network.links().len()],
            ..LinkColumns::default()
        },
        ranks: RankColumns {
            sent: vec![0; ranks],
            received: vec![0; ranks],
            finish: Vec::new(),
        },
        ..Outcome::default()
    };
    let timings = calls.into_iter().map(|call| Timing::new(call, ranks));
    let mut timings: Vec<Timing<'_>> = timings.collect::<Result<_, UnitError>>()?;
    let channels = channels(plan, network);
    let groups = groups(plan, network)?;
    let network = groups.on(network);
    let mut totals = PlanTotals::default();
    let mut loads = StepLoads::new(&network);
    let mut sent = vec![(0, 0); ranks];
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        let messages = messages(plan, &groups, step, size)?;
        loads.add(&messages, &mut counted.links)?;
        for message in &messages {
            let (count, bytes): &mut (u32, u64) = &mut sent[message.source as usize];
            *count += 1;
            *bytes = sum("a rank", *bytes, message.bytes)?;
            count_message(&mut counted.ranks, message, &groups)?;
        }
        let mut measured = Vec::with_capacity(messages.len());
        for message in &messages {
            let (latency, transmission, link) = loads.duration(message)?;
            let (peers, sent) = sent[message.source as usize];
            let load = MessageLoad {
                bytes: message.bytes,
                peers: peers.div_ceil(channels),
                sent,
                latency,
                transmission,
                within: network.same_group(message.source, message.destination),
            };
            measured.push(Measured {
                message,
                load,
                link,
            });
        }
        if !messages.is_empty() {
            totals.add(measured.iter().map(|one| &one.load))?;
        }
        for timing in &mut timings {
            timing.add(&measured, &groups, settings.overhead)?;
        }
        let in_time = |timing: &Timing<'_>| settings.check(timing.time).is_ok();
        timings.retain(in_time);
        if timings.is_empty() {
            break;
        }
        loads.clear();
        for message in &messages {
            sent[message.source as usize] = (0, 0);
        }
        counted.slots.lightpaths.push(messages.len() as u64);
    }
    let outcomes = timings.into_iter();
    let outcomes = outcomes.map(|timing| timing.outcome(&counted, &network));
    Ok((outcomes.collect::<Result<_, UnitError>>()?, totals))
}

/// Transfers of a step with the same source, destination, action and route.
struct StepMessage {
    source: u32,
    destination: u32,
    action: Action,
    /// Index of the route among the named routes of the plan and of its groups, or
    /// [`FABRIC_ROUTE`].
    route: u32,
    /// Index in the plan of the message's first transfer.
    transfer: usize,
    bytes: u64,
}

/// Returns the messages of a step, sorted by source, destination, action and route.
fn messages(
    plan: &Plan,
    groups: &Groups,
    step: usize,
    size: Bytes,
) -> Result<Vec<StepMessage>, SimulationError> {
    let schedule = &plan.schedule;
    let collective = &schedule.collective;
    let ranks = plan.fabric.ranks();
    let chunks = u64::from(collective.chunks());
    let transfers = schedule.columns(step).transfers();
    let mut parts = Vec::with_capacity(transfers.len());
    for (transfer, part) in schedule.step(step).zip(transfers) {
        if part.source.max(part.destination) >= ranks || part.source == part.destination {
            let problem = "it does not lead from one rank of the fabric to another";
            return Err(SimulationError::Transfer { transfer, problem });
        }
        if u64::from(part.chunk) + u64::from(part.count) > chunks {
            return Err(super::missing_chunks(transfer));
        }
        // The first transfer of a group stands for all of them.
        if part.action.is_in_network() && groups.members(transfer).is_none() {
            continue;
        }
        parts.push(StepMessage {
            source: part.source,
            destination: part.destination,
            action: part.action,
            route: groups.routes.number(transfer),
            transfer,
            bytes: collective.range_bytes(size, part.chunk, part.count)?.get(),
        });
    }
    let key = |part: &StepMessage| (part.source, part.destination, part.action, part.route);
    parts.sort_by_key(key);
    let mut messages: Vec<StepMessage> = Vec::with_capacity(parts.len());
    for part in parts {
        let is_part =
            |last: &&mut StepMessage| !last.action.is_in_network() && key(last) == key(&part);
        match messages.last_mut().filter(is_part) {
            Some(message) => message.bytes = sum("a message", message.bytes, part.bytes)?,
            None => messages.push(part),
        }
    }
    Ok(messages)
}

/// Bytes that the messages of a step send over each link.
struct StepLoads<'a> {
    network: &'a dyn Network,
    bytes: Vec<u64>,
    /// Indices of the links that carry bytes in the step, in the order in which the messages use
    /// them.
    loaded: Vec<u32>,
    route: Vec<u32>,
}

impl StepLoads<'_> {
    fn new(network: &dyn Network) -> StepLoads<'_> {
        StepLoads {
            network,
            bytes: vec![0; network.links().len()],
            loaded: Vec::new(),
            route: Vec::new(),
        }
    }

    /// Adds the bytes of a step's messages to the loads of the step. Also adds the bytes and the
    /// busy time of each link to the columns `links` of the whole plan.
    fn add(&mut self, messages: &[StepMessage], links: &mut LinkColumns) -> Result<(), UnitError> {
        for message in messages.iter().filter(|message| message.bytes > 0) {
            self.follow(message);
            for &link in &self.route {
                let load = &mut self.bytes[link as usize];
                if *load == 0 {
                    self.loaded.push(link);
                }
                *load = sum("a link", *load, message.bytes)?;
            }
        }
        for &link in &self.loaded {
            let index = link as usize;
            let load = self.bytes[index];
            let rate = self.network.links()[index].rate;
            links.bytes[index] = sum("a link", links.bytes[index], load)?;
            let busy = rate.transmission(Bytes::new(load))?;
            links.busy[index] = links.busy[index].plus(busy)?;
        }
        Ok(())
    }

    /// Returns the latency of a message, the longest transmission time of the links of its route,
    /// and the link with this time.
    fn duration(&mut self, message: &StepMessage) -> Result<(Time, Time, Option<u32>), UnitError> {
        self.follow(message);
        let (mut latency, mut longest, mut slowest) = (Time::ZERO, Time::ZERO, None);
        let waited = self.network.longest_part(message.route, FABRIC_ROUTE);
        let waited = waited.unwrap_or(self.route.len());
        for (place, &number) in self.route.iter().enumerate() {
            let link = &self.network.links()[number as usize];
            let bytes = match link.sharing {
                Sharing::Shared => self.bytes[number as usize],
                Sharing::PerFlow => message.bytes,
            };
            let needed = link.rate.transmission(Bytes::new(bytes))?;
            if place < waited {
                latency = latency.plus(link.latency)?;
            }
            if needed > longest {
                (longest, slowest) = (needed, Some(number));
            }
        }
        Ok((latency, longest, slowest))
    }

    fn clear(&mut self) {
        for link in self.loaded.drain(..) {
            self.bytes[link as usize] = 0;
        }
    }

    fn follow(&mut self, message: &StepMessage) {
        interrupt::check();
        self.route.clear();
        let StepMessage {
            source,
            destination,
            route,
            ..
        } = *message;
        match route {
            FABRIC_ROUTE => self.network.route(source, destination, &mut self.route),
            named => self.network.route(named, FABRIC_ROUTE, &mut self.route),
        }
    }
}

fn count_message(
    ranks: &mut RankColumns,
    message: &StepMessage,
    groups: &Groups,
) -> Result<(), UnitError> {
    let mut count = |rank: u32, sends: bool| {
        let column = if sends {
            &mut ranks.sent
        } else {
            &mut ranks.received
        };
        let rank = rank as usize;
        column[rank] = sum("a rank", column[rank], message.bytes)?;
        Ok(())
    };
    count(message.source, true)?;
    count(message.destination, false)?;
    let members = groups.members(message.transfer).unwrap_or_default();
    let mut members = members.iter();
    members.try_for_each(|&rank| count(rank, message.action.adds()))
}

fn sum(whose: &str, one: u64, other: u64) -> Result<u64, UnitError> {
    one.checked_add(other).ok_or_else(|| UnitError::Overflow {
        what: format!("the bytes of {whose}"),
        smallest: "bytes",
    })
}
