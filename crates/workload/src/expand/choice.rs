//! Choice of the schedule of a collective: the schedule of a named algorithm, or a schedule that
//! the planner selects.
//!
//! The planner works on the part of the fabric that the members of a communicator occupy
//! ([`Fabric::part`]), with the simulator settings of the replay. A named algorithm builds its
//! schedule for this part. Communicators that are alike (`alike.rs`) share one plan, which is made
//! for the first of these communicators. If the replay simulates no fabric (as with a cost model, a
//! lightpath grid or a burst-switched network), the planner works on a fabric with similar message
//! times ([`CollectiveTarget::resembles`]). This fabric has as many ranks as the communicator.
//! Switches of the fabric only forward, because a program of messages has one sender and one
//! receiver for each message. Plans are made for the size of the collective, or for the next power
//! of two in programs with many sizes.

use super::{Algorithms, CollectiveTarget};
use crate::error::{Place, TraceError};

use opticoll_base::spec::Spec;
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_planner as planner;
use opticoll_simulate::{Policy, TimingModel, default_simulator};
use opticoll_verify::verify;

opticoll_simulate::rows! {
    /// A row per collective, size and number of ranks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChosenAlgorithm {
        /// Name of the collective.
        pub collective: &'static str,
        /// Number of ranks of the communicator.
        pub ranks: u32,
        /// Size for which the algorithm was chosen; empty if the choice does not depend on the
        /// size.
        pub size: Option<Bytes>,
        /// Requested algorithm, such as `auto`.
        pub algorithm: String,
        /// Algorithm of the plan.
        pub chosen: String,
    }
}

/// Returns the verified plan of a collective, and the algorithm that was chosen. The plan names
/// routes only if the members are all ranks of the fabric in order.
pub(super) fn plan(
    algorithms: &Algorithms,
    target: CollectiveTarget<'_>,
    (collective, members): (Collective, &[u32]),
    size: Option<Bytes>,
    has_all: bool,
    place: Place,
) -> Result<(Plan, ChosenAlgorithm), TraceError> {
    let (kind, ranks) = (collective.kind(), collective.ranks());
    let requested = &algorithms.chosen[kind.name()];
    let spec = &size.map_or_else(|| requested.clone(), |size| requested.at(size));
    let parse_fabric =
        |text: String| Fabric::parse(&text).map_err(|error| TraceError::at(place, error));
    let ring = || parse_fabric(format!("wdm_ring:ranks={ranks},wavelengths=1"));
    planner::check_name(kind, spec.name()).map_err(|error| TraceError::at(place, error))?;
    let on = match (target.fabric, target.resembles) {
        (Some(fabric), _) => {
            let part = fabric.part(members);
            let part = part.and_then(|part| part.with_forwarding_switches());
            let part = part.map_err(|error| TraceError::at(place, error))?;
            Some((part, target.method.cloned().unwrap_or_default()))
        }
        (None, Some(shape)) => {
            let similar = parse_fabric(shape.clone().with("ranks", ranks).to_string())?;
            let method = method_on(&similar, target);
            Some((similar, method))
        }
        (None, None) => None,
    };
    let part = on.as_ref().map(|(part, _)| part.clone());
    let part = part.filter(|_| target.fabric.is_some());
    let carrier = match &part {
        Some(part) => part.clone(),
        None => parse_fabric(format!("crossbar:ranks={ranks}"))?,
    };
    let without_light = |schedule, algorithm| Plan::without_light(&carrier, schedule, algorithm);
    let named = |spec: &Spec| {
        let built_for = part.clone().map_or_else(ring, Ok)?;
        opticoll_algorithms::build_ranges(spec, collective, &built_for)
            .map(|schedule| without_light(schedule, spec.to_string()))
            .map_err(|error| TraceError::at(place, error))
    };
    let plan = match planner::find(kind, spec.name()) {
        None => named(spec)?,
        // If messages take no time, all plans take the same time.
        Some(planner) if planner.chooses && on.is_none() => {
            named(&Algorithms::default().chosen[kind.name()])?
        }
        Some(planner) => {
            let fits = on.filter(|(fabric, _)| part.is_some() || planner.applies(fabric));
            let (fabric, method) = match fits {
                Some(fits) => fits,
                None => (ring()?, TimingModel::default()),
            };
            let size = size.unwrap_or(Bytes::new(1));
            let planned = match has_all {
                true => planner::plan(spec, &fabric, collective, size, &method),
                false => planner::plan_of_group(spec, &fabric, collective, size, &method),
            };
            let plan = planned.map_err(|error| TraceError::at(place, error))?;
            let plan = plan.plan.into_expanded();
            let mut bare = without_light(plan.schedule, plan.algorithm);
            bare.routes = plan.routes;
            bare
        }
    };
    if plan.schedule.is_in_network() {
        let problem = format!(
            "{} needs switches that add or multicast, but a replay has messages from one rank to \
             one rank; choose another algorithm",
            plan.algorithm
        );
        return Err(TraceError::at(place, problem));
    }
    prove(&plan, place)?;
    let chosen = ChosenAlgorithm {
        collective: kind.name(),
        ranks,
        size,
        algorithm: requested.to_string(),
        chosen: plan.algorithm.clone(),
    };
    Ok((plan, chosen))
}

/// Verifies a plan. The error contains the first violation.
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

/// Returns whether `fabric` has circuits and supports `policy`.
fn has_policy(fabric: &Fabric, policy: Policy) -> bool {
    let circuits = fabric.circuits();
    circuits.is_some_and(|circuits| circuits.charge(policy.name()).is_ok())
}

/// Returns the simulator settings for timing plans on a fabric that only resembles the network.
fn method_on(fabric: &Fabric, target: CollectiveTarget<'_>) -> TimingModel {
    let replay_method = target.method.cloned().unwrap_or_default();
    let mut method = TimingModel::default();
    let simulator = default_simulator(fabric);
    if simulator.has_setting("endpoint") {
        method.fluid.endpoint = replay_method.fluid.endpoint;
    }
    if simulator.has_setting("policy")
        && replay_method
            .policy
            .is_some_and(|policy| has_policy(fabric, policy))
    {
        method.policy = replay_method.policy;
    }
    if simulator.has_setting("paths") {
        method.paths = target.setup.map(|paths| paths.paths);
    }
    method
}
