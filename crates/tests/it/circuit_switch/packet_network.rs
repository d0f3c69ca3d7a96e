//! A circuit switch with a packet network beside it.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::circuit_switch::SwitchedLight;
use opticoll::plan::text;
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::Bytes;
use opticoll::verify::{ViolationKind, verify};

use super::{AllGather, AllReduce, AllToAll, BETA, POLICIES, bound_of, proved, time};

/// The options, the latency (ps) and the picoseconds per byte of the network beside the switch.
const BESIDE: &str = "packet_rate=80Gb/s,packet_latency=2us";
const LATENCY: u64 = 2_000_000;
const SLOW: u64 = 100;

fn fabric(ranks: u32, reconfiguration: &str) -> String {
    format!(
        "ranks={ranks},rate=800Gb/s,startup=100ns,latency=100ns,\
         reconfiguration={reconfiguration},{BESIDE}"
    )
}

#[test]
fn messages_of_a_rank_share_the_network() {
    let all = "switch_configurations:algorithm=direct,configurations=packet";
    for ranks in [2u32, 5, 8] {
        let others = u64::from(ranks) - 1;
        let size = u64::from(ranks) * 1000;
        let fabric = fabric(ranks, "10us");
        // A slot without circuits is never charged.
        for policy in [Policy::AllStop, Policy::Free, Policy::EveryStep] {
            // One slot, in which each rank sends n - 1 blocks.
            let found = time(AllToAll, all, &fabric, size, policy);
            assert_eq!(found, LATENCY + others * 1000 * SLOW, "{ranks}");
        }
        for policy in [Policy::PerPort, Policy::Planes] {
            // One message of a rank after the other; which ranks wait for one another depends on
            // their order.
            let found = time(AllToAll, all, &fabric, size, policy);
            let one = LATENCY + 1000 * SLOW;
            assert!(
                (others * one..=2 * others * one).contains(&found),
                "{ranks} {found}"
            );
        }
        // The root hears one rank after the other.
        for policy in [Policy::PerPort, Policy::Planes, Policy::Free] {
            let linear = "switch_configurations:algorithm=linear,configurations=packet";
            let found = time(CollectiveKind::Gather, linear, &fabric, 1000, policy);
            assert_eq!(
                found,
                others * (LATENCY + 1000 * SLOW),
                "{ranks} {policy:?}"
            );
        }
        // n - 1 steps, each to the next rank.
        let ring = time(
            AllGather,
            "switch_configurations:algorithm=ring,configurations=packet",
            &fabric,
            1000,
            Policy::PerPort,
        );
        assert_eq!(ring, others * (LATENCY + 1000 * SLOW));
    }
}

#[test]
fn a_slot_ends_with_what_is_last_on_the_switch_or_beside_it() {
    let text = |bytes_beside: &str| {
        format!(
            "opticoll plan 1\ncollective all_gather ranks=2 root=0 pieces=1\nfabric \
             circuit_switch:{}\n\
             algorithm by hand\nsteps 1\nslot 0\ncopy 0 0>1 {bytes_beside}\ncopy 1 1>0 0.0\nend \
             2\n",
            fabric(2, "10us")
        )
    };
    for (light, bytes, expected) in [
        // alpha + delta + beta m on both circuits; then on one, with L + m / b beside, the longer.
        ("0.0", 1000, 200_000 + 1000 * BETA),
        ("packet", 1000, LATENCY + 1000 * SLOW),
        ("packet", 1, LATENCY + SLOW),
    ] {
        let plan = text::read(&text(light)).unwrap();
        assert!(verify(&plan).is_empty());
        assert!(text::write(&plan).contains(light));
        for policy in [
            Policy::AllStop,
            Policy::PerPort,
            Policy::Planes,
            Policy::Free,
        ] {
            let outcome = simulate::circuit::simulate(&plan, Bytes::new(bytes), policy).unwrap();
            assert_eq!(
                outcome.time.ps(),
                expected,
                "{light} {bytes} {}",
                policy.name()
            );
        }
    }
    let without = text("packet").replace(&format!(",{BESIDE}"), "");
    let plan = text::read(&without).unwrap();
    assert_eq!(verify(&plan)[0].kind, ViolationKind::Path);
    assert!(simulate::circuit::simulate(&plan, Bytes::new(1), Policy::Free).is_err());
}

