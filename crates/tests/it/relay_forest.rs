//! Relay forests on graphs of fibres: verified, never below a bound, and with the number of slots
//! that theory or an exhaustive search gives.

use opticoll::bounds;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::Bytes;

use itertools::iproduct;

use crate::{plan_by, proved_plan, refusal};

const KINDS: [CollectiveKind; 8] = [
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllReduce,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::Scatter,
    CollectiveKind::Gather,
    CollectiveKind::AllToAll,
];

/// Returns the verified plan of a specification, and checks that its slots and time are not below
/// the bounds.
fn check(spec: &str, fabric: &str, kind: CollectiveKind, root: u32, policy: Policy) -> Plan {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let collective = collective.with_root(root).unwrap();
    let size = Bytes::new(1 << 20);
    let planned = proved_plan(spec, &fabric, collective, size, &policy.into());
    let plan = planned.plan;
    let at = format!("{kind} by {spec} on {fabric}, {policy:?}");
    assert_eq!(plan.schedule.collective.root(), root, "{at}");
    let single = plan.has_one_chunk_per_lightpath();
    if let Some(bound) = bounds::slots_bound(&fabric, &collective, single) {
        assert!(u64::from(plan.slots()) >= bound.steps, "{at}: {bound:?}");
    }
    let bound = opticoll::planner::time_bound(&fabric, &collective, size, &policy.into());
    let took = simulate::simulate(&plan, size, policy, "circuit").unwrap();
    if let Some(bound) = bound.unwrap() {
        assert!(took.time >= bound.time, "{at}: {} {bound:?}", took.time);
    }
    plan
}

fn slots(spec: &str, fabric: &str, kind: CollectiveKind) -> u32 {
    check(spec, fabric, kind, 0, Policy::EveryStep).slots()
}

#[test]
fn plans_are_verified_on_graphs_of_all_kinds() {
    let fabrics = [
        "wdm_torus:dims=4x4,wavelengths=2",
        "wdm_torus:dims=3x4,wavelengths=1,fibres=2",
        "wdm_mesh:dims=2x3,wavelengths=3",
        "wdm_graph:ranks=5,links=0-1+1-2+2-3+3-4+4-0+0-2,wavelengths=2",
        "wdm_graph:ranks=4,switches=1,links=0-4+1-4+2-4+3-4,wavelengths=2",
        "wdm_torus:dims=3x3,wavelengths=2,transmitters=2,receivers=3",
        "wdm_mesh:dims=3x3,wavelengths=2,reach=1",
        "wdm_torus:dims=3x3,wavelengths=4,dead=1",
        // Light reaches 25 dB / 0.2 dB/km = 125 km: not from 0 over 1 to 2, which is 150 km.
        "wdm_graph:ranks=4,links=0-1@100km+1-2@50km+2-3@70km+3-0@20km,wavelengths=2,\
         launch_power=0dBm,sensitivity=-25dBm,fibre_loss=0.2dB/km",
        "wdm_graph:ranks=4,links=0-1@10km+1-2@20km+2-3@10km+3-0@40km,wavelengths=2",
    ];
    let specs = [
        "relay_forest:pieces=1,circuits=change",
        "relay_forest:pieces=3,circuits=change,load=2",
        "relay_forest:pieces=2,circuits=neighbours",
        "relay_forest:pieces=1,circuits=change,delays=100+100",
    ];
    let policies = [Policy::EveryStep, Policy::OnChange];
    for (fabric, spec, kind, policy) in iproduct!(fabrics, specs, KINDS, policies) {
        // Around a switch, no link leads from a rank to another.
        if fabric.contains("switches") && spec.contains("neighbours") {
            continue;
        }
        check(spec, fabric, kind, 0, policy);
    }
}

#[test]
fn ranks_send_only_data_that_they_have() {
    // With loads above 1, the search of a scatter also brings blocks to ranks that do not pass them
    // on. A gather is a scatter reversed in time.
    let links = "0>1+1-2+2-3+3-4+4-5+5>6+6-7+7-8+8-0";
    let graph = format!("wdm_graph:ranks=9,links={links},wavelengths=3");
    for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
        for load in 2..6 {
            let spec = format!("relay_forest:pieces=2,circuits=change,load={load}");
            check(&spec, &graph, kind, 4, Policy::EveryStep);
        }
    }
}

