//! Plans of few slots with several chunks per lightpath: verified, never slower than a named
//! algorithm, never below a bound, and with the number of slots that theory gives.

mod aggregated_trees;
mod circuits_that_stay;

use crate::reconfiguration_cost;
use opticoll::bounds::wdm_ring;
use opticoll::bounds::wdm_ring::time;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::plan::Plan;
use opticoll::planner::{self, PlannerError};
use opticoll::simulate;
use opticoll::simulate::Policy;

use crate::{proved_plan, refusal, rows};

fn on(ranks: u32, wavelengths: u32) -> Fabric {
    Fabric::parse(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}")).unwrap()
}

/// Returns the verified plan of a specification, and checks that its slots and time are not below
/// the bounds.
fn check(spec: &str, fabric: &Fabric, collective: Collective, size: &str, policy: Policy) -> Plan {
    let kind = collective.kind();
    let at = format!("{kind} {spec} on {fabric}, {size}, {policy:?}");
    let size = size.parse().unwrap();
    let plan = proved_plan(spec, fabric, collective, size, &policy.into()).plan;
    assert_eq!(plan.schedule.collective.root(), collective.root(), "{at}");
    let ring = fabric.downcast::<WdmRing>().unwrap();
    if ring.ranks > 1 {
        let least = wdm_ring::slots_for_any_load(ring, &collective).steps;
        assert!(
            u64::from(plan.slots()) >= least,
            "{at}: {} slots",
            plan.slots()
        );
    }
    let bound = time::best(ring, &collective, size, reconfiguration_cost(ring, policy)).unwrap();
    let took = simulate::simulate(&plan, size, policy, "circuit")
        .unwrap()
        .time;
    assert!(took >= bound.time, "{at}: {took} is below {bound:?}");
    plan
}

const WAYS: [(CollectiveKind, &str); 16] = [
    (CollectiveKind::AllReduce, "pipelined:pieces=3"),
    (CollectiveKind::AllReduce, "hierarchical"),
    (CollectiveKind::Broadcast, "tree"),
    (CollectiveKind::Reduce, "tree"),
    (CollectiveKind::Scatter, "tree"),
    (CollectiveKind::Gather, "tree"),
    (CollectiveKind::Broadcast, "two_phases"),
    (CollectiveKind::Reduce, "two_phases"),
    (CollectiveKind::AllToAll, "store_and_forward"),
    (CollectiveKind::Broadcast, "pipelined"),
    (CollectiveKind::Reduce, "pipelined"),
    (CollectiveKind::Scatter, "pipelined"),
    (CollectiveKind::Gather, "pipelined"),
    (CollectiveKind::AllToAll, "gateways"),
    (CollectiveKind::AllGather, "gateways"),
    (CollectiveKind::ReduceScatter, "gateways"),
];

#[test]
fn plans_of_few_slots_are_right_on_every_ring() {
    let mut left_out = crate::leaves_out(4);
    for (kind, spec) in WAYS {
        for ranks in [1, 2, 3, 4, 5, 7, 8, 11, 16, 23, 37, 48, 64, 97] {
            for wavelengths in [1, 2, 5, 16, 150] {
                for size in ["7B", "10KiB", "3MiB"] {
                    if left_out() {
                        continue;
                    }
                    let collective = Collective::new(kind, ranks).unwrap();
                    let rooted = match kind {
                        CollectiveKind::Broadcast
                        | CollectiveKind::Reduce
                        | CollectiveKind::Scatter
                        | CollectiveKind::Gather => collective.with_root(ranks * 2 / 3).unwrap(),
                        _ => collective,
                    };
                    let fabric = on(ranks, wavelengths);
                    check(spec, &fabric, rooted, size, Policy::EveryStep);
                }
            }
        }
    }
}

#[test]
fn fibres_ports_converters_and_delays_are_kept() {
    let mut left_out = crate::leaves_out(5);
    for (kind, spec) in WAYS {
        for options in [
            "ranks=30,wavelengths=3,fibres=3",
            "ranks=30,wavelengths=4,ports=3",
            "ranks=30,wavelengths=4,fibres=2,converters=full",
            "ranks=30,wavelengths=4,multicast=drop_and_continue",
            "ranks=30,wavelengths=4,multicast=drop_and_continue,converters=full,ports=2",
            "ranks=30,wavelengths=8,conversion=1us,propagation=30ns",
            "ranks=30,wavelengths=8,conversion=1us,flit=4KiB,packet=8KiB",
        ] {
            let fabric = Fabric::parse(&format!("wdm_ring:{options}")).unwrap();
            let collective = Collective::new(kind, 30).unwrap();
            for policy in Policy::ALL {
                if left_out() {
                    continue;
                }
                // No rule says which port a converted lightpath waits for.
                if policy == Policy::PerPort && options.contains("converters") {
                    continue;
                }
                check(spec, &fabric, collective, "20KiB", policy);
            }
        }
    }
}

