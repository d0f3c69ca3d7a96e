//! Searches for plans whose times are close to the lower bounds of [`opticoll_bounds`], and the
//! selection of the fastest plan.
//!
//! [`PLANNERS`] lists all planners. A name that no planner has is the name of an algorithm of
//! [`opticoll_algorithms`], which is planned with default routes and wavelengths. The planner
//! `auto` selects among the algorithms and the candidates of all other planners.
//!
//! ```
//! use opticoll_plan::collective::{Collective, CollectiveKind};
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_fabric::families;
//! use opticoll_planner as planner;
//! let fabric = Fabric::parse("wdm_ring:ranks=64,wavelengths=8")?;
//! let collective = Collective::new(CollectiveKind::AllGather, 64)?;
//! let plan = planner::relay_tree(&fabric, collective)?;
//! let bound = opticoll_bounds::slots_bound(&fabric, &collective, true).expect("a ring has one");
//! assert_eq!(u64::from(plan.slots()), bound.steps);
//! assert!(opticoll_verify::verify(&plan).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod building;
mod combined;
mod error;
mod fibres;
mod graph;
mod grid;
mod ring;
mod selection;
mod switch;

pub use building::time_reversal::{all_reduce, reduce_scatter};
pub use combined::united::{UnitedPlan, unite};
pub use error::PlannerError;
pub use graph::rank_mapping;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::AUTO;
use opticoll_placement::wdm_ring::placement::Assignment;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule};
use opticoll_simulate::outcome::Outcome;
use opticoll_simulate::{Policy, TimingModel, default_policy};
pub use ring::relay_tree::rotations::relay_tree;
use selection::evaluation::Candidate;
pub use selection::evaluation::{CandidateResult, LeftOut};
pub use selection::named::options;
pub use selection::replan;
pub use selection::stated_bound::{NoBound, StatedBound, stated_bound, time_bound, time_bounds};

/// Declaration of a planner.
pub struct Planner {
    /// Name in specifications.
    pub name: &'static str,
    /// Name in figures.
    pub label: &'static str,
    /// Collectives that the planner supports.
    pub collectives: &'static [CollectiveKind],
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Publication that describes the method, or `opticoll`.
    pub citation: &'static str,
    /// Options of the planner.
    pub options: &'static [OptionRecord],
    /// True if the plan depends on the size and the policy.
    pub depends_on_size: bool,
    /// True if the planner selects among the plans of other planners and algorithms.
    pub chooses: bool,
    /// True if the planner supports an all_to_all with a demand.
    takes_demands: bool,
    /// Fabrics that the planner supports, and the functions that plan on them.
    scope: Scope,
}

