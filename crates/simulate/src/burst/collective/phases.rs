//! Grouping of steps into phases. The rounds of messages of a phase share lightpaths.
//!
//! A step of the schedule is a round, with one message per ordered pair of hosts that exchange
//! data. The pairs of hosts of a phase are the edges of a graph with maximum degree k, the number
//! of ports. Consecutive rounds form a phase as long as the degree is at most k. A single round of
//! higher degree d is cut into parts: in order, each edge is added to the first part in which both
//! of its hosts have fewer than k edges. For each of the two hosts, at most floor((d - 1) / k)
//! parts already have k edges. Hence there are at most 2 floor((d - 1) / k) + 1 parts. With one
//! port, the edges of an even ring need 2 parts, and the edges of an odd ring need 3 parts. Cutting
//! a step does not change its data, because all messages contain the data that their sources had at
//! the beginning of the step.

use std::collections::{BTreeMap, BTreeSet};

use super::Job;
use crate::burst::BurstError;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Rate, Time};

/// Unordered pair of hosts, the lower host first.
pub(super) type Pair = (u32, u32);

/// Transfers of a step from host `from` to host `to`, as indices into the schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PhaseMessage {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: Bytes,
    pub(super) step: u32,
    pub(super) transfers: Vec<u32>,
}

/// Messages that are sent simultaneously.
pub(super) type Round = Vec<PhaseMessage>;

/// Consecutive rounds that share lightpaths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PathPhase {
    pub(super) rounds: Vec<Round>,
    /// Pairs of hosts that need lightpaths, with a flag for the direction from the lower to the
    /// higher host and a flag for the opposite direction.
    pub(super) paths: BTreeMap<Pair, (bool, bool)>,
}

/// Limits on the lightpaths of a phase. The two directions between two hosts count once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseLimits {
    pub(super) ports: u32,
    /// Maximum number of pairs of hosts in the phase.
    pub(super) paths: usize,
}

impl PhaseMessage {
    pub(super) fn pair(&self) -> Pair {
        (self.from.min(self.to), self.from.max(self.to))
    }

    /// Returns the time of the message on a lightpath, without the propagation delay.
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

    fn fits(&self, pairs: &BTreeSet<Pair>, limits: PhaseLimits) -> bool {
        let all_pairs: BTreeSet<Pair> = self.paths.keys().chain(pairs).copied().collect();
        all_pairs.len() <= limits.paths && degree(all_pairs) <= limits.ports
    }

    pub(super) fn ports(&self) -> u32 {
        degree(self.paths.keys().copied())
    }

    /// Returns limits with one port fewer or, if each host has only one port, with half as many
    /// pairs. Returns `None` for a single pair.
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

/// Returns the maximum number of pairs to which a host belongs.
fn degree(pairs: impl IntoIterator<Item = Pair>) -> u32 {
    let mut degrees: BTreeMap<u32, u32> = BTreeMap::new();
    for (low, high) in pairs {
        interrupt::check();
        *degrees.entry(low).or_default() += 1;
        *degrees.entry(high).or_default() += 1;
    }
    degrees.values().max().copied().unwrap_or(0)
}

/// Returns the rounds of a job: its steps that have transfers, as messages between hosts.
pub(super) fn rounds(job: &Job<'_>) -> Result<Vec<Round>, BurstError> {
    let schedule = job.schedule;
    let mut rounds = Vec::new();
    for step in 0..schedule.steps() {
        let mut messages: BTreeMap<(u32, u32), PhaseMessage> = BTreeMap::new();
        for index in schedule.step(step) {
            interrupt::check();
            let transfer = schedule.transfer(index);
            let host_of = |rank: u32| {
                let host = job.places.get(rank as usize);
                host.copied().ok_or_else(|| BurstError::Setting {
                    setting: "placement",
                    problem: format!("transfer {index} names rank {rank}, which does not exist"),
                })
            };
            let (from, to) = (host_of(transfer.source)?, host_of(transfer.destination)?);
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

/// Groups rounds into phases, in the order of the rounds.
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

/// Cuts a round into parts that satisfy `limits`, by the rule in the header of this module.
fn cut(round: Round, limits: PhaseLimits) -> Vec<Round> {
    let pairs: BTreeSet<Pair> = round.iter().map(PhaseMessage::pair).collect();
    let mut degrees: Vec<BTreeMap<u32, u32>> = Vec::new();
    let mut sizes: Vec<usize> = Vec::new();
    let mut part_of: BTreeMap<Pair, usize> = BTreeMap::new();
    for (low, high) in pairs {
        let accepts = |part: &usize| {
            let has_port = |end| degrees[*part].get(end).copied().unwrap_or(0) < limits.ports;
            sizes[*part] < limits.paths && has_port(&low) && has_port(&high)
        };
        let part = (0..degrees.len()).find(accepts).unwrap_or(degrees.len());
        if part == degrees.len() {
            degrees.push(BTreeMap::new());
            sizes.push(0);
        }
        *degrees[part].entry(low).or_default() += 1;
        *degrees[part].entry(high).or_default() += 1;
        sizes[part] += 1;
        part_of.insert((low, high), part);
    }
    let mut parts = vec![Round::new(); degrees.len()];
    for message in round {
        interrupt::check();
        parts[part_of[&message.pair()]].push(message);
    }
    parts
}
