//! Plans of few slots as contenders for the automatic choice: estimated first, the promising ones
//! made; and the same by name.

use super::auto::{Aim, Question};
use super::contest::Contender;
use super::grouped::search::{Kind, layouts};
use super::grouped::{self, Core, Layout};
use super::light::block;
use super::pace::Pace;
use super::{PlannerError, exchange, least, mirror, rooted};
use crate::algorithm::{self, AlgorithmError};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Fabric, WdmRing};
use crate::plan::{AnyPlan, Plan};
use crate::spec::Spec;
use crate::units::Time;

/// At most so many are made for one choice.
const MOST_MADE: usize = 3;

/// How a candidate is made.
enum Recipe {
    Grouped(Layout),
    Tree(rooted::Tree),
    Exchange(exchange::Stages),
}

impl Recipe {
    fn spelling(&self) -> String {
        match self {
            Recipe::Grouped(layout) => layout.spelling(),
            Recipe::Tree(tree) => tree.spelling(),
            Recipe::Exchange(stages) => stages.spelling(),
        }
    }

    /// The transfers or chunks of the plan, whichever are more, at most.
    fn transfers(&self, ranks: u64) -> u64 {
        let most = |stripes: &mut dyn Iterator<Item = u32>| u64::from(stripes.max().unwrap_or(1));
        match self {
            Recipe::Grouped(layout) => layout.transfers(ranks),
            // Pieces are 64 times the stripes at most.
            Recipe::Tree(tree) => {
                let stripes = most(&mut tree.levels.iter().map(|level| level.stripes));
                stripes.saturating_mul(ranks.max(64))
            }
            Recipe::Exchange(stages) => {
                let stripes = most(&mut stages.stripes.iter().copied());
                stripes.saturating_mul(ranks.saturating_mul(ranks))
            }
        }
    }
}

struct Prospect {
    /// Picoseconds, estimated.
    time: u64,
    recipe: Recipe,
}

/// The most promising plans of few slots for a collective.
///
/// # Errors
/// A time beyond 64 bits.
pub(super) fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let (fabric, collective, aim) = (question.fabric, question.collective, question.aim());
    let ring = fabric.needed_ring("the planner")?;
    let mut prospects = prospects(fabric, collective, aim)?;
    prospects.sort_by_key(|prospect| prospect.time);
    let fastest = prospects.first().map_or(0, |prospect| prospect.time);
    prospects.retain(|prospect| prospect.time / 3 <= fastest / 2);
    prospects.truncate(MOST_MADE);
    let least = least::of_collective(question.collective, question.size, question)?;
    let ranks = u64::from(ring.ranks);
    Ok(prospects
        .into_iter()
        .map(|prospect| Contender {
            name: prospect.recipe.spelling(),
            slots: 0,
            least,
            estimate: Time::from_ps(prospect.time),
            transfers: prospect.recipe.transfers(ranks),
            make: Box::new(move |_| {
                let plan = make(fabric, collective, aim, &prospect.recipe)?;
                Ok(AnyPlan::Full(plan).into())
            }),
        })
        .collect())
}

fn prospects(
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
) -> Result<Vec<Prospect>, PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    if ring.ranks < 2 || !suits(ring) {
        return Ok(Vec::new());
    }
    let pace = Pace::new(ring, aim.policy);
    let grouped = |kind, size| {
        layouts(ring, pace, kind, size)
            .into_iter()
            .map(|found| Prospect {
                time: found.time,
                recipe: Recipe::Grouped(found.layout),
            })
    };
    let trees = |blocks| {
        rooted::trees(ring, pace, blocks, aim.size)
            .into_iter()
            .map(|found| Prospect {
                time: found.time,
                recipe: Recipe::Tree(found.tree),
            })
    };
    Ok(match collective.kind() {
        CollectiveKind::AllReduce => grouped(Kind::AllReduce, aim.size).collect(),
        CollectiveKind::AllGather => grouped(Kind::AllGather, aim.size).collect(),
        CollectiveKind::ReduceScatter => grouped(Kind::AllGather, block(ring, aim.size)).collect(),
        CollectiveKind::Barrier => Vec::new(),
        CollectiveKind::Scatter | CollectiveKind::Gather => trees(true).collect(),
        CollectiveKind::Broadcast | CollectiveKind::Reduce => trees(false).collect(),
        CollectiveKind::AllToAll if u64::from(ring.ranks).pow(2) > aim.most_transfers => Vec::new(),
        CollectiveKind::AllToAll => exchange::stages(ring, pace, aim.size)
            .into_iter()
            .map(|found| Prospect {
                time: found.time,
                recipe: Recipe::Exchange(found.stages),
            })
            .collect(),
    })
}

