//! Collectives over lightpaths that the network may refuse.
//!
//! # The model
//!
//! **Lightpaths.** A *job* is a schedule whose ranks sit at hosts. Two hosts that have anything to
//! send to each other need a lightpath: a route and a wavelength on its links (with converters, one for each
//! link), in each direction in which something is sent. It is asked for as with two-way signalling, at
//! one instant, by the settings' routing, assignment and converters, and it is held, without a known end,
//! until it is released. Hosts of one node need no wavelength, but a port and the same times. The
//! bursts of the settings' source and the paths of all jobs take wavelengths from each other;
//! transmitters and receivers of bursts are none of a job's, which has ports of its own. At one instant a job
//! asks before a burst does.
//!
//! **Phases.** With k ports a host holds lightpaths to at most k others. Steps that follow one
//! another are a *phase* as long as no host needs more; a step that needs more by itself is cut (see
//! `phases`). The paths of a phase take `establish` to be set up, when all are granted; then its steps
//! are carried out, each when the one before has ended everywhere, a message of m bytes in `latency`, the
//! propagation of its route and m bytes at the rate; and `release` passes until the wavelengths are free
//! again. Where nothing is blocked, a job with R rounds in P phases takes
//!
//! P (establish + release) + sum over rounds of (latency + the longest of its messages),
//!
//! which is the time of Matsuoka, Takizawa, Nakada, Koga and Takada (MPI Collective Communication over OBS Grid)
//! for k ports where theirs is stated.
//!
//! **Refusals.** What follows one is a [`Congestion`]:
//!
//! | policy | asked for | after the i-th blocking | gives up |
//! |---|---|---|---|
//! | `retry` | path by path; those granted are held | that path alone waits and is asked for again | after so many retries of one path |
//! | `all_or_nothing` | all paths of a phase or none | the phase waits, holding nothing | after so many retries of one phase |
//! | `degrade` | the same | the same; after `degrade_after` blocked requests the phase is cut in parts of fewer ports, then of half as many paths, down to a single path | after so many retries of a single path |
//!
//! The wait is min(longest_back_off, back_off 2^(i-1)) U with U uniform in [1/2, 3/2), drawn for each wait.
//! A job that gives up releases what it holds and is over; the outcome names the hosts, the step and
//! the number of tries. Paths of a phase are asked for in the order of their hosts (the lower, then the
//! higher), whatever job or schedule they belong to.
//!
//! # Nothing waits for ever
//!
//! *All or nothing.* A job holds lightpaths only from the instant at which it has all those of its phase. From
//! then on it waits for nobody: its phase ends at a time that is known. A waiting job holds nothing. So no
//! job waits for one that waits: there is no circular wait, whatever the order in which jobs ask. Whenever jobs are
//! left, one of them is in its phase, and ends it; or nobody holds anything but passing bursts, and then
//! the next to ask is granted its phase, unless bursts are in its way or it does not fit into the empty network. Under
//! `degrade` the smallest phase is one lightpath, which fits as soon as its route is free. A job thus ends, or
//! is blocked more often than it may retry.
//!
//! *Path by path* jobs hold and wait: two of them may each hold what the other lacks, and so may
//! the paths of one phase. They end all the same, since retries are counted, but then they fail. The tests go through
//! all orders in which small jobs may ask, and find such states for `retry` and none for the others.
//!
//! # Nothing is lost
//!
//! A transfer is delivered when its message has ended, and [`executed`] makes a schedule of those that
//! were, in the order in which they ended, for the verifier.
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
//! let outcome = collective::simulate(&network, &[job], &no_bursts, &settings, &congestion, 1, |_| true)?;
//! // 10 ms for the path, 0.1 ms of latency, 8 Mb at 10 Gb/s.
//! assert_eq!(outcome.mean_seconds, Some(0.0109));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
#[cfg(test)]
mod interleavings;
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

pub use outcome::{CollectiveOutcome, Delivered, Failure, JobRun, Replication, executed};
pub use requests::{OnRequest, RequestUse};
pub use settings::{BlockingPolicy, Congestion, POLICIES, SETTINGS};

/// A collective to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<'a> {
    /// What moves between its ranks.
    pub schedule: &'a Schedule,
    /// The host of each rank, all different.
    pub places: Vec<u32>,
    /// The collective's size.
    pub size: Bytes,
}

/// Carries out jobs that begin together, in each replication of the settings, on so many threads; `progress`
/// is told how many replications have ended, and says whether to go on. The outcome does not
/// depend on the number of threads. Of the settings, those that say how many bursts are measured have
/// no effect: bursts go on until the last job has ended. Given bursts begin with the jobs, random ones
/// so much earlier that on average `warm_up` of them come before.
///
/// # Errors
/// Settings that contradict each other or the network, hosts that do not exist or that two ranks
/// share, times beyond 46 days, or a caller who wants no more.
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
        for run in interrupt::side_by_side(begun..end, carry_out) {
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
