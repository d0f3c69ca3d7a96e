//! Static and rotating switch settings: diameters, slots and times against theory.

use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::{
    AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use opticoll::plan::Plan;
use opticoll::simulate::Policy;

use crate::circuit_switch::{BETA, proved, time};

/// The start-up and the latency of the fabrics here, together, in picoseconds.
const DELAY: u64 = 300_000;
const CHANGE: u64 = 1_000_000;

fn fabric(ranks: u64, ports: u64) -> String {
    format!(
        "ranks={ranks},ports={ports},rate=800Gb/s,startup=100ns,latency=200ns,reconfiguration=1us"
    )
}

fn plan_of(kind: CollectiveKind, algorithm: &str, fabric: &str, size: u64) -> Plan {
    proved(kind, algorithm, fabric, size, Policy::AllStop)
}

fn time_of(kind: CollectiveKind, algorithm: &str, fabric: &str, size: u64) -> u64 {
    time(kind, algorithm, fabric, size, Policy::AllStop)
}

#[test]
fn generalised_kautz_graphs_have_the_diameters_of_their_authors() {
    for ports in [2u64, 3, 4] {
        for ranks in [3u64, 5, 6, 8, 9, 12, 13, 16, 20, 24, 36, 50] {
            let fabric = fabric(ranks, ports);
            let plan = plan_of(AllToAll, "static:topology=kautz", &fabric, ranks * 64);
            // A slot for each hop of the farthest ranks: at most ceil(log_d n), and no graph of
            // degree d reaches more than 1 + d + ... + d^k ranks in k hops.
            let most = (1..).find(|hops| ports.pow(*hops) >= ranks).unwrap();
            let reached = |hops: u32| (0..=hops).map(|hop| ports.pow(hop)).sum::<u64>();
            let least = (1..).find(|hops| reached(*hops) >= ranks).unwrap();
            let slots = plan.slots();
            assert!((least..=most).contains(&slots), "{ranks} {ports}: {slots}");
        }
        // Kautz graphs proper: d^k + d^(k - 1) ranks at k hops.
        for hops in [2u32, 3] {
            let ranks = ports.pow(hops) + ports.pow(hops - 1);
            let fabric = fabric(ranks, ports);
            let plan = plan_of(AllToAll, "static:topology=kautz", &fabric, ranks * 64);
            assert_eq!(plan.slots(), hops, "{ranks} {ports}");
        }
    }
}

#[test]
fn hypercubes_gather_in_as_many_steps_as_they_have_dimensions() {
    for bits in [2u64, 3, 4, 5] {
        let ranks = 1 << bits;
        let fabric = fabric(ranks, bits);
        let algorithm = "static:topology=hypercube,on_links=matching";
        let plan = plan_of(AllGather, algorithm, &fabric, 1);
        assert_eq!(u64::from(plan.slots()), bits);
        // Each port must take an equal part of what a rank receives, at best.
        let size = 1 << 20;
        let found = time_of(AllGather, "static:topology=hypercube", &fabric, size);
        let least = bits * 200_000 + 100_000 + (ranks - 1) * size * BETA / bits;
        assert!(found >= least, "{ranks}: {found} below {least}");
        assert!(found * 10 <= least * 13, "{ranks}: {found}, {least}");
        // n / 2 blocks cross each circuit. Where all hops of one number are in one slot, that is as
        // many as d circuits have of the ranks that far away or farther.
        let all_to_all = "static:topology=hypercube";
        let found = time_of(AllToAll, all_to_all, &fabric, ranks * size);
        let delays = bits * 200_000 + 100_000;
        let least = delays + ranks / 2 * size * BETA;
        assert!(found >= least, "{ranks}: {found} below {least}");
        let farther =
            |hops: u64| (0..ranks).filter(move |rank| u64::from(rank.count_ones()) >= hops);
        let of_slot = |hops: u64| (farther(hops).count() as u64).div_ceil(bits);
        let most = delays + (1..=bits).map(of_slot).sum::<u64>() * size * BETA;
        assert!(found * 10 <= most * 12, "{ranks}: {found}, {most}");
        // From one rank blocks leave over all ports, and those of each further hop are fewer.
        for kind in [Scatter, Gather] {
            let found = time_of(kind, all_to_all, &fabric, size);
            let least = delays + (ranks - 1) * size * BETA / bits;
            assert!(found >= least, "{kind} {ranks}: {found} below {least}");
            assert!(found <= most, "{kind} {ranks}: {found}, {most}");
        }
    }
}

#[test]
fn a_setting_that_is_kept_pays_for_no_change() {
    let change =
        |text: &str| format!("ranks=12,ports=2,rate=800Gb/s,latency=200ns,reconfiguration={text}");
    for kind in [
        AllGather,
        ReduceScatter,
        AllReduce,
        Broadcast,
        Reduce,
        Scatter,
        Gather,
        AllToAll,
    ] {
        for topology in ["ring", "shifts", "kautz"] {
            let algorithm = format!("static:topology={topology}");
            let [cheap, dear] =
                ["0s", "1s"].map(|text| time_of(kind, &algorithm, &change(text), 1 << 16));
            assert_eq!(cheap, dear, "{kind} {topology}");
        }
    }
    let torus = "static:topology=torus";
    let found = plan_of(AllGather, torus, &fabric(12, 4), 1 << 16);
    assert!(found.algorithm.starts_with(torus), "{}", found.algorithm);
}

#[test]
fn parallel_circuits_use_all_ports() {
    for (ranks, ports) in [(2u64, 3u64), (2, 8), (3, 4), (4, 6), (6, 4)] {
        let free = format!("ranks={ranks},ports={ports},rate=800Gb/s,reconfiguration=1ms");
        // Bytes that the ring and its parallel circuits cut evenly.
        let size = 5040 * 1000;
        let sent = [
            (AllGather, ranks - 1, 1),
            (AllReduce, 2 * (ranks - 1), ranks),
        ];
        for (kind, blocks, parts) in sent {
            // A rank sends this to its neighbours over all of its ports.
            let least = blocks * size / parts * BETA / ports;
            for algorithm in ["static:topology=ring", "auto"] {
                let found = time_of(kind, algorithm, &free, size);
                assert!(
                    found >= least,
                    "{kind} {ranks} {ports}: {found} below {least}"
                );
                assert!(
                    found * 1000 <= least * 1001,
                    "{kind} {ranks} {ports}: {found}, {least}"
                );
            }
        }
        let striped = format!("static:topology=ring,parallel={ports}");
        let found = time_of(Scatter, &striped, &free, size);
        // The root sends all blocks to the next rank.
        assert_eq!(found, (ranks - 1) * size * BETA / ports, "{ranks} {ports}");
    }
}

#[test]
fn auto_keeps_a_setting_where_changes_are_dear_and_ports_are_several() {
    let fabric = "ranks=16,ports=4,rate=800Gb/s,latency=200ns,reconfiguration=10ms";
    for kind in [AllGather, AllReduce, Scatter, Gather, AllToAll] {
        let chosen = time_of(kind, "auto", fabric, 1 << 20);
        let kept = time_of(kind, "static", fabric, 1 << 20);
        assert!(chosen <= kept, "{kind}: {chosen}, {kept}");
        assert!(kept < 1_000_000_000, "{kind}: {kept}");
    }
}

#[test]
fn rotors_take_what_their_formulas_say() {
    for (ranks, ports) in [(5u64, 1u64), (8, 1), (8, 2), (9, 4), (16, 5), (4, 3)] {
        let slots = (ranks - 1).div_ceil(ports);
        // Blocks that all parts divide evenly.
        let block = 840 * ranks;
        for cycles in [1u64, 2, 7] {
            let algorithm = format!("shifts:shifts=all,cycles={cycles}");
            let fabric = fabric(ranks, ports);
            let plan = plan_of(AllToAll, &algorithm, &fabric, ranks * block);
            assert_eq!(u64::from(plan.slots()), cycles * slots);
            let found = time_of(AllToAll, &algorithm, &fabric, ranks * block);
            // One setting has all shifts, and is never changed.
            let changes = if slots == 1 { 0 } else { cycles * slots - 1 };
            let sending = DELAY + block / cycles * BETA;
            let expected = cycles * slots * sending + changes * CHANGE;
            assert_eq!(found, expected, "{ranks} {ports} {cycles}");
            let charged = format!("{fabric},first_configuration=charged");
            let found = time_of(AllToAll, &algorithm, &charged, ranks * block);
            assert_eq!(found, expected + CHANGE, "{ranks} {ports} {cycles}");
        }
        if slots == 1 {
            continue;
        }
        let algorithm = "shifts:shifts=all,relays=all";
        let found = time_of(AllToAll, algorithm, &fabric(ranks, ports), ranks * block);
        let sending = DELAY + block / ranks * (ranks - 1) * BETA;
        let expected = 2 * slots * sending + (2 * slots - 1) * CHANGE;
        assert_eq!(found, expected, "{ranks} {ports} by way of all");
    }
}
