//! What became of jobs, and the mean over replications with its interval.

use crate::schedule::Schedule;
use crate::simulate::burst::Share;
use crate::simulate::burst::interval;
use crate::table::{Cell, Column, Description, Field, Part, Table, Value, Values};
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

crate::totals! {
    /// All replications.
    #[derive(Debug, Clone, PartialEq)]
    pub struct CollectiveOutcome {
        /// Specification of the network.
        pub network: String,
        /// Replications in which a job gave up.
        pub failed: u32,
        /// Mean time of the others.
        pub mean_seconds: Option<f64> as "s",
        /// Lower end of the interval of 95 % of that mean by Student's t: replications are independent, and their
        /// mean is taken for normal. None of fewer than two.
        pub low_seconds: Option<f64> as "s",
        /// Upper end of that interval.
        pub high_seconds: Option<f64> as "s",
        /// One by one, in the order of their numbers.
        pub runs: Vec<Run>,
    }
}

impl CollectiveOutcome {
    pub(super) fn new(network: String, runs: Vec<Run>) -> CollectiveOutcome {
        let times: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(run.time?.seconds()))
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let half = interval::half_width(&times);
        CollectiveOutcome {
            network,
            failed: (runs.len() - times.len()) as u32,
            mean_seconds: (!times.is_empty()).then_some(mean),
            low_seconds: half.map(|half| mean - half),
            high_seconds: half.map(|half| mean + half),
            runs,
        }
    }
}

impl Part for Vec<Run> {
    /// The table `runs` with sums over the jobs, and the table `jobs`.
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>) {
        let summed = |of: fn(&JobRun) -> u64| -> Values<'a> {
            Values::Whole(Box::new(move |run| self[run].jobs.iter().map(of).sum()))
        };
        let time = |run: usize| self[run].time.as_ref().map_or(Value::Absent, Time::value);
        into.table(Table {
            name: field.name,
            row: "One row per replication; sums over its jobs.".into(),
            shape: vec![("run", self.len())],
            columns: vec![
                Column::new(
                    "time_ps",
                    "ps",
                    "When the last job had ended; none where one gave up.",
                    Values::Listed(Box::new(time)),
                ),
                Column::new(
                    "refusals",
                    "",
                    "Requests that were refused.",
                    summed(|job| job.refusals),
                ),
                Column::new(
                    "phases",
                    "",
                    "Phases carried out.",
                    summed(|job| job.phases.into()),
                ),
                Column::new(
                    "degraded",
                    "",
                    "Phases cut since they were refused.",
                    summed(|job| job.degraded.into()),
                ),
                Column::new(
                    "waited_ps",
                    "ps",
                    "Waiting for circuits that were granted.",
                    summed(|job| job.waited.ps()),
                ),
                Column::new(
                    "bursts",
                    "",
                    "Bursts beside the jobs.",
                    Values::Whole(Box::new(|run| self[run].bursts.offered)),
                ),
                Column::new(
                    "bursts_lost",
                    "",
                    "Those that were lost.",
                    Values::Whole(Box::new(|run| self[run].bursts.lost)),
                ),
            ],
        });
        let jobs = self.first().map_or(0, |run| run.jobs.len());
        let failed = |of: fn(&Failure) -> u64| -> Values<'a> {
            Values::Listed(Box::new(move |row| {
                let failure = &self[row / jobs].jobs[row % jobs].failure;
                let of = |one: &Failure| Value::Whole(of(one).into());
                failure.as_ref().map_or(Value::Absent, of)
            }))
        };
        into.table(Table {
            name: "jobs",
            row: "One row per replication and job; why it gave up, absent where it ended.".into(),
            shape: vec![("run", self.len()), ("job", jobs)],
            columns: vec![
                Column::new(
                    "step",
                    "",
                    "The step that was to come first.",
                    failed(|one| one.step.into()),
                ),
                Column::new(
                    "source",
                    "",
                    "One host of the circuit that was refused.",
                    failed(|one| one.hosts.0.into()),
                ),
                Column::new(
                    "destination",
                    "",
                    "The other host.",
                    failed(|one| one.hosts.1.into()),
                ),
                Column::new(
                    "tries",
                    "",
                    "How often it was asked for.",
                    failed(|one| one.tries.into()),
                ),
                Column::new(
                    "at_ps",
                    "ps",
                    "When, from the beginning of the jobs.",
                    failed(|one| one.at.ps()),
                ),
            ],
        });
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
