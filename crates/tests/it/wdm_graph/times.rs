//! Times of lightpaths on graphs, by hand: rates of links, wavelengths and lengths, light trees,
//! and reconfigurations.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate::{Policy, TimingModel, simulate};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use crate::{handwritten, proved_plan};

#[track_caller]
fn takes(plan: &Plan, policy: Policy, expected: &str) {
    assert_eq!(verify(plan), [], "{}", plan.fabric);
    let outcome = simulate(plan, Bytes::new(1000), policy, "circuit").unwrap();
    let expected: Time = expected.parse().unwrap();
    assert_eq!(outcome.time, expected, "{policy:?} on {}", plan.fabric);
}

/// 1000 bytes take 800 ns at 10 Gb/s. A setup takes 25 us.
#[test]
fn a_lightpath_has_the_rate_of_its_slowest_part() {
    for (options, expected) in [
        ("rate=10Gb/s", "800ns"),
        ("rate=10Gb/s,latency=100ns", "1us"),
        ("rate=10Gb/s,conversion=5ns", "805ns"),
        // 32 flits of 32 bytes, the last of which has 8 bytes: 800 ns, and the conversion of one.
        ("rate=10Gb/s,conversion=5ns,flit=32B", "805ns"),
        (
            "rate=10Gb/s,conversion=5ns,flit=32B,packet=message",
            "960ns",
        ),
        ("rate=10Gb/s,degraded=1-2@5Gb/s", "1600ns"),
        ("rate=10Gb/s,degraded=2>1@5Gb/s", "800ns"),
        ("rate=10Gb/s,degraded=w0@4Gb/s", "2us"),
        ("rate=10Gb/s,degraded=w1@4Gb/s", "800ns"),
        ("rate=10Gb/s,degraded=1-2@5Gb/s+w0@4Gb/s", "2us"),
        ("rate=10Gb/s,fibres=2,degraded=w1.0@4Gb/s", "800ns"),
        ("rate=20Gb/s,reach=2@10Gb/s+1@20Gb/s", "800ns"),
        ("rate=20Gb/s,reach=3@10Gb/s+2@20Gb/s", "400ns"),
        ("rate=5Gb/s,reach=2@10Gb/s+1@20Gb/s", "1600ns"),
    ] {
        let fabric = format!("wdm_graph:ranks=3,links=0-1+1-2,wavelengths=2,{options}");
        // The second transfer is as fast, because it crosses one link of the first.
        let slots = "slot 0\ncopy 0 0>2 0.0 via 0.2";
        let plan = handwritten(&fabric, "broadcast 1", slots);
        let outcome = simulate(&plan, Bytes::new(1000), Policy::Free, "circuit").unwrap();
        assert_eq!(outcome.time, expected.parse().unwrap(), "{options}");
    }
}

#[test]
fn light_of_converters_has_the_lowest_rate_of_its_fibre() {
    let fabric = "wdm_graph:ranks=2,links=0-1,wavelengths=2,rate=10Gb/s,degraded=w1@4Gb/s";
    let plan = handwritten(
        &format!("{fabric},converters=full"),
        "broadcast 1",
        "slot 0\ncopy 0 0>1 0.* via 0",
    );
    takes(&plan, Policy::Free, "2us");
}

/// Switch 4 splits the light: rank 3 is 300 ns away over a link of 5 Gb/s, ranks 1 and 2 are 200 ns
/// away over links of 10 Gb/s. All of them receive at 5 Gb/s, and rank 3 is the last.
#[test]
fn a_light_tree_takes_the_time_of_its_slowest_transfer() {
    let links = "0-4@10Gb/s@100ns+1-4@10Gb/s@100ns+2-4@10Gb/s@100ns+3-4@5Gb/s@200ns";
    let fabric = format!(
        "wdm_graph:ranks=4,switches=1,links={links},wavelengths=1,multicast=drop_and_continue"
    );
    let slots = "slot 0\ncopy 0 0>1 0.0 via 0.3\ncopy 0 0>2 0.0 via 0.5\ncopy 0 0>3 0.0 via 0.7";
    let plan = handwritten(&fabric, "broadcast 1", slots);
    takes(&plan, Policy::Free, "1900ns");
    takes(&plan, Policy::PerPort, "26900ns");
    let outcome = simulate(&plan, Bytes::new(1000), Policy::Free, "circuit").unwrap();
    // The tree occupies the link from rank 0 once.
    assert_eq!(outcome.links.bytes, [1000, 0, 0, 1000, 0, 1000, 0, 1000]);
    assert_eq!(outcome.ranks.sent, [1000, 0, 0, 0]);
    assert_eq!(outcome.slots.lightpaths, [1]);
}

