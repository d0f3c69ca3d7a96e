//! Costs of a library of collectives in `bulk_synchronous`: times by hand from the formulas of
//! `library_cost`, and the time at peak rates as a bound.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::library::{LIBRARIES, Library, NUMBERS};
use opticoll::simulate;
use opticoll::simulate::bulk_synchronous::least_time;
use opticoll::simulate::library_cost::LibraryTime;
use opticoll::simulate::outcome::Outcome;
use opticoll::simulate::{SimulationError, Simulator, TimingModel};
use opticoll::units::{Bytes, Time};

use super::proved;

/// Record of H100 with round numbers: LL of 4.5 GB/s on each of 24 channels, Simple at 225 GB/s.
const ROUND: &str = "library=h100_sxm,launch=4us,ll_step=1us,ll_rate=0.24,ll_fan=3us,\
    simple_setup=5us,simple_step=2us,simple_rate=0.5,overlap=1,post=1us";

fn machine(options: &str) -> Fabric {
    Fabric::parse(&format!("gpu_servers:model=dgx_h100,{options}")).unwrap()
}

fn timed(
    collective: CollectiveKind,
    algorithm: &str,
    fabric: &Fabric,
    bytes: u64,
    protocol: &str,
) -> Result<Outcome, SimulationError> {
    let plan = proved(collective, algorithm, fabric);
    let method = TimingModel::from_settings([("protocol", protocol)]).unwrap();
    simulate::run(&plan, Bytes::new(bytes), &method)
}

fn micros(collective: CollectiveKind, fabric: &Fabric, bytes: u64, protocol: &str) -> f64 {
    let algorithm = match collective {
        CollectiveKind::AllToAll => "direct",
        _ => "ring",
    };
    let found = timed(collective, algorithm, fabric, bytes, protocol).unwrap();
    let parts = found.details.get::<LibraryTime>().unwrap();
    assert_eq!(parts.total().unwrap(), found.time);
    found.time.ps() as f64 / 1e6
}

fn assert_near(found: f64, expected: f64) {
    // Each message is rounded up to a picosecond.
    assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
}

/// A ring of 8 ranks takes 7 steps.
#[test]
fn a_ring_takes_its_launch_its_steps_and_a_copy() {
    let (box_of_8, gather) = (machine(ROUND), CollectiveKind::AllGather);
    // A channel of LL moves 512 bytes in 512 / 4500 us, and is the only one in use.
    let x: f64 = 512.0 / 4500.0;
    let expected = 4.0 + 7.0 * (1.0 + x * x).sqrt() + x / 2.0;
    assert_near(micros(gather, &box_of_8, 512, "ll"), expected);
    // Of 64 KiB, 16 channels move 4 KiB each.
    let x: f64 = 4096.0 / 4500.0;
    let fan = 3.0 * f64::ln(16.0) / f64::ln(24.0);
    let expected = 4.0 + fan + 7.0 * (1.0 + x * x).sqrt() + x / 2.0;
    assert_near(micros(gather, &box_of_8, 65_536, "ll"), expected);
    // 4.5 MB take 20 us by Simple, and their copy 10 us.
    assert_near(
        micros(gather, &box_of_8, 4_500_000, "simple"),
        4.0 + 5.0 + 7.0 * 22.0 + 10.0,
    );
    // By LL128 there are 128 bytes for 120 bytes of data, and a step takes 19 / 6 us.
    let step = 19.0 / 6.0 + 20.0 * 128.0 / 120.0;
    assert_near(
        micros(gather, &box_of_8, 4_500_000, "ll128"),
        4.0 + 7.0 * step + 10.0,
    );
    // If latency and transfer overlap, they take the root of the sum of their squares.
    let overlapping = machine(&ROUND.replace("overlap=1", "overlap=2"));
    let expected = 4.0 + 5.0 + 7.0 * f64::hypot(2.0, 20.0) + 10.0;
    assert_near(micros(gather, &overlapping, 4_500_000, "simple"), expected);
    // An all_reduce takes 14 steps of an eighth.
    let reduce = CollectiveKind::AllReduce;
    assert_near(
        micros(reduce, &box_of_8, 36_000_000, "simple"),
        4.0 + 5.0 + 14.0 * 22.0 + 10.0,
    );
}

