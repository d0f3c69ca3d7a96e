//! Plans of few slots as candidates for the automatic choice: estimated first, the promising ones
//! made; and the same by name.

use super::auto::{self, Aim};
use super::grouped::search::{Kind, layouts};
use super::grouped::{self, Core, Layout};
use super::pace::Pace;
use super::{PlannerError, exchange, mirror, rooted};
use crate::algorithm::{self, AlgorithmError};
use crate::bound::time;
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Fabric, WdmRing};
use crate::plan::{AnyPlan, Plan};
use crate::spec::Spec;
use crate::units::Bytes;

/// At most so many are made for one choice.
const MOST_MADE: usize = 3;

/// How a candidate is made.
enum Recipe {
    Grouped(Layout),
    Tree(rooted::Tree),
    Exchange(exchange::Stages),
    TwoPhases,
}

impl Recipe {
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
            Recipe::TwoPhases => 0,
        }
    }
}

struct Prospect {
    /// Picoseconds, estimated.
    time: u64,
    recipe: Recipe,
}

/// The most promising plans of few slots for a collective, made; none of them simulated yet.
///
/// # Errors
/// What a planner refuses.
pub(super) fn plans(
    fabric: &Fabric,
    collective: Collective,
    aim: Aim,
) -> Result<Vec<Plan>, PlannerError> {
    let mut prospects = prospects(fabric, collective, aim)?;
    prospects.sort_by_key(|prospect| prospect.time);
    // The two phases are estimated from below: they exclude nothing.
    let estimated = |prospect: &&Prospect| !matches!(prospect.recipe, Recipe::TwoPhases);
    let least = prospects.iter().find(estimated);
    let least = least.map_or(0, |prospect| prospect.time);
    prospects.retain(|prospect| prospect.time / 3 <= least / 2);
    let mut made = Vec::new();
    for prospect in prospects {
        if made.len() == MOST_MADE {
            break;
        }
        match make(fabric, collective, aim, &prospect.recipe) {
            Ok(plan) => made.push(plan),
            Err(
                PlannerError::NothingFits { .. }
                | PlannerError::NotFound { .. }
                | PlannerError::TooLarge { .. },
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
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
        CollectiveKind::Broadcast | CollectiveKind::Reduce => {
            let time = two_phases_at_least(ring, pace, aim)?;
            let both = Prospect {
                time,
                recipe: Recipe::TwoPhases,
            };
            trees(false).chain([both]).collect()
        }
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

/// An N-th of a size, rounded up.
fn block(ring: &WdmRing, size: Bytes) -> Bytes {
    Bytes::new(size.get().div_ceil(u64::from(ring.ranks)))
}

/// A scatter of blocks as estimated, and the bound on their all_gather.
fn two_phases_at_least(ring: &WdmRing, pace: Pace, aim: Aim) -> Result<u64, PlannerError> {
    let gather = Collective::new(CollectiveKind::AllGather, ring.ranks)?;
    let block = block(ring, aim.size);
    let gathering = time::best(ring, &gather, block, aim.policy.into())?
        .time
        .ps();
    let scatter = rooted::trees(ring, pace, true, block);
    let scattering = scatter.first().map_or(0, |found| found.time);
    Ok(scattering.saturating_add(gathering))
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
        Recipe::TwoPhases => two_phases(fabric, collective, aim),
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

/// A broadcast by scatter and all_gather, or a reduce by reduce_scatter and gather, both halves the
/// fastest found.
fn two_phases(fabric: &Fabric, collective: Collective, aim: Aim) -> Result<Plan, PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    let ranks = ring.ranks;
    let aim = Aim {
        size: block(ring, aim.size),
        ..aim
    };
    let gather = Collective::new(CollectiveKind::AllGather, ranks)?;
    // It does not stay folded: what the root scatters need not be gathered again.
    let unfolded = Aim {
        most_transfers: aim.most_transfers / u64::from(ranks),
        ..aim
    };
    let gathering = auto::auto(fabric, gather, unfolded)?.plan;
    if gathering.transfers() > aim.most_transfers {
        return Err(PlannerError::TooLarge {
            transfers: gathering.transfers(),
            most: aim.most_transfers,
        });
    }
    let pace = Pace::new(ring, aim.policy);
    let trees = rooted::trees(ring, pace, true, aim.size);
    let direct = rooted::Tree {
        levels: vec![rooted::Level {
            radix: ranks,
            stripes: 1,
        }],
    };
    let rooted_at = |kind| Collective::new(kind, ranks)?.with_root(collective.root());
    if collective.kind() == CollectiveKind::Reduce {
        let scattering = mirror::reduce_scatter(&gathering)?.unfold();
        let tree = trees.first().map_or(&direct, |found| &found.tree);
        let gathering = rooted::plan(fabric, rooted_at(CollectiveKind::Gather)?, tree)?;
        let plan = rooted::reduce_scatter_gather(collective, &scattering, &gathering)?;
        let algorithm = "two_phases".into();
        return Ok(Plan { algorithm, ..plan });
    }
    let gathering = gathering.unfold();
    for tree in trees.iter().map(|found| &found.tree).chain([&direct]) {
        let scattering = rooted::plan(fabric, rooted_at(CollectiveKind::Scatter)?, tree)?;
        if let Some(plan) = rooted::scatter_all_gather(collective, &scattering, &gathering)? {
            let algorithm = "two_phases".into();
            return Ok(Plan { algorithm, ..plan });
        }
    }
    Err(PlannerError::NothingFits {
        most: aim.most_transfers,
    })
}

/// The plan that a spelling of `grouped`, `tree`, `exchange` or the two phases names; without options
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
        "exchange" => given_stages(spec, collective)?.map(Recipe::Exchange),
        _ => Some(Recipe::TwoPhases),
    };
    if let Some(recipe) = recipe {
        return make(fabric, collective, aim, &recipe);
    }
    let mut prospects = prospects(fabric, collective, aim)?;
    prospects.retain(|prospect| !matches!(prospect.recipe, Recipe::TwoPhases));
    match prospects.iter().min_by_key(|prospect| prospect.time) {
        Some(prospect) => make(fabric, collective, aim, &prospect.recipe),
        None => super::named::plan(&Spec::new(alone(collective.kind())), fabric, collective),
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