/// A collective, a specification, ranks, wavelengths, and the slots of the plan.
const GIVEN: &str = "
all_reduce | hierarchical:groups=5 | 25 | 4 | 3
all_reduce | hierarchical:groups=5,stripes=2x1 | 25 | 4 | 3
all_reduce | hierarchical:groups=5,stripes=3x1 | 25 | 4 | 5
all_reduce | hierarchical:groups=5x5 | 25 | 2 | 4
all_reduce | hierarchical:groups=4,gateways=4 | 16 | 8 | 3
all_reduce | hierarchical:groups=4,gateways=4 | 16 | 4 | 4
all_reduce | hierarchical:groups=129 | 1024 | 64 | 3
broadcast | tree:radices=5x5 | 25 | 2 | 2
broadcast | tree:radices=129x8 | 1024 | 64 | 2
reduce | tree:radices=5x5,stripes=1x2 | 25 | 2 | 3
scatter | tree:radices=1024 | 1024 | 64 | 8
gather | tree:radices=1024 | 1024 | 64 | 8
# Owners at 1, 4, 6 of 8 have load 8; 8 groups around the ring have load 8.
all_to_all | gateways:group=8,gateways=3 | 64 | 8 | 3
all_gather | gateways:group=8,gateways=3 | 64 | 8 | 3
reduce_scatter | gateways:group=8,gateways=3 | 64 | 8 | 3
all_to_all | gateways:group=8,gateways=3,stripes=1x2x3 | 64 | 8 | 6
all_to_all | gateways:group=47,gateways=4 | 1024 | 64 | 3
# Groups of 4 with load 2, 4 groups with load 2.
all_to_all | gateways:group=4 | 16 | 2 | 3
all_to_all | gateways:group=4,gateways=4 | 16 | 2 | 5
";

#[test]
fn given_groups_radices_and_stages_take_the_slots_of_their_loads() {
    // A group of m with its owner in the middle has load floor(m / 2), one of which all are owners
    // floor(m^2 / 4); an exchange among n ceil(floor(n^2 / 4) / 2); a radix q floor(q / 2); stages
    // (N / m) floor(m^2 / 4), half of it on the first. Slots are loads times stripes over c, up and
    // down.
    for [kind, spec, ranks, wavelengths, slots] in rows(GIVEN) {
        let [ranks, wavelengths, slots] = [ranks, wavelengths, slots].map(|n| n.parse().unwrap());
        let collective = Collective::new(kind.parse().unwrap(), ranks).unwrap();
        let fabric = on(ranks, wavelengths);
        let plan = check(spec, &fabric, collective, "1MiB", Policy::EveryStep);
        assert_eq!(plan.slots(), slots, "{kind} {spec}");
    }
}

#[test]
fn collectors_take_more_slots_only_for_more_lightpaths_than_ports() {
    // Each of 8 members sends to 7 others: two slots of 4 ports, in and out. 8 groups around the
    // ring have load 8, 16 have load 32, with a lightpath or two for each gateway: one slot
    // across.
    for (ranks, wavelengths) in [(64, 8), (128, 32)] {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths},ports=4");
        let fabric = Fabric::parse(&fabric).unwrap();
        for kind in [CollectiveKind::AllToAll, CollectiveKind::AllGather] {
            let collective = Collective::new(kind, ranks).unwrap();
            let spec = "gateways:group=8,gateways=8";
            let plan = check(spec, &fabric, collective, "1MiB", Policy::EveryStep);
            assert_eq!(plan.slots(), 5, "{kind} on {fabric}");
        }
    }
}

#[test]
fn trees_meet_the_growth_bound_and_the_root_s_bound() {
    for (ranks, wavelengths) in [
        (9, 1),
        (27, 1),
        (25, 2),
        (125, 2),
        (40, 3),
        (1024, 64),
        (65_536, 64),
    ] {
        let fabric = on(ranks, wavelengths);
        let ring = fabric.downcast::<WdmRing>().unwrap();
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let collective = Collective::new(kind, ranks).unwrap();
            let plan = check("tree", &fabric, collective, "1B", Policy::EveryStep);
            let least = wdm_ring::slots_for_any_load(ring, &collective).steps;
            assert_eq!(u64::from(plan.slots()), least, "{kind} on {fabric}");
        }
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            let collective = Collective::new(kind, ranks).unwrap();
            let spec = format!("tree:radices={ranks}");
            let plan = check(&spec, &fabric, collective, "1B", Policy::EveryStep);
            let least = wdm_ring::best(ring, &collective).steps;
            assert_eq!(u64::from(plan.slots()), least, "{kind} on {fabric}");
        }
    }
}

#[test]
fn small_all_to_alls_are_within_15_percent_of_the_bound() {
    for (ranks, wavelengths) in [(64, 8), (256, 32), (1024, 64)] {
        let fabric = on(ranks, wavelengths);
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(CollectiveKind::AllToAll, ranks).unwrap();
        for size in ["1KiB", "64KiB"] {
            let plan = check("gateways", &fabric, collective, size, Policy::EveryStep);
            let size = size.parse().unwrap();
            let took = simulate::simulate(&plan, size, Policy::EveryStep, "circuit").unwrap();
            let charge = reconfiguration_cost(ring, Policy::EveryStep);
            let least = time::best(ring, &collective, size, charge).unwrap();
            let gap = took.time.seconds() / least.time.seconds() - 1.0;
            assert!(gap < 0.15, "{fabric}, {size}: {gap}");
            assert_eq!(plan.slots(), 3, "{fabric}, {size}");
        }
    }
}

