//! Times of the switch grid against theory, with and without control.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::outcome::Tuned;
use opticoll::simulate::{Policy, TimingModel, control};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;
use proptest::prelude::*;

use super::proved;

fn simulated(
    fabric: &str,
    algorithm: &str,
    bytes: u64,
    simulator: &str,
) -> opticoll::simulate::outcome::Outcome {
    let plan = proved(CollectiveKind::AllReduce, algorithm, fabric);
    let method = TimingModel::from_settings([("simulator", simulator)]).unwrap();
    simulate::run(&plan, Bytes::new(bytes), &method).unwrap()
}

/// ResNet50 has 25 557 032 parameters of four bytes.
const RESNET50: u64 = 4 * 25_557_032;

#[test]
fn resnet50_on_four_nodes_takes_12_27_ms() {
    for simulator in ["control", "circuit"] {
        let fabric = "wss_grid:rows=2,columns=2,rate=100Gb/s,tuning=0s";
        let time = simulated(fabric, "halving_doubling", RESNET50, simulator).time;
        // 2 (N - 1) / N M / B, exactly: M is divisible by four.
        assert_eq!(time, Time::from_ps(RESNET50 / 4 * 6 * 80));
        assert_eq!(format!("{:.2}", time.seconds() * 1e3), "12.27");
    }
}

/// Computes 2 (N - 1) / N M / B + 2 log2 N latency + (2 log2 N - 1) (2 control + tuning + lock).
fn theory(ranks: u64, part: u64, control: u64, lock: u64, latency: u64) -> u64 {
    let exchanges = 2 * u64::from(ranks.ilog2());
    // At 8 Gb/s a byte takes 1000 ps; every rank sends 2 (N - 1) parts.
    let sending = 2 * (ranks - 1) * part * 1000;
    let circuits = exchanges.saturating_sub(1);
    sending + exchanges * latency + circuits * (2 * control + 10_500 + lock)
}

proptest! {
    #![proptest_config(crate::unsaved(40))]

    #[test]
    fn halving_and_doubling_takes_what_theory_says(
        rows in 0u32..4, columns in 0u32..4, part in 1u64..10_000,
        control in 0u64..5_000_000, lock in 0u64..100_000, latency in 0u64..1_000_000, far: bool
    ) {
        let (rows, columns) = (1u64 << rows, 1u64 << columns);
        let ranks = rows * columns;
        let fabric = format!(
            "wss_grid:rows={rows},columns={columns},rate=8Gb/s,control={control}ps,lock={lock}ps,\
             latency={latency}ps,plan=xor"
        );
        let order = if far { "far" } else { "near" };
        let algorithm = format!("halving_doubling:order={order}");
        for simulator in ["control", "circuit"] {
            let outcome = simulated(&fabric, &algorithm, part * ranks, simulator);
            let expected = theory(ranks, part, control, lock, latency);
            prop_assert_eq!(outcome.time.ps(), expected, "{}", simulator);
            // Every rank tunes 2 log2 N - 1 times.
            let tuned = ranks * u64::from((2 * ranks.ilog2()).saturating_sub(1));
            prop_assert_eq!(outcome.reconfigurations, tuned);
        }
    }

    #[test]
    fn on_a_square_both_planes_take_half_the_time(
        side in 2u32..4, part in 1u64..10_000, latency in 0u64..1_000_000, control in 0u64..100_000
    ) {
        let side = 1u64 << side;
        let ranks = side * side;
        let fabric = format!(
            "wss_grid:rows={side},columns={side},rate=8Gb/s,tuning=1ns,control={control}ps,\
             latency={latency}ps"
        );
        let algorithm = "dual_plane_halving_doubling";
        let outcome = simulated(&fabric, algorithm, 2 * part * ranks, "control");
        let exchanges = 2 * u64::from(ranks.ilog2());
        let sending = 2 * (ranks - 1) * part * 1000;
        let tuning = (exchanges - 1) * (2 * control + 1000);
        prop_assert_eq!(outcome.time.ps(), sending + exchanges * latency + tuning);
    }

    #[test]
    fn the_times_along_the_critical_path_add_up(
        rows in 1u32..6, columns in 1u32..6, bytes in 1u64..1_000_000, control in 0u64..3_000_000,
        algorithm in prop::sample::select(vec![
            "halving_doubling", "dual_plane_halving_doubling", "ring", "binary_tree", "direct",
        ])
    ) {
        let fabric = format!(
            "wss_grid:rows={rows},columns={columns},control={control}ps,lock=50ns,latency=20ns"
        );
        let outcome = simulated(&fabric, algorithm, bytes, "control");
        let tuned = outcome.details.get::<Tuned>().unwrap();
        let parts = [
            tuned.path_transmission, tuned.path_tuning, tuned.path_control, tuned.path_latency,
            tuned.path_waiting,
        ];
        let sum: u64 = parts.iter().map(|time| time.ps()).sum();
        prop_assert_eq!(sum, outcome.time.ps());
        let path = outcome.critical_path;
        prop_assert_eq!(path.last().map_or(Time::ZERO, |last| last.end), outcome.time);
        prop_assert!(path.first().is_none_or(|first| first.start == Time::ZERO));
        // Every flow costs three messages at most, but for circuits taken back.
        let flows: u64 = outcome.slots.lightpaths.iter().sum();
        let counts = tuned.ranks.control_messages.iter();
        let messages: u64 = counts.map(|&count| u64::from(count)).sum();
        prop_assert!(messages <= 3 * flows + 2 * tuned.revocations);
    }
}

