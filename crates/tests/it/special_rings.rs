//! Rings with cuts, few ports, dead wavelengths, light trees, two fibres and limited reach: every
//! collective has a plan, and plans on small rings have the fewest slots possible.

use opticoll::bounds::ReconfigurationCost;
use opticoll::bounds::wdm_ring;
use opticoll::bounds::wdm_ring::time;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::plan::Plan;
use opticoll::planner::{self, PlannerError};
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;

use itertools::iproduct;

use crate::{proved_plan, some_of};

const SPECIAL: [&str; 12] = [
    "broken=3-4",
    "broken=3-4cw",
    "broken=0-1ccw+5-6ccw",
    "ports=1",
    "ports=2",
    "dead=1",
    "fibres=2",
    "multicast=drop_and_continue",
    "reach=1",
    "reach=3",
    "reach=2,broken=5-6",
    "reach=3,multicast=drop_and_continue,ports=2",
];

fn planned(
    fabric: &str,
    kind: CollectiveKind,
    spec: &str,
    policy: impl Into<Option<Policy>>,
) -> Result<Plan, PlannerError> {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let rooted = matches!(
        kind,
        CollectiveKind::Broadcast
            | CollectiveKind::Reduce
            | CollectiveKind::Scatter
            | CollectiveKind::Gather
    );
    let root = if rooted { fabric.ranks() / 2 } else { 0 };
    let method = TimingModel {
        policy: policy.into(),
        ..TimingModel::default()
    };
    let collective = collective.with_root(root).unwrap();
    let size = "64KiB".parse().unwrap();
    planner::plan(&spec.parse().unwrap(), &fabric, collective, size, &method)
        .map(|planned| planned.plan)
}

#[test]
fn every_collective_has_a_plan_on_every_connected_ring() {
    let policies = [Policy::EveryStep, Policy::Free];
    let cases = iproduct!(SPECIAL, [2, 9], CollectiveKind::ALL, policies);
    for (options, ranks, kind, policy) in some_of(cases, 5) {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths=3,{options}");
        if Fabric::parse(&fabric).is_err() {
            continue;
        }
        let plan = planned(&fabric, kind, "auto", policy)
            .unwrap_or_else(|error| panic!("{fabric} {kind}: {error}"));
        assert_eq!(verify(&plan), [], "{fabric} {kind}");
        is_not_below_its_bound(&plan, policy);
        let named = plan.algorithm.clone();
        let again = planned(&fabric, kind, &named, policy)
            .unwrap_or_else(|error| panic!("{fabric} {kind} {named}: {error}"));
        assert_eq!(again.slots(), plan.slots(), "{fabric} {kind} {named}");
    }
}

fn is_not_below_its_bound(plan: &Plan, policy: Policy) {
    let ring = plan.fabric.downcast::<WdmRing>().unwrap();
    let charge = match policy {
        Policy::EveryStep => ReconfigurationCost::EverySlot,
        _ => ReconfigurationCost::Never,
    };
    for size in ["1KiB", "100MB"].map(|size| size.parse().unwrap()) {
        let bound = time::best(ring, &plan.schedule.collective, size, charge).unwrap();
        let outcome = simulate::simulate(plan, size, policy, "circuit").unwrap();
        assert!(bound.time <= outcome.time, "{} {bound:?}", plan.algorithm);
    }
}

/// Returns the time of the verified plan of `auto`, in picoseconds.
fn time_of_auto(fabric: &str, kind: CollectiveKind, size: &str, policy: Policy) -> u64 {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let size = size.parse().unwrap();
    let planned = proved_plan("auto", &fabric, collective, size, &policy.into());
    let outcome = simulate::simulate(&planned.plan, size, policy, "circuit").unwrap();
    outcome.time.ps()
}