/// Returns the fewest slots of a broadcast from rank 0 on one channel per direction. The search
/// tries every set of lightpaths in each slot.
fn fewest_broadcast_slots(ranks: u32) -> u32 {
    let all = (1u32 << ranks) - 1;
    let mut reached = std::collections::BTreeSet::from([1u32]);
    for slot in 1.. {
        let mut next = std::collections::BTreeSet::new();
        for &informed in &reached {
            let ways = [1, ranks - 1].map(|step| {
                let mut ends = std::collections::BTreeSet::new();
                lay(ranks, step, informed, 0, 0, 0, &mut ends);
                ends
            });
            for clockwise in &ways[0] {
                next.extend(ways[1].iter().map(|counter| informed | clockwise | counter));
            }
        }
        if next.contains(&all) {
            return slot;
        }
        reached = next;
    }
    unreachable!("a slot informs somebody")
}

/// Collects the sets of ranks that lightpaths from informed ranks end at, on links in use once.
fn lay(
    ranks: u32,
    step: u32,
    informed: u32,
    from: u32,
    links: u32,
    ends: u32,
    found: &mut std::collections::BTreeSet<u32>,
) {
    if from == ranks {
        found.insert(ends);
        return;
    }
    lay(ranks, step, informed, from + 1, links, ends, found);
    if informed >> from & 1 == 0 {
        return;
    }
    let (mut rank, mut taken) = (from, links);
    for _ in 1..ranks {
        if taken >> rank & 1 == 1 {
            return;
        }
        taken |= 1 << rank;
        rank = (rank + step) % ranks;
        lay(
            ranks,
            step,
            informed,
            from + 1,
            taken,
            ends | 1 << rank,
            found,
        );
    }
}

#[test]
fn exhaustive_search_finds_no_broadcast_below_the_growth_bound_and_none_below_the_tree() {
    for ranks in 2..=10 {
        let fewest = fewest_broadcast_slots(ranks);
        let fabric = on(ranks, 1);
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(CollectiveKind::Broadcast, ranks).unwrap();
        assert!(u64::from(fewest) >= wdm_ring::slots_for_any_load(ring, &collective).steps);
        let tree = check("tree", &fabric, collective, "1B", Policy::EveryStep);
        assert_eq!(tree.slots(), fewest, "N = {ranks}");
    }
}

#[test]
fn small_all_reduces_take_a_third_of_the_named_algorithms_time() {
    // Three WRHT steps of 1 MB take 705 us, a grouped and striped plan of 5 slots 250 us.
    let fabric = Fabric::parse("optree_paper").unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, 1024).unwrap();
    let plan = check(
        "hierarchical",
        &fabric,
        collective,
        "1MB",
        Policy::EveryStep,
    );
    let size = "1MB".parse().unwrap();
    let outcome = simulate::simulate(&plan, size, Policy::EveryStep, "circuit").unwrap();
    assert!(outcome.time.seconds() < 250e-6, "{}", outcome.time);
}

/// A collective, a specification for a ring of 16 ranks, and a part of the refusal.
const REFUSED: &str = "
all_reduce | hierarchical:groups=9xx9 | joined by x
all_reduce | hierarchical:groups=1 | must be at least 2
all_reduce | hierarchical:groups=4,gateways=5 | as many ranks
all_reduce | hierarchical:groups=4,gateways=1x1 | one number for each level
all_reduce | hierarchical:group=4 | did you mean `groups`
broadcast | tree:radices=3x3 | reach all 16 ranks
broadcast | tree:radices=4x4,stripes=1 | one number for each level
broadcast | tree:radices=16,stripes=9999 | at most 4096
broadcast | tree:radices=0 | at least 1
all_to_all | gateways:group=17 | must be at most 16
all_to_all | store_and_forward:lanes=100 | is needed with other options
broadcast | grouped | unknown algorithm
";

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let fabric = on(16, 4);
    for [kind, spec, reason] in rows(REFUSED) {
        let collective = Collective::new(kind.parse().unwrap(), 16).unwrap();
        let error = refusal(spec, &fabric, collective, Some(Policy::EveryStep));
        assert!(error.contains(reason), "{kind} {spec}: `{error}`");
    }
    let collective = Collective::new(CollectiveKind::AllToAll, 128).unwrap();
    let spec = "gateways:group=16,gateways=16,stripes=4096x4096x4096"
        .parse()
        .unwrap();
    let size = "1MiB".parse().unwrap();
    let refused = planner::plan(
        &spec,
        &on(128, 4),
        collective,
        size,
        &Policy::EveryStep.into(),
    );
    assert!(matches!(refused, Err(PlannerError::TooLarge { .. })));
}
