//! Cut-through: ranks that forward a message while it still arrives.

use opticoll::fabric::Fabric;
use opticoll::plan::text;
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::Bytes;
use opticoll::verify::{ViolationKind, verify};

use super::{
    ALPHA, AllGather, AllReduce, AllToAll, BETA, Broadcast, DELTA, POLICIES, SIZES, bound_of,
    exhaustive, paper, proved, steps, time,
};
use opticoll::collective::Collective;

fn cut(ranks: u64, reconfiguration: &str) -> String {
    format!("{},forwarding=cut_through", paper(ranks, reconfiguration))
}

#[test]
fn messages_that_share_circuits_take_what_the_formula_of_halving_and_doubling_says() {
    for ranks in [4u64, 8, 64] {
        let rounds = u64::from(ranks.ilog2());
        for size in SIZES {
            let fabric = cut(ranks, "10us");
            let one = "switch_configurations:algorithm=cyclic_doubling,configurations=one";
            let plan = proved(AllReduce, one, &fabric, size, Policy::AllStop);
            // All h circuits of a message are in the slot of its step.
            assert_eq!(u64::from(plan.slots()), 2 * rounds);
            let fixed = 2 * rounds * ALPHA + 2 * (ranks - 1) * DELTA + rounds * BETA * size;
            for policy in [
                Policy::AllStop,
                Policy::Planes,
                Policy::PerPort,
                Policy::Free,
            ] {
                assert_eq!(
                    time(AllReduce, one, &fabric, size, policy),
                    fixed,
                    "{ranks} {size}"
                );
            }
        }
    }
    for change in [0u64, 1_000, 10_000, 1_000_000] {
        for size in SIZES {
            let best = "switch_configurations:algorithm=cyclic_doubling";
            let fabric = cut(8, &format!("{change}ns"));
            let found = time(AllReduce, best, &fabric, size, Policy::AllStop);
            let least = exhaustive(&steps(8, size), 3, change * 1000, None);
            assert_eq!(found, least, "{size} {change}");
        }
    }
}

/// Returns the text of a plan in which rank 0 of four sends a block to each other rank over a
/// cycle, one block after the other.
fn scattered(forwarding: &str, slots: u32, further: &str) -> String {
    format!(
        "opticoll plan 1\ncollective scatter ranks=4 root=0 pieces=1\nfabric \
         circuit_switch:ranks=4,rate=800Gb/s,\
         reconfiguration=10us,startup=100ns,latency=100ns,forwarding={forwarding}\n\
         algorithm by hand\nsteps {slots}\nslot 0\ncopy 1 0>1 0.0\n{further}end 3\n"
    )
}

const CHAINS: &str = "slot 1\ncopy 2 0>1>2 0.0 0.0@1\nslot 2\ncopy 3 0>1>2>3 0.0 0.0@2 0.0@2\n";

#[test]
fn a_message_over_idle_circuits_takes_its_bytes_once() {
    let bytes = 1000;
    let time = |text: &str, policy| {
        let plan = text::read(text).unwrap();
        assert!(verify(&plan).is_empty(), "{}", verify(&plan)[0].sentence);
        let outcome = simulate::circuit::simulate(&plan, Bytes::new(bytes), policy);
        outcome.unwrap().time.ps()
    };
    // Over one, two and three circuits.
    let delays = 3 * ALPHA + 6 * DELTA;
    let through = scattered("cut_through", 3, CHAINS);
    for policy in [
        Policy::Free,
        Policy::AllStop,
        Policy::PerPort,
        Policy::Planes,
    ] {
        assert_eq!(
            time(&through, policy),
            delays + 3 * BETA * bytes,
            "{}",
            policy.name()
        );
    }
    let stored = "slot 1\ncopy 2 0>1>2 0.0 0.0@2\nslot 3\ncopy 3 0>1>2>3 0.0 0.0@4 0.0@5\n";
    let stored = scattered("store", 6, stored);
    assert_eq!(time(&stored, Policy::AllStop), delays + 6 * BETA * bytes);
}

#[test]
fn one_slot_holds_all_hops_of_a_setting() {
    for ranks in [4u64, 7, 16] {
        let fabric = cut(ranks, "1ms");
        let found = time(
            AllToAll,
            "shifts:shifts=1",
            &fabric,
            ranks * 1000,
            Policy::AllStop,
        );
        // Each circuit carries 1 + 2 + ... + (n - 1) blocks, the farthest over n - 1 circuits.
        let blocks = ranks * (ranks - 1) / 2;
        assert_eq!(
            found,
            ALPHA + (ranks - 1) * DELTA + blocks * 1000 * BETA,
            "{ranks}"
        );
    }
}

#[test]
fn chains_are_proved() {
    let kinds = |text: &str| -> Vec<ViolationKind> {
        let plan = text::read(text).unwrap();
        verify(&plan).iter().map(|one| one.kind).collect()
    };
    let proved = scattered("cut_through", 3, CHAINS);
    assert!(kinds(&proved).is_empty());
    let stored = proved.replace("cut_through", "store");
    assert_eq!(kinds(&stored), [ViolationKind::Relays; 2]);
    let early = proved.replace("0.0@2 0.0@2", "0.0@2 0.0@1");
    assert!(kinds(&early).contains(&ViolationKind::Relays));
    let around = proved.replace("0>1>2>3 0.0 0.0@2 0.0@2", "0>1>0>3 0.0 0.0@2 0.0@2");
    assert!(kinds(&around).contains(&ViolationKind::Relays));
}

#[test]
fn no_plan_with_cut_through_is_below_its_bound() {
    let mut left_out = crate::leaves_out(5);
    for kind in [AllGather, AllReduce, AllToAll, Broadcast] {
        for fabric in [
            "ranks=7,latency=1us",
            "ranks=8,ports=2,latency=1us,reconfiguration=1ms,startup=1us,first_configuration=charged",
            "ranks=9,ports=4,planes=2,latency=100ns,reconfiguration=1us,switch_ports=6",
            "ranks=9,ports=2,planes=2,latency=100ns,switch_ports=3",
        ] {
            let fabric = format!("{fabric},forwarding=cut_through");
            for policy in POLICIES {
                for size in [900, 1 << 20] {
                    if left_out() {
                        continue;
                    }
                    time(kind, "auto", &fabric, size, policy);
                }
            }
        }
    }
}

#[test]
fn bounds_with_cut_through_are_no_greater() {
    for kind in [AllGather, AllReduce, AllToAll] {
        for ports in [1, 2] {
            let of = |forwarding: &str, policy| {
                let fabric = format!(
                    "circuit_switch:ranks=12,ports={ports},latency=1us,startup=2us,\
                     forwarding={forwarding}"
                );
                let fabric = Fabric::parse(&fabric).unwrap();
                let collective = Collective::new(kind, 12).unwrap();
                bound_of(&fabric, &collective, 12_000, policy)
            };
            for policy in POLICIES {
                assert!(of("cut_through", policy) <= of("store", policy));
            }
        }
    }
}
