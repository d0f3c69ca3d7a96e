//! Collectives over light paths that may be blocked. Times where nothing is blocked are those of
//! the paper's formulas, written out here; what bursts do to a path is Erlang's; what was delivered
//! is proved by the verifier.
//!
//! The statistical test runs with a fixed seed and accepts three standard deviations: of 370 seeds
//! of a right simulator about one would fail.

use std::slice;

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::families::Medium;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::burst::collective;
use opticoll::simulate::burst::collective::{
    BlockingPolicy, CollectiveOutcome, Congestion, Job, JobRun, POLICIES, delivered_schedule,
};
use opticoll::simulate::burst::{Burst, BurstError, BurstNetwork, BurstWork, erlang};
use opticoll::units::Time;
use opticoll::verify::{Violation, ViolationKind, verify};

const MS: u64 = 1_000_000_000;

fn schedule(kind: CollectiveKind, name: &str, ranks: u32) -> Schedule {
    let fabric = Fabric::parse(&format!("crossbar:ranks={ranks},rate=10Gb/s")).unwrap();
    let collective = Collective::new(kind, ranks).unwrap();
    let made = algorithms::build(&name.parse().unwrap(), collective, &fabric).unwrap();
    let plan = Plan::without_light(&fabric, made, name.into());
    assert_eq!(verify(&plan), []);
    plan.schedule
}

/// Returns a broadcast of one transfer, from rank 0 to rank 1.
fn message() -> Schedule {
    let mut schedule = Schedule::new(Collective::new(CollectiveKind::Broadcast, 2).unwrap());
    schedule.push(Transfer::copy(0, 0, 1));
    schedule
}

fn job<'a>(schedule: &'a Schedule, places: &[u32], size: &str) -> Job<'a> {
    Job {
        schedule,
        places: places.to_vec(),
        size: size.parse().unwrap(),
    }
}