/// Whether lightpaths may go from any rank to any other both ways, which all plans of few slots need,
/// and deliver at their end only: light trees cannot be run backwards.
pub(super) fn suits(ring: &WdmRing) -> bool {
    !ring.multicast
        && ring.broken.is_empty()
        && (ring.ranks < 2 || ring.longest() >= ring.ranks - 1)
}

fn make(
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
    recipe: &Recipe,
) -> Result<Plan, PlannerError> {
    let transfers = recipe.transfers(u64::from(fabric.ranks()));
    if transfers > aim.most_transfers {
        return Err(PlannerError::TooLarge {
            transfers,
            most: aim.most_transfers,
        });
    }
    match recipe {
        Recipe::Grouped(layout) => grouped_plan(fabric, collective.kind(), layout),
        Recipe::Tree(tree) => rooted::plan(fabric, collective, tree),
        Recipe::Exchange(stages) => exchange::plan(fabric, collective, stages),
    }
}

/// The plan of a layout for one of the collectives that it carries out.
pub(super) fn grouped_plan(
    fabric: &Fabric,
    kind: CollectiveKind,
    layout: &Layout,
) -> Result<Plan, PlannerError> {
    match kind {
        CollectiveKind::AllReduce => grouped::all_reduce(fabric, layout),
        CollectiveKind::ReduceScatter => {
            let gathering = AnyPlan::Full(grouped::all_gather(fabric, layout)?);
            Ok(mirror::reduce_scatter(&gathering)?.unfold())
        }
        _ => grouped::all_gather(fabric, layout),
    }
}

/// The plan that a spelling of `grouped`, `tree` or `exchange` names; without options
/// the one that is estimated to be the fastest.
///
/// # Errors
/// Options that do not fit the ring or the collective.
pub(super) fn named(
    name: &'static str,
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
) -> Result<Plan, PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    if !suits(ring) {
        let reason =
            "it needs a ring without multicast, broken links or limits on how far light goes"
                .into();
        return Err(AlgorithmError::Refused {
            name,
            ranks: ring.ranks,
            reason,
        }
        .into());
    }
    let recipe = match name {
        "grouped" => given_layout(spec, fabric, collective.kind())?.map(Recipe::Grouped),
        "tree" => given_tree(spec, collective)?.map(Recipe::Tree),
        _ => given_stages(spec, collective)?.map(Recipe::Exchange),
    };
    if let Some(recipe) = recipe {
        return make(fabric, collective, aim, &recipe);
    }
    let prospects = prospects(fabric, collective, aim)?;
    match prospects.iter().min_by_key(|prospect| prospect.time) {
        Some(prospect) => make(fabric, collective, aim, &prospect.recipe),
        None => {
            let alone = Spec::new(alone(collective.kind()));
            Ok(super::named::plan(&alone, fabric, collective)?.unfold())
        }
    }
}

/// A named algorithm for a single rank, which has nothing to do.
fn alone(kind: CollectiveKind) -> &'static str {
    let mut records = algorithm::records().iter();
    let first = records.find(|record| record.collective == kind);
    first.map_or("ring", |record| record.name)
}

/// Numbers joined by `x`, each at least 1.
fn numbers(spec: &Spec, key: &'static str) -> Result<Option<Vec<u32>>, PlannerError> {
    let Some(text) = spec.option(key) else {
        return Ok(None);
    };
    let parsed: Option<Vec<u32>> = text
        .split('x')
        .map(|number| number.parse().ok().filter(|&number: &u32| number > 0))
        .collect();
    match parsed {
        Some(numbers) => Ok(Some(numbers)),
        None => Err(spec
            .refuse(key, "must be whole numbers from 1 on, joined by x: 9x9")
            .into()),
    }
}