/// Fabrics that a planner supports, with the functions of the planner.
enum Scope {
    /// Any fabric for which the first function returns true. The other two functions return the
    /// plan of a specification and the candidates for `auto`.
    Any(
        fn(&Fabric) -> bool,
        fn(&Spec, &PlanningProblem<'_>) -> Result<Planned, PlannerError>,
        for<'a> fn(&PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError>,
    ),
    Rings(FamilyFunctions<WdmRing>),
    Switches(FamilyFunctions<CircuitSwitch>),
    Fibres(FamilyFunctions<WdmGraph>),
}

/// Function that returns the plan of a specification whose options are declared.
type PlanOn<M> = fn(&Spec, &PlanningProblem<'_>, &M) -> Result<Planned, PlannerError>;

/// Function that returns the planner's candidates for `auto`.
type CandidatesOn<M> =
    for<'a> fn(&PlanningProblem<'a>, &'a M) -> Result<Vec<Candidate<'a>>, PlannerError>;

struct FamilyFunctions<M> {
    /// Returns whether the planner supports a fabric of the family.
    applies: fn(&M) -> bool,
    plan: PlanOn<M>,
    candidates: CandidatesOn<M>,
}

impl<M> FamilyFunctions<M> {
    /// Creates functions that support every fabric of the family.
    const fn new(plan: PlanOn<M>, candidates: CandidatesOn<M>) -> FamilyFunctions<M> {
        FamilyFunctions {
            applies: |_| true,
            plan,
            candidates,
        }
    }
}

impl Planner {
    const fn new(
        name: &'static str,
        label: &'static str,
        collectives: &'static [CollectiveKind],
        summary: &'static str,
        citation: &'static str,
        scope: Scope,
    ) -> Planner {
        Planner {
            name,
            label,
            collectives,
            summary,
            citation,
            options: &[],
            depends_on_size: false,
            chooses: false,
            takes_demands: false,
            scope,
        }
    }

    /// Returns whether the planner supports a fabric.
    pub fn applies(&self, fabric: &Fabric) -> bool {
        match &self.scope {
            Scope::Any(applies, ..) => applies(fabric),
            Scope::Rings(on) => fabric.needed(self.name).is_ok_and(on.applies),
            Scope::Switches(on) => fabric.needed(self.name).is_ok_and(on.applies),
            Scope::Fibres(on) => fabric.downcast().is_some_and(on.applies),
        }
    }

    /// Returns the plan of a specification whose options are declared; an empty plan for one rank.
    fn plan(&self, spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
        let fabric = problem.fabric;
        if problem.collective.ranks() < 2 && !self.chooses && self.applies(fabric) {
            let empty = empty_plan(fabric.clone(), problem.collective, spec.to_string(), 0);
            return Ok(empty.into());
        }
        let refused =
            |reason: &str| AlgorithmError::refused(self.name, problem.collective.ranks(), reason);
        match &self.scope {
            Scope::Any(_, plan, _) => plan(spec, problem),
            Scope::Rings(on) => (on.plan)(spec, problem, fabric.needed(self.name)?),
            Scope::Switches(on) => {
                let switch = fabric.needed(self.name);
                let reason = "it sets the ports of a circuit_switch";
                (on.plan)(spec, problem, switch.map_err(|_| refused(reason))?)
            }
            Scope::Fibres(on) => {
                let reason = "it sends light over any graph of fibres, such as a wdm_torus";
                let graph = fabric.downcast().ok_or_else(|| refused(reason))?;
                (on.plan)(spec, problem, graph)
            }
        }
    }

    fn candidates<'a>(
        &self,
        problem: &PlanningProblem<'a>,
    ) -> Result<Vec<Candidate<'a>>, PlannerError> {
        let fabric = problem.fabric;
        match &self.scope {
            Scope::Any(.., candidates) => candidates(problem),
            Scope::Rings(on) => (on.candidates)(problem, fabric.needed(self.name)?),
            Scope::Switches(on) => (on.candidates)(problem, fabric.needed(self.name)?),
            Scope::Fibres(on) => match fabric.downcast() {
                Some(graph) => (on.candidates)(problem, graph),
                None => Ok(Vec::new()),
            },
        }
    }
}

/// Returns an error with `reason` unless `holds` is true.
fn ensure(
    holds: bool,
    name: &'static str,
    ranks: u32,
    reason: impl Into<String>,
) -> Result<(), AlgorithmError> {
    let reason = reason.into();
    match holds {
        true => Ok(()),
        false => Err(AlgorithmError::refused(name, ranks, reason)),
    }
}

/// Returns the fabric as a WDM ring, or `None` for another family.
fn ring_of(fabric: &Fabric) -> Option<&WdmRing> {
    match fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(ring)) => Some(ring),
        _ => None,
    }
}