#[test]
fn any_rank_can_be_the_root() {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    let fabric = "wdm_mesh:dims=2x3,wavelengths=2";
    for (kind, root) in iproduct!([Broadcast, Reduce, Scatter, Gather], 0..6) {
        check(
            "relay_forest:pieces=2",
            fabric,
            kind,
            root,
            Policy::EveryStep,
        );
    }
}

/// Returns the fewest slots of an all_reduce with any number of owners.
fn slots_with_any_owners(fabric: &str) -> u32 {
    let parsed = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, parsed.ranks()).unwrap();
    let numbers = (1..=parsed.ranks()).map(|count| count.to_string());
    let specs = numbers.chain(["none".to_owned()]).map(|owners| {
        let spec = format!("relay_forest:pieces=1,circuits=change,owners={owners}");
        let method = Policy::EveryStep.into();
        let size = Bytes::new(1 << 20);
        let planned = plan_by(&spec.parse().unwrap(), &parsed, collective, size, &method);
        planned
            .is_ok()
            .then(|| slots(&spec, fabric, CollectiveKind::AllReduce))
    });
    specs.flatten().min().unwrap()
}

#[test]
fn small_graphs_need_nearly_the_fewest_slots() {
    let optima = include_str!("../data/wdm_graph_optima.txt");
    let (mut cases, mut excess) = (0, 0);
    for line in optima.lines().filter(|line| !line.starts_with('#')) {
        let [kind, fabric, least] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let least: u32 = least.parse().unwrap();
        let (slots, most) = match kind.parse().unwrap() {
            CollectiveKind::AllReduce => (slots_with_any_owners(fabric), least + 2),
            kind => (
                slots("relay_forest:pieces=1,circuits=change", fabric, kind),
                least + 1,
            ),
        };
        assert!((least..=most).contains(&slots), "{line}: {slots} slots");
        cases += 1;
        excess += slots - least;
    }
    // At most one plan in twenty has a slot more than the fewest.
    assert!(cases > 300 && 20 * excess <= cases, "{excess} of {cases}");
}

#[test]
fn an_all_gather_in_one_slot_has_the_fewest_wavelengths() {
    // The load of all pairs is k^3 / 8 on a torus k x k (Beauquier 1998). With one wavelength
    // fewer, one slot is impossible.
    let in_slots = |wavelengths: u32| {
        let fabric = format!("wdm_torus:dims=4x4,wavelengths={wavelengths}");
        let spec = "relay_forest:pieces=1,circuits=change";
        slots(spec, &fabric, CollectiveKind::AllGather)
    };
    assert_eq!((in_slots(8), in_slots(7)), (1, 2));
}

#[test]
fn lightpaths_that_stay_need_one_reconfiguration() {
    for (kind, spec) in [
        (CollectiveKind::AllGather, "pieces=8,circuits=neighbours"),
        (CollectiveKind::AllReduce, "pieces=8,circuits=neighbours"),
        (
            CollectiveKind::AllToAll,
            "pieces=1,circuits=stay,load=4,relays=tree",
        ),
    ] {
        let fabric = "wdm_torus:dims=4x4,wavelengths=4,reconfiguration=1s";
        let spec = format!("relay_forest:{spec}");
        let plan = check(&spec, fabric, kind, 0, Policy::OnChange);
        let took = simulate::simulate(&plan, Bytes::new(1 << 20), Policy::OnChange, "circuit");
        assert_eq!(took.unwrap().time.ps() / 1_000_000_000_000, 1, "{kind}");
    }
}

#[test]
fn an_all_to_all_along_trees_has_the_slots_of_an_all_gather() {
    let fabric = "wdm_torus:dims=8x8,wavelengths=8";
    let spec = "relay_forest:pieces=1,circuits=change";
    let gather = slots(spec, fabric, CollectiveKind::AllGather);
    let trees = format!("{spec},relays=tree");
    assert_eq!(slots(&trees, fabric, CollectiveKind::AllToAll), gather);
    // 64 ranks have 64^3 / 8 lightpaths of direct plans on 8 of 64 wavelengths.
    assert!(slots(spec, fabric, CollectiveKind::AllToAll) >= 8);
}