#[test]
fn control_messages_of_a_node_do_not_grow_with_the_number_of_nodes() {
    // Per exchange and node a request, a grant and a release; the two in the middle share theirs.
    for side in [2u64, 4, 8, 16] {
        let ranks = side * side;
        let fabric = format!("wss_grid:rows={side},columns={side},control=1us");
        let outcome = simulated(&fabric, "halving_doubling:order=far", 1 << 20, "control");
        let circuits = 2 * ranks.ilog2() - 1;
        let tuned = outcome.details.get::<Tuned>().unwrap();
        assert_eq!(tuned.revocations, 0);
        assert_eq!(
            tuned.ranks.control_messages,
            vec![3 * circuits; ranks as usize]
        );
    }
}

#[test]
fn receivers_take_one_burst_after_the_other_in_the_order_of_requests() {
    // Three ranks of a row send their vectors to rank 0 in one step: their requests come at once,
    // the lower node is first; each is granted when the one before has released.
    let plan = proved(
        CollectiveKind::Gather,
        "linear",
        "wss_grid:rows=1,columns=4,rate=8Gb/s,control=100ns,lock=50ns,latency=10ns",
    );
    let outcome = control::simulate(&plan, Bytes::new(1000)).unwrap();
    let (flow, fresh) = (1_000_000, 10_500 + 50_000);
    // Request; then three times grant, tune and send; between them the release, or what is under
    // way.
    let expected = 100_000 + 3 * (100_000 + fresh + flow) + 2 * 100_000 + 10_000;
    assert_eq!(outcome.time.ps(), expected);
    let order: Vec<u64> = outcome.ranks.finish.iter().map(|time| time.ps()).collect();
    assert!(order[1] < order[2] && order[2] < order[3], "{order:?}");
}

#[test]
fn a_limit_counts_arrivals_and_not_the_last_releases() {
    let fabric = "wss_grid:rows=2,columns=2,control=1us";
    let plan = proved(CollectiveKind::AllReduce, "ring", fabric);
    let size = Bytes::new(1024);
    let time = control::simulate(&plan, size).unwrap().time;
    let within = |limit| control::simulate_within(&plan, size, Some(Time::from_ps(limit)));
    assert_eq!(within(time.ps()).unwrap().time, time);
    assert!(within(time.ps() - 1).is_err());
}

