//! Results of jobs, and their mean time over all replications with its confidence interval.

use crate::burst::Share;
use crate::burst::interval;
use opticoll_base::units::Time;
use opticoll_plan::schedule::Schedule;

/// Delivered transfer, with its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Index of the transfer in the job's schedule.
    pub transfer: u32,
    /// Time at which the transfer's message started, from the start of the jobs.
    pub began: Time,
    /// Time at which the transfer's message ended, from the start of the jobs.
    pub ended: Time,
}

/// Request at which a job gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Index of the first step of the schedule that was not executed.
    pub step: u32,
    /// Hosts at the two ends of the blocked lightpath.
    pub hosts: (u32, u32),
    /// Number of requests for the blocked lightpath or phase.
    pub tries: u32,
    /// Time at which the job gave up, from the start of the jobs.
    pub at: Time,
}

/// Result of a job in one replication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobRun {
    /// Time at which the job ended, from the start of the jobs; `None` if the job gave up.
    pub time: Option<Time>,
    /// Request at which the job gave up; `None` if the job ended.
    pub failure: Option<Failure>,
    /// Number of executed phases.
    pub phases: u32,
    /// Number of blocked requests.
    pub blocked: u64,
    /// Number of phases that were cut because requests were blocked.
    pub degraded: u32,
    /// Time from the first request of a phase until all its lightpaths were granted, summed over
    /// the executed phases.
    pub waited: Time,
    /// Delivered transfers, in the order of the end times of their messages.
    pub delivered: Vec<Delivery>,
}

/// Result of one replication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// Results of the jobs, in the given order.
    pub jobs: Vec<JobRun>,
    /// Time at which the last job ended, from the start of the jobs; `None` if a job gave up.
    pub time: Option<Time>,
    /// Number of bursts that arrived or were lost during the jobs, and number of lost bursts among
    /// them.
    pub bursts: Share,
}

crate::totals! {
    /// Results of all replications.
    #[derive(Debug, Clone, PartialEq)]
    pub struct CollectiveOutcome {
        /// Specification of the network.
        pub network: String,
        /// Number of replications in which a job gave up.
        pub failed: u32,
        /// Mean time of the replications in which no job gave up, in seconds.
        pub mean_seconds: Option<f64> as "s",
        /// Lower end of the 95 % confidence interval of the mean time, by Student's distribution;
        /// empty for fewer than two successful replications. The interval assumes independent
        /// replications and a normally distributed mean.
        pub low_seconds: Option<f64> as "s",
        /// Upper end of the 95 % confidence interval of the mean time.
        pub high_seconds: Option<f64> as "s",
        /// Results per replication, with sums over its jobs.
        pub runs: Vec<ReplicationSums>,
        /// Reasons why jobs gave up.
        pub jobs: JobFailures,
        ;
        /// Results of the replications, indexed by number of the replication.
        pub replications: Vec<Replication>,
    }
}

crate::rows! {
    /// A row per replication, with sums over its jobs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReplicationSums {
        /// Time at which the last job ended; empty if a job gave up.
        pub time: Option<Time>,
        /// Number of blocked requests.
        pub blocked: u64,
        /// Number of executed phases.
        pub phases: u64,
        /// Number of phases that were cut because requests were blocked.
        pub degraded: u64,
        /// Time spent waiting for circuits that were granted.
        pub waited: Time,
        /// Number of bursts that arrived or were lost during the jobs.
        pub bursts: u64,
        /// Number of lost bursts.
        pub bursts_lost: u64,
    }
}

crate::columns! {
    /// A row per replication and job, with the request at which the job gave up; empty if the job
    /// ended.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct JobFailures shaped {
        /// Index of the first step of the schedule that was not executed.
        pub step: Option<u32>,
        /// Host at one end of the blocked circuit.
        pub source: Option<u32>,
        /// Host at the other end of the blocked circuit.
        pub destination: Option<u32>,
        /// Number of requests for the blocked circuit or phase.
        pub tries: Option<u32>,
        /// Time at which the job gave up, from the start of the jobs.
        pub at: Option<Time>,
    }
}

impl ReplicationSums {
    fn of(replication: &Replication) -> ReplicationSums {
        let sum = |value: fn(&JobRun) -> u64| replication.jobs.iter().map(value).sum();
        ReplicationSums {
            time: replication.time,
            blocked: sum(|job| job.blocked),
            phases: sum(|job| job.phases.into()),
            degraded: sum(|job| job.degraded.into()),
            waited: Time::from_ps(sum(|job| job.waited.ps())),
            bursts: replication.bursts.offered,
            bursts_lost: replication.bursts.lost,
        }
    }
}

impl JobFailures {
    fn of(replications: &[Replication]) -> JobFailures {
        let jobs = replications.first().map_or(0, |run| run.jobs.len());
        let mut failures = JobFailures {
            shape: vec![("run", replications.len()), ("job", jobs)],
            ..JobFailures::default()
        };
        for failure in replications
            .iter()
            .flat_map(|run| &run.jobs)
            .map(|job| job.failure)
        {
            failures.step.push(failure.map(|failure| failure.step));
            failures.source.push(failure.map(|failure| failure.hosts.0));
            failures
                .destination
                .push(failure.map(|failure| failure.hosts.1));
            failures.tries.push(failure.map(|failure| failure.tries));
            failures.at.push(failure.map(|failure| failure.at));
        }
        failures
    }
}

impl CollectiveOutcome {
    pub(super) fn new(network: String, replications: Vec<Replication>) -> CollectiveOutcome {
        let times: Vec<f64> = replications
            .iter()
            .filter_map(|run| Some(run.time?.seconds()))
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let half = interval::half_width(&times);
        CollectiveOutcome {
            network,
            failed: (replications.len() - times.len()) as u32,
            mean_seconds: (!times.is_empty()).then_some(mean),
            low_seconds: half.map(|half| mean - half),
            high_seconds: half.map(|half| mean + half),
            runs: replications.iter().map(ReplicationSums::of).collect(),
            jobs: JobFailures::of(&replications),
            replications,
        }
    }
}

/// Returns the delivered transfers as a schedule, in the order in which they were delivered. A new
/// step begins whenever the step of the original schedule changes. The result contains nothing else
/// of the original schedule except the collective.
pub fn delivered_schedule(schedule: &Schedule, delivered: &[Delivery]) -> Schedule {
    let step_of = |transfer: u32| {
        let steps = 0..schedule.steps();
        let mut starts = steps.map(|step| schedule.step(step));
        starts.position(|step| step.contains(&(transfer as usize)))
    };
    let mut delivered_steps = Schedule::new(schedule.collective);
    delivered_steps.reserve(delivered.len());
    let mut open = None;
    for delivery in delivered {
        let inside = open.as_ref().is_some_and(|step: &std::ops::Range<usize>| {
            step.contains(&(delivery.transfer as usize))
        });
        if !inside {
            open = step_of(delivery.transfer).map(|step| schedule.step(step));
            delivered_steps.begin_step();
        }
        delivered_steps.push(schedule.transfer(delivery.transfer as usize));
    }
    delivered_steps
}
