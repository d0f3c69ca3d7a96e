//! Dead ports, and switches with too few ports for all ranks.

use opticoll::collective::Collective;
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate::Policy;

use super::{AllGather, AllReduce, AllToAll, BETA, POLICIES, bound_of, proved, time};

/// Returns the ranks on the route of each transfer.
fn routes(plan: &Plan) -> Vec<Vec<u32>> {
    let route = |transfer: usize| {
        let from = plan.schedule.ends(transfer).0;
        let to = plan.hops_of(transfer).map(|hop| hop.to);
        std::iter::once(from).chain(to).collect()
    };
    (0..plan.len()).map(route).collect()
}

#[test]
fn all_collectives_go_around_dead_ports() {
    let mut left_out = crate::leaves_out(5);
    for fabric in [
        "ranks=6,ports=2,dead_ports=3.0",
        "ranks=6,ports=2,planes=2,dead_ports=3.0,latency=100ns",
        "ranks=5,ports=2,planes=2,dead_ports=0.1+1.0,reconfiguration=1us",
        "ranks=7,ports=4,planes=2,dead_ports=0.0+0.1+2.3+6.0+6.2+6.3,first_configuration=charged",
        "ranks=9,ports=2,planes=2,switch_ports=3,dead_ports=4.0",
        "ranks=11,ports=4,planes=4,switch_ports=4,dead_ports=0.0+5.1+5.3+10.2",
    ] {
        for kind in [AllGather, AllReduce, AllToAll] {
            for policy in POLICIES {
                for size in [600, 1 << 20] {
                    if left_out() {
                        continue;
                    }
                    time(kind, "auto", fabric, size, policy);
                }
            }
            for algorithm in ["direct", "ring"] {
                if kind != AllToAll || algorithm == "direct" {
                    time(kind, algorithm, fabric, 1 << 20, Policy::AllStop);
                }
            }
        }
    }
}

#[test]
fn ranks_whose_ports_are_dead_on_other_planes_meet_over_a_third() {
    let fabric = "ranks=3,ports=2,planes=2,dead_ports=0.1+1.0,rate=800Gb/s";
    let plan = proved(AllGather, "direct", fabric, 1000, Policy::Free);
    let mut routes = routes(&plan);
    routes.sort();
    // Rank 0 is on plane 0 only, rank 1 on plane 1 only, rank 2 on both.
    let expected = [
        vec![0, 2],
        vec![0, 2, 1],
        vec![1, 2],
        vec![1, 2, 0],
        vec![2, 0],
        vec![2, 1],
    ];
    assert_eq!(routes, expected);
}

#[test]
fn messages_change_digit_after_digit() {
    // 4 x 4 ranks: rows on planes 0 and 2, columns on planes 1 and 3.
    for (planes, switch_ports) in [(2, 4), (4, 4)] {
        let fabric = format!("ranks=16,ports={planes},planes={planes},switch_ports={switch_ports}");
        let plan = proved(AllToAll, "direct", &fabric, 16_000, Policy::AllStop);
        for route in routes(&plan) {
            let (from, to) = (route[0], route[route.len() - 1]);
            let digits = u32::from(from % 4 != to % 4) + u32::from(from / 4 != to / 4);
            assert_eq!(route.len() as u32, digits + 1, "{route:?}");
        }
    }
}

#[test]
fn numbers_that_are_no_power_have_routes_too() {
    for ranks in [5, 6, 7, 10, 13, 17, 23] {
        for joined in [2u32, 3, 4] {
            let planes = (1..).find(|digits| joined.pow(*digits) >= ranks).unwrap();
            let fabric =
                format!("ranks={ranks},ports={planes},planes={planes},switch_ports={joined}");
            time(AllToAll, "direct", &fabric, 1 << 20, Policy::AllStop);
            time(AllReduce, "auto", &fabric, 1 << 10, Policy::Planes);
        }
    }
}

#[test]
fn a_rank_with_fewer_ports_bounds_what_it_must_send() {
    let least = |kind, dead: &str| {
        let fabric =
            format!("circuit_switch:ranks=8,ports=2,rate=800Gb/s,reconfiguration=0s{dead}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let collective = Collective::new(kind, 8).unwrap();
        bound_of(&fabric, &collective, 8_000_000, Policy::Free).ps()
    };
    // Each rank receives 7 times 8 MB; 7 MB of an all_to_all.
    assert_eq!(least(AllGather, ""), 7 * 8_000_000 * BETA / 2);
    assert_eq!(least(AllGather, ",dead_ports=5.1"), 7 * 8_000_000 * BETA);
    assert_eq!(least(AllToAll, ""), 7 * 1_000_000 * BETA / 2);
    assert_eq!(least(AllToAll, ",dead_ports=5.1"), 7 * 1_000_000 * BETA);
    // Two ports of 16 are dead: 2 (n - 1) M bytes at 14 times the rate.
    let all = 2 * 7 * 8_000_000 * BETA / 14;
    assert_eq!(
        least(AllReduce, ",dead_ports=5.1+6.0"),
        all.max(8_000_000 * BETA)
    );
}

#[test]
fn shifts_leave_out_ports_that_are_dead_at_a_rank() {
    let fabric = "ranks=8,ports=3,dead_ports=2.1,rate=800Gb/s";
    let plan = proved(AllToAll, "shifts:shifts=1+3", fabric, 8000, Policy::Free);
    assert!(
        plan.light
            .iter()
            .all(|light| [0, 2 << 9 | 2].contains(&light.0))
    );
    let refused = |fabric: &str| {
        let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
        let collective = Collective::new(AllToAll, fabric.ranks()).unwrap();
        crate::refusal("shifts", &fabric, collective, Some(Policy::Free))
    };
    let each = refused("ranks=8,ports=2,dead_ports=2.1+3.0");
    assert!(each.contains("each port is dead at some rank"), "{each}");
    let small = refused("ranks=8,ports=2,planes=2,switch_ports=4");
    assert!(small.contains("leave switch_ports out"), "{small}");
}

#[test]
fn fabrics_that_part_their_ranks_are_refused() {
    for silent in [
        "ranks=8,switch_ports=8",
        "ranks=8,ports=4,planes=2,switch_ports=16",
    ] {
        let fabric = Fabric::parse(&format!("circuit_switch:{silent}")).unwrap();
        assert!(!fabric.spec().to_string().contains("switch_ports"));
    }
}

#[test]
fn words_name_the_switches_and_their_ports() {
    for (fabric, words) in [
        ("ranks=64", "1 plane of a switch with 64 ports"),
        (
            "ranks=64,ports=4,planes=2",
            "2 planes of a switch with 128 ports",
        ),
        (
            "ranks=64,ports=2,planes=2,switch_ports=8",
            "2 planes of 8 switches with 8 ports",
        ),
        (
            "ranks=12,ports=2,planes=2,switch_ports=8",
            "2 planes of 2+8 switches with 8 ports",
        ),
    ] {
        let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
        assert!(
            fabric.description().contains(words),
            "{}",
            fabric.description()
        );
    }
}
