//! Steps one after the other on an electrical fabric, each as long as its most loaded links need.
//!
//! **Model.** All messages of a step begin when the last of the step before has ended. A message ends after
//!
//! latency of its route + max over the links of its route of (bytes of all messages of the step on the link / rate),
//!
//! and the step with its last message. The setting `step_overhead` is a time that passes in each step before its
//! messages begin: a barrier, the launch of a kernel. On a link whose flows do not share it only the message's own bytes
//! count. These are the alpha and beta of Hockney with the loads of links, as the cost of a schedule in SCCL and in
//! studies of topologies; no rates are solved for, so that a step costs a look at each of its routes.
//!
//! **What the time means.** Let D(l) be the bytes on link l in a step over its rate, and D the largest D(l) on the route
//! of a message. At the constant rate bytes / D each message ends as above, and the rates on a link sum up to no more
//! than its own: the sum of bytes / D is at most the sum of bytes / D(l), which is the rate of l. So the network can
//! carry the step out in that time, and every lower bound on plans holds here, too.
//!
//! **Beside `fluid` under the start rule `step`**, which divides rates max-min fairly at each instant: its step takes at
//! least D(l) after the least latency of the messages on l, whichever l. Where all messages of a step have the same
//! latency a step here is therefore never longer than there; otherwise it is longer by no more than the difference
//! between the largest and the least latency. Where no two messages of a step share a link both are equal, whatever the
//! latencies.

use super::{SimulationError, admit_routes, link_shares, needed_network};
use crate::outcome::{
    ChangedSetting, Critical, Flowing, LinkColumns, LinkShares, Outcome, PathColumns, RankColumns,
};
use crate::table::Details;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::plan::routes::OF_FABRIC;
use opticoll_plan::plan::{NamedRoutes, Plan};
use opticoll_plan::schedule::Action;

/// Times a plan step by step; `overhead` passes in each step before its messages begin.
///
/// # Errors
/// A fabric of light, transfers that leave the fabric, or a time beyond 64 bits.
pub fn simulate(plan: &Plan, size: Bytes, overhead: Time) -> Result<Outcome, SimulationError> {
    let network = needed_network(&plan.fabric, "bulk_synchronous")?;
    admit_routes(plan, network)?;
    let ranks = network.ranks() as usize;
    let mut outcome = Outcome {
        start: Some("step"),
        links: LinkColumns {
            busy: vec![Time::ZERO; network.links().len()],
            bytes: vec![0; network.links().len()],
            ..LinkColumns::default()
        },
        ranks: RankColumns {
            sent: vec![0; ranks],
            received: vec![0; ranks],
            finish: vec![Time::ZERO; ranks],
        },
        ..Outcome::default()
    };
    if overhead > Time::ZERO {
        outcome.settings.push(ChangedSetting {
            name: "step_overhead",
            value: overhead.to_string(),
            plain: "0s",
        });
    }
    let mut loads = StepLoads::of(network, &plan.routes);
    let mut bounded = Vec::new();
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        let messages = messages(plan, step, size, network.ranks())?;
        loads.put(&messages, &mut outcome.links)?;
        let start = outcome.time;
        let begin = start.plus(overhead)?;
        let mut last: Option<(Critical, Option<u32>)> = None;
        for message in &messages {
            let (duration, link) = loads.duration(message)?;
            let end = begin.plus(duration)?;
            count(&mut outcome.ranks, message, end)?;
            if last.is_none_or(|(last, _)| last.end < end) {
                let transfer = message.transfer;
                last = Some((
                    Critical {
                        transfer,
                        start,
                        end,
                    },
                    link,
                ));
            }
        }
        loads.clear();
        if let Some((critical, link)) = last {
            outcome.time = critical.end;
            outcome.critical_path.push(critical);
            bounded.push(link);
        }
        outcome.slots.start.push(start);
        outcome.slots.end.push(outcome.time);
        outcome.slots.reconfiguration.push(Time::ZERO);
        outcome.slots.lightpaths.push(messages.len() as u64);
    }
    let shares = link_shares::shares(network, &outcome.links.bytes, outcome.time);
    outcome.utilisation = link_shares::mean(network, &shares);
    outcome.details = Details::default().with(Flowing {
        bottleneck: link_shares::bottleneck(&outcome.critical_path, &bounded),
        most_loaded_link: link_shares::highest(&shares),
        links: LinkShares {
            utilisation: shares,
        },
        critical_path: PathColumns {
            bottleneck: bounded,
        },
        ..Flowing::default()
    });
    Ok(outcome)
}

