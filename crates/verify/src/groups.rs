//! Rules for a united plan: groups of ranks that carry out one kind of collective at the same time.
//!
//! The chunks of a united plan are numbered group by group: with C chunks in the collective of a
//! group, chunk c of group i has the number i C + c. Light, ports and routes are checked for all
//! transfers together. The data of group i depend on the transfers of its own chunks only. So the
//! plan is correct if each of these transfers joins two members of group i, and if the transfers of
//! the group, step by step, carry out the collective of the group.

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};

use crate::report::{Report, each, named, renumbered};
use crate::{Violation, ViolationKind, data, form, light};

/// Returns all rules that a united plan breaks. `groups` are the ranks of each group, in ascending
/// order, and `collective` is the collective that each group carries out. An empty list proves the
/// plan.
pub fn verify_groups(plan: &Plan, groups: &[Vec<u32>], collective: Collective) -> Vec<Violation> {
    let mut report = Report::default();
    light(plan, &mut report);
    let of_groups = schedules(plan, groups, collective, &mut report);
    let mut violations = report.finish();
    let mut proved: Vec<Schedule> = Vec::new();
    for ((group, own), members) in of_groups.into_iter().enumerate().zip(groups) {
        interrupt::check();
        if !proved.contains(&own.schedule) {
            violations.extend(wrong_data(plan, &own, group, members));
            proved.push(own.schedule);
        }
    }
    violations
}

/// Transfers of one group, with the members and chunks of the group's collective.
#[derive(Clone)]
struct OfGroup {
    schedule: Schedule,
    /// Index in the united plan of each transfer.
    transfers: Vec<usize>,
}

/// Returns the transfers of each group.
fn schedules(
    plan: &Plan,
    groups: &[Vec<u32>],
    collective: Collective,
    report: &mut Report,
) -> Vec<OfGroup> {
    let chunks = collective.chunks();
    let empty = OfGroup {
        schedule: Schedule::new(collective),
        transfers: Vec::new(),
    };
    let mut of_groups = vec![empty; groups.len()];
    for step in 0..plan.schedule.steps() {
        let own = of_groups.iter_mut();
        own.for_each(|own| own.schedule.begin_step());
        for index in plan.schedule.step(step) {
            let transfer = plan.schedule.transfer(index);
            let group = (transfer.chunk / chunks) as usize;
            let first = group as u64 * u64::from(chunks);
            let last = u64::from(transfer.chunk) + u64::from(transfer.count);
            let members = groups.get(group);
            let members = members.filter(|_| last <= first + u64::from(chunks));
            let ends = members.and_then(|members| {
                let member = |rank| members.binary_search(&rank).ok();
                Some((member(transfer.source)?, member(transfer.destination)?))
            });
            match ends {
                Some((source, destination)) => {
                    let own = &mut of_groups[group];
                    own.transfers.push(index);
                    own.schedule.push(Transfer {
                        chunk: transfer.chunk - first as u32,
                        source: source as u32,
                        destination: destination as u32,
                        ..transfer
                    });
                }
                None => report.add(ViolationKind::RankRange, || {
                    let sentence = format!(
                        "{} carries chunks of group {group}, and not both of its ends are members",
                        named(plan, index)
                    );
                    Violation {
                        transfers: vec![index],
                        ..Violation::new(ViolationKind::RankRange, sentence)
                    }
                }),
            }
        }
    }
    of_groups
}

/// Returns the violations of the data of one group, whose light is checked elsewhere. They name the
/// transfers, ranks and chunks of the united plan, and its steps, since the group's plan has one
/// slot for each step.
fn wrong_data(united: &Plan, own: &OfGroup, group: usize, members: &[u32]) -> Vec<Violation> {
    let collective = own.schedule.collective;
    let chunks = collective.chunks();
    let among = Fabric::parse(&format!("crossbar:ranks={}", collective.ranks()));
    let among = among.expect("every number of ranks makes a crossbar");
    let plan = Plan::without_light(&among, own.schedule.clone(), String::new());
    let mut report = Report::default();
    if let Some(admitted) = form::check(&plan, &each(|_| Vec::new()), &mut report) {
        data::check(&plan, &admitted, 0..chunks, &mut report);
    }
    let united_chunk = |chunk: u32| u64::from(chunk) + group as u64 * u64::from(chunks);
    let member = |rank: u32| members.get(rank as usize).copied().unwrap_or(rank);
    let transfer = |index: usize| own.transfers[index].to_string();
    let named = |violation: Violation| {
        let first = violation.transfers.first();
        let sentence = renumbered(&violation.sentence, transfer, united_chunk, member);
        Violation {
            slot: first.and_then(|&first| united.slot.get(own.transfers[first]).copied()),
            rank: violation.rank.map(member),
            chunk: violation.chunk.map(|chunk| united_chunk(chunk) as u32),
            sentence: format!("group {group}: {}", sentence.replace("slot ", "step ")),
            transfers: violation
                .transfers
                .iter()
                .map(|&one| own.transfers[one])
                .collect(),
            ..violation
        }
    };
    report.finish().into_iter().map(named).collect()
}