#[test]
fn a_limit_that_limits_nothing_is_none() {
    let plain = Fabric::parse("wdm_ring:ranks=64,wavelengths=8,dead=3").unwrap();
    for (given, is_plain) in [
        ("ports=16", true),
        ("ports=14", true),
        ("ports=13", false),
        ("ports=all", true),
        ("reach=63", true),
        ("reach=64", true),
        ("reach=62", false),
    ] {
        let fabric = format!("wdm_ring:ranks=64,wavelengths=8,dead=3,{given}");
        let fabric = Fabric::parse(&fabric).unwrap();
        assert_eq!(fabric == plain, is_plain, "{given}");
    }
}

#[test]
fn a_better_ring_has_no_slower_plan() {
    let plain = "wdm_ring:ranks=16,wavelengths=4";
    for kind in CollectiveKind::ALL {
        for size in ["1KiB", "64KiB", "1MiB"] {
            for policy in [Policy::EveryStep, Policy::OnChange] {
                let most = time_of_auto(plain, kind, size, policy);
                for better in ["converters=full", "multicast=drop_and_continue"] {
                    let better = format!("{plain},{better}");
                    let time = time_of_auto(&better, kind, size, policy);
                    let at = format!("{kind} {size} {policy:?} on {better}");
                    assert!(time <= most, "{at}: {time} ps, not {most}");
                }
            }
        }
    }
}

#[test]
fn short_reach_leaves_the_bound_of_all_to_alls_in_reach() {
    // Circuits between neighbours are all up at once: one reconfiguration, and what crosses the
    // cut.
    for reach in [1, 4, 8, 33] {
        let fabric = format!("wdm_ring:ranks=64,wavelengths=8,reach={reach}");
        let time = time_of_auto(&fabric, CollectiveKind::AllToAll, "1KiB", Policy::OnChange);
        let ring = Fabric::parse(&fabric).unwrap();
        let ring = ring.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(CollectiveKind::AllToAll, 64).unwrap();
        let size = "1KiB".parse().unwrap();
        let bound = time::best(ring, &collective, size, ReconfigurationCost::Once).unwrap();
        let most = bound.time.ps() + bound.time.ps() / 20;
        assert!(time <= most, "{fabric}: {time} ps, bound {}", bound.time);
    }
}

#[test]
fn what_light_does_not_reach_goes_over_relays() {
    // From rank 8 of 16 the farthest is 8 links away: 4 lightpaths of 2 links, one after the other.
    let fabric = "wdm_ring:ranks=16,wavelengths=8,reach=2";
    for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
        let plan = planned(fabric, kind, "faulty_ring:plan=direct", Policy::EveryStep).unwrap();
        assert_eq!(verify(&plan), []);
        assert_eq!(plan.slots(), 4, "{kind}");
    }
}

#[test]
fn a_barrier_signals_from_everyone_to_everyone_where_there_is_room() {
    // One-stage all-to-all on 8 ranks takes 8 channels per direction (Opatrny 2003).
    let plan = planned(
        "wdm_ring:ranks=8,wavelengths=8",
        CollectiveKind::Barrier,
        "auto",
        Policy::EveryStep,
    );
    assert_eq!(plan.unwrap().slots(), 1);
    // Groups of 17 around an owner, the 4 owners among themselves, and back: a slot each.
    let plan = planned(
        "wdm_ring:ranks=64,wavelengths=8",
        CollectiveKind::Barrier,
        "auto",
        Policy::EveryStep,
    )
    .unwrap();
    assert_eq!(verify(&plan), []);
    assert_eq!(plan.slots(), 3);
}

