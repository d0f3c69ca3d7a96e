//! Check of the claims that a schedule makes about itself. The claim `paper_steps`, which is
//! printed in a paper, is not checked.

use super::form::Admitted;
use super::report::{Report, counted, transfer_violation};
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::plan::Plan;

const KIND: ViolationKind = ViolationKind::Claim;

/// Checks all claims but `paper_steps`. Each transfer of the plan stands for `copies` transfers.
pub(super) fn check(plan: &Plan, admitted: &Admitted, copies: u64, report: &mut Report) {
    let claims = &plan.schedule.claims;
    if claims.neighbours_only {
        neighbours(plan, admitted, report);
    }
    let steps = plan.schedule.steps() as u64;
    if let Some(claimed) = claims.schedule_steps
        && u64::from(claimed) != steps
    {
        let sentence = format!(
            "the schedule claims {} but has {steps}",
            counted(u64::from(claimed), "step")
        );
        report.add(KIND, || Violation::new(KIND, sentence));
    }
    if let Some(claimed) = claims.chunks_sent_per_rank {
        sent(plan, admitted, (copies, claimed), report);
    }
}

fn neighbours(plan: &Plan, admitted: &Admitted, report: &mut Report) {
    let last = plan.fabric.ranks().saturating_sub(1);
    let steps = 0..plan.schedule.steps();
    for (index, moved) in steps.flat_map(|step| admitted.moved(plan, step)) {
        interrupt::check();
        let distance = moved.source.abs_diff(moved.destination);
        if distance != 1 && distance != last {
            let problem = "goes to no neighbour, against the claim that all do";
            report.add(KIND, || Violation {
                rank: Some(moved.source),
                ..transfer_violation(plan, KIND, plan.slot[index], index, problem)
            });
        }
    }
}

/// Checks the claim about the greatest number of chunks that a rank sends, which is `claimed`. Each
/// transfer stands for `copies` transfers.
fn sent(plan: &Plan, admitted: &Admitted, (copies, claimed): (u64, u64), report: &mut Report) {
    let mut sent = vec![0u64; plan.schedule.collective.ranks() as usize];
    for step in 0..plan.schedule.steps() {
        for (_, moved) in admitted.moved(plan, step) {
            sent[moved.source as usize] += u64::from(moved.count);
        }
    }
    let (rank, most) = sent
        .iter()
        .enumerate()
        .reduce(|first, other| if other.1 > first.1 { other } else { first })
        .map_or((0, 0), |(rank, most)| (rank, *most));
    let most = most * copies;
    if most != claimed {
        report.add(KIND, || Violation {
            rank: Some(rank as u32),
            ..Violation::new(
                KIND,
                format!(
                    "the schedule claims that a rank sends {} at most, but rank {rank} sends \
                     {most}",
                    counted(claimed, "chunk")
                ),
            )
        });
    }
}