#[test]
fn what_shares_a_circuit_in_a_slot_is_one_burst_wherever_it_goes_on_to() {
    // Rank 0 scatters: in slot 0 the data of rank 1, and of 3 and 5 by way of 1, on one wavelength.
    // A burst of three blocks of 1000 bytes, at 8 Gb/s 3000 ns; then rank 1 sends to 3 and to 5.
    let fresh = 2 * 100_000 + 10_500 + 50_000;
    let (block, latency) = (1_000_000, 10_000);
    for (last, from_rank_1, slot_by_slot) in [
        // One after the other: rank 1 requests rank 5 after it has sent to rank 3, before arrival.
        (
            "copy 5 0>1>5 row.0 column.1@2",
            2 * fresh + 2 * block + latency,
            latency,
        ),
        // Both to rank 3 in one burst of two blocks, and then one on to rank 5.
        (
            "copy 5 0>1>3>5 row.0 column.0@1 column.1@2",
            2 * fresh + 3 * block + 2 * latency,
            0,
        ),
    ] {
        let text = format!(
            "opticoll plan 1\ncollective scatter ranks=6 root=0 pieces=1\nfabric wss_grid:rows=3,\
             columns=2,rate=8Gb/s,wavelengths=2,control=100ns,lock=50ns,latency=10ns\n\
             algorithm by hand\nsteps 3\nslot 0\ncopy 1 0>1 row.0\ncopy 3 0>1>3 row.0 column.0@1\n\
             {last}\ncopy 2 0>2 column.0\nslot 1\ncopy 4 0>4 column.1\nend 5\n"
        );
        let plan = opticoll::plan::text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(verify(&plan), []);
        let outcome = control::simulate(&plan, Bytes::new(1000)).unwrap();
        let expected = fresh + 3 * block + latency + from_rank_1;
        assert_eq!(outcome.time.ps(), expected, "{last}");
        // Slot by slot the same bursts, with a latency at the end of each slot.
        let circuit = simulate::simulate(&plan, Bytes::new(1000), Policy::TwoTier, "circuit");
        let circuit = circuit.unwrap();
        assert_eq!(outcome.slots.lightpaths, circuit.slots.lightpaths);
        assert_eq!(outcome.links, circuit.links);
        assert_eq!(circuit.time.ps(), expected + slot_by_slot, "{last}");
    }
}

#[test]
fn policies_of_the_grid_charge_what_they_say() {
    let fabric = "wss_grid:rows=2,columns=2,rate=8Gb/s,control=1us,lock=500ns";
    let plan = proved(CollectiveKind::AllReduce, "halving_doubling", fabric);
    let time = |policy| {
        let outcome = simulate::simulate(&plan, Bytes::new(4000), policy, "circuit");
        outcome.map(|outcome| outcome.time.ps())
    };
    let (sending, tuned) = (6_000_000, 2_000_000 + 10_500 + 500_000);
    assert_eq!(time(Policy::Free), Ok(sending));
    assert_eq!(time(Policy::TwoTier), Ok(sending + 3 * tuned));
    assert_eq!(time(Policy::EveryStep), Ok(sending + 4 * tuned));
    assert!(
        time(Policy::OnChange)
            .unwrap_err()
            .to_string()
            .contains("two_tier")
    );
    let ring = Fabric::parse("wdm_ring:ranks=4,wavelengths=1").unwrap();
    assert_eq!(simulate::default_policy(&ring), Policy::EveryStep);
    assert_eq!(simulate::default_policy(&plan.fabric), Policy::TwoTier);
}

#[test]
fn four_thousand_ranks_take_what_theory_says() {
    let fabric = "wss_grid:rows=64,columns=64,rate=8Gb/s,control=1us,lock=100ns,latency=20ns";
    let collective = Collective::new(CollectiveKind::AllReduce, 4096).unwrap();
    let fabric = Fabric::parse(fabric).unwrap();
    let plan = super::planned(collective.kind(), "halving_doubling", &fabric).unwrap();
    // 2 log2 N flows of each rank.
    assert_eq!(plan.len(), 98_304);
    let outcome = control::simulate(&plan, Bytes::new(4096 * 10)).unwrap();
    assert_eq!(
        outcome.time.ps(),
        theory(4096, 10, 1_000_000, 100_000, 20_000)
    );
    assert_eq!(
        outcome
            .details
            .get::<Tuned>()
            .unwrap()
            .ranks
            .control_messages,
        vec![3 * 23; 4096]
    );
}

#[test]
fn a_rank_ends_with_its_latest_burst_and_not_with_the_one_listed_last() {
    // At 8 Gb/s a chunk of 1000 bytes takes 1 us. In slot 1 rank 2 receives two chunks, which takes
    // 2 us, and sends one; it then has and has given everything: 1 us + 2 us. The others end with
    // slot 2.
    let plan = crate::handwritten(
        "wss_grid:rows=1,columns=3,rate=8Gb/s",
        "all_gather 1 1 1",
        "slot 0\ncopy 1 1>0 row.0\n\
         slot 1\ncopy 0+2 0>2 row.0\ncopy 2 2>1 row.0\n\
         slot 2\ncopy 2 1>0 row.0\ncopy 0 0>1 row.1",
    );
    assert_eq!(verify(&plan), []);
    let outcome = simulate::circuit::simulate(&plan, Bytes::new(1000), Policy::Free).unwrap();
    let finish: Vec<u64> = outcome.ranks.finish.iter().map(|time| time.ps()).collect();
    assert_eq!(finish, [4_000_000, 4_000_000, 3_000_000]);
}
