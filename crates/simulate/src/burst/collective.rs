//! Collectives over lightpaths in a network that may block them.
//!
//! # The model
//!
//! **Lightpaths.** A *job* is a schedule whose ranks are placed at hosts. Two hosts that exchange
//! data need a lightpath in each direction in which data are sent: a route, and a wavelength on its
//! links (with converters, one wavelength per link). The job requests lightpaths as with two-way
//! signalling: at one instant, with the routing, assignment and converters of the settings. It
//! holds a lightpath, without a known end, until it releases the lightpath. Hosts of one node need
//! no wavelength, but a port and the same times. The bursts of the settings' source and the
//! lightpaths of all jobs compete for wavelengths. A job does not use the transmitters and
//! receivers of bursts; it has ports of its own. At the same instant, the requests of jobs come
//! before bursts.
//!
//! **Phases.** With k ports, a host holds lightpaths to at most k other hosts. Successive steps
//! form a *phase* as long as no host needs more ports; a single step that needs more is cut (see
//! `phases`). When all lightpaths of a phase are granted, their setup takes `setup`. Then the
//! steps are executed one after the other: a step begins when the step before has ended at all
//! hosts, and a message of m bytes takes `latency`, the propagation delay of its route, and m bytes
//! divided by the rate. The wavelengths are free again after `teardown`. Without blocking, a job
//! with R rounds in P phases takes
//!
//! P (setup + teardown) + sum over the R rounds of (latency + the time of the longest message).
//!
//! For k ports, this is the time given by Matsuoka, Takizawa, Nakada, Koga and Takada (MPI
//! Collective Communication over OBS Grid) wherever they state one.
//!
//! **Blocking.** The [`Congestion`] settings define the policy. After the i-th blocking, the wait
//! is min(max_back_off, back_off 2^(i-1)) U, where U is drawn for each wait, uniformly from
//! [1/2, 3/2).
//!
//! - `retry` requests each lightpath by itself and holds the granted ones. A blocked lightpath
//!   waits alone and is requested again. The job gives up after `retries` retries of one lightpath.
//! - `all_or_nothing` requests all lightpaths of a phase at one instant and takes all or none. A
//!   blocked phase waits and holds nothing. The job gives up after `retries` retries of one phase.
//! - `degrade` works like `all_or_nothing`, but after `degrade_after` blocked requests it cuts the
//!   phase into parts with fewer ports, later into parts with half as many lightpaths, down to a
//!   single lightpath. The job gives up after `retries` retries of a single lightpath.
//!
//! A job that gives up releases its lightpaths and ends; the outcome names the hosts, the step and
//! the number of tries. The lightpaths of a phase are requested in the order of their hosts (lower
//! host, then higher host), whatever job or schedule they belong to.
//!
//! # No deadlock
//!
//! *All or nothing.* A job holds lightpaths only from the instant at which it has all lightpaths of
//! its phase. From then on it waits for no other job: its phase ends at a known time. A waiting job
//! holds nothing. Hence no job waits for a waiting job, and no circular wait exists, in whatever
//! order the jobs request. While jobs remain, either one of them is in its phase and ends it, or
//! only passing bursts hold wavelengths. In the second case, the next job to request is granted its
//! phase unless bursts block it or it does not fit into the empty network. Under `degrade` the
//! smallest phase is one lightpath, which fits as soon as its route is free. Every job therefore
//! ends, or is blocked more often than it may retry.
//!
//! *Path by path.* Under `retry`, jobs hold lightpaths while they wait. Two jobs may each hold a
//! lightpath that the other needs, and so may the lightpaths of one phase. Such jobs end as well,
//! because retries are limited, but they fail. The tests enumerate all orders in which small jobs
//! may request, and find such states for `retry` and none for the other policies.
//!
//! # Delivery
//!
//! A transfer is delivered when its message has ended. [`delivered_schedule`] returns the delivered
//! transfers as a schedule in the order of their ends, for the verifier.
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
//! let medium = Medium::parse("ladder:rungs=5,wavelengths=2,rate=10Gb/s,latency=0s")?;
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

/// Collective to be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<'a> {
    /// Transfers between the ranks of the collective.
    pub schedule: &'a Schedule,
    /// Host of each rank; all hosts differ.
    pub places: Vec<u32>,
    /// Size of the collective.
    pub size: Bytes,
}

/// Simulates jobs that begin at the same time, once per replication of the settings, on at most
/// `threads` threads. Calls `progress` with the number of finished replications and stops if the
/// call returns false. The outcome does not depend on the number of threads.
///
/// Bursts continue until the last job has ended, so the settings for the number of measured bursts
/// have no effect. Given bursts begin with the jobs. Random bursts begin earlier, so that on
/// average `warm_up` bursts come before the jobs.
///
/// # Errors
/// Returns an error if the settings contradict each other or the network, a host does not exist or
/// has two ranks, a time exceeds 46 days, or `progress` stopped the simulation.
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