/// Every rank sends a message of a MB to 7 others. The link of a rank reaches 65 % of 450 GB/s. The
/// 32 channels also carry a rank's own block, at 32 / 24 of the rate of the 24 channels of a ring.
#[test]
fn messages_point_to_point_are_posted_and_share_the_link() {
    let (box_of_8, exchange) = (machine(ROUND), CollectiveKind::AllToAll);
    let expected = 4.0 + 5.0 + 3.0 + 1.0 + 8e6 / (225e3 * 32.0 / 24.0);
    assert_near(micros(exchange, &box_of_8, 8_000_000, "simple"), expected);
    let fast = machine(&ROUND.replace("simple_rate=0.5", "simple_rate=0.9"));
    let expected = 4.0 + 5.0 + 3.0 + 1.0 + 7e6 / (0.65 * 450e3);
    assert_near(micros(exchange, &fast, 8_000_000, "simple"), expected);
    // By LL each message has one channel.
    assert_near(
        micros(exchange, &box_of_8, 8 * 450, "ll"),
        4.0 + 3.0 + 1.0 + 0.1,
    );
    let failed = timed(exchange, "direct", &box_of_8, 1, "ll128").unwrap_err();
    assert!(failed.to_string().contains("point to point"), "{failed}");
}

/// A message between two servers takes NCCL's latency of a network, 14 us by Simple, and its bytes
/// take the time of the NIC. By LL, the latency is 2.7 us and half of the bytes are data.
#[test]
fn a_message_between_servers_has_the_latency_of_a_network() {
    let two = machine(&format!("boxes=2,members=0+8,{ROUND}"));
    let found = micros(CollectiveKind::AllGather, &two, 5_000_000, "ll");
    let copy = 0.5 * 5e6 / (0.24 * 450e3);
    assert_near(found, 4.0 + 3.0 + f64::hypot(2.7, 5e6 / 25e3) + copy);
    let found = micros(CollectiveKind::AllGather, &two, 5_000_000, "simple");
    assert_near(found, 4.0 + 5.0 + 14.0 + 5e6 / 50e3 + 0.5 * 5e6 / 225e3);
}

/// Channels are blocks of threads of their own, so their messages are posted at the same time: the
/// 8 rings of two servers take 30 steps of 2.7 us. On two DGX A100, NCCL 2.16.5 measured 93.1 us
/// for 8 B by rings (NVIDIA/nccl, issue 812).
#[test]
fn rings_of_several_channels_post_at_the_same_time() {
    let time = |fabric: &Fabric| {
        let kind = CollectiveKind::AllReduce;
        let found = timed(kind, "ring:channels=all", fabric, 8, "ll").unwrap();
        found.time.ps() as f64 / 1e6
    };
    let two = machine(&format!("boxes=2,{ROUND}"));
    // The bytes take less than a nanosecond.
    let found = time(&two) - (4.0 + 30.0 * 2.7);
    assert!((0.0..1e-3).contains(&found), "{found}");
    let a100 = time(&Fabric::parse("dgx_a100:boxes=2").unwrap());
    assert!((a100 / 93.1 - 1.0).abs() < 0.1, "{a100}");
}

