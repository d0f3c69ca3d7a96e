//! What the planner makes by name: `relay_tree` and `auto`, beside the named algorithms.

use super::auto::{self, Aim, Candidate};
use super::{
    PlannerError, candidates, capability, forecast, multicast, named, relay_tree, simulated,
};
use crate::algorithm;
use crate::bound::{self, time::TimeBound};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::plan::AnyPlan;
use crate::simulate;
use crate::spec::Spec;
use crate::spelling::same_name;
use crate::units::Bytes;

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
        name: "two_phases",
        label: "Two phases",
        collectives: &[CollectiveKind::Broadcast, CollectiveKind::Reduce],
        summary: "Scatter and all_gather, or reduce_scatter and gather, each as fast as found",
        citation: "van de Geijn, Journal of Parallel and Distributed Computing 1994",
        options: &[],
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
        options: &[(
            "transfers",
            "the most that a plan may have (or orbits, folded); default 16777216",
        )],
        by_size: true,
    },
];

const PIECES: (u32, u32) = (1, 4096);
pub(super) const DEFAULT_TRANSFERS: u32 = 1 << 24;

/// All_reduces that may be the fastest somewhere, beside an all_gather there and back.
const ALL_REDUCES: &[&str] = &[
    "wrht",
    "wrht:group_size=3,striping=true",
    "wrht:group_size=5,striping=true",
    "wrht:group_size=9,striping=true",
    "wrht:group_size=17,striping=true",
    "ring",
    "recursive_doubling",
    "binary_tree",
];

/// Reduce_scatters that may be the fastest somewhere, beside the fastest all_gather backwards: where
/// circuits stay up, that one may begin with a slot that uses only some of them, and then pays for
/// the others.
const REDUCE_SCATTERS: &[&str] = &["ring", "ring_bidirectional", "optree", "one_stage"];

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
    method: &simulate::Method,
) -> Result<Planned, PlannerError> {
    let Some(ring) = fabric.ring() else {
        return simulated::plan(spec, fabric, collective, size, method);
    };
    let policy = method.policy.unwrap_or(simulate::Policy::ALL[0]);
    capability::connected(ring)?;
    let Some(record) = find(collective.kind(), spec.name()) else {
        return Ok(Planned {
            plan: AnyPlan::Full(named::plan(spec, fabric, collective)?),
            candidates: Vec::new(),
            reasons: Vec::new(),
        });
    };
    forecast::check(record.name, ring, &collective);
    let known: Vec<&str> = record.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)?;
    let most = spec.count("transfers", 1, u32::MAX)?;
    let aim = Aim {
        size,
        policy,
        most_transfers: most.unwrap_or(DEFAULT_TRANSFERS).into(),
    };
    let mut planned = if record.name == "auto" {
        choose(fabric, collective, aim)?
    } else if record.name != "relay_tree" {
        Planned {
            plan: AnyPlan::Full(candidates::named(
                record.name,
                spec,
                fabric,
                collective,
                aim,
            )?),
            candidates: Vec::new(),
            reasons: Vec::new(),
        }
    } else {
        let pieces = spec.count("pieces", PIECES.0, PIECES.1)?.unwrap_or(1);
        let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
        let gather = gather.with_pieces(pieces)?;
        Planned {
            plan: capability::turned(fabric, collective.kind(), |fabric| {
                relay_tree(fabric, gather)
            })?,
            candidates: Vec::new(),
            reasons: Vec::new(),
        }
    };
    planned.plan.kept_mut().size = Some(size);
    if record.name == "relay_tree" {
        planned.plan.kept_mut().algorithm = spec.to_string();
    }
    Ok(planned)
}

/// The fastest of the plans known for a collective, simulated.
fn choose(fabric: &Fabric, collective: Collective, aim: Aim) -> Result<Planned, PlannerError> {
    let ring = fabric.needed_ring("auto")?;
    let mut plans = Vec::new();
    match collective.kind() {
        CollectiveKind::AllGather => {
            let choice = auto::auto(fabric, collective, aim)?;
            return Ok(Planned {
                plan: choice.plan,
                candidates: choice.candidates,
                reasons: choice.reasons,
            });
        }
        CollectiveKind::ReduceScatter => {
            plans.push(there(fabric, collective, aim)?);
            named_plans(&mut plans, fabric, collective, aim, REDUCE_SCATTERS)?;
        }
        CollectiveKind::AllReduce => {
            plans.push(there(fabric, collective, aim)?);
            named_plans(&mut plans, fabric, collective, aim, ALL_REDUCES)?;
        }
        kind => {
            let names: Vec<&str> = algorithm::records()
                .iter()
                .filter(|record| record.collective == kind)
                .map(|record| record.name)
                .collect();
            if kind == CollectiveKind::Broadcast && ring.multicast {
                plans.extend(light_trees(fabric, collective, aim)?);
            }
            named_plans(&mut plans, fabric, collective, aim, &names)?;
        }
    }
    let few_slots = candidates::plans(fabric, collective, aim)?;
    plans.extend(few_slots.into_iter().map(AnyPlan::Full));
    let bound = bound::time::best(ring, &collective, aim.size, aim.policy.into())?;
    fastest(plans, &bound, aim)
}

