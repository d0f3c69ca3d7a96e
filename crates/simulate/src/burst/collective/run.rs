//! Simulation of one replication of jobs that request lightpaths, while bursts are sent.

use std::collections::{BTreeMap, VecDeque};

use super::loaded_network::LoadedNetwork;
use super::outcome::{Delivery, Failure, JobRun, Replication};
use super::path::HeldChannels;
use super::phases::{PathPhase, PhaseLimits, Round, group_rounds};
use super::settings::{BlockingPolicy, Congestion};
use crate::burst::engine::BurstEngine;
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstError, BurstNetwork, BurstWork};
use opticoll_base::event::EventQueue;
use opticoll_base::interrupt;
use opticoll_base::units::Time;

struct JobDriver<'a> {
    loaded: LoadedNetwork<'a>,
    congestion: &'a Congestion,
    jobs: Vec<JobState>,
    /// Events, each with the index of its job.
    queue: EventQueue<(usize, PhaseEvent)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PhaseEvent {
    /// The job requests all lightpaths of its phase, or those of the pair of hosts with the given
    /// index.
    Ask(Option<usize>),
    /// The wavelengths of the job's phase are free again.
    Released,
}

struct JobState {
    phases_left: VecDeque<PathPhase>,
    /// Lightpaths of each request of the current phase; `None` if the request is not granted. Only
    /// `retry` has several requests.
    held: Vec<Option<HeldChannels>>,
    /// Number of times that each request of the current phase was blocked.
    blocked: Vec<u32>,
    /// Time of the current phase's first request, in picoseconds.
    since: u64,
    run: JobRun,
    is_over: bool,
}

/// Simulates one replication of the jobs; `number` is the index of the replication. Each job is a
/// list of rounds.
pub(super) fn run(
    network: &BurstNetwork,
    jobs: &[Vec<Round>],
    work: &BurstWork,
    settings: &BurstSettings,
    congestion: &Congestion,
    number: u32,
) -> Result<Replication, BurstError> {
    let loaded = LoadedNetwork::new(network, work, settings, congestion, number)?;
    let limits = PhaseLimits {
        ports: congestion.ports,
        paths: usize::MAX,
    };
    let states = jobs.iter().map(|rounds| JobState {
        phases_left: group_rounds(rounds.clone(), limits).into(),
        held: Vec::new(),
        blocked: Vec::new(),
        since: loaded.engine.now,
        run: JobRun::default(),
        is_over: false,
    });
    let mut driver = JobDriver {
        jobs: states.collect(),
        loaded,
        congestion,
        queue: EventQueue::default(),
    };
    (0..jobs.len()).for_each(|job| driver.begin_phase(job));
    while let Some((at, (job, event))) = driver.queue.pop() {
        interrupt::check();
        if driver.jobs[job].is_over {
            continue;
        }
        driver.loaded.run_until(at)?;
        match event {
            PhaseEvent::Ask(path) => driver.ask(job, path)?,
            PhaseEvent::Released => driver.end_phase(job),
        }
    }
    let bursts = driver.loaded.engine.tally.total;
    let jobs: Vec<JobRun> = driver.jobs.into_iter().map(|job| job.run).collect();
    let times: Option<Vec<Time>> = jobs.iter().map(|job| job.time).collect();
    let time = times.map(|times| times.into_iter().max().unwrap_or_default());
    Ok(Replication { jobs, time, bursts })
}