/// NCCL's table: LL takes 6.6 + 0.6 S us and the bytes at 141 GB/s, Simple 8.4 + 3.4 S and the
/// bytes at 360 GB/s, LL128 14 + 1.9 S and the bytes at 331.2 GB/s. For 2 ranks (S = 1), LL and
/// Simple are equal at 4.6 us / (1 / 141e3 - 1 / 360e3) of traffic, 1.066 MB.
#[test]
fn nccl_selects_by_its_table() {
    let pair = machine(&format!("members=0-1,{ROUND}"));
    let chosen = |bytes| {
        let gather = CollectiveKind::AllGather;
        let found = timed(gather, "ring", &pair, bytes, "nccl").unwrap();
        found
            .details
            .get::<LibraryTime>()
            .unwrap()
            .protocol
            .unwrap()
    };
    assert_eq!(chosen(1_060_000), "ll");
    assert_eq!(chosen(1_070_000), "simple");
}

#[test]
fn auto_takes_the_fastest_protocol() {
    let fabric = machine("boxes=2,library=h100_sxm");
    let (reduce, ring) = (CollectiveKind::AllReduce, "ring");
    for bytes in [1, 1 << 16, 1 << 20, 1 << 24, 1 << 28] {
        let by = |protocol| timed(reduce, ring, &fabric, bytes, protocol).unwrap().time;
        let fastest = ["ll", "ll128", "simple"].map(by).into_iter().min().unwrap();
        assert_eq!(by("auto"), fastest);
    }
}

/// A record only adds to the time at peak rates, so bounds on plans remain bounds.
#[test]
fn no_time_is_below_the_time_at_peak_rates() {
    let algorithms = [
        (CollectiveKind::AllReduce, "recursive_doubling"),
        (CollectiveKind::AllGather, "ring"),
        (CollectiveKind::AllGather, "direct:order=at_once"),
        (CollectiveKind::AllToAll, "direct"),
        (CollectiveKind::Broadcast, "binomial"),
        (CollectiveKind::Gather, "direct"),
    ];
    for library in LIBRARIES {
        let name = library.constants.name;
        // The most favourable numbers that a record may have.
        let best: Vec<String> = NUMBERS
            .iter()
            .filter(|number| library.constants.has(number))
            .map(|number| {
                let rate = number.option.name.ends_with("rate");
                let value = if rate { number.most } else { number.least };
                let value = if number.option.name == "overlap" {
                    2
                } else {
                    value
                };
                format!(",{}={}", number.option.name, number.text(value))
            })
            .collect();
        for options in [String::new(), best.concat()] {
            let model = if name == "l40s" {
                "l40s"
            } else {
                "dgx_a100,boxes=2"
            };
            let parse =
                |library| Fabric::parse(&format!("gpu_servers:model={model},library={library}"));
            let plain = parse("none".to_owned()).unwrap();
            let known = parse(format!("{name}{options}")).unwrap();
            for (collective, algorithm) in algorithms {
                for bytes in [0, 1, 4096, 1 << 18, 1 << 30] {
                    let method = TimingModel::from_settings([("simulator", "bulk_synchronous")]);
                    let plan = proved(collective, algorithm, &plain);
                    let peak = simulate::run(&plan, Bytes::new(bytes), &method.unwrap());
                    let found = timed(collective, algorithm, &known, bytes, "auto").unwrap();
                    assert!(
                        found.time >= peak.unwrap().time,
                        "{known} {algorithm} {bytes}"
                    );
                    let steps = plan.schedule.steps() as u64;
                    let least = least_time(known.network().unwrap(), steps, false);
                    assert!(found.time >= least, "{known} {algorithm} {bytes}");
                }
            }
        }
    }
}

#[test]
fn a_library_is_printed_with_the_numbers_that_differ() {
    let fabric = machine("library=h100_sxm,launch=4.48us,ll_rate=0.5");
    assert!(fabric.to_string().contains("library=h100_sxm"));
    assert!(fabric.to_string().contains("ll_rate=0.5"));
    assert_eq!(Fabric::parse(&fabric.to_string()).unwrap(), fabric);
    let recorded = Library::named("h100_sxm").unwrap();
    let launch = NUMBERS[0].text(NUMBERS[0].of(&recorded.costs));
    let same = machine(&format!("library=h100_sxm,launch={launch}"));
    assert_eq!(same, machine("library=h100_sxm"));
}