/// Settings of lightpaths and of bursts, such as `ports=2 offered_load=0.5`.
fn run(
    network: &str,
    jobs: &[Job<'_>],
    work: &BurstWork,
    text: &str,
    threads: usize,
) -> Result<CollectiveOutcome, BurstError> {
    let words = text.split_whitespace();
    let pairs = words.map(|word| word.split_once('=').unwrap());
    let (congestion, settings) = Congestion::from_texts(pairs)?;
    let network = BurstNetwork::of(&Medium::parse(network)?)?;
    collective::simulate(
        &network,
        jobs,
        work,
        &settings,
        &congestion,
        threads,
        |_| true,
    )
}

fn alone(network: &str, jobs: &[Job<'_>], text: &str) -> Vec<JobRun> {
    let none = BurstWork::Given(Vec::new());
    let text = format!("{text} replications=1");
    let mut outcome = run(network, jobs, &none, &text, 1).unwrap();
    outcome.replications.remove(0).jobs
}

/// Returns the violations of the transfers that were delivered, in the order in which they ended.
fn proved(job: &Job<'_>, run: &JobRun) -> Vec<Violation> {
    let ranks = job.schedule.collective.ranks();
    let fabric = Fabric::parse(&format!("crossbar:ranks={ranks},rate=10Gb/s")).unwrap();
    let schedule = delivered_schedule(job.schedule, &run.delivered);
    verify(&Plan::without_light(&fabric, schedule, "executed".into()))
}

#[test]
fn without_refusals_times_are_those_of_the_formulas() {
    let (a, g, block) = (MS / 10, 10 * MS, 1_000u64);
    // At 10 Gb/s a byte takes 800 ps.
    let sent = |bytes: u64| 800 * bytes;
    for p in 2..=16u64 {
        let rounds = u64::from(p.next_power_of_two().ilog2());
        for k in 1..=6u64 {
            let ring_parts = match (k, p) {
                (1, 3..) => 2 + p % 2,
                _ => 1,
            };
            let ring_set_ups = match (k, p) {
                (1, 3..) => ring_parts * (p - 1),
                _ => 1,
            };
            let cases = [
                (
                    CollectiveKind::Broadcast,
                    "linear",
                    (p - 1) * (a + sent(block)) + (p - 1).div_ceil(k) * g,
                ),
                (
                    CollectiveKind::AllGather,
                    "ring",
                    ring_parts * (p - 1) * (a + sent(block)) + ring_set_ups * g,
                ),
                (
                    CollectiveKind::AllGather,
                    "recursive_doubling",
                    rounds * a + (p - 1) * sent(block) + rounds.div_ceil(k) * g,
                ),
                (
                    CollectiveKind::Broadcast,
                    "binomial",
                    rounds * (a + sent(block)) + rounds.div_ceil(k) * g,
                ),
            ];
            for (kind, name, expected) in cases {
                if name == "recursive_doubling" && !p.is_power_of_two() {
                    continue;
                }
                let made = schedule(kind, name, p as u32);
                let places: Vec<u32> = (0..p as u32).rev().collect();
                let job = job(&made, &places, "1000B");
                let network = format!("wdm_torus:dims={p},wavelengths=64,rate=10Gb/s,latency=0s");
                for policy in POLICIES {
                    let text = format!("ports={k} congestion={}", policy.name);
                    let run = &alone(&network, slice::from_ref(&job), &text)[0];
                    let case = format!("{name}, {p} ranks, {text}");
                    assert_eq!(run.time, Some(Time::from_ps(expected)), "{case}");
                    assert_eq!((run.blocked, run.waited), (0, Time::ZERO), "{case}");
                    assert_eq!(proved(&job, run), [], "{case}");
                }
            }
        }
    }
}

#[test]
fn propagation_of_the_route_adds_to_every_message() {
    let made = message();
    // Two links of 1 ms: 10 ms for the path, 2 ms, 0.1 ms and a microsecond of light for 1250
    // bytes.
    let network = "wdm_torus:dims=5,wavelengths=1,rate=10Gb/s,latency=1ms";
    let run = &alone(network, &[job(&made, &[0, 2], "1250B")], "")[0];
    assert_eq!(run.time, Some(Time::from_ps(12 * MS + MS / 10 + MS / 1000)));
}

const PAIR: &str = "wdm_graph:ranks=2,links=0-1,hosts=2,wavelengths=1,rate=10Gb/s,latency=0s";

#[test]
fn a_refused_path_is_asked_for_after_waits_that_double_up_to_the_longest() {
    let made = message();
    let jobs = [job(&made, &[0, 2], "250MB"), job(&made, &[1, 3], "1250B")];
    for policy in POLICIES {
        for seed in 0..20 {
            let text = format!(
                "congestion={} back_off=8ms max_back_off=30ms latency=0s seed={seed}",
                policy.name
            );
            let runs = alone(PAIR, &jobs, &text);
            // 200 ms of light, and 10 ms for its path.
            let first = Time::from_ps(210 * MS);
            assert_eq!((runs[0].time, runs[0].blocked), (Some(first), 0));
            let waited = runs[1].waited.ps();
            let own = 10 * MS + MS / 1000;
            assert_eq!(runs[1].time, Some(Time::from_ps(waited + own)));
            // Means of 8, 16, 30, 30, ... ms; each wait is half to one and a half times that.
            let means = [8 * MS, 16 * MS]
                .into_iter()
                .chain(std::iter::repeat(30 * MS));
            let means: Vec<u64> = means.take(runs[1].blocked as usize).collect();
            let sum: u64 = means.iter().sum();
            assert!((sum / 2..=3 * sum / 2).contains(&waited), "{waited} {sum}");
            // It was blocked until the last wait, which ended after the first job.
            assert!(waited >= first.ps() && waited < first.ps() + 45 * MS);
        }
    }
}

#[test]
fn whoever_is_refused_too_often_fails_by_name_and_holds_nothing() {
    let made = message();
    let network = "wdm_graph:ranks=2,links=0-1,hosts=3,wavelengths=1,rate=10Gb/s,latency=0s";
    for policy in [
        BlockingPolicy::AllOrNothing,
        BlockingPolicy::Retry,
        BlockingPolicy::Degrade,
    ] {
        let name = POLICIES
            .iter()
            .find(|one| one.policy == policy)
            .unwrap()
            .name;
        for retries in [0, 1, 5] {
            // The second goes the other way, where the fibre is free; the third does not.
            let ends = [([0, 3], "1TB"), ([4, 1], "1KB"), ([2, 5], "1KB")];
            let jobs = ends.map(|(places, size)| job(&made, &places, size));
            let runs = alone(
                network,
                &jobs,
                &format!("congestion={name} retries={retries}"),
            );
            assert!(runs[0].time.is_some() && runs[1].time.is_some());
            let failure = runs[2].failure.unwrap();
            assert_eq!(failure.hosts, (2, 5), "{name}");
            assert_eq!((failure.step, failure.tries), (0, retries + 1), "{name}");
            assert_eq!((runs[2].time, runs[2].delivered.len()), (None, 0));
            let kinds: Vec<ViolationKind> = proved(&jobs[2], &runs[2])
                .iter()
                .map(|one| one.kind)
                .collect();
            assert_eq!(kinds, [ViolationKind::Missing]);
        }
    }
}

#[test]
fn bursts_and_paths_take_wavelengths_from_each_other() {
    let made = message();
    let network = "wdm_graph:ranks=2,links=0-1,hosts=3,wavelengths=1,rate=10Gb/s,latency=0s";
    // The path is held for 10 ms and 8 ms of light; the second collective stays within its node.
    let jobs = [job(&made, &[0, 3], "10MB"), job(&made, &[1, 2], "1GB")];
    let burst = |microseconds: u64, source, destination| Burst {
        time: Time::from_ps(microseconds * 1_000_000),
        source,
        destination,
        length: Time::from_ps(MS),
    };
    let work = BurstWork::Given(vec![
        burst(0, 1, 4),
        burst(17_999, 2, 4),
        burst(17_999, 4, 2),
        burst(18_000, 1, 4),
    ]);
    for signalling in ["two_way", "jet", "jit"] {
        let text = format!("replications=1 latency=0s source=poisson signalling={signalling}");
        let outcome = run(network, &jobs, &work, &text, 1).unwrap();
        let run = &outcome.replications[0];
        assert_eq!(run.jobs[0].time, Some(Time::from_ps(18 * MS)));
        // Two come while it is held, one goes the other way, one comes when it has just been
        // released.
        assert_eq!(
            (run.bursts.offered, run.bursts.lost),
            (4, 2),
            "{signalling}"
        );
    }
}

#[test]
fn a_burst_announced_ahead_keeps_its_wavelength() {
    // Announced at 1 us, it comes at 40.001 ms and takes 1 ms; a path has no known end.
    let work = BurstWork::Given(vec![Burst {
        time: Time::from_ps(1_000_000),
        source: 1,
        destination: 3,
        length: Time::from_ps(MS),
    }]);
    let network = "wdm_graph:ranks=2,links=0-1,hosts=2,wavelengths=1,rate=10Gb/s,latency=0s";
    let text = "replications=1 source=poisson signalling=jet offset=40ms back_off=1ms \
                max_back_off=1ms retries=100 latency=0s";
    // Within its node for 10.8 ms, then as long over the link.
    let mut schedule = Schedule::new(Collective::new(CollectiveKind::Broadcast, 3).unwrap());
    schedule.push(Transfer::copy(0, 0, 1));
    schedule.begin_step();
    schedule.push(Transfer::copy(0, 0, 2));
    let outcome = run(
        network,
        &[job(&schedule, &[0, 1, 2], "1MB")],
        &work,
        text,
        1,
    )
    .unwrap();
    let run = &outcome.replications[0];
    assert_eq!((run.bursts.offered, run.bursts.lost), (1, 0));
    // The rank requests the link from 10.8 ms on, and gets it when the burst has passed, at 41.001
    // ms.
    let begun = Time::from_ps(run.jobs[0].time.unwrap().ps() - 10_800 * 1_000_000);
    assert!(
        (41_001 * 1_000_000..42_501 * 1_000_000).contains(&begun.ps()),
        "{begun}"
    );
    assert!(run.jobs[0].blocked > 15);
}

#[test]
fn phases_that_take_no_time_leave_nothing_behind() {
    let barrier = schedule(CollectiveKind::Barrier, "dissemination", 4);
    let network = "wdm_graph:ranks=4,links=0-1+1-2+2-3,wavelengths=1,rate=10Gb/s,latency=0s";
    for signalling in ["jet", "two_way"] {
        for converters in ["none", "1"] {
            let text = format!(
                "signalling={signalling} converters={converters} latency=0s setup=0s \
                 teardown=0s congestion=degrade"
            );
            let run = &alone(network, &[job(&barrier, &[0, 1, 2, 3], "1B")], &text)[0];
            // What waits has met its own other paths, and all are free again after their phase.
            assert_eq!(run.time, Some(run.waited), "{text}");
        }
    }
}

#[test]
fn a_first_request_is_refused_as_often_as_erlang_says() {
    let made = message();
    // Four Erlang of Poisson bursts on five wavelengths each way, seen at a random instant.
    let network = "wdm_graph:ranks=2,links=0-1,hosts=5,wavelengths=5,rate=10Gb/s,latency=0s";
    let text = "source=poisson offered_load=0.8 destinations=other_nodes retries=0 \
                replications=1000 \
                warm_up=2000";
    let job = job(&made, &[0, 5], "1KB");
    let outcome = run(network, &[job], &BurstWork::Random, text, 2).unwrap();
    let blocked = erlang::erlang_b(4.0, 5);
    let deviation = (blocked * (1.0 - blocked) / 1000.0).sqrt();
    let share = f64::from(outcome.failed) / 1000.0;
    assert!(
        (share - blocked).abs() < 3.0 * deviation,
        "{share}, {blocked}"
    );
}

const LADDER: &str = "wdm_ladder:rungs=5,hosts=2,wavelengths=5,rate=10Gb/s,latency=0s";

#[test]
fn every_collective_ends_with_the_right_data_or_says_why_not() {
    let (mut ended, mut failed) = (0, 0);
    for (kind, name) in [
        (CollectiveKind::AllReduce, "ring"),
        (CollectiveKind::AllReduce, "recursive_doubling"),
        (CollectiveKind::AllReduce, "direct"),
        (CollectiveKind::AllGather, "bruck"),
        (CollectiveKind::AllToAll, "pairwise"),
        (CollectiveKind::Broadcast, "binomial"),
        (CollectiveKind::Barrier, "dissemination"),
    ] {
        let made = schedule(kind, name, 12);
        let places: Vec<u32> = (0..12).map(|rank| (7 * rank + 3) % 20).collect();
        let job = job(&made, &places, "1MB");
        for policy in POLICIES {
            for ports in [1, 2, 4] {
                let text = format!(
                    "congestion={} ports={ports} offered_load=0.7 size=1MB warm_up=2000 retries=8 \
                     replications=3 back_off=1ms max_back_off=20ms setup=1ms teardown=1ms",
                    policy.name
                );
                let outcome =
                    run(LADDER, slice::from_ref(&job), &BurstWork::Random, &text, 1).unwrap();
                for run in outcome.replications.iter().map(|run| &run.jobs[0]) {
                    check(&job, run, &format!("{kind} {name} {text}"));
                    match run.time {
                        Some(_) => ended += 1,
                        None => failed += 1,
                    }
                }
            }
        }
    }
    assert!(ended > 50 && failed > 10, "{ended} ended, {failed} failed");
}

/// Checks that either the whole schedule was delivered, step by step, or that a part was delivered
/// and a reason is given.
fn check(job: &Job<'_>, run: &JobRun, case: &str) {
    assert_eq!(run.time.is_some(), run.failure.is_none(), "{case}");
    let violations = proved(job, run);
    match run.failure {
        None => assert_eq!(violations, [], "{case}"),
        Some(failure) => {
            assert!(
                !violations.is_empty() && failure.tries == 9,
                "{case}: {failure:?}"
            );
            let missing = |one: &Violation| one.kind == ViolationKind::Missing;
            assert!(violations.iter().all(missing), "{case}: {violations:?}");
        }
    }
    let mut times = vec![None; job.schedule.len()];
    for one in &run.delivered {
        assert!(
            times[one.transfer as usize].is_none() && one.began < one.ended,
            "{case}"
        );
        times[one.transfer as usize] = Some((one.began, one.ended));
    }
    let mut before = Time::ZERO;
    for step in 0..job.schedule.steps() {
        let of_step = job
            .schedule
            .step(step)
            .filter_map(|transfer| times[transfer]);
        let of_step: Vec<(Time, Time)> = of_step.collect();
        assert!(of_step.iter().all(|(began, _)| *began >= before), "{case}");
        before = of_step
            .iter()
            .map(|(_, ended)| *ended)
            .max()
            .unwrap_or(before);
    }
    assert!(run.time.is_none_or(|time| time >= before), "{case}");
}

#[test]
fn a_phase_that_does_not_fit_is_cut_by_degrading_and_named_otherwise() {
    // In a row of four nodes, 0 and 2 exchange blocks over a link that 1 and 3 need as well, and
    // then neighbours do.
    let network = "wdm_graph:ranks=4,links=0-1+1-2+2-3,wavelengths=1,rate=10Gb/s,latency=0s";
    let made = schedule(CollectiveKind::AllGather, "recursive_doubling", 4);
    let job = job(&made, &[0, 2, 1, 3], "1KB");
    for policy in POLICIES {
        let text = format!("congestion={} retries=4 back_off=1us", policy.name);
        let run = &alone(network, slice::from_ref(&job), &text)[0];
        if policy.policy == BlockingPolicy::Degrade {
            assert_eq!((run.failure, run.degraded), (None, 1));
            assert_eq!(proved(&job, run), []);
            // Three blocked requests, and the first step's exchanges one after the other.
            assert_eq!((run.phases, run.blocked), (3, 3));
            let light = 3 * (10 * MS + MS / 10) + 2 * 800_000 + 1_600_000;
            assert_eq!(run.time.unwrap().ps() - run.waited.ps(), light);
        } else {
            let failure = run.failure.unwrap();
            assert_eq!((failure.step, failure.tries), (0, 5), "{}", policy.name);
            assert_eq!(failure.hosts, (1, 3), "{}", policy.name);
        }
    }
}

#[test]
fn collectives_at_once_block_each_other_path_by_path_and_take_turns_otherwise() {
    let network = "wdm_ladder:rungs=4,hosts=4,wavelengths=3,rate=10Gb/s,latency=0s";
    let made = schedule(CollectiveKind::AllGather, "recursive_doubling", 8);
    // Four collectives, each with a rank at every node.
    let places = |copy: u32| (0..8).map(|rank| 4 * rank + copy).collect::<Vec<u32>>();
    let jobs: Vec<Job<'_>> = (0..4)
        .map(|copy| job(&made, &places(copy), "1MB"))
        .collect();
    let none = BurstWork::Given(Vec::new());
    let of = |jobs: &[Job<'_>], policy: &str| {
        let text = format!("congestion={policy} ports=2 replications=10");
        run(network, jobs, &none, &text, 1).unwrap()
    };
    // Each collective alone has enough wavelengths, under any policy.
    for policy in POLICIES {
        assert_eq!(of(&jobs[..1], policy.name).failed, 0, "{}", policy.name);
    }
    assert_eq!(of(&jobs, "retry").failed, 10);
    for policy in ["all_or_nothing", "degrade"] {
        let outcome = of(&jobs, policy);
        assert_eq!(outcome.failed, 0, "{policy}");
        let ended = outcome
            .replications
            .iter()
            .flat_map(|run| jobs.iter().zip(&run.jobs));
        ended.for_each(|(job, run)| assert_eq!(proved(job, run), [], "{policy}"));
    }
}

#[test]
fn runs_repeat_with_their_seed_on_any_number_of_threads() {
    let made = schedule(CollectiveKind::AllReduce, "ring", 12);
    let places: Vec<u32> = (0..12).collect();
    let job = [job(&made, &places, "1MB")];
    let text = |seed| {
        format!(
            "offered_load=0.6 size=1MB warm_up=1000 replications=5 ports=2 back_off=1ms seed={seed}"
        )
    };
    let of = |seed, threads| run(LADDER, &job, &BurstWork::Random, &text(seed), threads).unwrap();
    let first = of(1, 1);
    assert_eq!(first, of(1, 2));
    assert_eq!(first, of(1, 7));
    assert_ne!(first, of(2, 1));
    let different = first.replications.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(different, "replications differ");
}

#[test]
fn the_mean_has_students_interval() {
    let made = message();
    let network = "wdm_graph:ranks=2,links=0-1,hosts=5,wavelengths=5,rate=10Gb/s,latency=0s";
    let text = "offered_load=0.8 destinations=other_nodes replications=5 warm_up=1000";
    let outcome = run(
        network,
        &[job(&made, &[0, 5], "1KB")],
        &BurstWork::Random,
        text,
        1,
    )
    .unwrap();
    let times: Vec<f64> = outcome
        .replications
        .iter()
        .map(|run| run.time.unwrap().seconds())
        .collect();
    let mean = times.iter().sum::<f64>() / 5.0;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    // Student's t with four degrees of freedom.
    let half = 2.7764 * (squares / 4.0 / 5.0).sqrt();
    let (low, high) = (outcome.low_seconds.unwrap(), outcome.high_seconds.unwrap());
    assert!((outcome.mean_seconds.unwrap() - mean).abs() < 1e-12);
    let close = |got: f64, expected: f64| (got - expected).abs() < 1e-4 * half;
    assert!(half > 0.0 && close(low, mean - half) && close(high, mean + half));
}

#[test]
fn what_does_not_fit_is_refused() {
    let made = message();
    let fits = job(&made, &[0, 2], "1KB");
    let cases: &[(&[Job<'_>], &str, &str)] = &[
        (&[job(&made, &[0, 4], "1KB")], "", "no host 4"),
        (&[job(&made, &[0, 0], "1KB")], "", "two ranks"),
        (&[fits.clone(), fits.clone()], "", "two ranks"),
        (&[job(&made, &[0], "1KB")], "", "2 ranks and 1 hosts"),
        (&[job(&made, &[0, 2], "9000TiB")], "", "46 simulated days"),
        (slice::from_ref(&fits), "ports=0", "whole number from 1"),
        (slice::from_ref(&fits), "back_off=0s", "without a wait"),
        (
            slice::from_ref(&fits),
            "max_back_off=1us",
            "less than back_off",
        ),
        (
            slice::from_ref(&fits),
            "congestion=retri",
            "did you mean `retry`",
        ),
        (slice::from_ref(&fits), "bursts=7", "leave it out"),
        (slice::from_ref(&fits), "portz=7", "did you mean `ports`"),
        (slice::from_ref(&fits), "offered_load=2", "below 1"),
    ];
    for (jobs, text, expected) in cases {
        let error = run(PAIR, jobs, &BurstWork::Random, text, 1)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let stopped = {
        let network = BurstNetwork::of(&Medium::parse(PAIR).unwrap()).unwrap();
        let (congestion, settings) = Congestion::from_texts([]).unwrap();
        let none = BurstWork::Given(Vec::new());
        collective::simulate(&network, &[fits], &none, &settings, &congestion, 1, |_| {
            false
        })
    };
    assert!(matches!(stopped, Err(BurstError::Stopped { .. })));
}