/// As many numbers as `count`, all 1 where none are given.
fn numbers_for(spec: &Spec, key: &'static str, count: usize) -> Result<Vec<u32>, PlannerError> {
    let given = numbers(spec, key)?.unwrap_or_else(|| vec![1; count]);
    if given.len() == count {
        return Ok(given);
    }
    let problem = format!("needs one number for each level ({count} here), joined by x");
    Err(spec.refuse(key, problem).into())
}

/// More stripes than that are more than any fibre has channels.
const MOST_STRIPES: u32 = 4096;

fn given_stripes(spec: &Spec, count: usize) -> Result<Vec<u32>, PlannerError> {
    let stripes = numbers_for(spec, "stripes", count)?;
    if stripes.iter().any(|&stripes| stripes > MOST_STRIPES) {
        let problem = format!("must be {MOST_STRIPES} at most");
        return Err(spec.refuse("stripes", problem).into());
    }
    Ok(stripes)
}

fn given_layout(
    spec: &Spec,
    fabric: &Fabric,
    kind: CollectiveKind,
) -> Result<Option<Layout>, PlannerError> {
    if spec.options().next().is_none() {
        return Ok(None);
    }
    let ring = fabric.needed_ring("the planner")?;
    let groups = numbers(spec, "groups")?.unwrap_or_default();
    let owners = numbers_for(spec, "owners", groups.len())?;
    let stripes = given_stripes(spec, groups.len() + 1)?;
    let levels = groups.iter().zip(&owners).zip(&stripes);
    let levels: Vec<grouped::Level> = levels
        .map(|((&group, &owners), &stripes)| grouped::Level {
            group,
            owners,
            stripes,
        })
        .collect();
    let core = spec.option("core").unwrap_or(Core::NAMES[1]);
    let in_core = stripes.last().copied().unwrap_or(1);
    let Some(core) = Core::new(core, in_core) else {
        let problem = format!("must be one of {}", Core::NAMES.join(", "));
        return Err(spec.refuse("core", problem).into());
    };
    let layout = Layout { levels, core };
    if kind != CollectiveKind::AllReduce {
        if owners.iter().any(|&owners| owners > 1) {
            let problem = "must be 1: blocks that several owners share are not consecutive";
            return Err(spec.refuse("owners", problem).into());
        }
        if matches!(core, Core::Exchange(_)) {
            let problem = "exchanges whole vectors; blocks take one_stage or relay_tree";
            return Err(spec.refuse("core", problem).into());
        }
    }
    if !layout.fits(ring.ranks, ring.channels()) {
        let problem = "must be 2 or more, with at least as many ranks in every group as owners, and \
                       a channel for each owner";
        return Err(spec.refuse("groups", problem).into());
    }
    Ok(Some(layout))
}

fn given_tree(spec: &Spec, collective: Collective) -> Result<Option<rooted::Tree>, PlannerError> {
    let Some(radices) = numbers(spec, "radices")? else {
        return Ok(None);
    };
    let stripes = given_stripes(spec, radices.len())?;
    let levels = radices.iter().zip(&stripes);
    let tree = rooted::Tree {
        levels: levels
            .map(|(&radix, &stripes)| rooted::Level { radix, stripes })
            .collect(),
    };
    if tree.reaches(collective.ranks()) {
        return Ok(Some(tree));
    }
    Err(too_few(spec, collective.ranks()))
}

fn given_stages(
    spec: &Spec,
    collective: Collective,
) -> Result<Option<exchange::Stages>, PlannerError> {
    let Some(radices) = numbers(spec, "radices")? else {
        return Ok(None);
    };
    let stripes = given_stripes(spec, radices.len())?;
    let stages = exchange::Stages { radices, stripes };
    if stages.reaches(collective.ranks()) {
        return Ok(Some(stages));
    }
    Err(too_few(spec, collective.ranks()))
}

fn too_few(spec: &Spec, ranks: u32) -> PlannerError {
    let problem = format!("must reach all {ranks} ranks: their product must not be less");
    spec.refuse("radices", problem).into()
}
