//! Simulated times against the paper's formulas with their sums and roundings corrected, in integer
//! picoseconds, for every number of ranks from 2 to 64 and 1 to 6 ports.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Light;
use opticoll::plan::Relay;
use opticoll::simulate;
use opticoll::simulate::{SimulationError, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;

use super::proved;
use crate::port_formulas::{G, formula};
use crate::rows;

const CASES: [(CollectiveKind, &str); 10] = [
    (CollectiveKind::Broadcast, "linear"),
    (CollectiveKind::Scatter, "linear"),
    (CollectiveKind::Gather, "linear"),
    (CollectiveKind::Reduce, "linear"),
    (CollectiveKind::AllGather, "ring"),
    (CollectiveKind::AllGather, "recursive_doubling"),
    (CollectiveKind::AllReduce, "recursive_doubling"),
    (CollectiveKind::Barrier, "recursive_doubling"),
    (CollectiveKind::Broadcast, "binomial"),
    (CollectiveKind::Reduce, "binomial"),
];

#[test]
fn simulated_times_are_the_formulas() {
    let size = 1_000;
    for p in 2..=64 {
        for k in 1..=6 {
            let fabric = format!("lightpath_grid:ranks={p},ports={k}");
            for (kind, algorithm) in CASES {
                let case = format!("{kind} by {algorithm}, {p} ranks, {k} ports");
                let plan = proved(kind, algorithm, &fabric);
                let n = match kind {
                    CollectiveKind::AllGather => p * size,
                    _ => size,
                };
                let (sending, setups) = formula(kind, algorithm, p, k, n);
                let run = |settings: &[(&str, &str)]| {
                    let method = TimingModel::from_settings(settings.iter().copied()).unwrap();
                    simulate::run(&plan, Bytes::new(size), &method)
                };
                let found = run(&[]).unwrap();
                assert_eq!(found.time.ps(), sending + setups * G, "{case}");
                assert_eq!(found.reconfigurations, setups, "{case}");
                let ideal = run(&[("policy", "free")]).unwrap();
                assert_eq!(ideal.time.ps(), sending, "{case}, ideal");
            }
        }
    }
}

/// Among 64 ranks, an algorithm and bytes; microseconds where all paths are there, with 1, 2, 3, 4
/// ports.
const WORKED: &str = "
broadcast | linear | 1000 | 6804 | 636804 | - | - | 166804
broadcast | linear | 100000 | 56700 | 686700 | - | - | 216700
broadcast | linear | 1000000 | 510300 | 1140300 | - | - | 670300
broadcast | linear | 10000000 | 5046300 | 5676300 | - | - | 5206300
broadcast | binomial | 1000 | 648 | 60648 | 30648 | 20648 | 20648
broadcast | binomial | 100000 | 5400 | 65400 | 35400 | 25400 | 25400
broadcast | binomial | 1000000 | 48600 | 108600 | 78600 | 68600 | 68600
broadcast | binomial | 10000000 | 480600 | 540600 | 510600 | 500600 | 500600
all_gather | ring | 1000000 | 14175 | 1288350 | 24175 | 24175 | 24175
all_gather | ring | 10000000 | 85050 | 1430100 | 95050 | 95050 | 95050
all_gather | recursive_doubling | 1000000 | 8475 | 68475 | 38475 | 28475 | 28475
all_gather | recursive_doubling | 10000000 | 79350 | 139350 | 109350 | 99350 | 99350
";

#[test]
fn simulated_times_are_the_worked_values() {
    for [kind, algorithm, bytes, ideal, times @ ..] in rows::<8>(WORKED) {
        let (kind, bytes): (CollectiveKind, u64) = (kind.parse().unwrap(), bytes.parse().unwrap());
        let size = match kind {
            CollectiveKind::AllGather => bytes / 64,
            _ => bytes,
        };
        let with = |ports, policy| {
            let fabric = format!("lightpath_grid:ranks=64,ports={ports}");
            let plan = proved(kind, algorithm, &fabric);
            let method = TimingModel::from_settings([("policy", policy)]).unwrap();
            let outcome = simulate::run(&plan, Bytes::new(size), &method).unwrap();
            outcome.time.ps()
        };
        let microseconds = |text: &str| 1_000_000 * text.parse::<u64>().unwrap();
        assert_eq!(
            with(2, "free"),
            microseconds(ideal),
            "{algorithm}, {bytes} bytes"
        );
        for (ports, time) in (1..).zip(times).filter(|(_, time)| *time != "-") {
            let found = with(ports, "setup_teardown");
            assert_eq!(
                found,
                microseconds(time),
                "{algorithm}, {bytes} bytes, {ports} ports"
            );
        }
    }
}

/// The time of each message is rounded up to whole picoseconds on its own.
#[test]
fn every_message_is_rounded_up() {
    let fabric = "lightpath_grid:ranks=5,ports=2,latency=3us,rate=7Gb/s,setup=2ms,teardown=1ms";
    let plan = proved(CollectiveKind::AllGather, "ring", fabric);
    let message = (1_001u64 * 8 * 1_000).div_ceil(7);
    let outcome = simulate::run(&plan, Bytes::new(1_001), &TimingModel::default()).unwrap();
    assert_eq!(outcome.time.ps(), 4 * (3_000_000 + message) + 3_000_000_000);
}

/// A collective, its algorithm, ranks and ports; set-ups and releases paid with kept paths, with
/// warm.
const KEPT: &str = r"
# The ring is there from one time to the next.
all_gather | ring | 8 | 2 | 1 0 | 0 0
all_gather | ring | 9 | 5 | 1 0 | 0 0
# With one port the two halves of the ring take turns: only the first finds free ports.
all_gather | ring | 8 | 1 | 14 13 | 14 14
all_gather | ring | 9 | 1 | 24 23 | 24 24
# As many partners as ports, or fewer.
all_reduce | recursive_doubling | 16 | 4 | 1 0 | 0 0
all_reduce | recursive_doubling | 16 | 6 | 1 0 | 0 0
# More partners than ports, in turn: the one needed next is the one that went last.
all_reduce | recursive_doubling | 16 | 3 | 2 1 | 2 2
all_reduce | recursive_doubling | 16 | 2 | 2 1 | 2 2
all_reduce | recursive_doubling | 16 | 1 | 4 3 | 4 4
# Only the root has many partners.
broadcast | linear | 7 | 6 | 1 0 | 0 0
broadcast | linear | 7 | 4 | 2 1 | 2 2
";

/// A lightpath that stays up costs nothing the next time, unless other lightpaths have taken its
/// ports.
#[test]
fn kept_paths_save_what_the_ports_can_hold() {
    let per = |numbers: &str| -> u64 {
        let times = [7_000_000_000, 3_000_000_000];
        let numbers = numbers
            .split(' ')
            .map(|number| number.parse::<u64>().unwrap());
        numbers.zip(times).map(|(number, time)| number * time).sum()
    };
    for [kind, algorithm, p, k, kept, warm] in rows(KEPT) {
        let fabric = format!("lightpath_grid:ranks={p},ports={k},setup=7ms,teardown=3ms");
        let plan = proved(kind.parse().unwrap(), algorithm, &fabric);
        let time = |setting| {
            let method = TimingModel::from_settings([setting]).unwrap();
            simulate::run(&plan, Bytes::new(1_000), &method)
                .unwrap()
                .time
                .ps()
        };
        let sending = time(("policy", "free"));
        for (paths, paid) in [("kept", kept), ("warm", warm)] {
            let found = time(("paths", paths)) - sending;
            assert_eq!(
                found,
                per(paid),
                "{kind} by {algorithm} on {fabric}, {paths}"
            );
        }
    }
}

#[test]
fn a_plan_with_relays_is_refused() {
    let mut plan = proved(
        CollectiveKind::AllGather,
        "ring",
        "lightpath_grid:ranks=4,ports=2",
    );
    plan.relays.push(Relay {
        transfer: 0,
        rank: 2,
        light: Light::NONE,
        slot: 1,
    });
    assert_ne!(verify(&plan), []);
    let refused = simulate::run(&plan, Bytes::new(1), &TimingModel::default());
    assert!(
        matches!(refused, Err(SimulationError::Transfer { transfer: 0, .. })),
        "{refused:?}"
    );
}
