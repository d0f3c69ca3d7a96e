//! Replications that run in parallel, in rounds, until enough bursts are measured.

use std::num::NonZeroUsize;

use super::engine::BurstEngine;
use super::interval::interval;
use super::network::BurstNetwork;
use super::outcome::{BurstLinkUse, BurstOutcome, HopShare, Moment, PairShare, Share, Tally};
use super::settings::{BurstSettings, BurstSource, Destinations};
use super::{BurstError, BurstWork};
use opticoll_base::interrupt;
use opticoll_base::units::Time;

/// Maximum number of rounds of a simulation. In each round, a replication sends at least
/// `MIN_ROUND_BURSTS` bursts, unless there would then be fewer than `MIN_ROUNDS` rounds.
const MAX_ROUNDS: u64 = 64;
const MIN_ROUND_BURSTS: u64 = 4096;
const MIN_ROUNDS: u64 = 8;

/// Number of bursts per host before the measurement. The effect of the empty queue at the start
/// decays with a time constant of 190 service times (Poisson arrivals, constant service time, load
/// 0.9). The warm-up lasts several of these time constants.
pub(super) const WARM_UP_BURSTS: u64 = 1000;

/// Maximum simulated time in picoseconds: 46 days, well below 2^64 picoseconds.
pub(super) const MAX_TIME_PS: f64 = 4e18;

/// Progress of a burst simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstProgress {
    /// Number of measured bursts.
    pub bursts: u64,
    /// Number of lost bursts among the measured bursts.
    pub lost: u64,
    /// Maximum number of measured bursts.
    pub target: u64,
}

/// Simulates bursts on at most `threads` threads. Calls `progress` after each round, and stops if
/// `progress` returns false. The outcome does not depend on the number of threads.
///
/// # Errors
/// Returns an error if the settings are inconsistent or do not apply to the network, or if
/// `progress` returned false.
pub fn simulate(
    network: &BurstNetwork,
    work: &BurstWork,
    settings: &BurstSettings,
    threads: usize,
    mut progress: impl FnMut(BurstProgress) -> bool,
) -> Result<BurstOutcome, BurstError> {
    check(network, work, settings)?;
    let network = &*network.with_routes(settings.routes);
    let mean_length = network.rate().transmission(settings.size)?.ps();
    let given = match work {
        BurstWork::Given(bursts) => Some(bursts.len() as u64),
        BurstWork::Random => None,
    };
    let bursts = given.unwrap_or(settings.bursts);
    let count = match given {
        Some(_) => 1,
        None => u64::from(settings.replications).min(bursts),
    };
    let mut engines: Vec<BurstEngine<'_>> = (0..count as u32)
        .map(|number| BurstEngine::new(network, settings, work, mean_length, number))
        .collect();
    if given.is_none() {
        let default = WARM_UP_BURSTS * u64::from(network.hosts());
        let warm_up = settings.warm_up.unwrap_or(default);
        run_all(&mut engines, threads, |_| warm_up);
        engines.iter_mut().for_each(BurstEngine::begin_measuring);
    }
    let rounds = (bursts / count / MIN_ROUND_BURSTS).clamp(MIN_ROUNDS, MAX_ROUNDS);
    let mut counters = RoundCounters::default();
    for round in 0..rounds {
        run_all(&mut engines, threads, |number| {
            let bursts_of_replication = part(bursts, count, number);
            part(bursts_of_replication, rounds, round)
        });
        counters.add_round(&engines);
        let total = counters.total();
        let enough = settings.relative_error.is_some_and(|error| {
            let (low, high) = interval(&counters.batches);
            round + 1 >= MIN_ROUNDS
                && total.lost > 0
                && high - low <= 2.0 * error * total.lost as f64 / total.offered as f64
        });
        let proceed = progress(BurstProgress {
            bursts: total.offered,
            lost: total.lost,
            target: bursts,
        });
        if !proceed {
            return Err(BurstError::Stopped {
                bursts: total.offered,
            });
        }
        if enough {
            break;
        }
    }
    Ok(counters.outcome(network, engines))
}