/// All planners.
pub const PLANNERS: &[Planner] = &[
    ring::relay_tree::PLANNER,
    ring::hierarchical::PLANNER,
    ring::tree::PLANNER,
    combined::pipelined::PLANNER,
    ring::faulty_ring::PLANNER,
    combined::barrier_from_plan::PLANNER,
    ring::store_and_forward::PLANNER,
    ring::gateways::PLANNER,
    ring::aggregated_trees::PLANNER,
    fibres::relay_forest::PLANNER,
    fibres::one_hop::PLANNER,
    graph::tree_packing::PLANNER,
    graph::matching::PLANNER,
    combined::two_phases::PLANNER,
    combined::per_rail::PLANNER,
    graph::concurrent_flow::PLANNER,
    switch::switch_configurations::PLANNER,
    combined::shifts::PLANNER,
    switch::decomposition::PLANNER,
    switch::static_configuration::PLANNER,
    selection::auto::PLANNER,
];

/// Collectives that consist of an all_gather, of a reversed all_gather, or of both.
const ALL_GATHER_KINDS: &[CollectiveKind] = &[
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllReduce,
];

/// Returns the planner with this name that supports a collective, or `None`.
pub fn find(kind: CollectiveKind, name: &str) -> Option<&'static Planner> {
    PLANNERS
        .iter()
        .find(|planner| same_name(planner.name, name) && planner.collectives.contains(&kind))
}

/// Checks that an algorithm or a planner for the collective has this name.
///
/// # Errors
/// Returns [`AlgorithmError::Unknown`] with similar names if no collective has the name, or
/// [`AlgorithmError::OtherCollective`] with the collectives that have it.
pub fn check_name(kind: CollectiveKind, name: &str) -> Result<(), AlgorithmError> {
    if find(kind, name).is_some() || opticoll_algorithms::find(kind, name).is_ok() {
        return Ok(());
    }
    let names = |kind: CollectiveKind| {
        let algorithms = opticoll_algorithms::records().iter();
        let algorithms = algorithms.filter(move |record| record.collective == kind);
        let planners = PLANNERS.iter();
        let planners = planners.filter(move |planner| planner.collectives.contains(&kind));
        let algorithm_names = algorithms.map(|record| record.name);
        algorithm_names.chain(planners.map(|planner| planner.name))
    };
    let others = CollectiveKind::ALL.iter().filter(|&&other| {
        let mut other_names = names(other);
        other_names.any(|other_name| same_name(other_name, name))
    });
    let others: Vec<&str> = others.map(|kind| kind.name()).collect();
    let (name, collective) = (String::from(name), kind);
    Err(match others.is_empty() {
        true => AlgorithmError::Unknown {
            hint: suggest(&name, names(kind)),
            name,
            collective,
        },
        false => AlgorithmError::OtherCollective {
            name,
            collective,
            others: others.join(", "),
        },
    })
}

/// A plan and the reasons for its selection.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Results of all candidates, the selected plan first; empty if no candidates were compared.
    pub candidates: Vec<CandidateResult>,
    /// Reasons for the selection, in sentences; empty if no candidates were compared.
    pub reasons: Vec<String>,
    /// Outcome of the simulation of the plan's circuits with the requested size and method. `None`
    /// if no such simulation was run.
    pub outcome: Option<Box<Outcome>>,
}

impl From<Plan> for Planned {
    fn from(plan: Plan) -> Planned {
        Planned {
            plan,
            candidates: Vec::new(),
            reasons: Vec::new(),
            outcome: None,
        }
    }
}

/// Condition on a finished plan: `Ok`, or a sentence with the reason why `auto` must not select it.
pub type Condition<'a> = &'a dyn Fn(&Plan) -> Result<(), String>;

/// A request for a plan of a collective on a fabric.
#[derive(Clone, Copy)]
pub struct PlanningTask<'a> {
    /// Fabric on which to plan.
    pub fabric: &'a Fabric,
    /// Collective to plan.
    pub collective: Collective,
    /// Size in bytes. If `None`, planners use [`DEFAULT_SIZE`], and the plan of an algorithm
    /// records no size.
    pub size: Option<Bytes>,
    /// Simulator and its settings, which time the plans.
    pub method: &'a TimingModel,
    /// Name of the wavelength assignment for the schedule of an algorithm.
    pub assignment: &'a str,
    /// Function that receives the name of each candidate before the candidate is built.
    pub watch: &'a dyn Fn(&str),
    /// Condition on the plan that `auto` selects. Other planners ignore the condition.
    pub condition: Option<Condition<'a>>,
}

