//! Searches for plans that come near the lower bounds of [`opticoll_bounds`], and the choice among all plans known.
//!
//! Every way to plan is one [`Planner`] in [`PLANNERS`]; whatever no planner is named like is an algorithm of
//! [`opticoll_algorithms`], with the default routes and wavelengths. One planner, `auto`, chooses among the
//! candidates of all others and the algorithms.
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
mod graph;
mod grid;
mod ring;
mod selection;
mod switch;

pub use building::time_reversal::{all_reduce, reduce_scatter};
pub use error::PlannerError;
pub use graph::rank_mapping;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_placement::AUTO;
use opticoll_placement::wdm_ring::placement::Assignment;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule};
use opticoll_simulate::outcome::Outcome;
use opticoll_simulate::{Method, Policy, default_policy};
pub use ring::relay_tree::rotations::relay_tree;
pub use selection::bounds::{NoBound, StatedBound, stated_bound, time_bound, time_bounds};
use selection::contest::Contender;
pub use selection::contest::{Candidate, LeftOut};
pub use selection::named::options;
pub use selection::replan;

/// The declaration of a planner.
pub struct Planner {
    /// As typed.
    pub name: &'static str,
    /// As printed in figures.
    pub label: &'static str,
    /// What it carries out.
    pub collectives: &'static [CollectiveKind],
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Its options.
    pub options: &'static [OptionRecord],
    /// Whether its plans depend on the size and the policy.
    pub by_size: bool,
    /// Whether it chooses among all others.
    pub chooses: bool,
    /// Whether it plans an all_to_all with a demand.
    takes_demands: bool,
    /// The machines that it is for, with its functions.
    scope: Scope,
}

/// The machines that a planner is for, with the functions that get them.
enum Scope {
    /// Any fabric, which is asked for what it can do; the functions are those of [`OnMachine`].
    Any(
        fn(&Fabric) -> bool,
        fn(&Spec, &Question<'_>) -> Result<Planned, PlannerError>,
        for<'a> fn(&Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError>,
    ),
    Rings(OnMachine<WdmRing>),
    Switches(OnMachine<CircuitSwitch>),
}

/// Makes the plan that a spec names, whose options are known.
type PlanOn<M> = fn(&Spec, &Question<'_>, &M) -> Result<Planned, PlannerError>;

/// Returns what a planner has to offer for the choice.
type CandidatesOn<M> = for<'a> fn(&Question<'a>, &'a M) -> Result<Vec<Contender<'a>>, PlannerError>;

/// The functions of a planner of one family.
struct OnMachine<M> {
    /// Returns whether it plans on a machine.
    applies: fn(&M) -> bool,
    plan: PlanOn<M>,
    candidates: CandidatesOn<M>,
}

impl<M> OnMachine<M> {
    /// Creates the functions of a planner of all machines of a family.
    const fn new(plan: PlanOn<M>, candidates: CandidatesOn<M>) -> OnMachine<M> {
        OnMachine {
            applies: |_| true,
            plan,
            candidates,
        }
    }
}

impl Planner {
    /// Creates a planner without options.
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
            by_size: false,
            chooses: false,
            takes_demands: false,
            scope,
        }
    }

    /// Returns whether it plans on a fabric.
    pub fn applies(&self, fabric: &Fabric) -> bool {
        match &self.scope {
            Scope::Any(applies, ..) => applies(fabric),
            Scope::Rings(on) => fabric.needed(self.name).is_ok_and(on.applies),
            Scope::Switches(on) => fabric.needed(self.name).is_ok_and(on.applies),
        }
    }

    /// Makes the plan that a spec names, whose options are known.
    fn plan(&self, spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
        let fabric = question.fabric;
        let refused = |reason: &str| AlgorithmError::Refused {
            name: self.name,
            ranks: question.collective.ranks(),
            reason: reason.into(),
        };
        match &self.scope {
            Scope::Any(_, plan, _) => plan(spec, question),
            Scope::Rings(on) => (on.plan)(spec, question, fabric.needed(self.name)?),
            Scope::Switches(on) => {
                let switch = fabric.needed(self.name);
                let reason = "it sets the ports of a circuit_switch";
                (on.plan)(spec, question, switch.map_err(|_| refused(reason))?)
            }
        }
    }