impl JobDriver<'_> {
    fn put(&mut self, at: u64, job: usize, event: PhaseEvent) {
        self.queue.put(at, (job, event));
    }

    fn begin_phase(&mut self, number: usize) {
        let (now, elapsed) = (self.loaded.engine.now, self.loaded.elapsed());
        let job = &mut self.jobs[number];
        job.since = now;
        let Some(phase) = job.phases_left.front() else {
            job.is_over = true;
            job.run.time = Some(elapsed);
            return;
        };
        let requests = match self.congestion.policy {
            BlockingPolicy::Retry => phase.paths.len(),
            _ => 1,
        };
        job.held = (0..requests).map(|_| None).collect();
        job.blocked = vec![0; requests];
        match self.congestion.policy {
            BlockingPolicy::Retry => {
                (0..requests).for_each(|path| self.put(now, number, PhaseEvent::Ask(Some(path))));
            }
            _ => self.put(now, number, PhaseEvent::Ask(None)),
        }
    }

    /// Requests lightpaths of the current phase of job `number`: those between the pair of hosts
    /// with index `path`, or all if `path` is `None`.
    fn ask(&mut self, number: usize, path: Option<usize>) -> Result<(), BurstError> {
        let job = &mut self.jobs[number];
        let Some(phase) = job.phases_left.front() else {
            return Ok(());
        };
        let request = path.unwrap_or(0);
        let blocked_hosts = match acquire(&mut self.loaded.engine, phase, path) {
            Ok(held) => {
                job.held[request] = Some(held);
                return match job.held.iter().all(Option::is_some) {
                    true => self.execute_phase(number),
                    false => Ok(()),
                };
            }
            Err(pair) => pair,
        };
        job.run.blocked += 1;
        job.blocked[request] += 1;
        let blocked = job.blocked[request];
        let degrade = self.congestion.policy == BlockingPolicy::Degrade;
        match phase.reduced_limits().filter(|_| degrade) {
            Some(reduced) if blocked >= self.congestion.degrade_after => {
                self.cut(number, reduced);
            }
            None if blocked > self.congestion.retries => {
                let failure = Failure {
                    step: phase.rounds[0][0].step,
                    hosts: blocked_hosts,
                    tries: blocked,
                    at: self.loaded.elapsed(),
                };
                job.run.failure = Some(failure);
                job.is_over = true;
                let held = std::mem::take(&mut job.held);
                held.into_iter()
                    .flatten()
                    .for_each(|mut held| self.loaded.engine.release(&mut held));
            }
            _ => {
                let wait = self.loaded.back_off(blocked);
                self.put(self.loaded.engine.now + wait, number, PhaseEvent::Ask(path));
            }
        }
        Ok(())
    }

    /// Cuts the current phase of job `number` into phases that satisfy `limits`.
    fn cut(&mut self, number: usize, limits: PhaseLimits) {
        let job = &mut self.jobs[number];
        let since = job.since;
        if let Some(phase) = job.phases_left.pop_front() {
            for part in group_rounds(phase.rounds, limits).into_iter().rev() {
                job.phases_left.push_front(part);
            }
            job.run.degraded += 1;
        }
        self.begin_phase(number);
        self.jobs[number].since = since;
    }

    /// Executes the rounds of job `number`'s current phase, whose lightpaths are all granted.
    fn execute_phase(&mut self, number: usize) -> Result<(), BurstError> {
        let (now, start) = (self.loaded.engine.now, self.loaded.start);
        let network = self.loaded.engine.network;
        let job = &mut self.jobs[number];
        let Some(phase) = job.phases_left.front() else {
            return Ok(());
        };
        let wait = Time::from_ps(now - job.since);
        job.run.waited = job.run.waited.plus(wait)?;
        job.run.phases += 1;
        // Pairs (source, destination) of the phase's lightpaths, in the order of their setup.
        let mut directions = Vec::new();
        for (&(low, high), &(up, down)) in &phase.paths {
            directions.extend(up.then_some((low, high)));
            directions.extend(down.then_some((high, low)));
        }
        let held = job.held.iter().flatten();
        let propagation: Vec<u64> = held.flat_map(|held| held.propagation_ps.clone()).collect();
        let propagation_of: BTreeMap<(u32, u32), u64> =
            directions.into_iter().zip(propagation).collect();
        let mut began = Time::from_ps(now - start).plus(self.congestion.setup)?;
        for round in &phase.rounds {
            let first = job.run.delivered.len();
            let mut last = began;
            for message in round {
                let time = message.time(self.congestion.latency, network.rate())?;
                let propagation = propagation_of.get(&(message.from, message.to)).copied();
                let ended = began
                    .plus(time)?
                    .plus(Time::from_ps(propagation.unwrap_or_default()))?;
                last = last.max(ended);
                let transfers = message.transfers.iter();
                job.run
                    .delivered
                    .extend(transfers.map(|&transfer| Delivery {
                        transfer,
                        began,
                        ended,
                    }));
            }
            job.run.delivered[first..].sort_by_key(|message| (message.ended, message.transfer));
            began = last;
        }
        let released = Time::from_ps(start)
            .plus(began)?
            .plus(self.congestion.teardown)?;
        self.put(released.ps(), number, PhaseEvent::Released);
        Ok(())
    }

    fn end_phase(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        let held = std::mem::take(&mut job.held);
        job.phases_left.pop_front();
        held.into_iter()
            .flatten()
            .for_each(|mut held| self.loaded.engine.release(&mut held));
        self.begin_phase(number);
    }
}

/// Sets up the lightpaths of a phase between the pair of hosts with index `path`, or between all
/// pairs if `path` is `None`. If a lightpath is blocked, sets up none and returns the blocked pair
/// of hosts.
pub(super) fn acquire(
    engine: &mut BurstEngine<'_>,
    phase: &PathPhase,
    path: Option<usize>,
) -> Result<HeldChannels, (u32, u32)> {
    let wanted = phase.paths.iter().enumerate();
    let wanted = wanted.filter(|(number, _)| path.is_none_or(|path| path == *number));
    let mut held = HeldChannels::default();
    for (_, (&(low, high), &(up, down))) in wanted {
        let opened = (!up || engine.open(low, high, &mut held))
            && (!down || engine.open(high, low, &mut held));
        if !opened {
            engine.undo(&mut held);
            return Err((low, high));
        }
    }
    Ok(held)
}
