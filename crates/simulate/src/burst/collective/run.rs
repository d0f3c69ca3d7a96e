//! Simulation of one replication: jobs that request lightpaths, and bursts beside them.

use std::collections::{BTreeMap, VecDeque};

use super::beside::Beside;
use super::outcome::{Delivered, Failure, JobRun, Replication};
use super::path::HeldChannels;
use super::phases::{Limits, PathPhase, Round, group};
use super::settings::{BlockingPolicy, Congestion};
use crate::burst::engine::BurstEngine;
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstError, BurstNetwork, BurstWork};
use opticoll_base::event::EventQueue;
use opticoll_base::interrupt;
use opticoll_base::units::Time;

struct Driver<'a> {
    beside: Beside<'a>,
    congestion: &'a Congestion,
    jobs: Vec<Asking>,
    /// Events, each with the number of its job.
    queue: EventQueue<(usize, PhaseEvent)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PhaseEvent {
    /// A job requests the lightpaths of its phase, or the one with the number.
    Ask(Option<usize>),
    /// The wavelengths of the job's phase are free again.
    Released,
}

/// State of a job.
struct Asking {
    left: VecDeque<PathPhase>,
    /// Per request of the phase, the lightpaths held once it is granted. Under all or nothing there
    /// is a single request.
    held: Vec<Option<HeldChannels>>,
    /// Per request of the phase, the number of times it was blocked.
    blocked: Vec<u32>,
    /// Time of the first request of the phase.
    since: u64,
    run: JobRun,
    over: bool,
}

/// Simulates the jobs in replication `number`.
pub(super) fn run(
    network: &BurstNetwork,
    jobs: &[Vec<Round>],
    work: &BurstWork,
    settings: &BurstSettings,
    congestion: &Congestion,
    number: u32,
) -> Result<Replication, BurstError> {
    let beside = Beside::new(network, work, settings, congestion, number)?;
    let limits = Limits {
        ports: congestion.ports,
        paths: usize::MAX,
    };
    let asking = jobs.iter().map(|rounds| Asking {
        left: group(rounds.clone(), limits).into(),
        held: Vec::new(),
        blocked: Vec::new(),
        since: beside.engine.now,
        run: JobRun::default(),
        over: false,
    });
    let mut driver = Driver {
        jobs: asking.collect(),
        beside,
        congestion,
        queue: EventQueue::default(),
    };
    (0..jobs.len()).for_each(|job| driver.begin_phase(job));
    while let Some((at, (job, event))) = driver.queue.pop() {
        interrupt::check();
        if driver.jobs[job].over {
            continue;
        }
        driver.beside.run_until(at)?;
        match event {
            PhaseEvent::Ask(path) => driver.ask(job, path)?,
            PhaseEvent::Released => driver.end_phase(job),
        }
    }
    let bursts = driver.beside.engine.tally.total;
    let jobs: Vec<JobRun> = driver.jobs.into_iter().map(|job| job.run).collect();
    let times: Option<Vec<Time>> = jobs.iter().map(|job| job.time).collect();
    let time = times.map(|times| times.into_iter().max().unwrap_or_default());
    Ok(Replication { jobs, time, bursts })
}