/// Both plans send twice from rank 0 to rank 1, with light 0.0; the second over another route.
#[test]
fn another_route_is_another_circuit() {
    let fabric = "wdm_graph:ranks=3,links=0-1+0-2+2-1,wavelengths=1,rate=10Gb/s";
    let first = "slot 0\ncopy 1 0>1 0.0 via 0";
    let last = "slot 2\ncopy 2 1>2 0.0 via 5";
    let [same, other] =
        ["0", "2.4"].map(|route| format!("{first}\nslot 1\ncopy 2 0>1 0.0 via {route}\n{last}"));
    for (slots, transmitters, on_change, per_port) in [
        // All circuits can be up from the beginning.
        (&same, "all", "27400ns", "27400ns"),
        (&other, "all", "27400ns", "26600ns"),
        // One transmitter must be set to two circuits, one after the other.
        (&same, "1", "27400ns", "27400ns"),
        (&other, "1", "52400ns", "52400ns"),
    ] {
        let fabric = format!("{fabric},transmitters={transmitters}");
        let plan = handwritten(&fabric, "scatter 1 1 1", slots);
        takes(&plan, Policy::OnChange, on_change);
        takes(&plan, Policy::PerPort, per_port);
        takes(&plan, Policy::EveryStep, "77400ns");
        takes(&plan, Policy::Free, "2400ns");
    }
}

/// The channel of a half-duplex link waits for the light of the other direction; the transmitter of
/// rank 0 keeps its circuit meanwhile.
#[test]
fn both_ends_of_a_half_duplex_link_have_a_transmitter() {
    let fabric = "wdm_graph:ranks=3,links=0~1+1-2,wavelengths=1,rate=10Gb/s";
    let slots =
        "slot 0\ncopy 1 0>1 0.0 via 0\nslot 1\ncopy 3 1>0 0.0 via 0\nslot 2\ncopy 2 0>1 0.0 via 0";
    let plan = handwritten(fabric, "all_to_all 1 1 1", slots);
    for (policy, expected) in [
        (Policy::PerPort, "52400ns"),
        (Policy::OnChange, "77400ns"),
        (Policy::Free, "2400ns"),
    ] {
        let outcome = simulate(&plan, Bytes::new(3000), policy, "circuit").unwrap();
        assert_eq!(outcome.time, expected.parse().unwrap(), "{policy:?}");
    }
}

/// Two lightpaths pass rank 1. With one converter, they cannot be up at the same time.
#[test]
fn circuits_of_a_configuration_share_the_converters_of_a_vertex() {
    for (converters, expected) in [("full", "26600ns"), ("2", "26600ns"), ("1", "51600ns")] {
        let fabric = format!(
            "wdm_graph:ranks=3,links=0-1+1-2,wavelengths=2,rate=10Gb/s,converters={converters}"
        );
        let slots = "slot 0\ncopy 1 0>2 0.* via 0.2\nslot 1\ncopy 1 2>0 0.* via 3.1";
        let plan = handwritten(&fabric, "gather 1 1", slots);
        let outcome = simulate(&plan, Bytes::new(1000), Policy::OnChange, "circuit").unwrap();
        assert_eq!(outcome.time, expected.parse().unwrap(), "{converters}");
        let refused = simulate(&plan, Bytes::new(1000), Policy::PerPort, "circuit");
        assert!(refused.is_err(), "{converters}");
    }
}

/// Light of rank 0 on 0.0 branches behind switch 3. A second slot whose light reaches the link to
/// rank 1 from another switch needs a new configuration.
#[test]
fn circuits_of_a_light_tree_agree_before_a_link_that_they_share() {
    let links = "links=0-3+3-4+4-6+3-5+5-6+6-1+1-2";
    let fabric = format!(
        "wdm_graph:ranks=3,switches=4,{links},wavelengths=1,rate=10Gb/s,multicast=drop_and_continue"
    );
    for (route, expected) in [("0.2.4.10.12", "26600ns"), ("0.6.8.10.12", "51600ns")] {
        let slots =
            format!("slot 0\ncopy 1 0>1 0.0 via 0.2.4.10\nslot 1\ncopy 2 0>2 0.0 via {route}");
        let plan = handwritten(&fabric, "scatter 1 1", &slots);
        takes(&plan, Policy::OnChange, expected);
    }
}

#[test]
fn specifications_print_what_they_read() {
    for (given, printed) in [
        ("reach=8", "reach=8"),
        ("reach=2@200Gb/s+8@100Gb/s", "reach=8@100Gb/s+2@200Gb/s"),
        ("converters=full", "converters=full"),
        ("converters=3", "converters=3"),
        ("multicast=drop_and_continue", "multicast=drop_and_continue"),
        ("dead=1+0.0,fibres=2", "dead=0.0+1"),
        (
            "degraded=w1@10Gb/s+0-1@20Gb/s",
            "degraded=0-1@20Gb/s+w0.1@10Gb/s",
        ),
        ("degraded=w1@10Gb/s,without=0-1", "without=0-1"),
        (
            "conversion=1ns,flit=32B,packet=message",
            "conversion=1ns,flit=32B,packet=message",
        ),
    ] {
        let fabric = Fabric::parse(&format!("wdm_torus:dims=3,wavelengths=2,{given}")).unwrap();
        let text = fabric.to_string();
        assert!(text.contains(printed), "{text} lacks {printed}");
        assert_eq!(Fabric::parse(&text).unwrap(), fabric, "{text}");
    }
}

