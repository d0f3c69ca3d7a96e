//! Plans for machines of which parts are slower: plans made as if these were not slower, and plans that leave them out.
//!
//! Planners know one rate. A plan for the whole machine stays correct where a part is slower; its slots last as long as
//! their slowest transfer. A plan that leaves the part out has fewer resources, at their full rate. Both are timed on the
//! machine as it is, and the faster one is taken.

use super::contest::Candidate;
use super::{Planned, PlannerError, Question, find};
use crate::fabric::Fabric;
use crate::names::plural;
use crate::plan::Plan;
use crate::simulate;
use crate::spec::Spec;

/// The fastest plan by a spec on machines without degraded parts ([`crate::fabric::Machine::undegraded`]), timed on the one of
/// a question.
///
/// # Errors
/// What the first of them refuses, where all do.
pub(super) fn plan(
    question: &Question<'_>,
    spec: &Spec,
    undegraded: &[Fabric],
) -> Result<Planned, PlannerError> {
    let mut made: Vec<(Candidate, Plan)> = Vec::new();
    let mut refused = None;
    for fabric in undegraded {
        let planned = match (Question {
            fabric,
            ..*question
        })
        .answer(spec)
        {
            Ok(planned) => planned,
            Err(problem) => {
                refused.get_or_insert(problem);
                continue;
            }
        };
        let mut plan = planned.plan.unfold();
        plan.fabric = question.fabric.clone();
        let outcome = simulate::run(&plan, question.size, question.method)?;
        let candidate = Candidate {
            name: plan.algorithm.clone(),
            slots: plan.slots().into(),
            time: outcome.time,
            left_out: None,
        };
        made.push((candidate, plan));
    }
    made.sort_by_key(|(candidate, _)| candidate.time);
    let (candidates, mut plans): (Vec<Candidate>, Vec<Plan>) = made.into_iter().unzip();
    if plans.is_empty() {
        return Err(refused.unwrap_or(PlannerError::CutOff));
    }
    let planned = Planned::from(plans.swap_remove(0));
    let chooses = find(question.collective.kind(), spec.name()).is_some_and(|one| one.chooses);
    Ok(match chooses {
        false => planned,
        true => Planned {
            reasons: vec![format!(
                "{} takes {}, the least of {} made as if no part were slower, or without the parts that are",
                candidates[0].name,
                candidates[0].time,
                plural(candidates.len(), "plan")
            )],
            candidates,
            ..planned
        },
    })
}
