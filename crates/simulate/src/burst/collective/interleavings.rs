//! Enumeration of every order in which small jobs can request lightpaths, be granted lightpaths,
//! and end their phases. With `all_or_nothing`, some job can always advance. With `retry`, there
//! are states in which no job can advance.

use std::collections::BTreeSet;

use super::path::HeldChannels;
use super::phases::{PathPhase, PhaseLimits, PhaseMessage, Round, group_rounds};
use super::run::acquire;
use crate::burst::engine::BurstEngine;
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstNetwork, BurstWork};
use opticoll_base::units::Bytes;
use opticoll_fabric::families::Medium;

/// Action of a job: request all lightpaths of its phase, request one of them, or end its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobAction {
    Ask(Option<usize>),
    End,
}

/// Number of ended phases of each job, and one flag per request of the job's current phase: true if
/// the request is granted.
type State = Vec<(usize, Vec<bool>)>;

struct JobsCase {
    network: BurstNetwork,
    settings: BurstSettings,
    jobs: Vec<Vec<PathPhase>>,
    path_by_path: bool,
}

/// Creates a case; a job is a list of rounds, a round a list of messages (source, destination).
fn case(network: &str, jobs: &[&[&[(u32, u32)]]], ports: u32, path_by_path: bool) -> JobsCase {
    let message = |&(from, to): &(u32, u32)| PhaseMessage {
        from,
        to,
        bytes: Bytes::new(1),
        step: 0,
        transfers: vec![0],
    };
    let limits = PhaseLimits {
        ports,
        paths: usize::MAX,
    };
    let phases = |rounds: &&[&[(u32, u32)]]| {
        let rounds = rounds
            .iter()
            .map(|round| round.iter().map(message).collect::<Round>());
        group_rounds(rounds, limits)
    };
    JobsCase {
        network: BurstNetwork::of(&Medium::parse(network).unwrap()).unwrap(),
        settings: BurstSettings::default(),
        jobs: jobs.iter().map(phases).collect(),
        path_by_path,
    }
}

impl JobsCase {
    fn requests(&self, job: usize, phase: usize) -> Vec<Option<usize>> {
        let paths = self.jobs[job]
            .get(phase)
            .map_or(0, |phase| phase.paths.len());
        match self.path_by_path {
            true => (0..paths).map(Some).collect(),
            false => (0..paths.min(1)).map(|_| None).collect(),
        }
    }

    fn start(&self) -> State {
        let jobs = 0..self.jobs.len();
        jobs.map(|job| (0, vec![false; self.requests(job, 0).len()]))
            .collect()
    }

    /// Returns the actions that can be tried in a state, each with the index of its job.
    fn actions(&self, state: &State) -> Vec<(usize, JobAction)> {
        let mut actions = Vec::new();
        for (job, (phase, granted)) in state.iter().enumerate() {
            let requests = self.requests(job, *phase);
            if !requests.is_empty() && granted.iter().all(|granted| *granted) {
                actions.push((job, JobAction::End));
            }
            let open = requests
                .into_iter()
                .zip(granted)
                .filter(|(_, granted)| !**granted);
            actions.extend(open.map(|(path, _)| (job, JobAction::Ask(path))));
        }
        actions
    }

    /// Executes `actions`, which must be possible, in a new network and returns the final state.
    fn replay(&self, actions: &[(usize, JobAction)]) -> State {
        let none = BurstWork::Given(Vec::new());
        let mut engine = BurstEngine::new(&self.network, &self.settings, &none, 1, 0);
        let mut state = self.start();
        let mut held: Vec<Vec<HeldChannels>> = self.jobs.iter().map(|_| Vec::new()).collect();
        for (now, &(job, action)) in actions.iter().enumerate() {
            engine.run_until(now as u64);
            let phase = state[job].0;
            match action {
                JobAction::Ask(path) => {
                    if let Ok(granted) = acquire(&mut engine, &self.jobs[job][phase], path) {
                        held[job].push(granted);
                        state[job].1[path.unwrap_or(0)] = true;
                    }
                }
                JobAction::End => {
                    held[job]
                        .drain(..)
                        .for_each(|mut held| engine.release(&mut held));
                    state[job] = (phase + 1, vec![false; self.requests(job, phase + 1).len()]);
                }
            }
        }
        state
    }

    /// Returns the number of reachable states, and the states in which jobs remain but cannot
    /// advance.
    fn explore(&self) -> (usize, Vec<State>) {
        let mut seen = BTreeSet::from([self.start()]);
        let mut begun = vec![(self.start(), Vec::new())];
        let mut deadlocks = Vec::new();
        while let Some((state, before)) = begun.pop() {
            let mut moved = false;
            let actions = self.actions(&state);
            for &action in &actions {
                let mut longer: Vec<(usize, JobAction)> = before.clone();
                longer.push(action);
                let next = self.replay(&longer);
                moved |= next != state;
                if seen.insert(next.clone()) {
                    begun.push((next, longer));
                }
            }
            if !actions.is_empty() && !moved {
                deadlocks.push(state);
            }
        }
        (seen.len(), deadlocks)
    }
}

const LADDER: &str = "wdm_ladder:rungs=3,wavelengths=1,rate=10Gb/s";
const RING: &str = "wdm_torus:dims=4,wavelengths=1,rate=10Gb/s";

/// Two jobs that both need the outer two of the three links of `ROW_NETWORK`, and a job that needs
/// the middle link.
const ROW: &[&[&[(u32, u32)]]] = &[&[&[(0, 1), (2, 3)]], &[&[(0, 1), (2, 3)]], &[&[(1, 2)]]];
/// Two jobs that need the same links in opposite orders.
const CROSSED: &[&[&[(u32, u32)]]] = &[
    &[&[(0, 1)], &[(1, 2), (0, 3)], &[(0, 1)]],
    &[&[(1, 2)], &[(0, 1), (2, 3)]],
];
/// Two jobs that each send around a ring in one round, and a job that sends across the ring.
const RINGS: &[&[&[(u32, u32)]]] = &[
    &[&[(0, 1), (1, 2), (2, 3), (3, 0)]],
    &[&[(0, 1), (1, 2), (2, 3), (3, 0)]],
    &[&[(0, 2)], &[(2, 0)]],
];
const ROW_NETWORK: &str = "wdm_graph:ranks=4,links=0-1+1-2+2-3,wavelengths=1,rate=10Gb/s";

#[test]
fn all_or_nothing_never_deadlocks() {
    for (network, jobs) in [
        (ROW_NETWORK, ROW),
        (RING, CROSSED),
        (RING, RINGS),
        (LADDER, CROSSED),
        (LADDER, RINGS),
    ] {
        for ports in 1..=2 {
            let (states, deadlocks) = case(network, jobs, ports, false).explore();
            assert!(states > jobs.len(), "{network}: {states} states");
            assert_eq!(deadlocks, Vec::<State>::new(), "{network}, {ports} ports");
        }
    }
}

#[test]
fn path_by_path_jobs_may_deadlock() {
    let (_, deadlocks) = case(ROW_NETWORK, ROW, 1, true).explore();
    // Each of the first two jobs has one of the two links that both jobs need.
    let crossed = |state: &State| state[0].1 == [true, false] && state[1].1 == [false, true];
    assert!(deadlocks.iter().any(crossed), "{deadlocks:?}");
}