/// Size of a request that states none: 4 MiB.
pub const DEFAULT_SIZE: Bytes = Bytes::new(4 << 20);

/// Default maximum number of transfers of a plan: about 400 MB at 25 bytes per transfer.
const DEFAULT_MAX_TRANSFERS: u64 = 1 << 24;

/// Default maximum number of transfers that `auto` builds and simulates: about one minute at
/// 1,000,000 transfers per second.
pub const DEFAULT_WORK: u64 = 60_000_000;

/// Maximum number of transfers built and simulated to plan for one process group of a program:
/// about one second at 1,000,000 transfers per second.
pub const PART_WORK: u64 = 1_000_000;

/// Returns the plan that `spec` names, for a size and a method of timing. If no planner has the
/// name, an algorithm of this name is planned with default routes and wavelengths. On a ring, only
/// the policy of the method affects the plan.
///
/// # Errors
/// Fails for an unknown name or option, for a collective that the planner does not support, and if
/// no plan fits.
pub fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<Planned, PlannerError> {
    let problem = PlanningProblem::new(fabric, collective, size, method, &|_| {})?;
    let mut planned = problem.solve(&spec.at(size))?;
    planned.plan.size = Some(size);
    Ok(planned)
}

/// Returns the plan that `spec` names for one process group of a program, as [`plan`] does. Groups
/// that are alike share the plan, so the plan uses the default routes of the fabric only.
/// The search builds and simulates at most [`PART_WORK`] transfers.
///
/// # Errors
/// Fails as [`plan`] does.
pub fn plan_of_group(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &TimingModel,
) -> Result<Planned, PlannerError> {
    let problem = PlanningProblem {
        may_name_routes: false,
        max_work: PART_WORK,
        ..PlanningProblem::new(fabric, collective, size, method, &|_| {})?
    };
    problem.solve(&spec.at(size))
}

/// Returns the plan that `spec` names for a task.
///
/// # Errors
/// Fails as [`plan`] does, and for a wavelength assignment that does not fit.
pub fn plan_task(spec: &Spec, task: &PlanningTask<'_>) -> Result<Planned, PlannerError> {
    let (fabric, collective, assignment) = (task.fabric, task.collective, task.assignment);
    let spec = &spec.at(task.size.unwrap_or(DEFAULT_SIZE));
    check_name(collective.kind(), spec.name())?;
    let planner = find(collective.kind(), spec.name());
    let assigned = Assignment::parse(assignment).map_err(PlannerError::Assignment);
    let mut planned = match (planner, assigned? == Assignment::AUTO) {
        (Some(_), false) => {
            return Err(PlannerError::OwnWavelengths {
                planner: spec.name().into(),
                assignment: assignment.into(),
            });
        }
        (None, false) => {
            selection::ring_and_graph::plan(spec, collective.kind(), fabric, |fabric| {
                let plan = selection::named::plan(spec, fabric, collective, assignment)?;
                Ok(plan.into())
            })?
        }
        (_, true) => {
            let size = task.size.unwrap_or(DEFAULT_SIZE);
            let problem = PlanningProblem {
                condition: task
                    .condition
                    .filter(|_| planner.is_some_and(|one| one.chooses)),
                ..PlanningProblem::new(fabric, collective, size, task.method, task.watch)?
            };
            problem.solve(spec)?
        }
    };
    let planned_for = planner.map(|_| DEFAULT_SIZE);
    planned.plan.size = task.size.or(planned_for);
    Ok(planned)
}

