//! Plans on grids of tunable circuits: those of the named algorithms; `auto`, the fastest of them; and
//! what becomes of a plan when something fails.
//!
//! `auto` simulates every algorithm of the collective that runs on so many ranks and whose circuits the
//! wavelength plan and the lasers have, with its default options, and takes the fastest. Those of very many
//! transfers are left out where others remain.

use super::auto::Candidate;
use super::request::{DEFAULT_TRANSFERS, Planned, find};
use super::{PlannerError, named};
use crate::algorithm::{self, AlgorithmError};
use crate::collective::Collective;
use crate::fabric::wss_grid::WavelengthPlan;
use crate::fabric::{Fabric, WssGrid};
use crate::plan::{AnyPlan, Plan};
use crate::simulate::{self, Method};
use crate::spec::Spec;
use crate::units::{Bytes, Time};
use crate::verify::{Violation, verify};

/// Makes the plan that `spec` names: `auto`, for a size and a way to time it, or a named algorithm.
///
/// # Errors
/// An unknown name or option, a planner for rings, ranks that nothing joins, too few wavelengths.
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
        let most = most.unwrap_or(DEFAULT_TRANSFERS) as usize;
        fastest(fabric, collective, size, method, most)?
    } else {
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

/// Beyond so many transfers an algorithm is simulated only where there is none with fewer.
const MANY: usize = 1 << 18;

/// The fastest of the named algorithms, the first of equals.
fn fastest(
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
    most: usize,
) -> Result<Planned, PlannerError> {
    let mut specs: Vec<(usize, Spec)> = Vec::new();
    for record in algorithm::records_for(fabric) {
        if record.collective != collective.kind() || (record.accepts)(fabric.ranks()).is_err() {
            continue;
        }
        let spec = Spec::new(record.name);
        match algorithm::build(&spec, collective, fabric) {
            Ok(schedule) => specs.push((schedule.len(), spec)),
            Err(AlgorithmError::NotARing(_) | AlgorithmError::TooLarge { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let fewest = specs.iter().map(|(transfers, _)| *transfers).min();
    let most = most.min(MANY.max(fewest.unwrap_or(0)));
    specs.retain(|(transfers, _)| *transfers <= most);
    let (mut found, mut refused) = (None::<(Time, Plan)>, None);
    let mut candidates = Vec::new();
    for (_, spec) in specs {
        let plan = match named::plan(&spec, fabric, collective) {
            Err(PlannerError::Grid(error)) => {
                refused = Some(error);
                continue;
            }
            plan => plan?,
        };
        let time = simulate::run(&plan, size, method)?.time;
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
            reasons: reasons(&candidates),
            plan: AnyPlan::Full(plan),
            candidates,
        }),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(PlannerError::NothingFits { most: most as u64 }),
    }
}

fn reasons(candidates: &[Candidate]) -> Vec<String> {
    let Some((best, others)) = candidates.split_first() else {
        return Vec::new();
    };
    let mut reasons = vec![format!(
        "{} takes {} in {} slots, the least of {} algorithms simulated",
        best.name,
        best.time,
        best.slots,
        candidates.len()
    )];
    if let Some(next) = others.first() {
        reasons.push(format!(
            "next is {} with {} slots and {} (simulated)",
            next.name, next.slots, next.time
        ));
    }
    reasons
}

/// A plan anew on what is left of its grid.
pub struct Replanned {
    /// The plan. Its fabric names the wavelength plan that was taken.
    pub plan: Plan,
    /// What the verifier says: nothing.
    pub violations: Vec<Violation>,
    /// The time on the grid as it was.
    pub before: Time,
    /// The time on what is left.
    pub after: Time,
}

impl Replanned {
    /// By which factor the collective takes longer.
    pub fn slowdown(&self) -> f64 {
        self.after.seconds() / self.before.seconds()
    }
}

/// Plans anew, by the same algorithm, for a grid on which transceivers or switch ports are dead or nodes
/// are no longer allocated: with its wavelength plan, or else with one that joins any two ports.
///
/// # Errors
/// Ranks that nothing joins any more, or what a simulation refuses.
pub fn replan(
    plan: &Plan,
    left: &WssGrid,
    size: Bytes,
    method: &Method,
) -> Result<Replanned, PlannerError> {
    let spec: Spec = plan.algorithm.parse()?;
    let collective = plan.schedule.collective;
    let root = collective.root().min(left.ranks().saturating_sub(1));
    let collective = Collective::new(collective.kind(), left.ranks())?.with_root(root)?;
    let with = |wavelengths| {
        let fabric = Fabric::WssGrid(left.with_plan(wavelengths));
        named::plan(&spec, &fabric, collective)
    };
    let mut made = with(left.plan);
    for wavelengths in [WavelengthPlan::EdgeColouring, WavelengthPlan::Cyclic] {
        if matches!(made, Err(PlannerError::Grid(_))) && wavelengths != left.plan {
            made = with(wavelengths);
        }
    }
    let replanned = Plan {
        size: Some(size),
        ..made?
    };
    Ok(Replanned {
        violations: verify(&replanned),
        before: simulate::run(plan, size, method)?.time,
        after: simulate::run(&replanned, size, method)?.time,
        plan: replanned,
    })
}