impl Driver<'_> {
    fn put(&mut self, at: u64, job: usize, event: PhaseEvent) {
        self.queue.put(at, (job, event));
    }

    fn begin_phase(&mut self, number: usize) {
        let (now, elapsed) = (self.beside.engine.now, self.beside.elapsed());
        let job = &mut self.jobs[number];
        job.since = now;
        let Some(phase) = job.left.front() else {
            job.over = true;
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

    /// Requests all lightpaths of a job's phase, or one of them.
    fn ask(&mut self, number: usize, path: Option<usize>) -> Result<(), BurstError> {
        let job = &mut self.jobs[number];
        let Some(phase) = job.left.front() else {
            return Ok(());
        };
        let request = path.unwrap_or(0);
        let refused_pair = match acquire(&mut self.beside.engine, phase, path) {
            Ok(held) => {
                job.held[request] = Some(held);
                return match job.held.iter().all(Option::is_some) {
                    true => self.carry_out(number),
                    false => Ok(()),
                };
            }
            Err(pair) => pair,
        };
        job.run.blocked += 1;
        job.blocked[request] += 1;
        let blocked = job.blocked[request];
        let degrade = self.congestion.policy == BlockingPolicy::Degrade;
        match phase.fewer().filter(|_| degrade) {
            Some(fewer) if blocked >= self.congestion.degrade_after => {
                self.cut(number, fewer);
            }
            None if blocked > self.congestion.retries => {
                let failure = Failure {
                    step: phase.rounds[0][0].step,
                    hosts: refused_pair,
                    tries: blocked,
                    at: self.beside.elapsed(),
                };
                job.run.failure = Some(failure);
                job.over = true;
                let held = std::mem::take(&mut job.held);
                held.into_iter()
                    .flatten()
                    .for_each(|mut held| self.beside.engine.release(&mut held));
            }
            _ => {
                let wait = self.beside.back_off(blocked);
                self.put(self.beside.engine.now + wait, number, PhaseEvent::Ask(path));
            }
        }
        Ok(())
    }

    /// Cuts the present phase of a job into parts.
    fn cut(&mut self, number: usize, limits: Limits) {
        let job = &mut self.jobs[number];
        let since = job.since;
        if let Some(phase) = job.left.pop_front() {
            for part in group(phase.rounds, limits).into_iter().rev() {
                job.left.push_front(part);
            }
            job.run.degraded += 1;
        }
        self.begin_phase(number);
        self.jobs[number].since = since;
    }

    /// Executes the rounds of a phase whose lightpaths are all granted, one after the other.
    fn carry_out(&mut self, number: usize) -> Result<(), BurstError> {
        let (now, start) = (self.beside.engine.now, self.beside.start);
        let network = self.beside.engine.network;
        let job = &mut self.jobs[number];
        let Some(phase) = job.left.front() else {
            return Ok(());
        };
        let wait = Time::from_ps(now - job.since);
        job.run.waited = job.run.waited.plus(wait)?;
        job.run.phases += 1;
        // Order of the phase's lightpaths, from lower to higher host first.
        let mut directions = Vec::new();
        for (&(low, high), &(up, down)) in &phase.paths {
            directions.extend(up.then_some((low, high)));
            directions.extend(down.then_some((high, low)));
        }
        let held = job.held.iter().flatten();
        let propagation: Vec<u64> = held.flat_map(|held| held.propagation_ps.clone()).collect();
        let passed: BTreeMap<(u32, u32), u64> = directions.into_iter().zip(propagation).collect();
        let mut began = Time::from_ps(now - start).plus(self.congestion.establish)?;
        for round in &phase.rounds {
            let first = job.run.delivered.len();
            let mut last = began;
            for message in round {
                let time = message.time(self.congestion.latency, network.rate())?;
                let propagation = passed.get(&(message.from, message.to)).copied();
                let ended = began
                    .plus(time)?
                    .plus(Time::from_ps(propagation.unwrap_or_default()))?;
                last = last.max(ended);
                let transfers = message.transfers.iter();
                job.run
                    .delivered
                    .extend(transfers.map(|&transfer| Delivered {
                        transfer,
                        began,
                        ended,
                    }));
            }
            job.run.delivered[first..].sort_by_key(|one| (one.ended, one.transfer));
            began = last;
        }
        let released = Time::from_ps(start)
            .plus(began)?
            .plus(self.congestion.release)?;
        self.put(released.ps(), number, PhaseEvent::Released);
        Ok(())
    }

    fn end_phase(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        let held = std::mem::take(&mut job.held);
        job.left.pop_front();
        held.into_iter()
            .flatten()
            .for_each(|mut held| self.beside.engine.release(&mut held));
        self.begin_phase(number);
    }
}

/// Sets up all lightpaths of a phase in order, or the one with a number. If a lightpath is blocked,
/// returns its hosts and holds nothing.
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