#[test]
fn values_without_meaning_are_refused() {
    for (given, message) in [
        ("converters=0", "must be `none`, `full`, or a number"),
        ("converters=some", "must be `none`, `full`, or a number"),
        ("reach=0", "must be from 1"),
        ("reach=8+2@10Gb/s", "`8` has no rate"),
        ("reach=0@10Gb/s", "does not begin with a number of links"),
        ("reach=8@10Gb/s+8@20Gb/s", "two rates for 8 links"),
        ("reach=8@20Gb/s+2@10Gb/s", "longer lightpaths must be lower"),
        ("dead=2", "wavelengths count from 0 and are below 2"),
        ("dead=0+1", "no wavelength is left"),
        ("degraded=w2@10Gb/s", "are below 2"),
        ("degraded=w1@100Gb/s", "a degraded part has less"),
        ("degraded=w1", "has no rate"),
        ("packet=32B", "needs flit"),
    ] {
        let fabric = Fabric::parse(&format!("wdm_torus:dims=3,wavelengths=2,{given}"));
        let error = fabric.expect_err(given).to_string();
        assert!(error.contains(message), "{given}: {error}");
    }
}

/// A rank of a 3x3 mesh in a corner has two links of 10 Gb/s, with 4 channels each.
#[test]
fn the_injection_bandwidth_counts_the_channels_that_leave_a_rank() {
    for (options, gigabits) in [
        ("", 80),
        ("fibres=2", 160),
        ("dead=1", 60),
        ("transmitters=3", 30),
        ("transmitters=8", 80),
        ("degraded=w0@4Gb/s", 68),
        ("degraded=w0@4Gb/s,dead=0", 60),
        ("degraded=w0@4Gb/s,transmitters=7", 64),
        ("degraded=0-1@5Gb/s", 60),
        ("reach=2@3Gb/s+1@6Gb/s", 48),
    ] {
        let options = options.split(',').filter(|option| !option.is_empty());
        let options: String = options.map(|option| format!(",{option}")).collect();
        let fabric = format!("wdm_mesh:dims=3x3,rate=10Gb/s,wavelengths=4{options}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let expected = gigabits * 1_000_000_000;
        assert_eq!(fabric.injection_bandwidth(), expected, "{fabric}");
    }
}

#[test]
fn a_part_of_a_graph_has_fewer_ranks_and_all_links() {
    let fabric = "wdm_torus:dims=3x3,wavelengths=4,degraded=0-1@5Gb/s+w1@4Gb/s,dead=2";
    let fabric = Fabric::parse(fabric).unwrap();
    let part = fabric.part(&[0, 4, 8]).unwrap();
    assert_eq!(part.ranks(), 3);
    let nodes: Vec<u32> = (0..3).map(|rank| part.node(rank)).collect();
    assert_eq!(nodes, [0, 4, 8]);
    let links = |fabric: &Fabric| fabric.routed_links().unwrap().links().len();
    assert_eq!(links(&part), links(&fabric));
}

/// The alternatives are all parts at full rate, and the graph without the slower parts.
#[test]
fn plans_of_a_graph_with_slower_parts_try_it_without_them() {
    for (degraded, alternatives) in [
        ("w1@4Gb/s", &["", "dead=0+1"][..]),
        ("0-1@5Gb/s", &["", "without=0-1"]),
        (
            "0-1@5Gb/s+w1@4Gb/s",
            &["", "dead=0+1", "without=0-1", "without=0-1,dead=0+1"],
        ),
    ] {
        let fabric = format!("wdm_torus:dims=3x3,wavelengths=4,dead=0,degraded={degraded}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let expected = alternatives.iter().map(|options| {
            let dead = if options.contains("dead") {
                ""
            } else {
                "dead=0"
            };
            let options = [dead, options]
                .into_iter()
                .filter(|option| !option.is_empty());
            let options: Vec<&str> = options.collect();
            let fabric = format!("wdm_torus:dims=3x3,wavelengths=4,{}", options.join(","));
            Fabric::parse(&fabric).unwrap()
        });
        let expected: Vec<Fabric> = expected.collect();
        assert_eq!(fabric.planning_alternatives(), expected, "{degraded}");
    }
}

#[test]
fn plans_on_slower_graphs_name_routes_of_the_graph() {
    for options in ["degraded=w1@4Gb/s", "degraded=0-1@5Gb/s", "without=0>1"] {
        let fabric = format!("wdm_torus:dims=3x3,wavelengths=3,{options}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, 9).unwrap();
        let method = TimingModel::default();
        proved_plan("direct", &fabric, collective, Bytes::new(1 << 16), &method);
    }
}
