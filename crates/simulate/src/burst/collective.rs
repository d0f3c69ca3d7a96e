//! Collectives over lightpaths that a network may block.
//!
//! # The model
//!
//! **Lightpaths.** A *job* is a schedule whose ranks are placed at hosts. Two hosts that exchange
//! data need a lightpath in each direction in which they send data. A lightpath is a route and a
//! wavelength on its links (with converters, one wavelength per link). The job requests a lightpath
//! as a burst with two-way signalling does: at one instant, by the routing, assignment and
//! converters of the settings. The job reserves the lightpath without a known end and releases it
//! later. Hosts of the same node need a port but no wavelength, and their messages take the same
//! times. The bursts of the settings' source and the lightpaths of all jobs compete for
//! wavelengths. A job does not use the transmitters and receivers of bursts, but ports of its own.
//! At the same instant, requests of jobs are handled before bursts.
//!
//! **Phases.** With k ports, a host can have lightpaths to at most k other hosts at the same time.
//! Consecutive steps form a *phase* as long as no host needs more than k ports. A single step that
//! needs more ports is cut into parts (see `phases`). When all lightpaths of a phase are granted,
//! their setup takes `setup`. Then the steps, or their parts, are executed one after the other
//! as *rounds*: a round begins when the previous round has ended at all hosts. A message of m bytes
//! takes `latency`, plus the propagation delay of its route, plus m bytes divided by the rate.
//! After the last round, the release of the wavelengths takes `teardown`. Without blocking, a job
//! with R rounds in P phases takes
//!
//! P (setup + teardown) + sum over the R rounds of (latency + the time of the longest message).
//!
//! For k ports, this time agrees with the times that Matsuoka, Takizawa, Nakada, Koga and Takada
//! state (MPI Collective Communication over OBS Grid).
//!
//! **Blocking.** The [`Congestion`] settings define how a job reacts to a blocked request. After
//! the i-th blocked request, the job waits for min(max_back_off, back_off 2^(i-1)) U. U is
//! drawn for each wait, uniformly from [1/2, 3/2).
//!
//! - `retry`: Each lightpath is requested separately, and granted lightpaths stay reserved. A
//!   blocked lightpath waits separately and is requested again. The job gives up after `retries`
//!   retries of one lightpath.
//! - `all_or_nothing`: All lightpaths of a phase are requested at one instant, and either all or
//!   none are reserved. A phase that waits reserves nothing. The job gives up after `retries`
//!   retries of one phase.
//! - `degrade`: Like `all_or_nothing`, but after `degrade_after` blocked requests the job cuts the
//!   phase into parts with fewer ports. Later the job cuts it into parts with half as many
//!   lightpaths, down to a single lightpath. The job gives up after `retries` retries of a single
//!   lightpath.
//!
//! A job that gives up releases its lightpaths and ends. The outcome then names the hosts, the step
//! and the number of tries. All jobs request the lightpaths of a phase in the same order: by the
//! lower host, then by the higher host.
//!
//! # No deadlock
//!
//! *All or nothing.* A job has lightpaths only from the instant at which it has all lightpaths of
//! its phase. From then on the job waits for no other job, and its phase ends at a known time. A
//! waiting job has no lightpaths. Hence no job waits for a waiting job, and there is no circular
//! wait, whatever the order of the requests. As long as jobs remain, either a job is in a phase
//! that will end, or only bursts occupy wavelengths. In the second case, the next request is
//! granted unless bursts block it or the phase does not fit into the empty network. Under
//! `degrade`, the smallest phase is one lightpath, which fits as soon as its route is free. Every
//! job therefore ends, or is blocked more often than `retries` allows.
//!
//! *Path by path.* Under `retry`, jobs have lightpaths while they wait. Two jobs may each have a
//! lightpath that the other job needs, and so may two lightpaths of one phase. Such jobs also end,
//! because the number of retries is limited, but they fail. The tests enumerate all orders of
//! requests of small jobs. They find such states for `retry`, and none for the other policies.
//!
//! # Delivery
//!
//! A transfer is delivered when its message has ended. [`delivered_schedule`] returns the delivered
//! transfers as a schedule, in the order in which they were delivered, for the verifier.
//!
//! ```
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_simulate::burst::collective;
//! use opticoll_simulate::burst::collective::{Congestion, Job};
//! use opticoll_simulate::burst::{BurstNetwork, BurstSettings, BurstWork};
//! use opticoll_fabric::families::Medium;
//! use opticoll_plan::schedule::{Schedule, Transfer};
//! let mut schedule = Schedule::new(Collective::new(CollectiveKind::Broadcast, 2)?);
//! schedule.push(Transfer::copy(0, 0, 1));
//! let medium = Medium::parse("wdm_ladder:rungs=5,wavelengths=2,rate=10Gb/s,latency=0s")?;
//! let network = BurstNetwork::of(&medium)?;
//! let job = Job { schedule: &schedule, places: vec![0, 9], size: "1MB".parse()? };
//! let congestion = Congestion { latency: "100us".parse()?, ..Congestion::default() };
//! let no_bursts = BurstWork::Given(Vec::new());
//! let settings = BurstSettings { replications: 1, ..BurstSettings::default() };
//! let outcome =
//!     collective::simulate(&network, &[job], &no_bursts, &settings, &congestion, 1, |_| true)?;
//! // 10 ms for the path, 0.1 ms of latency, 8 Mb at 10 Gb/s.
//! assert_eq!(outcome.mean_seconds, Some(0.0109));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod interleavings;
mod loaded_network;
mod outcome;
mod path;
mod phases;
mod requests;
mod run;
mod settings;

