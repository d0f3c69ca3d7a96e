//! What the planner makes by name: `relay_tree` and `auto`, beside the named algorithms.

use super::auto::{self, Question};
use super::contest::{Candidate, WORK_PER_SECOND};
use super::{
    PlannerError, candidates, capability, forecast, levels, light, named, relay_tree, two_phases,
};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::plan::AnyPlan;
use crate::simulate::Method;
use crate::spec::Spec;
use crate::spelling::same_name;
use crate::units::{Bytes, Time};

/// The declaration of a way to plan.
pub struct Record {
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
    /// Options with their meaning and default.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether its plans depend on the size and the policy.
    pub by_size: bool,
}

/// All ways to plan.
pub const RECORDS: &[Record] = &[
    Record {
        name: "relay_tree",
        label: "Relay tree",
        collectives: &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
        ],
        summary: "One tree of lightpaths rotated to all ranks, in the fewest slots found",
        citation: "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        options: &[("pieces", "chunks that a block is cut into; default 1")],
        by_size: false,
    },
    Record {
        name: "levels",
        label: "Levels",
        collectives: &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
        ],
        summary: "Flooding among neighbours over circuits that stay up, on one level or several",
        citation: "opticoll",
        options: &[
            (
                "radices",
                "ranks on each level, such as 16x64, whose product is N; default the fewest slots",
            ),
            (
                "reaches",
                "how many neighbours each way on each level, such as 1x2; default the most that fit",
            ),
            ("pieces", "chunks that a block is cut into; default 1"),
        ],
        by_size: false,
    },
    Record {
        name: "grouped",
        label: "Grouped",
        collectives: &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
        ],
        summary: "Few slots: collect in groups, exchange among their owners, hand back, striped",
        citation: "opticoll; after WRHT, Dai et al., PPoPP 2023",
        options: &[
            (
                "groups",
                "ranks per group on each level, such as 9x9; default the best found",
            ),
            (
                "owners",
                "owners per group on each level, such as 1x1 (all_reduce only); default 1",
            ),
            (
                "stripes",
                "stripes on each level and of the core, such as 16x16x3; default 1",
            ),
            (
                "core",
                "exchange (all_reduce only), one_stage or relay_tree; default one_stage",
            ),
        ],
        by_size: true,
    },
    Record {
        name: "tree",
        label: "Tree",
        collectives: &[
            CollectiveKind::Broadcast,
            CollectiveKind::Scatter,
            CollectiveKind::Reduce,
            CollectiveKind::Gather,
        ],
        summary: "A tree of any radices around the root, striped over the channels it leaves",
        citation: "opticoll; growth after Bermond et al., Theoretical Computer Science 2000",
        options: &[
            (
                "radices",
                "from the root outwards, such as 9x11x11; default the best found",
            ),
            (
                "stripes",
                "stripes on each level, such as 16x12x12; default 1",
            ),
        ],
        by_size: true,
    },
    Record {
        name: "light_tree",
        label: "Light tree",
        collectives: &[CollectiveKind::Broadcast],
        summary: "Light that every rank on its way takes a share of, on rings with multicast",
        citation: "opticoll",
        options: &[("pieces", "chunks that the vector is cut into; default 1")],
        by_size: false,
    },
    Record {
        name: "two_phases",
        label: "Two phases",
        collectives: &[
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        summary: "Reduce_scatter or scatter, then all_gather or gather, each as fast as found",
        citation: "Rabenseifner, ICCS 2004; van de Geijn, Journal of Parallel and Distributed \
                   Computing 1994",
        options: &[
            (
                "first",
                "the algorithm of the first phase, such as direct/order=at_once; default the best found",
            ),
            (
                "second",
                "the algorithm of the second phase; default the best found",
            ),
        ],
        by_size: true,
    },
    Record {
        name: "exchange",
        label: "Exchange",
        collectives: &[CollectiveKind::AllToAll],
        summary: "Stage by stage to smaller segments of the ring, several blocks on a lightpath",
        citation: "opticoll; several items per lightpath after Opatrny, TCS 2003",
        options: &[
            (
                "radices",
                "from the whole ring down, such as 16x8x8; default the best found",
            ),
            ("stripes", "stripes on each stage, such as 1x1x1; default 1"),
        ],
        by_size: true,
    },
    Record {
        name: "auto",
        label: "Auto",
        collectives: &CollectiveKind::ALL,
        summary: "The fastest plan found for the size and the policy, of all that are known",
        citation: "opticoll",
        options: &[
            (
                "transfers",
                "the most that a plan may have (or orbits, folded); default 16777216",
            ),
            (
                "budget",
                "time to spend, at a million transfers made and timed in a second on any machine; \
                 default 1min",
            ),
        ],
        by_size: true,
    },
];

