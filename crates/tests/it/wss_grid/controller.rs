//! A central controller compared with distributed control, in which the receivers answer for
//! themselves.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::outcome::{Outcome, Tuned};
use opticoll::simulate::{Policy, TimingModel, control};
use opticoll::units::Bytes;
use proptest::prelude::*;

use super::bounds::bound;
use super::proved;

fn simulated(kind: CollectiveKind, fabric: &str, algorithm: &str, bytes: u64) -> (Outcome, Tuned) {
    let plan = proved(kind, algorithm, fabric);
    let outcome = control::simulate(&plan, Bytes::new(bytes)).unwrap();
    let tuned = outcome.details.get::<Tuned>().unwrap().clone();
    (outcome, tuned)
}

#[test]
fn two_requests_at_once_are_handled_one_after_the_other() {
    // At 8 Gb/s 1000 bytes take 1000 ns. Both requests are there at 100 ns; they are handled at 130
    // and 160 ns.
    let (_, tuned) = simulated(
        CollectiveKind::AllGather,
        "wss_grid:rows=1,columns=2,rate=8Gb/s,control=100ns,controller=30ns,lock=50ns,latency=10ns",
        "ring",
        1000,
    );
    let ps =
        |times: &[opticoll::units::Time]| times.iter().map(|time| time.ps()).collect::<Vec<_>>();
    assert_eq!(ps(&tuned.flows.begin), [0, 0]);
    assert_eq!(ps(&tuned.flows.start), [290_500, 320_500]);
    assert_eq!(ps(&tuned.flows.sent), [1_290_500, 1_320_500]);
    assert_eq!(ps(&tuned.flows.end), [1_300_500, 1_330_500]);
    // A rank sends a request and a release, the controller a grant for each.
    assert_eq!(tuned.ranks.control_messages, [2, 2]);
    assert_eq!((tuned.controller_messages, tuned.control_messages), (2, 6));
    let path = [
        tuned.path_control,
        tuned.path_waiting,
        tuned.path_tuning,
        tuned.path_transmission,
        tuned.path_latency,
    ];
    assert_eq!(ps(&path), [230_000, 30_000, 60_500, 1_000_000, 10_000]);
}

#[test]
fn a_release_is_handled_before_the_next_grant() {
    // Requests of three ranks for rank 0 are handled at 130, 160 and 190 ns. The first is granted
    // at once. From one grant to the next: grant, tune and lock, send, release, and its handling.
    let (outcome, _) = simulated(
        CollectiveKind::Gather,
        "wss_grid:rows=1,columns=4,rate=8Gb/s,control=100ns,controller=30ns,lock=50ns,latency=10ns",
        "linear",
        1000,
    );
    let flow = 100_000 + 60_500 + 1_000_000;
    assert_eq!(outcome.time.ps(), 130_000 + 3 * flow + 2 * 130_000 + 10_000);
}