#[test]
fn a_barrier_is_no_slower_than_what_carries_its_signals() {
    // Whatever brings a byte of every rank to all, or to rank 0 and from there to all, is a
    // barrier.
    use CollectiveKind::{AllGather, AllReduce, Barrier, Broadcast, Reduce};
    for (fabric, policy) in [
        ("wdm_ring:ranks=64,wavelengths=8,ports=1", Policy::OnChange),
        ("wdm_ring:ranks=64,wavelengths=1", Policy::EveryStep),
        (
            "wdm_ring:ranks=32,wavelengths=2,multicast=drop_and_continue",
            Policy::EveryStep,
        ),
        (
            "wdm_ring:ranks=32,wavelengths=2,broken=3-4,reach=4",
            Policy::PerPort,
        ),
        ("lightpath_grid:ranks=16,ports=2", Policy::SetupTeardown),
        ("wss_grid:rows=4,columns=4,control=1us", Policy::TwoTier),
        ("circuit_switch:ranks=16,ports=2", Policy::AllStop),
        ("passive_star:ranks=16,wavelengths=4", Policy::EveryStep),
        ("passive_star:ranks=16,wavelengths=4", Policy::OnChange),
    ] {
        let method = TimingModel::from(policy);
        let machine = Fabric::parse(fabric).unwrap();
        let time = |kind| {
            let collective = Collective::new(kind, machine.ranks()).unwrap();
            let byte = Bytes::new(1);
            let plan = proved_plan("auto", &machine, collective, byte, &method);
            simulate::run(&plan.plan, byte, &method).unwrap().time
        };
        let carried = time(AllGather).min(time(AllReduce));
        let carried = carried.min(time(Reduce).plus(time(Broadcast)).unwrap());
        assert!(time(Barrier) <= carried, "{fabric} {policy:?}");
    }
}

#[test]
fn everyone_signals_to_everyone_in_one_step() {
    for fabric in [
        "crossbar:ranks=9",
        "torus:dims=3x3",
        "lightpath_grid:ranks=9,ports=8",
    ] {
        let plan = planned(fabric, CollectiveKind::Barrier, "direct", None);
        let plan: Plan = plan.unwrap().into_expanded();
        assert_eq!(verify(&plan), [], "{fabric}");
        assert_eq!((plan.schedule.steps(), plan.len()), (1, 72), "{fabric}");
    }
}

#[test]
fn what_goes_behind_a_cut_goes_one_way() {
    // From rank 0 of 64 cut between 3 and 4: ranks 1 to 3 on one side, 60 on the other, over 8
    // channels.
    for (options, kind, behind) in [
        ("broken=3-4", CollectiveKind::Scatter, 60),
        ("broken=3-4", CollectiveKind::Gather, 60),
        ("broken=3-4cw", CollectiveKind::Scatter, 60),
        ("broken=3-4ccw", CollectiveKind::Scatter, 3),
        ("broken=3-4cw", CollectiveKind::Gather, 3),
        ("broken=3-4ccw", CollectiveKind::Gather, 60),
    ] {
        let fabric = format!("wdm_ring:ranks=64,wavelengths=8,{options}");
        let fabric = Fabric::parse(&fabric).unwrap();
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(kind, 64).unwrap();
        let bounds = wdm_ring::slots(ring, &collective);
        let cut = bounds.iter().find(|bound| bound.name == "cut").unwrap();
        assert_eq!(cut.steps, u64::div_ceil(behind, 8), "{options} {kind}");
        // 60 blocks of 1 MB over 8 channels of 40 Gb/s.
        let charge = ReconfigurationCost::Never;
        let times = time::times(ring, &collective, "1MB".parse().unwrap(), charge).unwrap();
        let sending = behind * 8_000_000 / (8 * 40_000) * 1_000_000;
        assert!(times[0].time.ps() >= sending, "{options} {kind}");
    }
}

#[test]
fn slots_of_short_lightpaths_are_charged_in_bounds_on_time() {
    // 32 links in lightpaths of 8: 4 slots of 25 us.
    let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8,reach=8").unwrap();
    let ring = fabric.downcast::<WdmRing>().unwrap();
    for kind in CollectiveKind::ALL {
        let collective = Collective::new(kind, 64).unwrap();
        let charge = ReconfigurationCost::EverySlot;
        let best = time::best(ring, &collective, "1B".parse().unwrap(), charge).unwrap();
        assert!(best.time.ps() >= 100_000_000, "{kind}");
    }
}

/// A line of the table that `validation/ring_optima.py` writes: fewer slots than `least` are
/// impossible, and `reached` slots are enough.
struct Optimum {
    kind: CollectiveKind,
    fabric: &'static str,
    least: u32,
    reached: u32,
}

