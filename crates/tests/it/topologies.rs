//! Settings that are kept, and settings that go round: diameters, slots and times that theory gives.

use opticoll::collective::CollectiveKind::{
    AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
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

#[test]
fn generalised_kautz_graphs_have_the_diameters_of_their_authors() {
    for ports in [2u64, 3, 4] {
        for ranks in [3u64, 5, 6, 8, 9, 12, 13, 16, 20, 24, 36, 50] {
            let fabric = fabric(ranks, ports);
            let plan = proved(
                AllToAll,
                "static:topology=kautz",
                &fabric,
                ranks * 64,
                Policy::AllStop,
            );
            // A slot for each hop of the farthest ranks: at most ceil(log_d n), and no graph of degree d reaches more
            // than 1 + d + ... + d^k ranks in k hops.
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
            let plan = proved(
                AllToAll,
                "static:topology=kautz",
                &fabric,
                ranks * 64,
                Policy::AllStop,
            );
            assert_eq!(plan.slots(), hops, "{ranks} {ports}");
        }
    }
}

#[test]
fn rings_of_shifts_take_what_their_circuits_carry() {
    for ranks in [3u64, 5, 9, 13] {
        for (ports, shifts) in [(1, String::from("1")), (2, format!("1+{}", ranks - 1))] {
            let fabric = fabric(ranks, ports);
            let algorithm = format!("static:shifts={shifts}");
            let farthest = (ranks - 1) / ports;
            let gather = format!("{algorithm},on_links=matching");
            let plan = proved(AllGather, &gather, &fabric, 1, Policy::AllStop);
            assert_eq!(u64::from(plan.slots()), farthest);
            // Each port must take an equal part of what a rank receives, at best.
            let size = 1 << 20;
            let found = time(AllGather, &algorithm, &fabric, size, Policy::AllStop);
            let delays = farthest * 200_000 + 100_000;
            let received = delays + (ranks - 1) * size * BETA / ports;
            assert!(found >= received, "{ranks}: {found} below {received}");
            assert!(found * 10 <= received * 13, "{ranks}: {found}, {received}");
            // A circuit is crossed by 1 block of the ranks next to each other, 2 of those two circuits apart, and so on.
            let crossing = farthest * (farthest + 1) / 2;
            let found = time(AllToAll, &algorithm, &fabric, ranks * size, Policy::AllStop);
            let least = delays + crossing * size * BETA;
            assert!(found >= least, "{ranks}: {found} below {least}");
            assert!(found * 10 <= least * 12, "{ranks}: {found}, {least}");
            // Blocks of one rank alone are fewer.
            for kind in [Scatter, Gather] {
                let alone = time(kind, &algorithm, &fabric, size, Policy::AllStop);
                assert!(
                    alone >= received,
                    "{kind} {ranks}: {alone} below {received}"
                );
                assert!(alone <= found, "{kind} {ranks}: {alone}, {found}");
            }
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
        for topology in ["shifts", "kautz"] {
            let algorithm = format!("static:topology={topology}");
            let [cheap, dear] = ["0s", "1s"]
                .map(|text| time(kind, &algorithm, &change(text), 1 << 16, Policy::AllStop));
            assert_eq!(cheap, dear, "{kind} {topology}");
        }
    }
}

#[test]
fn auto_keeps_a_setting_where_changes_are_dear_and_ports_are_several() {
    let fabric = "ranks=16,ports=4,rate=800Gb/s,latency=200ns,reconfiguration=10ms";
    for kind in [AllGather, AllReduce, Scatter, Gather, AllToAll] {
        let chosen = time(kind, "auto", fabric, 1 << 20, Policy::AllStop);
        let kept = time(kind, "static", fabric, 1 << 20, Policy::AllStop);
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
            let plan = proved(
                AllToAll,
                &algorithm,
                &fabric,
                ranks * block,
                Policy::AllStop,
            );
            assert_eq!(u64::from(plan.slots()), cycles * slots);
            let found = time(
                AllToAll,
                &algorithm,
                &fabric,
                ranks * block,
                Policy::AllStop,
            );
            // One setting has all shifts, and is never changed.
            let changes = if slots == 1 { 0 } else { cycles * slots - 1 };
            let sending = DELAY + block / cycles * BETA;
            let expected = cycles * slots * sending + changes * CHANGE;
            assert_eq!(found, expected, "{ranks} {ports} {cycles}");
            let charged = format!("{fabric},first_setting=charged");
            let found = time(
                AllToAll,
                &algorithm,
                &charged,
                ranks * block,
                Policy::AllStop,
            );
            assert_eq!(found, expected + CHANGE, "{ranks} {ports} {cycles}");
        }
        if slots == 1 {
            continue;
        }
        let algorithm = "shifts:shifts=all,relays=all";
        let found = time(
            AllToAll,
            algorithm,
            &fabric(ranks, ports),
            ranks * block,
            Policy::AllStop,
        );
        let sending = DELAY + block / ranks * (ranks - 1) * BETA;
        let expected = 2 * slots * sending + (2 * slots - 1) * CHANGE;
        assert_eq!(found, expected, "{ranks} {ports} by way of all");
    }
}