/// Every model with a record has its costs, unless the specification says otherwise. A printed
/// specification states both.
#[test]
fn models_have_their_own_library() {
    for (model, library) in [
        ("dgx_a100", Some("a100_sxm")),
        ("dgx_h100", Some("h100_sxm")),
        ("dgx_b200", Some("b200_sxm")),
        ("nvl72", Some("gb200")),
        ("l40s", Some("l40s")),
        ("dgx1", None),
        ("mi250", None),
    ] {
        let parse = |options: &str| Fabric::parse(&format!("{model}{options}")).unwrap();
        let (usual, without) = (parse(""), parse(":library=none"));
        let found = |fabric: &Fabric| {
            let library = fabric.network().unwrap().library();
            library.map(|library| library.constants.name)
        };
        assert_eq!((found(&usual), found(&without)), (library, None));
        assert_eq!(usual == without, library.is_none());
        for fabric in [usual, without] {
            assert_eq!(Fabric::parse(&fabric.to_string()).unwrap(), fabric);
        }
    }
}

/// A simulation stops if no protocol ends by the limit.
#[test]
fn the_time_limit_is_exact() {
    let fabric = machine("boxes=2");
    for (algorithm, protocol) in [("ring", "auto"), ("ring", "nccl"), ("nvls_rails", "auto")] {
        let plan = proved(CollectiveKind::AllReduce, algorithm, &fabric);
        let method = TimingModel::from_settings([("protocol", protocol)]).unwrap();
        let run = |limit| {
            let method = TimingModel {
                limit,
                ..method.clone()
            };
            simulate::run(&plan, Bytes::new(1 << 20), &method)
        };
        let outcome = run(None).unwrap();
        assert_eq!(run(Some(outcome.time)).unwrap(), outcome);
        let less = Time::from_ps(outcome.time.ps() - 1);
        assert!(matches!(run(Some(less)), Err(SimulationError::Stopped(_))));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for (options, said) in [
        ("library=h100", "must be none, a100_sxm"),
        (
            "library=none,launch=2us",
            "needs a record: give library=h100_sxm",
        ),
        (
            "library=a100_sxm,nvls_chunk=1us",
            "a100_sxm has no such cost",
        ),
        ("library=h100_sxm,ll_rate=1.5", "must be from 0.001 to 1"),
        ("library=h100_sxm,ll_rate=a half", "decimal number"),
    ] {
        let failed = Fabric::parse(&format!("gpu_servers:model=dgx_h100,{options}")).unwrap_err();
        assert!(failed.to_string().contains(said), "{failed}");
    }
    let failed = Fabric::parse("gpu_servers:model=mi250,launch=2us").unwrap_err();
    assert!(failed.to_string().contains("needs a record"), "{failed}");
    let plain = machine("library=none");
    let plan = proved(CollectiveKind::AllGather, "ring", &plain);
    let settings = [("simulator", "bulk_synchronous"), ("protocol", "ll")];
    let method = TimingModel::from_settings(settings).unwrap();
    let failed = simulate::run(&plan, Bytes::new(1), &method).unwrap_err();
    assert!(failed.to_string().contains("names no library"), "{failed}");
    let bridge = Fabric::parse("gpu_servers:model=l40s,library=l40s").unwrap();
    let failed = timed(CollectiveKind::AllGather, "ring", &bridge, 1, "ll128").unwrap_err();
    assert!(failed.to_string().contains("needs NVLink"), "{failed}");
}

/// Programs send single messages, which have no launch of a call: they run as flows.
#[test]
fn messages_of_programs_are_flows() {
    let (fabric, method) = (machine("library=h100_sxm"), TimingModel::default());
    assert_eq!(
        Simulator::selected(&fabric, &method).name,
        "bulk_synchronous"
    );
    assert_eq!(
        Simulator::selected_for_messages(&fabric, &method).name,
        "fluid"
    );
}