fn optima() -> impl Iterator<Item = Optimum> {
    let lines = include_str!("bound/optima.tsv").lines().skip(1);
    lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let kind = CollectiveKind::ALL.into_iter();
        Optimum {
            kind: kind
                .into_iter()
                .find(|kind| kind.name() == fields[0])
                .unwrap(),
            fabric: fields[1],
            least: fields[2].parse().unwrap(),
            reached: fields[3].parse().unwrap(),
        }
    })
}

#[test]
fn no_bound_on_slots_exceeds_an_optimum() {
    for Optimum {
        kind,
        fabric,
        reached,
        ..
    } in optima()
    {
        let ring = Fabric::parse(fabric).unwrap();
        let ring = ring.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(kind, ring.ranks).unwrap();
        for bound in wdm_ring::slots(ring, &collective) {
            assert!(bound.steps <= reached.into(), "{kind} {fabric}: {bound:?}");
        }
    }
}

#[test]
fn small_all_gathers_and_reduce_scatters_take_the_fewest_slots() {
    let mut more = Vec::new();
    let kinds = [CollectiveKind::AllGather, CollectiveKind::ReduceScatter];
    let gathers = optima().filter(|one| kinds.contains(&one.kind));
    for Optimum {
        kind,
        fabric,
        least,
        ..
    } in gathers
    {
        let plan = planned(fabric, kind, "relay_tree", Policy::EveryStep).unwrap();
        assert_eq!(verify(&plan), [], "{fabric}");
        assert!(plan.slots() >= least, "{fabric}: {} slots", plan.slots());
        // What the solver leaves open a bound may exclude.
        let ring = Fabric::parse(fabric).unwrap();
        let ring = ring.downcast::<WdmRing>().unwrap();
        let collective = Collective::new(kind, ring.ranks).unwrap();
        let least = wdm_ring::best(ring, &collective).steps.max(least.into());
        if u64::from(plan.slots()) != least {
            more.push(format!("{fabric}: {} slots, not {least}", plan.slots()));
        }
    }
    assert!(more.is_empty(), "{}", more.join("\n"));
}

#[test]
fn small_barriers_take_one_slot_more_than_the_fewest_at_most() {
    let mut more = 0;
    for Optimum {
        kind,
        fabric,
        reached,
        ..
    } in optima().filter(|one| one.kind == CollectiveKind::Barrier)
    {
        let plan = planned_from_0(fabric, kind, "auto").unwrap();
        assert!(
            plan.slots() <= reached + 1,
            "{fabric}: {} slots",
            plan.slots()
        );
        more += u32::from(plan.slots() > reached);
    }
    assert!(more <= 3, "{more} take a slot more");
}

#[test]
fn no_plan_takes_fewer_slots_than_an_optimum() {
    // Where lightpaths carry several chunks the table says nothing of a scatter, a gather, an
    // all_to_all and a reduce_scatter: they are planned with a chunk on each. Of other collectives
    // each chunk alone is one of its own.
    for Optimum {
        kind,
        fabric,
        least,
        ..
    } in optima()
    {
        let spec = match kind {
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter => "relay_tree",
            CollectiveKind::AllReduce | CollectiveKind::Reduce | CollectiveKind::Barrier => "auto",
            _ => "faulty_ring:plan=direct",
        };
        let Ok(plan) = planned_from_0(fabric, kind, spec) else {
            continue;
        };
        assert!(
            plan.slots() >= least,
            "{kind} {fabric}: {} slots",
            plan.slots()
        );
    }
}

fn planned_from_0(fabric: &str, kind: CollectiveKind, spec: &str) -> Result<Plan, PlannerError> {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let (size, method) = ("64KiB".parse().unwrap(), TimingModel::default());
    let planned = planner::plan(&spec.parse().unwrap(), &fabric, collective, size, &method)?;
    assert_eq!(verify(&planned.plan), []);
    Ok(planned.plan)
}