/// The automatic all_gather for blocks of an N-th of the size, turned into the collective.
fn there(fabric: &Fabric, collective: Collective, aim: Aim) -> Result<AnyPlan, PlannerError> {
    let ranks = u64::from(collective.ranks());
    let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
    let block = Aim {
        size: Bytes::new(aim.size.get().div_ceil(ranks)),
        ..aim
    };
    capability::turned(fabric, collective.kind(), |fabric| {
        Ok(auto::auto(fabric, gather, block)?.plan)
    })
}

/// Broadcasts along light trees, of the whole vector and of as many pieces as fill one direction, or
/// both.
fn light_trees(
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
) -> Result<Vec<AnyPlan>, PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    let mut plans = Vec::new();
    for pieces in [1, ring.channels(), 2 * ring.channels()] {
        let transfers = u64::from(pieces) * u64::from(ring.ranks);
        if transfers <= aim.most_transfers && u64::from(pieces) <= aim.size.get().max(1) {
            let cut = collective.with_pieces(pieces)?;
            plans.extend(multicast::broadcast(fabric, cut).map(AnyPlan::Full));
        }
    }
    Ok(plans)
}

/// Adds the plans of the named algorithms that run on the ring within the limit on transfers.
///
/// # Errors
/// Also where there is no plan at all, and none of these fits the ring.
fn named_plans(
    plans: &mut Vec<AnyPlan>,
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
    specs: &[&str],
) -> Result<(), PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    let mut refused = None;
    for spec in specs {
        let spec: Spec = spec.parse()?;
        let record = algorithm::find(collective.kind(), spec.name())?;
        if (record.accepts)(ring.ranks).is_err()
            || transfers(record, ring.ranks) > aim.most_transfers
        {
            continue;
        }
        match named::plan(&spec, fabric, collective) {
            Err(error) if named::does_not_fit(&error) => refused = Some(error),
            plan => plans.push(AnyPlan::Full(plan?)),
        }
    }
    match refused {
        Some(error) if plans.is_empty() => Err(error),
        _ => Ok(()),
    }
}

/// About how many transfers a named algorithm takes, so as not to make a plan in vain.
pub(super) fn transfers(record: &algorithm::Record, count: u32) -> u64 {
    let ranks = u64::from(count);
    match (record.collective, record.name) {
        (CollectiveKind::AllToAll, "bruck") => ranks.pow(2) * u64::from(count.ilog2()) / 2,
        (CollectiveKind::AllToAll | CollectiveKind::ReduceScatter, _)
        | (_, "ring" | "direct" | "tar" | "scatter_all_gather") => ranks.pow(2),
        _ => ranks,
    }
}

/// Simulates plans and takes the fastest, the first of equals.
fn fastest(plans: Vec<AnyPlan>, bound: &TimeBound, aim: Aim) -> Result<Planned, PlannerError> {
    let mut timed = Vec::with_capacity(plans.len());
    for plan in plans {
        let time = simulate::simulate(&plan, aim.size, aim.policy, "circuit")?.time;
        timed.push((time, plan));
    }
    timed.sort_by_key(|(time, _)| *time);
    let candidates: Vec<Candidate> = timed
        .iter()
        .map(|(time, plan)| Candidate {
            name: plan.kept().algorithm.clone(),
            slots: plan.slots().into(),
            time: *time,
            made: true,
        })
        .collect();
    match timed.into_iter().next() {
        Some((time, plan)) => Ok(Planned {
            reasons: auto::reasons(&plan, time, &candidates, bound, aim),
            plan,
            candidates,
        }),
        None => Err(PlannerError::NothingFits {
            most: aim.most_transfers,
        }),
    }
}
