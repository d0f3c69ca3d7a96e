//! Plans on any graph of links whose bandwidth term is the optimum: spanning trees, packed.
//!
//! The optimum is 1 / x* = p / q seconds for a block of one bit ([`throughput`](crate::bound::throughput)). With g the
//! greatest divisor of all rates, U = p / gcd(q, g) makes all capacities U b whole, and k = U x* is a whole number of trees
//! for every root. `split` removes switches, `pack` finds the trees, and `timetable` sends pieces along them, one
//! k-th of a block on each tree, so that links are busy and pieces with the longest way go first.
//!
//! With a given number k of trees the optimum is not reached in general: the least U is taken for which floor(U b) has
//! room for k trees of every root, so that the time is at most 1 + 1 / k of the optimum (ForestColl, arXiv
//! 2402.06787, section on fixed k).
//!
//! An all_gather takes a forest of all roots, a broadcast of one; reduce_scatter and reduce run one backwards that was
//! found with all links reversed, and an all_reduce is a reduce_scatter and then an all_gather.
//!
//! Messages go by the routes of the fabric. Where a switch can only be removed by paths that are no routes, the
//! messages load other links than the trees do, and the plan may take longer.

mod pack;
mod split;
mod timetable;

use std::rc::Rc;

use super::contest::{Contender, Contest, ContestOutcome, Made};
use super::{Planned, Planner, PlannerError, Question, least};
use crate::bound::throughput::{Cuts, RatedLink, TightestCut, tightest};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::network::{Network, Sharing};
use crate::place::{PlacementError, PlacementProblem};
use crate::plan::{AnyPlan, Plan};
use crate::schedule::{Claims, Schedule};
use crate::spec::{OptionRecord, Spec};
use crate::units::Time;
use pack::{Packing, Tree};
use split::Capacities;
use timetable::Timetable;

/// The planner of packed trees.
pub(super) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "trees",
            "trees of each root; default the fastest of a few numbers, among them that of the optimum",
        ),
        OptionRecord::new(
            "chunks",
            "chunks that the part of a block on one tree is cut into; default the fastest of a few numbers",
        ),
    ],
    by_size: true,
    applies: |fabric| Links::of(fabric).is_some(),
    ..Planner::new(
        NAME,
        "Tree packing",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "Spanning trees packed into the links of any graph, as many as the throughput optimum has",
        "Edmonds, Edge-disjoint branchings, 1973; Zhao et al., ForestColl, arXiv 2402.06787",
        plan,
    )
};

const NAME: &str = "tree_packing";

/// The most trees of a root and chunks of a tree.
const MOST: u32 = 4096;

/// The most trees of a root where their number is chosen: more make small pieces.
const MOST_CHOSEN: u32 = 256;

/// A plan is good enough if it is above the bound by less than this part of it.
const ENOUGH: u64 = 1000;

/// Into how many steps the least U is divided with which there could be room for one tree.
const STEPS: u128 = 1024;

/// The links of a fabric, each way of a half-duplex cable with half its rate.
struct Links<'a> {
    network: &'a dyn Network,
    ranks: u32,
    vertices: u32,
    rates: Vec<(u32, u32, u64)>,
}

impl<'a> Links<'a> {
    /// `None` where it is not known where links lead, or flows do not share them.
    fn of(fabric: &'a Fabric) -> Option<Links<'a>> {
        let network = fabric.network()?;
        let mut rates = Vec::new();
        let mut vertices = network.ranks();
        for (number, link) in (0u32..).zip(network.links()) {
            let (from, to) = network.ends(number)?;
            if link.sharing != Sharing::Shared {
                return None;
            }
            vertices = vertices.max(from + 1).max(to + 1);
            let rate = link.rate.bits_per_second();
            if network.leads_both_ways(number) {
                rates.extend([(from, to, rate / 2), (to, from, rate / 2)]);
            } else {
                rates.push((from, to, rate));
            }
        }
        Some(Links {
            network,
            ranks: network.ranks(),
            vertices,
            rates,
        })
    }

    fn reversed(&self) -> Vec<(u32, u32, u64)> {
        let links = self.rates.iter();
        links.map(|&(from, to, rate)| (to, from, rate)).collect()
    }
}

/// Trees of every root, or of one.
struct Forest {
    /// Trees of a root.
    count: u32,
    trees: Vec<Tree>,
    /// Whether links were reversed, so that it gathers.
    reversed: bool,
}

/// What forests are grown on.
struct Ground<'a> {
    links: &'a Links<'a>,
    rates: Vec<(u32, u32, u64)>,
    /// `None`: every rank is a root.
    root: Option<u32>,
    reversed: bool,
    cut: TightestCut,
    /// The greatest divisor of all rates.
    unit: u128,
}

