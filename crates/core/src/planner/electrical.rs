//! Plans on electrical fabrics: those of the named algorithms, and `auto`, the fastest of them.
//!
//! What flows over shared links take depends on everything that flows beside them, so that `auto`
//! estimates nothing: it simulates every algorithm of the collective that runs on so many ranks and
//! needs no wavelengths, with its default options, and takes the fastest.

use super::auto::Candidate;
use super::request::{DEFAULT_TRANSFERS, Planned, find, lightpaths};
use super::{PlannerError, named};
use crate::algorithm::{self, AlgorithmError};
use crate::collective::Collective;
use crate::fabric::Fabric;
use crate::plan::{AnyPlan, Plan};
use crate::simulate::{self, Method};
use crate::spec::Spec;
use crate::units::{Bytes, Time};

/// Makes the plan that `spec` names: `auto`, for a size and a way to time it, or a named algorithm.
///
/// # Errors
/// An unknown name or option, a planner that plans light, a method that does not fit the fabric.
pub fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
) -> Result<Planned, PlannerError> {
    let planner = find(collective.kind(), spec.name()).map(|record| record.name);
    let mut planned = if planner == Some("auto") {
        spec.only(&["transfers"])?;
        let most = spec.count("transfers", 1, u32::MAX)?;
        let most = most.unwrap_or(DEFAULT_TRANSFERS).into();
        fastest(fabric, collective, size, method, most)?
    } else {
        // What only the planner knows is made of light.
        if let (Some(planner), Err(_)) = (planner, algorithm::find(collective.kind(), spec.name()))
        {
            fabric.needed_ring(planner)?;
        }
        Planned {
            plan: AnyPlan::Full(named::plan(spec, fabric, collective)?),
            candidates: Vec::new(),
            reasons: Vec::new(),
        }
    };
    planned.plan.kept_mut().size = Some(size);
    Ok(planned)
}

/// The fastest of the named algorithms, the first of equals.
fn fastest(
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
    most: u64,
) -> Result<Planned, PlannerError> {
    let mut method = method.clone();
    method.fluid.record_flows = false;
    let mut found: Option<(Time, Plan)> = None;
    let mut candidates = Vec::new();
    for record in algorithm::records_for(fabric) {
        let fits = record.collective == collective.kind()
            && (record.accepts)(fabric.ranks()).is_ok()
            && lightpaths(record, fabric.ranks()) <= most;
        if !fits {
            continue;
        }
        let plan = match named::plan(&Spec::new(record.name), fabric, collective) {
            Err(PlannerError::Algorithm(AlgorithmError::NotARing(_))) => continue,
            plan => plan?,
        };
        let time = simulate::run(&plan, size, &method)?.time;
        candidates.push(Candidate {
            name: plan.algorithm.clone(),
            slots: plan.slots().into(),
            time,
            made: true,
        });
        if found.as_ref().is_none_or(|(least, _)| time < *least) {
            found = Some((time, plan));
        }
    }
    let Some((_, plan)) = found else {
        return Err(PlannerError::NothingFits { most });
    };
    candidates.sort_by_key(|candidate| candidate.time);
    Ok(Planned {
        reasons: reasons(&candidates, &method),
        plan: AnyPlan::Full(plan),
        candidates,
    })
}

fn reasons(candidates: &[Candidate], method: &Method) -> Vec<String> {
    let Some((best, others)) = candidates.split_first() else {
        return Vec::new();
    };
    let rule = match method.simulator {
        Some("packet") => "packet by packet".into(),
        _ => format!("under {}", method.start.unwrap_or_default().name()),
    };
    let mut reasons = vec![format!(
        "{} takes {} in {} steps {}, the least of {} algorithms simulated",
        best.name,
        best.time,
        best.slots,
        rule,
        candidates.len()
    )];
    if let Some(next) = others.first() {
        reasons.push(format!(
            "next is {} with {} steps and {} (simulated)",
            next.name, next.slots, next.time
        ));
    }
    reasons
}