#[test]
fn settings_go_beside_where_changes_are_dear() {
    // Steps of halving and doubling on 8 ranks, each on a shift of its own, on the ring, or beside:
    // the least of all sequences.
    for size in [1u64 << 6, 1 << 12, 1 << 20] {
        for change in [0u64, 1_000, 10_000, 1_000_000] {
            let fabric = fabric(8, &format!("{change}ns"));
            let found = time(
                AllReduce,
                "switch_configurations:algorithm=cyclic_doubling",
                &fabric,
                size,
                Policy::AllStop,
            );
            let steps = super::steps(8, size);
            assert_eq!(found, least(&steps, change * 1000, None), "{size} {change}");
        }
    }
}

/// Returns the least time over all sequences in which a step uses shifts by a power of 2 or the
/// network beside the switch.
fn least(steps: &[(u32, u64)], change: u64, before: Option<u32>) -> u64 {
    let Some((first, rest)) = steps.split_first() else {
        return 0;
    };
    let beside = LATENCY + SLOW * first.1 + least(rest, change, before);
    let of_setting = |setting: u32| {
        let changed = before.is_some_and(|before| before != setting);
        let rest = least(rest, change, Some(setting));
        Some(super::step_time(*first, setting)? + u64::from(changed) * change + rest)
    };
    (0..3).filter_map(of_setting).min().unwrap().min(beside)
}

#[test]
fn auto_takes_the_network_for_short_messages() {
    let is_beside = |size: u64, reconfiguration: &str, planes: u32| {
        // On one setting a block goes over ten circuits of 100 ns and more.
        let fabric = fabric(32, reconfiguration).replace("latency=2us", "latency=300ns");
        let fabric = format!("{fabric},ports={planes},planes={planes}");
        let plan = proved(AllToAll, "auto", &fabric, size, Policy::AllStop);
        plan.light.contains(&SwitchedLight::PACKET)
    };
    for planes in [1, 2] {
        assert!(is_beside(64, "10ms", planes));
        assert!(!is_beside(1 << 30, "1us", planes));
    }
}

#[test]
fn bounds_add_the_network() {
    let mut left_out = crate::leaves_out(7);
    let fabric = Fabric::parse(&format!("circuit_switch:{}", fabric(8, "10us"))).unwrap();
    assert_eq!(fabric.injection_bandwidth(), 880_000_000_000);
    let collective = Collective::new(AllGather, 8).unwrap();
    // alpha + delta is less than L; 7 blocks of 880 kB at 880 Gb/s.
    let least = bound_of(&fabric, &collective, 880_000, Policy::AllStop);
    assert_eq!(least.ps(), 200_000 + 7 * 8_000_000);
    for kind in CollectiveKind::ALL {
        for more in [
            "",
            ",first_configuration=charged",
            ",ports=2,planes=2,dead_ports=1.0",
            ",forwarding=cut_through,ports=2",
            ",ports=2,planes=2,switch_ports=3",
        ] {
            for policy in POLICIES {
                for size in [640, 1 << 20] {
                    if left_out() {
                        continue;
                    }
                    let fabric = format!("{}{more}", self::fabric(7, "1us"));
                    time(kind, "auto", &fabric, size, policy);
                }
            }
        }
    }
}

#[test]
fn messages_beside_need_a_network() {
    let collective = Collective::new(AllGather, 8).unwrap();
    let spec = "switch_configurations:algorithm=ring,configurations=packet";
    let fabric = Fabric::parse("circuit_switch:ranks=8").unwrap();
    let refused = crate::refusal(spec, &fabric, collective, Some(Policy::Free));
    assert!(refused.contains("packet_rate"), "{refused}");
}