    /// Returns what it has to offer for the choice on a fabric to which it applies.
    fn candidates<'a>(&self, question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
        let fabric = question.fabric;
        match &self.scope {
            Scope::Any(.., candidates) => candidates(question),
            Scope::Rings(on) => (on.candidates)(question, fabric.needed(self.name)?),
            Scope::Switches(on) => (on.candidates)(question, fabric.needed(self.name)?),
        }
    }
}

/// Refuses what a planner is asked for, unless a condition holds.
fn ensure(
    holds: bool,
    name: &'static str,
    ranks: u32,
    reason: impl Into<String>,
) -> Result<(), AlgorithmError> {
    let reason = reason.into();
    match holds {
        true => Ok(()),
        false => Err(AlgorithmError::Refused {
            name,
            ranks,
            reason,
        }),
    }
}

/// Returns the ring of wavelengths that a fabric is.
fn ring_of(fabric: &Fabric) -> Option<&WdmRing> {
    match fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(ring)) => Some(ring),
        _ => None,
    }
}

/// All planners.
pub const PLANNERS: &[Planner] = &[
    ring::relay_tree::PLANNER,
    ring::grouped::PLANNER,
    ring::tree::PLANNER,
    combined::pipelined::PLANNER,
    ring::detour::PLANNER,
    combined::signals::PLANNER,
    ring::store_and_forward::PLANNER,
    ring::collectors::PLANNER,
    ring::bundles::PLANNER,
    graph::tree_packing::PLANNER,
    graph::matching::PLANNER,
    combined::two_phases::PLANNER,
    graph::concurrent_flow::PLANNER,
    switch::settings::PLANNER,
    combined::shifts::PLANNER,
    switch::decomposition::PLANNER,
    switch::kept_setting::PLANNER,
    selection::auto::PLANNER,
];

/// The collectives that are an all_gather, one backwards, or both.
const GATHERED: &[CollectiveKind] = &[
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllReduce,
];

/// The planner with a name, if there is one for the collective.
pub fn find(kind: CollectiveKind, name: &str) -> Option<&'static Planner> {
    PLANNERS
        .iter()
        .find(|planner| same_name(planner.name, name) && planner.collectives.contains(&kind))
}