/// Rule that selects the candidates that a search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Candidates that could save enough time for their number of transfers.
    Enough,
    /// All candidates that could be faster.
    Full,
}

impl Effort {
    const ALL: [(&'static str, Effort); 2] = [("enough", Effort::Enough), ("full", Effort::Full)];
}

/// A collective to plan on a fabric, with the limits of the search.
#[derive(Clone, Copy)]
struct PlanningProblem<'a> {
    fabric: &'a Fabric,
    collective: Collective,
    size: Bytes,
    method: &'a TimingModel,
    /// Maximum number of transfers of a plan, or of representatives if the plan is
    /// rotation-symmetric. A transfer takes about 25 bytes of memory.
    max_transfers: u64,
    /// True if a rotation-symmetric plan is stored as representatives. False if it will be joined
    /// with a plan without symmetry.
    keeps_representatives: bool,
    /// Maximum number of transfers built and simulated in the whole search.
    max_work: u64,
    effort: Effort,
    /// True if a plan may use routes that differ from the default routes of the fabric.
    may_name_routes: bool,
    /// Fabric with the same lightpaths on which `auto` has made a plan: it then tries only the
    /// planners that do not apply there.
    tried: Option<&'a Fabric>,
    /// Time that a plan must not reach; `None` without a limit.
    limit: Option<Time>,
    /// Limit on the time of a plan that will be joined with another plan.
    joined: Option<combined::two_phases::JoinedLimit>,
    /// Number of fastest plans whose exact times are needed.
    wanted: usize,
    /// Function that receives the name of each candidate before the candidate is built.
    watch: &'a dyn Fn(&str),
    /// Condition on the plan that `auto` selects.
    condition: Option<Condition<'a>>,
}

impl<'a> PlanningProblem<'a> {
    /// Creates a problem with default limits. Fails if some ranks cannot reach each other.
    fn new(
        fabric: &'a Fabric,
        collective: Collective,
        size: Bytes,
        method: &'a TimingModel,
        watch: &'a dyn Fn(&str),
    ) -> Result<PlanningProblem<'a>, PlannerError> {
        if ring_of(fabric).is_some_and(|ring| !ring.is_connected()) {
            return Err(PlannerError::CutOff);
        }
        Ok(PlanningProblem {
            fabric,
            collective,
            size,
            method,
            max_transfers: DEFAULT_MAX_TRANSFERS,
            keeps_representatives: true,
            max_work: DEFAULT_WORK,
            effort: Effort::Enough,
            may_name_routes: true,
            tried: None,
            limit: None,
            joined: None,
            wanted: 1,
            watch,
            condition: None,
        })
    }

    fn solve(&self, spec: &Spec) -> Result<Planned, PlannerError> {
        let kind = self.collective.kind();
        let planned = selection::ring_and_graph::plan(spec, kind, self.fabric, |fabric| {
            PlanningProblem { fabric, ..*self }.solve_on_circuits(spec)
        })?;
        selection::ring_and_graph::faster(spec, self, planned)
    }

    fn solve_on_circuits(&self, spec: &Spec) -> Result<Planned, PlannerError> {
        let planning_alternatives = self.fabric.planning_alternatives();
        if !planning_alternatives.is_empty() {
            return selection::degraded::plan(self, spec, planning_alternatives);
        }
        self.solve_undegraded(spec)
    }

    /// Returns the plan that a specification names. All parts of the fabric are assumed to have
    /// full rates.
    fn solve_undegraded(&self, spec: &Spec) -> Result<Planned, PlannerError> {
        let Some(planner) = find(self.collective.kind(), spec.name()) else {
            return selection::named::plan(spec, self.fabric, self.collective, AUTO)
                .map(Planned::from);
        };
        spec.only_declared(planner.options)?;
        if self.collective.demand().is_some() && !planner.takes_demands {
            return Err(PlannerError::Algorithm(AlgorithmError::refused(
                planner.name,
                self.collective.ranks(),
                "it needs blocks of equal size: plan a demand with `decomposition` on a \
                 circuit_switch, or with an algorithm such as `direct`",
            )));
        }
        planner.plan(spec, self)
    }