const PIECES: (u32, u32) = (1, 4096);
const DEFAULT_TRANSFERS: u32 = 1 << 24;
const DEFAULT_BUDGET: Time = Time::from_ps(60_000_000_000_000);

/// A plan, and why it was chosen where there was a choice.
pub struct Planned {
    /// The plan.
    pub plan: AnyPlan,
    /// What was compared, the chosen one first; empty where nothing was.
    pub candidates: Vec<Candidate>,
    /// Why this one, in sentences; empty where nothing was compared.
    pub reasons: Vec<String>,
}

/// The record with a name, if the planner has one for the collective.
pub fn find(kind: CollectiveKind, name: &str) -> Option<&'static Record> {
    RECORDS
        .iter()
        .find(|record| same_name(record.name, name) && record.collectives.contains(&kind))
}

/// Makes the plan that `spec` names, by a record of [`RECORDS`] or else by a named algorithm with the
/// default routes and wavelengths, for a size and a way to time it. Of the method a ring minds the policy
/// alone.
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
    plan_watched(spec, fabric, collective, size, method, &|_| {})
}

/// The same; `auto` tells `watch` the name of each candidate before it is made.
///
/// # Errors
/// Those of [`plan`].
pub fn plan_watched(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    size: Bytes,
    method: &Method,
    watch: &dyn Fn(&str),
) -> Result<Planned, PlannerError> {
    if let Some(ring) = fabric.ring() {
        capability::connected(ring)?;
        if let Some(record) = find(collective.kind(), spec.name()) {
            forecast::check(record.name, ring, &collective);
        }
    }
    let most = spec.count("transfers", 1, u32::MAX)?;
    let question = Question {
        fabric,
        collective,
        size,
        method,
        most_transfers: most.unwrap_or(DEFAULT_TRANSFERS).into(),
        most_work: work(spec)?,
        watch,
    };
    let mut planned = answer(spec, &question)?;
    planned.plan.kept_mut().size = Some(size);
    Ok(planned)
}

/// The transfers that may be made and timed in the budget.
fn work(spec: &Spec) -> Result<u64, PlannerError> {
    let budget = match spec.option("budget") {
        None => DEFAULT_BUDGET,
        Some(text) => text
            .parse()
            .map_err(|problem| spec.refuse("budget", problem))?,
    };
    let work = u128::from(budget.ps()) * u128::from(WORK_PER_SECOND) / 1_000_000_000_000;
    Ok(u64::try_from(work).unwrap_or(u64::MAX))
}

/// The plan that a spec names.
pub(super) fn answer(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    let (fabric, collective) = (question.fabric, question.collective);
    let alone = |plan| Planned {
        plan,
        candidates: Vec::new(),
        reasons: Vec::new(),
    };
    let Some(record) = find(collective.kind(), spec.name()) else {
        return named::plan(spec, fabric, collective).map(alone);
    };
    let known: Vec<&str> = record.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)?;
    let plan = match record.name {
        "auto" => return auto::choose(question),
        "two_phases" => two_phases::plan(spec, question)?,
        "levels" => levels::named(spec, fabric, collective.kind())?,
        "light_tree" => light::light_tree(spec, fabric, collective)?,
        "relay_tree" => {
            fabric.needed_ring(record.name)?;
            let pieces = spec.count("pieces", PIECES.0, PIECES.1)?.unwrap_or(1);
            let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
            let gather = gather.with_pieces(pieces)?;
            let mut plan = capability::turned(fabric, collective.kind(), |fabric| {
                relay_tree(fabric, gather)
            })?;
            plan.kept_mut().algorithm = spec.to_string();
            plan
        }
        name => {
            fabric.needed_ring(name)?;
            AnyPlan::Full(candidates::named(
                name,
                spec,
                fabric,
                collective,
                question.aim(),
            )?)
        }
    };
    Ok(alone(plan))
}