proptest! {
    #![proptest_config(crate::unsaved(40))]

    #[test]
    fn without_time_for_messages_it_is_as_fast_as_distributed_control(
        rows in 1u32..5, columns in 2u32..5, bytes in 1u64..1_000_000, control in 0u64..3_000_000,
        latency in 0u64..3_000_000,
        (kind, algorithm) in prop::sample::select(vec![
            (CollectiveKind::AllReduce, "halving_doubling"),
            (CollectiveKind::AllReduce, "dual_plane_halving_doubling"),
            (CollectiveKind::AllReduce, "ring"),
            (CollectiveKind::AllToAll, "direct"),
            (CollectiveKind::Broadcast, "binomial"),
            (CollectiveKind::Gather, "linear"),
        ])
    ) {
        let fabric = format!(
            "wss_grid:rows={rows},columns={columns},control={control}ps,lock=50ns,\
             latency={latency}ps"
        );
        let (distributed, own) = simulated(kind, &fabric, algorithm, bytes);
        let at_once = format!("{fabric},controller=0s");
        let (central, tuned) = simulated(kind, &at_once, algorithm, bytes);
        prop_assert_eq!(&own.flows, &tuned.flows);
        prop_assert_eq!(distributed.time, central.time);
        prop_assert_eq!(own.control_messages, tuned.control_messages);
        prop_assert_eq!(own.path_control, tuned.path_control);
        prop_assert_eq!(own.controller_messages, 0);
    }

    #[test]
    fn no_time_is_below_the_bound(
        rows in 1u32..5, columns in 2u32..5, bytes in 1u64..100_000, controller in 0u64..3_000_000,
        (kind, algorithm) in prop::sample::select(vec![
            (CollectiveKind::AllReduce, "halving_doubling"),
            (CollectiveKind::AllGather, "direct"),
            (CollectiveKind::Broadcast, "binomial"),
            (CollectiveKind::Scatter, "linear"),
            (CollectiveKind::Gather, "linear"),
        ])
    ) {
        let fabric = format!(
            "wss_grid:rows={rows},columns={columns},control=200ns,controller={controller}ps,\
             lock=50ns,latency=20ns"
        );
        let (outcome, tuned) = simulated(kind, &fabric, algorithm, bytes);
        let path = [
            tuned.path_control, tuned.path_waiting, tuned.path_tuning, tuned.path_transmission,
            tuned.path_latency,
        ];
        prop_assert_eq!(path.iter().map(|time| time.ps()).sum::<u64>(), outcome.time.ps());
        let (bound, _) = bound(&fabric, kind, bytes, Policy::TwoTier);
        prop_assert!(bound <= outcome.time.ps(), "{} {}", bound, outcome.time);
    }
}

#[test]
fn the_overhead_of_a_step_grows_with_the_ranks() {
    const HANDLING: u64 = 100_000;
    let mut distributed_steps = Vec::new();
    for side in [2u64, 4, 8, 16] {
        let ranks = side * side;
        let circuits = u64::from(2 * ranks.ilog2() - 1);
        let fabric = format!("wss_grid:rows={side},columns={side},control=500ns,lock=100ns");
        let kind = CollectiveKind::AllReduce;
        let (distributed, _) = simulated(kind, &fabric, "halving_doubling", 0);
        let (central, tuned) = simulated(
            kind,
            &format!("{fabric},controller=100ns"),
            "halving_doubling",
            0,
        );
        distributed_steps.push(distributed.time.ps() / circuits);
        // Before the end all requests of a step were handled, and at most all releases too.
        let step = (central.time.ps() - distributed.time.ps()) / circuits;
        let all = ranks * HANDLING;
        assert!(
            (all / 2..=2 * all).contains(&step),
            "{ranks} ranks: {step} ps"
        );
        let answers = central.reconfigurations + tuned.revocations;
        assert_eq!(tuned.controller_messages, answers);
    }
    assert_eq!(distributed_steps, [1_110_500; 4]);
}

#[test]
fn only_control_simulates_a_controller() {
    let fabric = Fabric::parse("wss_grid:rows=2,columns=2,control=1us,controller=100ns").unwrap();
    assert!(
        fabric.to_string().contains("control=1us,controller=100ns"),
        "{fabric}"
    );
    let plan = proved(CollectiveKind::AllReduce, "ring", &fabric.to_string());
    let refused = simulate::simulate(&plan, Bytes::new(8), Policy::TwoTier, "circuit");
    let problem = refused.unwrap_err().to_string();
    assert!(
        problem.contains("queue of a central controller; use control"),
        "{problem}"
    );
    let members = fabric.part(&[0, 1]).unwrap_err().to_string();
    assert!(members.contains("controller"), "{members}");
    let task = simulate::tasks::Task {
        plan: &plan,
        size: Bytes::new(8),
        rounds: 1,
        request: opticoll::units::Time::ZERO,
    };
    assert!(simulate::tasks::run_tasks(&[task]).is_ok());
    let several = simulate::tasks::run_tasks(&[task, task])
        .unwrap_err()
        .to_string();
    assert!(several.contains("leave `controller` out"), "{several}");
    let every_step = TimingModel::from(Policy::EveryStep);
    let problem = simulate::run(&plan, Bytes::new(8), &every_step).unwrap_err();
    assert!(
        problem.to_string().ends_with("flow by flow; use two_tier"),
        "{problem}"
    );
}