    /// Returns a lower bound on the time of any plan of the collective.
    fn least(&self) -> Result<Time, PlannerError> {
        selection::candidate_bound::collective_bound(
            self.fabric,
            &self.collective,
            self.size,
            self.method,
        )
    }

    /// Returns the fastest plan that `auto` finds.
    fn fastest(&self) -> Result<Planned, PlannerError> {
        selection::auto::choose(self)
    }

    fn planners(&self) -> impl Iterator<Item = &'static Planner> {
        let (fabric, kind) = (self.fabric, self.collective.kind());
        let has_demand = self.collective.demand().is_some();
        PLANNERS.iter().filter(move |planner| {
            let takes = planner.takes_demands || !has_demand;
            let is_new = self.tried.is_none_or(|tried| !planner.applies(tried));
            takes && is_new && planner.collectives.contains(&kind) && planner.applies(fabric)
        })
    }

    fn policy(&self) -> Policy {
        self.method.policy.unwrap_or(default_policy(self.fabric))
    }

    fn slot_cost(&self, ring: &WdmRing) -> ring::slot_cost::SlotCost {
        ring::slot_cost::SlotCost::new(ring, self.policy())
    }

    /// Returns two reconfiguration times of a circuit switch in picoseconds: the time that the
    /// policy charges for every slot, and the time that it charges for every change of the switch's
    /// configuration. At least one of the two is 0.
    fn switch_cost(&self, switch: &CircuitSwitch) -> Result<(u64, u64), PlannerError> {
        let setup = switch.reconfiguration.time()?.ps();
        Ok(match switch.charge(self.policy().name()) {
            Ok(ReconfigurationCharge::EverySlot) => (setup, 0),
            Ok(ReconfigurationCharge::Never) => (0, 0),
            _ => (0, setup),
        })
    }

    /// Returns the work of building and simulating `transfers` transfers, in units of one transfer
    /// on a fabric without tunable circuits. On a grid of tunable circuits a transfer counts 8
    /// times, and 32 times if ranks do not wait for the end of a slot, because each transfer is
    /// then a chain of events.
    fn work(&self, transfers: u64) -> u64 {
        match self.fabric.planes() {
            Some(_) if self.policy() == Policy::TwoTier => transfers.saturating_mul(32),
            Some(_) => transfers.saturating_mul(8),
            None => transfers,
        }
    }

    /// Fails if `transfers` exceeds the maximum number of transfers of a plan.
    fn fits(&self, transfers: u64) -> Result<(), PlannerError> {
        let most = self.max_transfers;
        match transfers > most {
            true => Err(PlannerError::TooLarge { transfers, most }),
            false => Ok(()),
        }
    }
}

/// Maximum number of transfers, or of representatives, of any plan: 16 GiB at about 25 bytes each.
const MAX_TRANSFERS: u64 = 1 << 29;

/// Forms in which a plan may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Representatives only, for a rotation-symmetric plan.
    Representatives,
    /// Representatives or all transfers.
    Any,
}

impl Form {
    /// Returns the permitted forms of a plan with `transfers` transfers if at most `max_transfers`
    /// transfers can be stored.
    fn of(transfers: u64, max_transfers: u64) -> Form {
        if transfers > max_transfers {
            Form::Representatives
        } else {
            Form::Any
        }
    }
}

/// Returns a plan without lightpaths that has `steps` steps of one slot each.
fn empty_plan(fabric: Fabric, collective: Collective, algorithm: String, steps: u32) -> Plan {
    let mut schedule = Schedule::new(collective);
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        ..Claims::default()
    };
    Plan {
        fabric,
        schedule,
        algorithm,
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: (0..steps).map(|slot| slot..slot + 1).collect(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    }
}