/// Refuses a name that neither an algorithm nor a planner of the collective has.
///
/// # Errors
/// [`AlgorithmError::Unknown`], which names the nearest of all, or all of them.
pub fn check_name(kind: CollectiveKind, name: &str) -> Result<(), AlgorithmError> {
    if find(kind, name).is_some() || opticoll_algorithms::find(kind, name).is_ok() {
        return Ok(());
    }
    let names = |kind: CollectiveKind| {
        let algorithms = opticoll_algorithms::records().iter();
        let algorithms = algorithms.filter(move |record| record.collective == kind);
        let planners = PLANNERS.iter();
        let planners = planners.filter(move |planner| planner.collectives.contains(&kind));
        let of_algorithms = algorithms.map(|record| record.name);
        of_algorithms.chain(planners.map(|planner| planner.name))
    };
    let others = CollectiveKind::ALL.iter().filter(|&&other| {
        let mut known = names(other);
        known.any(|known| same_name(known, name))
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

/// A plan, and why it was chosen where there was a choice.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What was compared, the chosen one first; empty where nothing was.
    pub candidates: Vec<Candidate>,
    /// Why this one, in sentences; empty where nothing was compared.
    pub reasons: Vec<String>,
    /// What the simulator of circuits said of it, for the size and the method that were asked for, where it was simulated.
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

/// For what a plan is made where a size or a way to time it matters.
#[derive(Clone, Copy)]
pub struct PlanningTask<'a> {
    /// The fabric.
    pub fabric: &'a Fabric,
    /// The collective.
    pub collective: Collective,
    /// The size; `None` for [`DEFAULT_SIZE`], which the plan of an algorithm does not keep.
    pub size: Option<Bytes>,
    /// How plans are timed.
    pub method: &'a Method,
    /// The wavelength assignment of an algorithm's schedule.
    pub assignment: &'a str,
    /// Told the name of each candidate before it is made.
    pub watch: &'a dyn Fn(&str),
}

/// What is planned for where no size is given: 4 MiB.
pub const DEFAULT_SIZE: Bytes = Bytes::new(4 << 20);

/// The most transfers of a plan that is chosen, where nothing else is said.
const DEFAULT_TRANSFERS: u64 = 1 << 24;

/// The transfers made and timed for a choice, where nothing else is said: a minute's.
pub const DEFAULT_WORK: u64 = 60_000_000;

/// The same for one of the groups of a program, which plans on a part of the fabric: a second's.
pub const PART_WORK: u64 = 1_000_000;

/// Makes the plan that `spec` names, by a planner or else by an algorithm with the default routes and
/// wavelengths, for a size and a way to time it. Of the method a ring minds the policy alone.
///
/// # Errors
/// An unknown name or option, a collective that it does not carry out, or no plan that fits.
pub fn plan(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
) -> Result<Planned, PlannerError> {
    let question = Question::new(fabric, collective, size, method, &|_| {})?;
    let mut planned = question.answer(&spec.at(size))?;
    planned.plan.size = Some(size);
    Ok(planned)
}

/// As [`plan`], for one of the groups of a program, which others of as many ranks share: by the
/// routes of the fabric alone, and found in [`PART_WORK`].
///
/// # Errors
/// Those of [`plan`].
pub fn plan_of_group(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
) -> Result<Planned, PlannerError> {
    let question = Question {
        names_routes: false,
        most_work: PART_WORK,
        ..Question::new(fabric, collective, size, method, &|_| {})?
    };
    question.answer(&spec.at(size))
}

/// Makes the plan that `spec` names for a task, for its size.
///
/// # Errors
/// Those of [`plan`], and an assignment that does not fit.
pub fn plan_task(spec: &Spec, task: &PlanningTask<'_>) -> Result<Planned, PlannerError> {
    let (fabric, collective, assignment) = (task.fabric, task.collective, task.assignment);
    let spec = &spec.at(task.size.unwrap_or(DEFAULT_SIZE));
    check_name(collective.kind(), spec.name())?;
    let planner = find(collective.kind(), spec.name());
    let own = Assignment::parse(assignment).map_err(PlannerError::Assignment);
    let mut planned = match (planner, own? == Assignment::AUTO) {
        (Some(_), false) => {
            return Err(PlannerError::OwnWavelengths {
                planner: spec.name().into(),
                assignment: assignment.into(),
            });
        }
        (None, false) => selection::named::plan(spec, fabric, collective, assignment)?.into(),
        (_, true) => {
            let size = task.size.unwrap_or(DEFAULT_SIZE);
            let question = Question::new(fabric, collective, size, task.method, task.watch)?;
            question.answer(spec)?
        }
    };
    let planned_for = planner.map(|_| DEFAULT_SIZE);
    planned.plan.size = task.size.or(planned_for);
    Ok(planned)
}

/// Which plans are tried in search of a faster one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Those that could save enough of the time for their number of transfers.
    Enough,
    /// All that could be faster.
    Full,
}

impl Effort {
    const ALL: [(&'static str, Effort); 2] = [("enough", Effort::Enough), ("full", Effort::Full)];
}

/// What is to be planned, and how much may be spent on it.
#[derive(Clone, Copy)]
struct Question<'a> {
    fabric: &'a Fabric,
    collective: Collective,
    size: Bytes,
    method: &'a Method,
    /// The most transfers of a plan, or orbits where it is folded: what fits into memory. Each takes about 25
    /// bytes.
    most_transfers: u64,
    /// Whether a folded plan stays folded: not where it is joined with another one that is not.
    keeps_folds: bool,
    /// The most transfers made and timed in all.
    most_work: u64,
    effort: Effort,
    /// Whether a plan may name routes that are not the fabric's.
    names_routes: bool,
    /// Plans that take as long or longer are of no use.
    limit: Option<Time>,
    /// The same where the plan is to be joined with another one.
    joined: Option<combined::two_phases::JoinedLimit>,
    /// How many of the fastest plans are wanted.
    wanted: usize,
    /// Told what is made next.
    watch: &'a dyn Fn(&str),
}

impl<'a> Question<'a> {
    /// The question with the default limits.
    ///
    /// # Errors
    /// Ranks that nothing joins.
    fn new(
        fabric: &'a Fabric,
        collective: Collective,
        size: Bytes,
        method: &'a Method,
        watch: &'a dyn Fn(&str),
    ) -> Result<Question<'a>, PlannerError> {
        if ring_of(fabric).is_some_and(|ring| !ring.is_connected()) {
            return Err(PlannerError::CutOff);
        }
        Ok(Question {
            fabric,
            collective,
            size,
            method,
            most_transfers: DEFAULT_TRANSFERS,
            keeps_folds: true,
            most_work: DEFAULT_WORK,
            effort: Effort::Enough,
            names_routes: true,
            limit: None,
            joined: None,
            wanted: 1,
            watch,
        })
    }

    /// The plan that a spec names.
    fn answer(&self, spec: &Spec) -> Result<Planned, PlannerError> {
        let undegraded = self.fabric.undegraded();
        if !undegraded.is_empty() {
            return selection::degraded::plan(self, spec, undegraded);
        }
        self.answer_on_whole(spec)
    }

    /// The same, with no regard to parts that are slower.
    fn answer_on_whole(&self, spec: &Spec) -> Result<Planned, PlannerError> {
        let Some(planner) = find(self.collective.kind(), spec.name()) else {
            return selection::named::plan(spec, self.fabric, self.collective, AUTO)
                .map(Planned::from);
        };
        spec.only_declared(planner.options)?;
        if self.collective.demand().is_some() && !planner.takes_demands {
            return Err(PlannerError::Algorithm(AlgorithmError::Refused {
                name: planner.name,
                ranks: self.collective.ranks(),
                reason: "its blocks are all alike: plan a demand with `decomposition` on a circuit_switch, or with \
                         an algorithm such as `direct`"
                    .into(),
            }));
        }
        planner.plan(spec, self)
    }

    /// A time that no plan goes below.
    fn least(&self) -> Result<Time, PlannerError> {
        selection::least::of_collective(self.fabric, &self.collective, self.size, self.method)
    }

    /// The fastest plan found.
    fn fastest(&self) -> Result<Planned, PlannerError> {
        selection::auto::choose(self)
    }

    /// The planners that may have candidates.
    fn planners(&self) -> impl Iterator<Item = &'static Planner> {
        let (fabric, kind) = (self.fabric, self.collective.kind());
        let has_demand = self.collective.demand().is_some();
        PLANNERS.iter().filter(move |planner| {
            let takes = planner.takes_demands || !has_demand;
            takes && planner.collectives.contains(&kind) && planner.applies(fabric)
        })
    }

    fn policy(&self) -> Policy {
        self.method.policy.unwrap_or(default_policy(self.fabric))
    }

    fn slot_cost(&self, ring: &WdmRing) -> ring::slot_cost::SlotCost {
        ring::slot_cost::SlotCost::new(ring, self.policy())
    }

    /// The work of making and timing so many transfers: on a grid of tunable circuits each is a chain of events where ranks do not wait
    /// for the end of a slot.
    fn work(&self, transfers: u64) -> u64 {
        match self.fabric.planes() {
            Some(_) if self.policy() == Policy::TwoTier => transfers.saturating_mul(32),
            Some(_) => transfers.saturating_mul(8),
            None => transfers,
        }
    }

    /// Refuses a plan of too many transfers.
    fn fits(&self, transfers: u64) -> Result<(), PlannerError> {
        let most = self.most_transfers;
        match transfers > most {
            true => Err(PlannerError::TooLarge { transfers, most }),
            false => Ok(()),
        }
    }

    /// The plan for a single rank.
    fn nothing_to_do(&self, spec: &Spec) -> Planned {
        empty_plan(self.fabric.clone(), self.collective, spec.to_string(), 0).into()
    }
}

/// The most transfers or orbits of a plan: what fits into 16 GiB, with some 25 bytes for each.
const MOST_TRANSFERS: u64 = 1 << 29;

/// In what form a plan is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Folded only.
    Folded,
    /// Folded or not.
    Any,
}

impl Form {
    /// The forms that a plan of so many transfers can have.
    fn of(transfers: u64, most: u64) -> Form {
        if transfers > most {
            Form::Folded
        } else {
            Form::Any
        }
    }
}

/// A plan of so many steps of one slot each, without lightpaths yet.
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