/// Transfers of a step with the same ends, action and route.
struct StepMessage {
    source: u32,
    destination: u32,
    action: Action,
    /// The route that the plan names for it.
    route: u32,
    /// The first of them.
    transfer: usize,
    bytes: u64,
}

/// The messages of a step, in order of their ends.
fn messages(
    plan: &Plan,
    step: usize,
    size: Bytes,
    ranks: u32,
) -> Result<Vec<StepMessage>, SimulationError> {
    let schedule = &plan.schedule;
    let collective = &schedule.collective;
    let chunks = u64::from(collective.chunks());
    let transfers = schedule.columns(step).transfers();
    let mut parts = Vec::with_capacity(transfers.len());
    for (transfer, one) in schedule.step(step).zip(transfers) {
        if one.source.max(one.destination) >= ranks || one.source == one.destination {
            let problem = "it does not lead from one rank of the fabric to another";
            return Err(SimulationError::Transfer { transfer, problem });
        }
        if u64::from(one.chunk) + u64::from(one.count) > chunks {
            return Err(super::no_chunks(transfer));
        }
        parts.push(StepMessage {
            source: one.source,
            destination: one.destination,
            action: one.action,
            route: plan.routes.number(transfer),
            transfer,
            bytes: collective.range_bytes(size, one.chunk, one.count)?.get(),
        });
    }
    let ends = |one: &StepMessage| (one.source, one.destination, one.action, one.route);
    parts.sort_by_key(ends);
    let mut whole: Vec<StepMessage> = Vec::with_capacity(parts.len());
    for part in parts {
        match whole.last_mut().filter(|last| ends(last) == ends(&part)) {
            Some(message) => message.bytes = sum("a message", message.bytes, part.bytes)?,
            None => whole.push(part),
        }
    }
    Ok(whole)
}

/// What the messages of a step put on links.
struct StepLoads<'a> {
    network: &'a dyn Network,
    routes: &'a NamedRoutes,
    bytes: Vec<u64>,
    /// The links with a load, in the order in which they got it.
    loaded: Vec<u32>,
    route: Vec<u32>,
}

impl StepLoads<'_> {
    fn of<'a>(network: &'a dyn Network, routes: &'a NamedRoutes) -> StepLoads<'a> {
        StepLoads {
            network,
            routes,
            bytes: vec![0; network.links().len()],
            loaded: Vec::new(),
            route: Vec::new(),
        }
    }

    /// Adds up the loads of a step, for the step and for the whole.
    fn put(&mut self, messages: &[StepMessage], links: &mut LinkColumns) -> Result<(), UnitError> {
        for message in messages.iter().filter(|one| one.bytes > 0) {
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
            let place = link as usize;
            let load = self.bytes[place];
            let rate = self.network.links()[place].rate;
            links.bytes[place] = sum("a link", links.bytes[place], load)?;
            let busy = rate.transmission(Bytes::new(load))?;
            links.busy[place] = links.busy[place].plus(busy)?;
        }
        Ok(())
    }

    /// How long a message takes, and the first link that it waits for longest.
    fn duration(&mut self, message: &StepMessage) -> Result<(Time, Option<u32>), UnitError> {
        self.follow(message);
        let (mut latency, mut longest, mut slowest) = (Time::ZERO, Time::ZERO, None);
        for &number in &self.route {
            let link = &self.network.links()[number as usize];
            let bytes = match link.sharing {
                Sharing::Shared => self.bytes[number as usize],
                Sharing::PerFlow => message.bytes,
            };
            let needed = link.rate.transmission(Bytes::new(bytes))?;
            latency = latency.plus(link.latency)?;
            if needed > longest {
                (longest, slowest) = (needed, Some(number));
            }
        }
        Ok((latency.plus(longest)?, slowest))
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
            OF_FABRIC => self.network.route(source, destination, &mut self.route),
            named => self.route.extend_from_slice(self.routes.links(named)),
        }
    }
}

/// Counts a message at both of its ends.
fn count(ranks: &mut RankColumns, message: &StepMessage, end: Time) -> Result<(), UnitError> {
    for (rank, column) in [
        (message.source, &mut ranks.sent),
        (message.destination, &mut ranks.received),
    ] {
        let rank = rank as usize;
        column[rank] = sum("a rank", column[rank], message.bytes)?;
        ranks.finish[rank] = ranks.finish[rank].max(end);
    }
    Ok(())
}

fn sum(whose: &str, one: u64, other: u64) -> Result<u64, UnitError> {
    one.checked_add(other).ok_or_else(|| UnitError::Overflow {
        what: format!("the bytes of {whose}"),
        smallest: "bytes",
    })
}
