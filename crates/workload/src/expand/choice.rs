//! Which schedule a collective of a program runs by: a named algorithm's, or one that the planner chooses.
//!
//! A communicator is planned for on the part of the fabric that its members have ([`Fabric::part`]), with the method of the
//! replay; of communicators with as many members, the first. On a cost model it is planned for on a fabric of as many ranks
//! that resembles the network: [`CollectiveTarget::resembles`]. Plans are made for the size of the
//! collective, or for the next power of two in a program of many sizes.

use super::{Algorithms, CollectiveTarget};
use crate::error::{Place, TraceError};

use opticoll_base::spec::Spec;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_planner as planner;
use opticoll_simulate::{Method, Policy, default_simulator};
use opticoll_verify::verify;

opticoll_simulate::rows! {
    /// One row per collective and size among so many ranks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChosenAlgorithm {
        /// The collective.
        pub collective: &'static str,
        /// Ranks of the communicator.
        pub ranks: u32,
        /// The size for which it was chosen; none where it does not depend on the size.
        pub size: Option<Bytes>,
        /// What was asked for, such as `auto`.
        pub algorithm: String,
        /// The algorithm of the plan.
        pub chosen: String,
    }
}

/// The plan of a collective, verified, and by what algorithm it was made. It names routes only
/// where the members are all ranks of the fabric in their order.
pub(super) fn plan(
    algorithms: &Algorithms,
    target: CollectiveTarget<'_>,
    (collective, members): (Collective, &[u32]),
    size: Option<Bytes>,
    has_all: bool,
    place: Place,
) -> Result<(Plan, ChosenAlgorithm), TraceError> {
    let (kind, ranks) = (collective.kind(), collective.ranks());
    let asked = &algorithms.chosen[kind.name()];
    let spec = &size.map_or_else(|| asked.clone(), |size| asked.at(size));
    let made = |text: String| Fabric::parse(&text).map_err(|error| TraceError::at(place, error));
    let ring = || made(format!("wdm_ring:ranks={ranks},wavelengths=1"));
    planner::check_name(kind, spec.name()).map_err(|error| TraceError::at(place, error))?;
    let on = match (target.fabric, target.resembles) {
        (Some(fabric), _) => {
            let part = fabric.part(members);
            let part = part.map_err(|error| TraceError::at(place, error))?;
            Some((part, target.method.cloned().unwrap_or_default()))
        }
        (None, Some(shape)) => {
            let alike = made(shape.clone().with("ranks", ranks).to_string())?;
            let method = method_on(&alike, target);
            Some((alike, method))
        }
        (None, None) => None,
    };
    let same = target.fabric.filter(|fabric| fabric.ranks() == ranks);
    let crossbar = made(format!("crossbar:ranks={ranks}"))?;
    let without_light =
        |schedule, algorithm| Plan::without_light(same.unwrap_or(&crossbar), schedule, algorithm);
    let named = |spec: &Spec| {
        let ring = ring()?;
        opticoll_algorithms::build_ranges(spec, collective, same.unwrap_or(&ring))
            .map(|schedule| without_light(schedule, spec.to_string()))
            .map_err(|error| TraceError::at(place, error))
    };
    let plan = match planner::find(kind, spec.name()) {
        None => named(spec)?,
        // Where messages cost nothing, no plan is better than another.
        Some(planner) if planner.chooses && on.is_none() => {
            named(&Algorithms::default().chosen[kind.name()])?
        }
        Some(planner) => {
            let fits = on.filter(|(fabric, _)| planner.applies(fabric));
            let (fabric, method) = match fits {
                Some(fits) => fits,
                None => (ring()?, Method::default()),
            };
            let size = size.unwrap_or(Bytes::new(1));
            let planned = match has_all {
                true => planner::plan(spec, &fabric, collective, size, &method),
                false => planner::plan_of_group(spec, &fabric, collective, size, &method),
            };
            let plan = planned.map_err(|error| TraceError::at(place, error))?;
            let plan = plan.plan.into_written_out();
            let mut bare = without_light(plan.schedule, plan.algorithm);
            bare.routes = plan.routes;
            bare
        }
    };
    prove(&plan, place)?;
    let chosen = ChosenAlgorithm {
        collective: kind.name(),
        ranks,
        size,
        algorithm: asked.to_string(),
        chosen: plan.algorithm.clone(),
    };
    Ok((plan, chosen))
}

/// Refuses a plan that the verifier refuses.
pub(super) fn prove(plan: &Plan, place: Place) -> Result<(), TraceError> {
    let Some(violation) = verify(plan).into_iter().next() else {
        return Ok(());
    };
    let Plan {
        algorithm, fabric, ..
    } = plan;
    let (ranks, sentence) = (fabric.ranks(), violation.sentence);
    let problem = format!("the plan of {algorithm} among {ranks} ranks is wrong: {sentence}");
    Err(TraceError::at(place, problem))
}

/// Whether a policy is one of a fabric with circuits.
fn known(fabric: &Fabric, policy: Policy) -> bool {
    let circuits = fabric.circuits();
    circuits.is_some_and(|circuits| circuits.charge(policy.name()).is_ok())
}

/// How plans are timed on a fabric that only resembles the network.
fn method_on(fabric: &Fabric, target: CollectiveTarget<'_>) -> Method {
    let given = target.method.cloned().unwrap_or_default();
    let mut method = Method::default();
    let simulator = default_simulator(fabric);
    if simulator.has_setting("endpoint") {
        method.fluid.endpoint = given.fluid.endpoint;
    }
    if simulator.has_setting("policy") && given.policy.is_some_and(|policy| known(fabric, policy)) {
        method.policy = given.policy;
    }
    if simulator.has_setting("paths") {
        method.paths = target.set_up.map(|paths| paths.paths);
    }
    method
}
