//! Plans of several groups, united to one plan on the whole fabric.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::planner::{self, UnitedPlan};
use opticoll::simulate::{self, TimingModel};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::{ViolationKind, verify_groups};

const SIZE: Bytes = Bytes::new(1 << 20);

/// Groups of `each` ranks among `ranks`: rank i of a group is `stride` after rank i - 1.
fn groups(ranks: u32, each: u32, stride: u32) -> Vec<Vec<u32>> {
    let firsts = (0..ranks).filter(|rank| rank / stride % each == 0);
    let members = |first: u32| (0..each).map(|member| first + member * stride).collect();
    firsts.map(members).collect()
}

/// Returns the plan of one group by `algorithm`, and the united plan of all groups.
fn united(
    fabric: &str,
    groups: &[Vec<u32>],
    kind: CollectiveKind,
    algorithm: &str,
) -> (Plan, UnitedPlan) {
    let fabric = Fabric::parse(fabric).unwrap();
    let part = fabric.part(&groups[0]).unwrap();
    let collective = Collective::new(kind, part.ranks()).unwrap();
    let method = TimingModel::default();
    let plan = planner::plan(&Spec::new(algorithm), &part, collective, SIZE, &method);
    let plan = plan.unwrap().plan;
    let united = planner::unite(&plan, &fabric, groups, SIZE, &method).unwrap();
    (plan, united)
}

fn time(plan: &Plan, size: Bytes) -> Time {
    simulate::run(plan, size, &TimingModel::default())
        .unwrap()
        .time
}

fn bytes(plan: &Plan, size: Bytes) -> u64 {
    let outcome = simulate::run(plan, size, &TimingModel::default()).unwrap();
    outcome.ranks.sent.iter().sum()
}

#[test]
fn groups_that_share_nothing_take_the_time_of_one() {
    let servers = "dgx_h100:boxes=4,outside=circuit_switch/ports=4/rate=120Gb/s";
    for (fabric, ranks, each, stride) in [
        ("circuit_switch:ranks=12,ports=2", 12, 4, 3),
        ("lightpath_grid:ranks=12,ports=2", 12, 3, 4),
        ("wss_grid:rows=3,columns=4", 12, 4, 1),
        ("wss_grid:rows=3,columns=4", 12, 3, 4),
        ("wdm_ring:ranks=12,wavelengths=4", 12, 3, 1),
        (servers, 32, 4, 8),
        (servers, 32, 8, 1),
    ] {
        let groups = groups(ranks, each, stride);
        for kind in [
            CollectiveKind::AllReduce,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllToAll,
        ] {
            let (plan, united) = united(fabric, &groups, kind, "auto");
            let case = format!("{kind} among {each} on {fabric}");
            assert_eq!(united.violations, [], "{case}");
            // Packets and links of a server round to picoseconds differently, once in each slot.
            let found = time(&united.plan, united.size).ps();
            let rounding = u64::from(plan.slots());
            assert!(found.abs_diff(time(&plan, SIZE).ps()) <= rounding, "{case}");
            let count = groups.len() as u64;
            assert_eq!(
                bytes(&united.plan, united.size),
                count * bytes(&plan, SIZE),
                "{case}"
            );
        }
    }
}

#[test]
fn groups_that_share_fibres_take_slots_for_all_of_them() {
    // Six pairs of opposite ranks on a ring of 12 exchange one message each way. Every message
    // passes 6 of the 12 links of a direction: if all turn clockwise, 12 messages x 6 links / 12
    // links are 6 messages on each link, 3 if the directions are balanced. One wavelength has 3
    // slots at the least, three wavelengths have 1.
    for (wavelengths, slots) in [(1, 3), (3, 1)] {
        let fabric = format!("wdm_ring:ranks=12,wavelengths={wavelengths}");
        let pairs = groups(12, 2, 6);
        assert_eq!(pairs.len(), 6);
        let (plan, united) = united(&fabric, &pairs, CollectiveKind::AllToAll, "direct");
        assert_eq!(united.violations, []);
        assert_eq!(plan.slots(), 1);
        assert!(
            united.plan.slots() >= slots,
            "{} slots",
            united.plan.slots()
        );
        assert!(time(&united.plan, united.size) >= time(&plan, SIZE).times(slots.into()).unwrap());
    }
}

