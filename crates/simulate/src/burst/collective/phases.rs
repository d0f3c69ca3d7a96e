//! Grouping of steps into phases, whose rounds of messages share their lightpaths.
//!
//! A step of the schedule is a round, with one message for each ordered pair of hosts that exchange
//! data. The pairs of a phase are the edges of a graph on hosts with maximum degree k. Rounds join
//! a phase as long as this holds. A single round of higher degree is cut: its edges, in order, each
//! go to the first part in which both ends have fewer than k edges. If the round has maximum degree
//! d, an edge finds at most floor((d - 1) / k) full parts at each end, so there are at most 2
//! floor((d - 1) / k) + 1 parts. With one port, the edges of an even ring need 2 parts and of an
//! odd ring 3 parts. Cutting a step does not change its data: all its messages carry what their
//! sources held when the step began.

use std::collections::{BTreeMap, BTreeSet};

use super::Job;
use crate::burst::BurstError;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Rate, Time};

/// Two hosts, lower first.
pub(super) type Pair = (u32, u32);

/// Transfers of a step from one host to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PhaseMessage {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: Bytes,
    pub(super) step: u32,
    pub(super) transfers: Vec<u32>,
}

/// Messages that are sent at the same time.
pub(super) type Round = Vec<PhaseMessage>;

/// Rounds that share their lightpaths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathPhase {
    pub(super) rounds: Vec<Round>,
    /// Pairs that need a lightpath, with flags for lower to higher host and for higher to lower
    /// host.
    pub(super) paths: BTreeMap<Pair, (bool, bool)>,
}

/// Limits of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseLimits {
    /// Maximum number of lightpaths of one host.
    pub(super) ports: u32,
    /// Maximum number of lightpaths of all hosts.
    pub(super) paths: usize,
}

impl PhaseMessage {
    pub(super) fn pair(&self) -> Pair {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Returns the message's time on a lightpath, without propagation.
    pub(super) fn time(&self, latency: Time, rate: Rate) -> Result<Time, BurstError> {
        Ok(latency.plus(rate.transmission(self.bytes)?)?)
    }
}

impl PathPhase {
    fn add(&mut self, round: Round) {
        for message in &round {
            interrupt::check();
            let (up, down) = self.paths.entry(message.pair()).or_default();
            match message.from < message.to {
                true => *up = true,
                false => *down = true,
            }
        }
        self.rounds.push(round);
    }

    /// Returns whether the phase stays within the limits with these pairs added.
    fn fits(&self, pairs: &BTreeSet<Pair>, limits: PhaseLimits) -> bool {
        let all: BTreeSet<Pair> = self.paths.keys().chain(pairs).copied().collect();
        all.len() <= limits.paths && degree(all) <= limits.ports
    }

    /// Returns the maximum number of lightpaths of one host.
    pub(super) fn ports(&self) -> u32 {
        degree(self.paths.keys().copied())
    }

    /// Returns the next smaller limits: one port fewer, or half the lightpaths if hosts have one
    /// port each; `None` for a single lightpath.
    pub(super) fn reduced_limits(&self) -> Option<PhaseLimits> {
        let paths = self.paths.len();
        match self.ports() {
            0 | 1 if paths < 2 => None,
            0 | 1 => Some(PhaseLimits {
                ports: 1,
                paths: paths.div_ceil(2),
            }),
            ports => Some(PhaseLimits {
                ports: ports - 1,
                paths,
            }),
        }
    }
}

/// Returns the maximum number of pairs that a host belongs to.
fn degree(pairs: impl IntoIterator<Item = Pair>) -> u32 {
    let mut met: BTreeMap<u32, u32> = BTreeMap::new();
    for (low, high) in pairs {
        interrupt::check();
        *met.entry(low).or_default() += 1;
        *met.entry(high).or_default() += 1;
    }
    met.values().max().copied().unwrap_or(0)
}

/// Returns the rounds of a job: its steps with transfers, as messages between hosts.
pub(super) fn rounds(job: &Job<'_>) -> Result<Vec<Round>, BurstError> {
    let schedule = job.schedule;
    let mut rounds = Vec::new();
    for step in 0..schedule.steps() {
        let mut messages: BTreeMap<(u32, u32), PhaseMessage> = BTreeMap::new();
        for index in schedule.step(step) {
            interrupt::check();
            let transfer = schedule.transfer(index);
            let place = |rank: u32| {
                let place = job.places.get(rank as usize);
                place.copied().ok_or_else(|| BurstError::Setting {
                    setting: "placement",
                    problem: format!("transfer {index} names rank {rank}, which does not exist"),
                })
            };
            let (from, to) = (place(transfer.source)?, place(transfer.destination)?);
            let bytes =
                schedule
                    .collective
                    .range_bytes(job.size, transfer.chunk, transfer.count)?;
            let message = messages.entry((from, to)).or_insert_with(|| PhaseMessage {
                from,
                to,
                bytes: Bytes::new(0),
                step: step as u32,
                transfers: Vec::new(),
            });
            message.bytes = message.bytes.plus(bytes)?;
            message.transfers.push(index as u32);
        }
        if !messages.is_empty() {
            rounds.push(messages.into_values().collect());
        }
    }
    Ok(rounds)
}

/// Groups rounds into phases, in order.
pub(super) fn group_rounds(
    rounds: impl IntoIterator<Item = Round>,
    limits: PhaseLimits,
) -> Vec<PathPhase> {
    let mut phases: Vec<PathPhase> = Vec::new();
    for part in rounds.into_iter().flat_map(|round| cut(round, limits)) {
        let pairs = part.iter().map(PhaseMessage::pair).collect();
        match phases.last_mut() {
            Some(open) if open.fits(&pairs, limits) => open.add(part),
            _ => {
                let mut phase = PathPhase::default();
                phase.add(part);
                phases.push(phase);
            }
        }
    }
    phases
}

/// Cuts a round into parts within the limits by the rule of this module.
fn cut(round: Round, limits: PhaseLimits) -> Vec<Round> {
    let pairs: BTreeSet<Pair> = round.iter().map(PhaseMessage::pair).collect();
    let mut met: Vec<BTreeMap<u32, u32>> = Vec::new();
    let mut sizes: Vec<usize> = Vec::new();
    let mut part_of: BTreeMap<Pair, usize> = BTreeMap::new();
    for (low, high) in pairs {
        let has_room = |part: &usize| {
            let free = |end| met[*part].get(end).copied().unwrap_or(0) < limits.ports;
            sizes[*part] < limits.paths && free(&low) && free(&high)
        };
        let part = (0..met.len()).find(has_room).unwrap_or(met.len());
        if part == met.len() {
            met.push(BTreeMap::new());
            sizes.push(0);
        }
        *met[part].entry(low).or_default() += 1;
        *met[part].entry(high).or_default() += 1;
        sizes[part] += 1;
        part_of.insert((low, high), part);
    }
    let mut parts = vec![Round::new(); met.len()];
    for message in round {
        interrupt::check();
        parts[part_of[&message.pair()]].push(message);
    }
    parts
}