impl<'a> Ground<'a> {
    /// # Errors
    /// Ranks that cannot be reached.
    fn new(
        links: &'a Links<'a>,
        root: Option<u32>,
        reversed: bool,
    ) -> Result<Ground<'a>, PlannerError> {
        let rates = match reversed {
            true => links.reversed(),
            false => links.rates.clone(),
        };
        let rated: Vec<RatedLink> = rates
            .iter()
            .map(|&(from, to, rate)| (from, to, Some(rate)))
            .collect();
        let cuts = root.map_or(Cuts::EachRank, Cuts::From);
        let cut = tightest(links.ranks, links.vertices as usize, &rated, cuts, u64::MAX);
        let cut = cut.filter(|cut| cut.rate > 0);
        let cut = cut.ok_or_else(|| {
            let sentence = "some ranks cannot be reached: no trees hold all ranks";
            unfit(PlacementProblem::Unfit, sentence)
        })?;
        let unit = rates.iter().fold(0, |unit, link| gcd(unit, link.2.into()));
        Ok(Ground {
            links,
            rates,
            root,
            reversed,
            cut,
            unit,
        })
    }

    /// The ratio p / q, reduced.
    fn ratio(&self) -> (u128, u128) {
        let divisor = gcd(self.cut.blocks, self.cut.rate).max(1);
        (self.cut.blocks / divisor, self.cut.rate / divisor)
    }

    /// The least number of trees of a root with which the optimum is reached.
    fn trees(&self) -> u128 {
        let (_, q) = self.ratio();
        q / gcd(q, self.unit)
    }

    /// A forest with a number of trees for each root; `None` where its links do not balance.
    fn forest(&self, count: u32) -> Option<Forest> {
        let wanted = (0..self.links.ranks)
            .map(|rank| match self.root {
                Some(root) if root != rank => 0,
                _ => count,
            })
            .collect::<Vec<u32>>();
        let (p, q) = self.ratio();
        let trees = u128::from(count);
        let at = |step: u128| -> Option<Capacities> {
            let mut capacities = Capacities::default();
            for &(from, to, rate) in &self.rates {
                let scaled = u128::from(rate).checked_mul(p)?;
                let scaled = scaled.checked_mul(trees * STEPS + step)?;
                *capacities.entry((from, to)).or_default() += scaled / (q.checked_mul(STEPS)?);
            }
            Some(capacities)
        };
        let fits =
            |capacities: &Capacities| split::has_room(self.links.vertices, capacities, &wanted);
        // The least step that has room.
        let (mut least, mut most) = (0, STEPS);
        if !fits(&at(0)?) {
            // With every link once for each tree there is room.
            while !fits(&at(most)?) {
                (least, most) = (most, most.checked_mul(2)?);
            }
            while most - least > 1 {
                let middle = least.midpoint(most);
                if fits(&at(middle)?) {
                    most = middle;
                } else {
                    least = middle;
                }
            }
            least = most;
        }
        let capacities = at(least)?;
        let is_route = |from: u32, switch: u32, to: u32| {
            let ranks = self.links.ranks;
            if from >= ranks || to >= ranks {
                return true;
            }
            let network = self.links.network;
            let mut route = Vec::new();
            match self.reversed {
                true => network.route(to, from, &mut route),
                false => network.route(from, to, &mut route),
            }
            route.into_iter().any(|link| {
                let ends = network.ends(link);
                ends.is_some_and(|(one, other)| one == switch || other == switch)
            })
        };
        let capacities =
            split::without_switches(self.links.vertices, &capacities, &wanted, is_route)?;
        let mut links: Vec<(u32, u32, u128)> = capacities
            .into_iter()
            .map(|((from, to), capacity)| (from, to, capacity))
            .collect();
        links.sort_unstable();
        Some(Forest {
            count,
            trees: Packing::new(&links, wanted).pack()?,
            reversed: self.reversed,
        })
    }
}

/// What a collective takes: a forest backwards, one forwards, or both.
struct Grounds<'a> {
    parts: Vec<Ground<'a>>,
}