#[test]
fn a_coupler_with_one_wavelength_serves_one_group_after_another() {
    // On a passive star, all groups share the wavelengths, and 2 ranks of a group exchange one
    // message each way: with one wavelength, 2 slots for each group.
    let pairs = groups(8, 2, 4);
    let star = "passive_star:ranks=8,wavelengths=1";
    let (plan, united) = united(star, &pairs, CollectiveKind::AllToAll, "direct");
    assert_eq!((plan.slots(), united.plan.slots()), (2, 8));
    assert_eq!(united.violations, []);
}

#[test]
fn a_united_plan_with_a_mistake_is_refused() {
    let groups = groups(8, 4, 2);
    let fabric = "circuit_switch:ranks=8,ports=2";
    let (plan, united) = united(fabric, &groups, CollectiveKind::AllReduce, "ring");
    let collective = plan.schedule.collective;
    let kinds = |plan: &Plan, groups: &[Vec<u32>]| {
        let found = verify_groups(plan, groups, collective).into_iter();
        found.map(|violation| violation.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&united.plan, &groups), []);
    // A group without one of its members, and two groups with each other's members.
    let mut others = groups.clone();
    others[0][1] = 1;
    assert!(kinds(&united.plan, &others).contains(&ViolationKind::RankRange));
    others = vec![groups[1].clone(), groups[0].clone()];
    assert!(kinds(&united.plan, &others).contains(&ViolationKind::RankRange));
    // A transfer less: its group lacks data. Two circuits at one port.
    let mut less = united.plan.without_lightpaths();
    let last = united.plan.len() - 1;
    for step in 0..united.plan.schedule.steps() {
        less.schedule.begin_step();
        for index in united
            .plan
            .schedule
            .step(step)
            .filter(|index| *index != last)
        {
            less.schedule.push(united.plan.schedule.transfer(index));
            less.slot.push(united.plan.slot[index]);
            less.light.push(united.plan.light[index]);
        }
    }
    assert!(kinds(&less, &groups).contains(&ViolationKind::Missing));
    let chunks = collective.chunks();
    for missing in verify_groups(&less, &groups, collective) {
        let (rank, chunk) = (missing.rank.unwrap(), missing.chunk.unwrap());
        let group = groups
            .iter()
            .position(|group| group.contains(&rank))
            .unwrap();
        assert_eq!(chunk / chunks, group as u32);
        let start = format!("group {group}: at the end rank {rank} holds chunk {chunk} without");
        assert!(missing.sentence.starts_with(&start), "{}", missing.sentence);
    }
    // A transfer more: the sentence names the transfer and its ranks as in the united plan.
    let mut more = united.plan.clone();
    let slot = more.slots();
    more.schedule.begin_step();
    more.schedule.push(united.plan.schedule.transfer(last));
    more.slot.push(slot);
    more.step_slots.push(slot..slot + 1);
    more.light.push(united.plan.light[last]);
    let found = verify_groups(&more, &groups, collective).into_iter();
    let twice: Vec<_> = found
        .filter(|one| one.kind == ViolationKind::Duplicate)
        .collect();
    assert!(!twice.is_empty());
    for twice in twice {
        let index = twice.transfers[0];
        let named = more.schedule.transfer(index);
        let name = format!("{index} (rank {} to {})", named.source, named.destination);
        assert!(twice.sentence.contains(&name), "{} {name}", twice.sentence);
        assert_eq!(twice.rank, Some(named.destination));
        assert!((named.chunk..named.chunk + named.count).contains(&twice.chunk.unwrap()));
        assert_eq!(twice.slot, Some(more.slot[index]));
    }
    let mut shared = united.plan.clone();
    let first = shared.schedule.step(0);
    shared.light[first].fill(united.plan.light[0]);
    shared.slot.iter_mut().for_each(|slot| *slot = 0);
    assert!(!kinds(&shared, &groups).is_empty());
}
