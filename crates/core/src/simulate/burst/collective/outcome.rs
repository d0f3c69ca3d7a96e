//! What became of jobs, and the mean over replications with its interval.

use crate::schedule::Schedule;
use crate::simulate::burst::Share;
use crate::simulate::burst::interval;
use crate::units::Time;

/// A transfer that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Its index in the job's schedule.
    pub transfer: u32,
    /// When its message began, from the beginning of the jobs.
    pub began: Time,
    /// When its message had ended.
    pub ended: Time,
}

/// Why a job gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The step of the schedule that was to come first.
    pub step: u32,
    /// The hosts of the light path that was refused.
    pub hosts: (u32, u32),
    /// How often it was asked for.
    pub tries: u32,
    /// When, from the beginning of the jobs.
    pub at: Time,
}

/// A job in one replication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobRun {
    /// When it had ended, from the beginning of the jobs; `None` of one that gave up.
    pub time: Option<Time>,
    /// Why it gave up.
    pub failure: Option<Failure>,
    /// Phases that were carried out.
    pub phases: u32,
    /// Requests that were refused.
    pub refusals: u64,
    /// Phases that were cut since they were refused.
    pub degraded: u32,
    /// How long it waited for the light paths that were granted in the end, in all.
    pub waited: Time,
    /// Transfers that arrived, in the order in which their messages ended.
    pub delivered: Vec<Delivered>,
}

/// One replication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its jobs, in the order given.
    pub jobs: Vec<JobRun>,
    /// When the last of them had ended; `None` where one gave up.
    pub time: Option<Time>,
    /// Bursts whose end became known meanwhile.
    pub bursts: Share,
}

/// All replications.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveOutcome {
    /// One by one, in the order of their numbers.
    pub runs: Vec<Run>,
    /// Those in which a job gave up.
    pub failed: u32,
    /// The mean time of the others, in seconds.
    pub mean_seconds: Option<f64>,
    /// The ends of the interval of 95 % of that mean by Student's t: replications are independent, and their
    /// mean is taken for normal. `None` of fewer than two.
    pub interval_seconds: Option<(f64, f64)>,
}

impl CollectiveOutcome {
    pub(super) fn new(runs: Vec<Run>) -> CollectiveOutcome {
        let times: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(run.time?.seconds()))
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let half = interval::half_width(&times);
        CollectiveOutcome {
            failed: (runs.len() - times.len()) as u32,
            mean_seconds: (!times.is_empty()).then_some(mean),
            interval_seconds: half.map(|half| (mean - half, mean + half)),
            runs,
        }
    }
}

/// The transfers that arrived as a schedule, in the order of their ends: a step begins where the step of the
/// original schedule changes. Whoever verifies it sees nothing of the schedule that was to be carried out but
/// its collective.
pub fn executed(schedule: &Schedule, delivered: &[Delivered]) -> Schedule {
    let step_of = |transfer: u32| {
        let steps = 0..schedule.steps();
        let mut starts = steps.map(|step| schedule.step(step));
        starts.position(|step| step.contains(&(transfer as usize)))
    };
    let mut made = Schedule::new(schedule.collective);
    made.reserve(delivered.len());
    let mut open = None;
    for one in delivered {
        let inside = open
            .as_ref()
            .is_some_and(|step: &std::ops::Range<usize>| step.contains(&(one.transfer as usize)));
        if !inside {
            open = step_of(one.transfer).map(|step| schedule.step(step));
            made.begin_step();
        }
        made.push(schedule.transfer(one.transfer as usize));
    }
    made
}