/// Checks the network, bursts and settings of a simulation.
///
/// # Errors
/// Returns an error if the settings are inconsistent or do not apply to the network.
pub fn check(
    network: &BurstNetwork,
    work: &BurstWork,
    settings: &BurstSettings,
) -> Result<(), BurstError> {
    settings.check()?;
    let mean_length = network.rate().transmission(settings.size)?.ps();
    check_times(network, work, settings, mean_length)
}

/// Divides `whole` into `parts` almost equal parts and returns the size of the part with index
/// `number`.
fn part(whole: u64, parts: u64, number: u64) -> u64 {
    whole / parts + u64::from(number < whole % parts)
}

/// Runs each engine for `bursts(i)` more bursts, where i is the index of the engine.
fn run_all(engines: &mut [BurstEngine<'_>], threads: usize, bursts: impl Fn(u64) -> u64 + Sync) {
    let threads = NonZeroUsize::new(threads).map_or(1, NonZeroUsize::get);
    let share = engines.len().div_ceil(threads).max(1);
    let groups = engines.chunks_mut(share).enumerate();
    interrupt::parallel_map(groups, |(group, engines)| {
        for (number, engine) in ((group * share) as u64..).zip(engines) {
            engine.run(bursts(number));
        }
    });
}

/// Counters of all rounds so far.
#[derive(Default)]
struct RoundCounters {
    /// Number of bursts and of lost bursts of each replication at the end of the last round,
    /// indexed by replication.
    last: Vec<Share>,
    /// Number of bursts and number of lost bursts, for each replication and round.
    batches: Vec<(u64, u64)>,
    moments: Vec<Moment>,
}

impl RoundCounters {
    fn add_round(&mut self, engines: &[BurstEngine<'_>]) {
        self.last.resize(engines.len(), Share::default());
        let mut round = Share::default();
        let mut ends: u128 = 0;
        for (engine, last) in engines.iter().zip(&mut self.last) {
            let total = engine.tally.total;
            let batch = (total.offered - last.offered, total.lost - last.lost);
            *last = total;
            if batch.0 > 0 {
                self.batches.push(batch);
            }
            round.offered += batch.0;
            round.lost += batch.1;
            ends += u128::from(engine.measured_ps());
        }
        self.moments.push(Moment {
            end: Time::from_ps((ends / engines.len().max(1) as u128) as u64),
            offered: round.offered,
            lost: round.lost,
        });
    }

    fn total(&self) -> Share {
        let mut total = Share::default();
        for share in &self.last {
            total.offered += share.offered;
            total.lost += share.lost;
        }
        total
    }

    fn outcome(self, network: &BurstNetwork, engines: Vec<BurstEngine<'_>>) -> BurstOutcome {
        let mut tally = Tally::new(network.links().len(), network.nodes(), network.max_hops());
        let mut measured: u128 = 0;
        for engine in &engines {
            tally.add(&engine.tally);
            measured += u128::from(engine.measured_ps());
        }
        let whole = (measured * u128::from(network.wavelengths())).max(1) as f64;
        let named = tally.links.iter().zip(network.links());
        let links = named.map(|((held, wasted, blocked), link)| BurstLinkUse {
            link: link.name.clone(),
            utilisation: *held as f64 / whole,
            wasted: *wasted as f64 / whole,
            blocked: *blocked,
        });
        let links = links.collect();
        let (loss_low, loss_high) = interval(&self.batches);
        let Share { offered, lost } = tally.total;
        let wait = tally.waited_ps / u128::from(tally.sent.max(1));
        let [lost_at_links, lost_at_converters, lost_at_receivers] = tally.causes;
        let nodes = network.nodes() as usize;
        let by_hops = tally.by_hops.iter().enumerate();
        let by_pair = tally.by_pair.iter().enumerate();
        BurstOutcome {
            network: network.specification().to_owned(),
            bursts: offered,
            lost,
            loss: lost as f64 / offered.max(1) as f64,
            loss_low,
            loss_high,
            by_hops: by_hops
                .map(|(links, &Share { offered, lost })| HopShare {
                    links,
                    offered,
                    lost,
                })
                .collect(),
            by_pair: by_pair
                .map(|(pair, &Share { offered, lost })| PairShare {
                    source: pair / nodes,
                    destination: pair % nodes,
                    offered,
                    lost,
                })
                .collect(),
            lost_at_links,
            lost_at_converters,
            lost_at_receivers,
            links,
            moments: self.moments,
            mean_wait: Time::from_ps(wait as u64),
            simulated_seconds: measured as f64 / 1e12,
            records: engines
                .into_iter()
                .next()
                .map_or(Vec::new(), |engine| engine.records),
        }
    }
}

/// Checks that no time can exceed [`MAX_TIME_PS`], and that the given bursts are valid.
fn check_times(
    network: &BurstNetwork,
    work: &BurstWork,
    settings: &BurstSettings,
    mean_length: u64,
) -> Result<(), BurstError> {
    let refuse = |setting, problem: &str| {
        Err(BurstError::Setting {
            setting,
            problem: problem.into(),
        })
    };
    if mean_length == 0 {
        return refuse("size", "a burst takes less than a picosecond at this rate");
    }
    if network.nodes() == 1 && settings.destinations == Destinations::OtherNodes {
        return refuse("destinations", "there is only one node: use everyone");
    }
    if settings.assembly.is_some() && u64::from(network.hosts()).pow(2) > 1 << 24 {
        return refuse("assembly", "at most 4096 hosts can assemble bursts");
    }
    let hops = network.max_hops() as f64 + 1.0;
    let slowest = network.links().iter().map(|link| link.latency_ps).max();
    let signalling = 3.0 * hops * (settings.processing.ps() as f64 + slowest.unwrap_or(0) as f64)
        + settings.switching.ps() as f64
        + settings.offset.ps() as f64;
    let BurstWork::Given(bursts) = work else {
        let hosts = f64::from(network.hosts());
        let each = mean_length as f64 / settings.offered_load;
        let warm_up = settings.warm_up.unwrap_or(0) as f64 + WARM_UP_BURSTS as f64 * hosts;
        let time = 2.0 * each * (settings.bursts as f64 + warm_up) / hosts;
        let waits = settings.assembly.and_then(|assembly| assembly.time_out);
        let waits = waits.map_or(0.0, |wait| wait.ps() as f64);
        return match time + 100.0 * mean_length as f64 + signalling + waits < MAX_TIME_PS {
            true => Ok(()),
            false => refuse(
                "bursts",
                "the bursts would take more than 46 simulated days; use shorter or fewer bursts",
            ),
        };
    };
    if settings.source == BurstSource::OnOff {
        return refuse(
            "source",
            "given bursts are not an on_off source: use transmitter or poisson",
        );
    }
    let mut sum = signalling;
    for (number, burst) in bursts.iter().enumerate() {
        let refuse = |problem: String| {
            Err(BurstError::Burst {
                burst: number,
                problem,
            })
        };
        let hosts = network.hosts();
        if burst.source.max(burst.destination) >= hosts {
            return refuse(format!("there are {hosts} hosts, from 0"));
        }
        if burst.source == burst.destination {
            return refuse(format!("host {} sends to itself", burst.source));
        }
        if burst.length == Time::ZERO {
            return refuse("it has no length".into());
        }
        if number > 0 && burst.time < bursts[number - 1].time {
            return refuse("it starts before the previous burst".into());
        }
        sum += burst.length.ps() as f64 + signalling;
        if burst.time.ps() as f64 + sum > MAX_TIME_PS {
            return refuse("it may end later than 46 days".into());
        }
    }
    Ok(())
}