use std::num::NonZeroUsize;

use super::{BurstError, BurstNetwork, BurstSettings, BurstWork};
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_plan::schedule::Schedule;

pub use outcome::{CollectiveOutcome, Delivery, Failure, JobRun, Replication, delivered_schedule};
pub use requests::{OnRequest, RequestUse};
pub use settings::{BlockingPolicy, Congestion, POLICIES, SETTINGS};

/// Collective whose ranks are placed at given hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<'a> {
    /// Transfers of the collective.
    pub schedule: &'a Schedule,
    /// Host of each rank, indexed by rank; no host has two ranks.
    pub places: Vec<u32>,
    /// Size of the collective.
    pub size: Bytes,
}

/// Simulates jobs that start at the same time, once per replication, on at most `threads` threads.
/// Calls `progress` with the number of finished replications, and stops if `progress` returns
/// false. The outcome does not depend on the number of threads.
///
/// Bursts continue until the last job has ended, so the settings for the number of measured bursts
/// have no effect. Given bursts start with the jobs. Random bursts start earlier: on average
/// `warm_up` bursts before the jobs.
///
/// # Errors
/// Returns an error if the settings are inconsistent, a host does not exist or has two ranks, a
/// time exceeds 46 days, or `progress` returned false.
pub fn simulate(
    network: &BurstNetwork,
    jobs: &[Job<'_>],
    work: &BurstWork,
    settings: &BurstSettings,
    congestion: &Congestion,
    threads: usize,
    mut progress: impl FnMut(u32) -> bool,
) -> Result<CollectiveOutcome, BurstError> {
    super::check(network, work, settings)?;
    congestion.check()?;
    check_places(network, jobs)?;
    let network = &*network.with_routes(settings.routes);
    let rounds = jobs.iter().map(phases::rounds);
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    let threads = NonZeroUsize::new(threads).map_or(1, NonZeroUsize::get) as u32;
    let mut runs = Vec::new();
    let mut begun = 0;
    while begun < settings.replications {
        let end = settings.replications.min(begun + threads);
        let carry_out = |number| run::run(network, &rounds, work, settings, congestion, number);
        for run in interrupt::parallel_map(begun..end, carry_out) {
            runs.push(run?);
        }
        begun = end;
        if !progress(begun) {
            let bursts = runs.iter().map(|run| run.bursts.offered).sum();
            return Err(BurstError::Stopped { bursts });
        }
    }
    Ok(CollectiveOutcome::new(
        network.specification().to_owned(),
        runs,
    ))
}

fn check_places(network: &BurstNetwork, jobs: &[Job<'_>]) -> Result<(), BurstError> {
    let refuse = |problem: String| {
        Err(BurstError::Setting {
            setting: "placement",
            problem,
        })
    };
    let hosts = network.hosts();
    let mut taken = vec![false; hosts as usize];
    for (number, job) in jobs.iter().enumerate() {
        let ranks = job.schedule.collective.ranks();
        if job.places.len() != ranks as usize {
            let places = job.places.len();
            return refuse(format!(
                "collective {number} has {ranks} ranks and {places} hosts for them"
            ));
        }
        for &place in &job.places {
            match taken.get_mut(place as usize) {
                None => {
                    return refuse(format!(
                        "there is no host {place}: there are {hosts}, counted from 0"
                    ));
                }
                Some(true) => return refuse(format!("host {place} is given to two ranks")),
                Some(taken) => *taken = true,
            }
        }
    }
    Ok(())
}