impl<'a> Grounds<'a> {
    fn new(links: &'a Links<'a>, collective: &Collective) -> Result<Grounds<'a>, PlannerError> {
        let root = match collective.kind() {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some(collective.root()),
            _ => None,
        };
        let reversed: &[bool] = match collective.kind() {
            CollectiveKind::AllReduce => &[true, false],
            CollectiveKind::ReduceScatter | CollectiveKind::Reduce => &[true],
            _ => &[false],
        };
        let parts = reversed.iter().map(|one| Ground::new(links, root, *one));
        Ok(Grounds {
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// The least number of trees of a root with which the optimum is reached.
    fn trees(&self) -> u128 {
        let mut trees = 1u128;
        for part in &self.parts {
            let own = part.trees();
            trees = (trees / gcd(trees, own)).saturating_mul(own);
        }
        trees
    }

    fn forests(&self, count: u32) -> Result<Vec<Forest>, PlannerError> {
        let forests = self.parts.iter().map(|part| part.forest(count));
        let forests = forests.collect::<Option<_>>();
        forests.ok_or_else(|| {
            let sentence = format!(
                "no forest with {count} trees of each root: the links into some switch and out of it differ in rate"
            );
            unfit(PlacementProblem::Unfit, &sentence)
        })
    }
}

fn unfit(problem: PlacementProblem, sentence: &str) -> PlannerError {
    PlannerError::Placement(PlacementError::new(problem, sentence))
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    let ranks = question.collective.ranks();
    if ranks < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let Some(links) = Links::of(question.fabric) else {
        return Err(unfit(
            PlacementProblem::Family,
            "tree_packing needs links that flows share, between known ends",
        ));
    };
    let grounds = Grounds::new(&links, &question.collective)?;
    let trees = spec.count("trees", 1, MOST)?;
    let chunks = spec.count("chunks", 1, MOST)?;
    if let (Some(trees), Some(chunks)) = (trees, chunks) {
        let forests = grounds.forests(trees)?;
        return Ok(scheduled(&links, &forests, chunks, question)?.into());
    }
    let (mut contenders, mut refused) = (Vec::new(), None);
    let exact = u32::try_from(grounds.trees()).ok();
    let exact = exact.filter(|exact| *exact <= MOST_CHOSEN);
    let mut counts: Vec<u32> = match trees {
        Some(trees) => vec![trees],
        None => exact.into_iter().chain([1, 2, 4, 8]).collect(),
    };
    counts.sort_unstable();
    counts.dedup();
    counts.retain(|count| trees.is_some() || exact.is_none_or(|exact| *count <= exact));
    let cuts = match (chunks, question.collective.kind()) {
        (Some(chunks), _) => vec![chunks],
        (None, CollectiveKind::Broadcast | CollectiveKind::Reduce) => vec![1, 4, 16, 64, 256],
        (None, _) => vec![1, 2, 4, 8],
    };
    // The parts of a vector are cut, or those of each block.
    let blocks = match question.collective.kind() {
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce => u64::from(ranks),
        _ => 1,
    };
    let least = least::of_collective(question)?;
    let links = &links;
    for count in counts {
        let forests = match grounds.forests(count) {
            Ok(forests) => Rc::new(forests),
            Err(error) => {
                refused.get_or_insert(error);
                continue;
            }
        };
        for &chunks in &cuts {
            let pieces = u64::from(count) * u64::from(chunks);
            if pieces > 1 && pieces.saturating_mul(blocks) > question.size.get() {
                continue;
            }
            let forests = Rc::clone(&forests);
            let transfers = transfers(&forests, ranks, chunks);
            if let Err(error) = question.fits(transfers) {
                refused.get_or_insert(error);
                continue;
            }
            contenders.push(Contender {
                name: named(count, chunks).to_string(),
                slots: 1,
                least,
                estimate: Time::from_ps(transfers),
                transfers,
                make: Box::new(move |limit| {
                    let enough = Time::from_ps(least.ps().saturating_add(least.ps() / ENOUGH));
                    if limit.is_some_and(|limit| limit <= enough) {
                        return Ok(Made::NotExpected("the plan chosen is near the bound"));
                    }
                    let plan = scheduled(links, &forests, chunks, question)?;
                    Ok(AnyPlan::Full(plan).into())
                }),
            });
        }
    }
    if let (true, Some(error)) = (contenders.is_empty(), refused) {
        return Err(error);
    }
    let contest = Contest { question, least };
    let ContestOutcome { fastest, .. } = contest.run(contenders, Vec::new())?;
    Ok(fastest?.0.into())
}

/// The transfers of a plan.
fn transfers(forests: &[Forest], ranks: u32, chunks: u32) -> u64 {
    let trees = forests.iter().map(|forest| forest.trees.len() as u64);
    trees.sum::<u64>() * u64::from(ranks - 1) * u64::from(chunks)
}

fn named(trees: u32, chunks: u32) -> Spec {
    Spec::new(NAME).with("trees", trees).with("chunks", chunks)
}

/// The plan that sends along forests, one after the other.
fn scheduled(
    links: &Links<'_>,
    forests: &[Forest],
    chunks: u32,
    question: &Question<'_>,
) -> Result<Plan, PlannerError> {
    let collective = question.collective;
    let count = forests.first().map_or(1, |forest| forest.count);
    let pieces = count.saturating_mul(chunks);
    let blocks = match collective.kind() {
        CollectiveKind::AllReduce => links.ranks,
        _ => 1,
    };
    question.fits(transfers(forests, links.ranks, chunks))?;
    let collective = collective.with_pieces(pieces.saturating_mul(blocks))?;
    let mut schedule = Schedule::new(collective);
    for forest in forests {
        interrupt::check();
        let of_all = forest.trees.len() > count as usize;
        let timetable = Timetable::new(links.network, &forest.trees, forest.reversed);
        let first_chunk = |tree: usize| {
            // Trees come root by root in turn: the j-th of all roots, then the next.
            let roots = if of_all { links.ranks as usize } else { 1 };
            let (turn, root) = (tree / roots, tree % roots);
            (root as u32 * count + turn as u32) * chunks
        };
        let part = timetable.schedule(collective, chunks, first_chunk);
        match forest.reversed {
            true => schedule.append(&part.reversed(collective), 1),
            false => schedule.append(&part, 1),
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    let name = named(count, chunks).to_string();
    Ok(Plan::without_light(question.fabric, schedule, name))
}

fn gcd(one: u128, other: u128) -> u128 {
    if one == 0 {
        other
    } else {
        gcd(other % one, one)
    }
}