#[test]
fn few_owners_add_up_a_vector_in_two_slots() {
    // On NSFNET, all pairs need 12 wavelengths, so a reduce_scatter has two slots of 8 wavelengths.
    let nsfnet = "nsfnet:wavelengths=8";
    let all = slots(
        "relay_forest:pieces=1,circuits=change",
        nsfnet,
        CollectiveKind::AllReduce,
    );
    let spec = "relay_forest:pieces=1,circuits=change,owners=4";
    assert!(all >= 4);
    assert_eq!(slots(spec, nsfnet, CollectiveKind::AllReduce), 2);
}

#[test]
fn without_owners_an_all_reduce_has_one_slot() {
    let spec = "relay_forest:pieces=1,circuits=change,owners=none";
    let torus = "wdm_torus:dims=4x4,wavelengths=8";
    assert_eq!(slots(spec, torus, CollectiveKind::AllReduce), 1);
    let fabric = Fabric::parse("wdm_torus:dims=4x4,wavelengths=7").unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, 16).unwrap();
    refusal(spec, &fabric, collective, None);
}

#[test]
fn striped_plans_take_as_long_as_their_electrical_plans() {
    let links = "dims=4x4,rate=100Gb/s";
    let electrical = Fabric::parse(&format!("torus:{links},latency=0s")).unwrap();
    let kinds = [
        CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter,
        CollectiveKind::Broadcast,
    ];
    for kind in kinds {
        let fabric = format!("wdm_torus:{links},wavelengths=4,reconfiguration=1us");
        let plan = check(
            "one_hop:plan=matching/chunks=4",
            &fabric,
            kind,
            0,
            Policy::OnChange,
        );
        // All blocks have four chunks of four stripes, without remainder.
        let size = Bytes::new(1 << 20);
        let took = simulate::simulate(&plan, size, Policy::OnChange, "circuit").unwrap();
        let collective = Collective::new(kind, 16).unwrap();
        let quarter = Bytes::new(1 << 18);
        let method = opticoll::simulate::TimingModel::default();
        let spec = "matching:chunks=4";
        let messages = proved_plan(spec, &electrical, collective, quarter, &method).plan;
        let sent = opticoll::simulate::run_watched(&messages, quarter, &method, &mut |_| true);
        let setup = took.time.ps() - sent.unwrap().time.ps();
        assert_eq!(setup, 1_000_000, "{kind}");
        assert_eq!(plan.slots() as usize, messages.schedule.steps(), "{kind}");
    }
}

#[test]
fn messages_that_share_a_link_have_no_striped_plan() {
    let star = "wdm_graph:ranks=4,switches=1,links=0-4+1-4+2-4+3-4,wavelengths=2";
    let fabric = Fabric::parse(star).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 4).unwrap();
    let reason = refusal(
        "one_hop:plan=direct/order=at_once",
        &fabric,
        collective,
        None,
    );
    assert!(reason.contains("share a link"), "{reason}");
}

#[test]
fn other_fabrics_and_options_are_refused() {
    let switch = Fabric::parse("circuit_switch:ranks=8").unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 8).unwrap();
    let reason = refusal("relay_forest", &switch, collective, None);
    assert!(reason.contains("graph of fibres"), "{reason}");
    let torus = Fabric::parse("wdm_torus:dims=2x4,wavelengths=2").unwrap();
    let reason = refusal("relay_forest:relays=tree", &torus, collective, None);
    assert!(reason.contains("all_to_all"), "{reason}");
    for delays in ["100", "0+5", "201+1", "50-50", "+5+5"] {
        let spec = format!("relay_forest:delays={delays}");
        let reason = refusal(&spec, &torus, collective, None);
        assert!(reason.contains("whole numbers from 1 to 200"), "{reason}");
    }
}

