//! Plans for fabrics where a time is found by simulation alone: electrical ones, grids of tunable
//! circuits and of light paths. Those of the named algorithms, and `auto`, the fastest of them.
//!
//! What flows over shared links take depends on everything that flows beside them, and a circuit waits for
//! its receiver, so that `auto` estimates nothing: it simulates every algorithm of the collective that runs
//! on so many ranks and needs no more wavelengths than there are, with its default options, and takes the
//! fastest. On grids, whose every circuit is a chain of events, those of very many transfers are left out
//! where others remain.

use super::auto::Candidate;
use super::request::{DEFAULT_TRANSFERS, Planned, find, transfers};
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
/// An unknown name or option, a planner that plans light on rings, a method that does not fit the fabric,
/// ranks that nothing joins, too few wavelengths.
pub(super) fn plan(
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

/// On a grid, an algorithm of more transfers is simulated only where there is none with fewer.
const MANY: u64 = 1 << 18;

/// The algorithms worth a simulation, none of them of more than about `most` transfers.
fn contenders(fabric: &Fabric, collective: Collective, most: u64) -> Vec<Spec> {
    let about = |record: &algorithm::Record| transfers(record, fabric.ranks());
    let fitting: Vec<_> = algorithm::records_for(fabric)
        .filter(|record| record.collective == collective.kind())
        .filter(|record| (record.accepts)(fabric.ranks()).is_ok() && about(record) <= most)
        .collect();
    let fewest = fitting.iter().map(|record| about(record)).min();
    let many = match fabric.wss_grid() {
        Some(_) => MANY.max(fewest.unwrap_or(0)),
        None => most,
    };
    let kept = fitting.into_iter().filter(|record| about(record) <= many);
    kept.map(|record| Spec::new(record.name)).collect()
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
    let (mut found, mut refused) = (None::<(Time, Plan)>, None);
    let mut candidates = Vec::new();
    for spec in contenders(fabric, collective, most) {
        let plan = match named::plan(&spec, fabric, collective) {
            Err(PlannerError::Algorithm(
                AlgorithmError::NotARing(_) | AlgorithmError::TooLarge { .. },
            )) => continue,
            Err(PlannerError::Grid(error)) => {
                refused = Some(error);
                continue;
            }
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
    candidates.sort_by_key(|candidate| candidate.time);
    match (found, refused) {
        (Some((_, plan)), _) => Ok(Planned {
            reasons: reasons(&candidates, fabric, &method),
            plan: AnyPlan::Full(plan),
            candidates,
        }),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(PlannerError::NothingFits { most }),
    }
}

fn reasons(candidates: &[Candidate], fabric: &Fabric, method: &Method) -> Vec<String> {
    let Some((best, others)) = candidates.split_first() else {
        return Vec::new();
    };
    let (steps, rule) = match (fabric.has_light(), method.simulator) {
        (true, _) => ("slots", String::new()),
        (false, Some("packet")) => ("steps", " packet by packet".into()),
        (false, _) => {
            let start = method.start.unwrap_or_default();
            ("steps", format!(" under {}", start.name()))
        }
    };
    let mut reasons = vec![format!(
        "{} takes {} in {} {steps}{rule}, the least of {} algorithms simulated",
        best.name,
        best.time,
        best.slots,
        candidates.len()
    )];
    if let Some(next) = others.first() {
        reasons.push(format!(
            "next is {} with {} {steps} and {} (simulated)",
            next.name, next.slots, next.time
        ));
    }
    reasons
}