/// Picoseconds of a reconfiguration, and of a message of 1 MiB at 100 Gb/s, in the tests of delays.
const CHARGE_PS: u64 = 25_000_000;
const MESSAGE_PS: u64 = (1 << 20) * 8 * 10;
const MILLISECOND_PS: u64 = 1_000_000_000;

/// Returns the time of a plan in picoseconds and its number of slots.
fn time(spec: &str, graph: &str, kind: CollectiveKind) -> (u64, u32) {
    let fabric = format!("wdm_graph:{graph},rate=100Gb/s,reconfiguration=25us");
    let plan = check(spec, &fabric, kind, 0, Policy::EveryStep);
    let size = Bytes::new(1 << 20);
    let took = simulate::simulate(&plan, size, Policy::EveryStep, "circuit").unwrap();
    (took.time.ps(), plan.slots())
}

#[test]
fn lightpaths_within_the_delay_of_the_farthest_rank_take_the_fastest_route() {
    // The route over rank 2 takes 10 ms, the direct link 15 ms.
    let triangle = "ranks=3,links=0-1@15ms+0-2@5ms+2-1@5ms,wavelengths=2";
    let broadcast = |spec: &str| time(spec, triangle, CollectiveKind::Broadcast);
    let paid = CHARGE_PS + MESSAGE_PS;
    let fastest = (10 * MILLISECOND_PS + paid, 1);
    let shortest = (15 * MILLISECOND_PS + paid, 1);
    let spec = "relay_forest:pieces=1,circuits=change";
    assert_eq!(broadcast(spec), shortest);
    assert_eq!(broadcast(&format!("{spec},delays=100+100")), fastest);
    assert_eq!(broadcast("auto").0, fastest.0);
}

#[test]
fn only_the_first_slot_has_the_delay_to_the_farthest_rank() {
    // All pairs in one slot need four wavelengths between ranks 1 and 2. With two wavelengths, the
    // second slot serves the neighbours of these ranks, 1 ms away.
    let line = "ranks=4,links=0-1@1ms+1-2@10ms+2-3@1ms,wavelengths=2";
    let trees = "relay_forest:pieces=1,circuits=change,load=2,delays=100+10";
    let across = "relay_forest:pieces=1,circuits=change,load=2,relays=tree,delays=100+10";
    for (spec, kind) in [
        (trees, CollectiveKind::AllGather),
        (trees, CollectiveKind::ReduceScatter),
        (across, CollectiveKind::AllToAll),
    ] {
        let (took, slots) = time(spec, line, kind);
        assert_eq!(slots, 2, "{kind}");
        // The farthest ranks are 12 ms apart. A lightpath carries at most four messages: two
        // blocks, for two ranks each.
        let most = 13 * MILLISECOND_PS + 2 * CHARGE_PS + 2 * 4 * MESSAGE_PS;
        assert!(took <= most, "{kind}: {took}");
    }
}

#[test]
fn owners_are_in_the_middle_of_the_delays() {
    // Rank 2 has the fewest links to all others, but rank 1 is at most 10 ms away from all.
    let line = "ranks=5,links=0-1@10ms+1-2@1ms+2-3@1ms+3-4@1ms,wavelengths=3";
    let spec = "relay_forest:pieces=1,circuits=change,owners=1,delays=100+100";
    let slot = 10 * MILLISECOND_PS + CHARGE_PS + MESSAGE_PS;
    assert_eq!(time(spec, line, CollectiveKind::AllReduce), (2 * slot, 2));
}

#[test]
fn ranks_that_are_hard_to_join_are_joined_first() {
    // The nearest neighbours of ranks 0 and 5 are 1050 km away, or 5.1 ms. Lightpaths of the second
    // slot take at most 20 % of 19.1 ms, so both ranks must receive all blocks in the first slot.
    // All pairs need 12 wavelengths, so two slots are the fewest.
    let fabric = "nsfnet_22:wavelengths=8,rate=100Gb/s,reconfiguration=25us";
    let spec = "relay_forest:pieces=1,circuits=change,load=3,delays=100+20";
    assert_eq!(slots(spec, fabric, CollectiveKind::AllGather), 2);
}
