//! Links of a fabric, and forests that are packed into them.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::chunks::Chunks;
use super::edge_exchange::{balance_loads, shallow_trees};
use super::edge_routes::{EdgeRoute, EdgeRoutes};
use super::edge_splitting::{self, Capacities, Paths};
use super::packing::{Packing, Tree};
use super::timetable::{MAX_STEP_PIECES, TimedSchedule, Timetable};
use super::{pipeline, scatter_trees};
use crate::{PlannerError, selection::candidate_bound};
use opticoll_base::graph::{self, UNREACHED};
use opticoll_base::names::plural;
use opticoll_base::units::{Bytes, Time, gcd};
use opticoll_bounds::throughput::spanning::{Cable, away_from, tightest_partition};
use opticoll_bounds::throughput::{Cuts, RatedLink, TightestCut, tightest};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::{Network, Sharing};
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::NamedRoutes;

/// Maximum number of ranks that an error message names.
const MAX_NAMED_RANKS: usize = 16;

/// Maximum number of ranks to try as the root of an all_reduce.
const MAX_ROOTS: u32 = 1024;

/// Resolution of the search for the scale U of the capacities (U, k, p and q are defined in the
/// header of [`super`]). Step s of the search tries U = (k + s / `SEARCH_STEPS`) p / q.
const SEARCH_STEPS: u128 = 1024;

/// Links of a fabric. Each direction of a half-duplex cable has half of the cable's rate.
#[derive(Clone)]
pub(super) struct Links<'a> {
    pub(super) network: &'a dyn Network,
    pub(super) ranks: u32,
    vertices: u32,
    rates: Vec<(u32, u32, u64)>,
}

impl<'a> Links<'a> {
    /// Returns the links, or `None` if the ends of a link are unknown or if flows do not share
    /// links.
    pub(super) fn of(fabric: &'a Fabric) -> Option<Links<'a>> {
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

    /// Returns the cables between ranks, with the rate of their slower direction in bits per
    /// second.
    fn cables(&self) -> Vec<Cable> {
        let mut directions: BTreeMap<(u32, u32), [u128; 2]> = BTreeMap::new();
        for &(from, to, rate) in &self.rates {
            let ends = (from.min(to), from.max(to));
            directions.entry(ends).or_default()[usize::from(from > to)] += u128::from(rate);
        }
        let two_way = directions
            .into_iter()
            .filter(|(_, rates)| rates[0].min(rates[1]) > 0);
        two_way
            .map(|((one, other), rates)| (one, other, rates[0].min(rates[1])))
            .collect()
    }

    /// Returns a centre of the graph: a rank whose distance to the most distant rank, in cables, is
    /// minimal. On a large graph only some ranks are tried.
    fn central_rank(&self, cables: &[Cable]) -> Option<u32> {
        let mut beside = vec![Vec::new(); self.ranks as usize];
        for &(one, other, _) in cables {
            beside[one as usize].push(other);
            beside[other as usize].push(one);
        }
        let farthest = |from: u32| {
            let beside = |rank: u32| beside[rank as usize].iter().copied();
            let distances = graph::distances(self.ranks as usize, from, beside).into_iter();
            distances.filter(|&distance| distance != UNREACHED).max()
        };
        let stride = self.ranks.div_ceil(MAX_ROOTS).max(1);
        let candidates = (0..self.ranks).step_by(stride as usize);
        candidates.min_by_key(|root| farthest(*root))
    }

    fn reversed(&self) -> Vec<(u32, u32, u64)> {
        let links = self.rates.iter();
        links.map(|&(from, to, rate)| (to, from, rate)).collect()
    }
}

pub(super) struct Forest<'a> {
    links: Rc<Links<'a>>,
    /// Number of trees per root.
    pub(super) count: u32,
    trees: Trees,
    /// True if the trees were packed on reversed links, so that data flow towards the roots.
    reversed: bool,
}

enum Trees {
    EveryRoot(Vec<Tree>, EdgeRoutes),
    OneRoot(Vec<Tree>, EdgeRoutes),
    /// Trees of one root, with routes away from the root and routes towards the root.
    UpAndDown(Vec<Tree>, EdgeRoutes, EdgeRoutes),
}

impl Forest<'_> {
    /// Returns the steps of the part of a collective that this forest carries out. `chunks` are the
    /// chunks per tree, all of one size if every rank is a root.
    pub(super) fn timed(&self, collective: Collective, chunks: &Chunks) -> TimedSchedule {
        let count = chunks.pieces();
        let timed = match &self.trees {
            Trees::OneRoot(..) | Trees::UpAndDown(..) => self
                .pipeline()
                .expect("trees of one root")
                .pipeline_steps(collective, chunks),
            Trees::EveryRoot(trees, edge_routes) => {
                let first_chunk = |tree: usize| {
                    // The list of trees has one tree of every root, then the next tree of every
                    // root, and so on.
                    let roots = self.links.ranks as usize;
                    let (turn, root) = (tree / roots, tree % roots);
                    (root as u32 * self.count + turn as u32) * count
                };
                let timetable = self.timetable(trees, edge_routes);
                timetable.schedule(collective, count, first_chunk)
            }
        };
        match self.reversed {
            true => timed.reversed(collective),
            false => timed,
        }
    }

    /// Returns the expected latency of all steps with trees of every root; zero for a pipeline.
    pub(super) fn expected(&self, chunks: u32) -> Time {
        match &self.trees {
            Trees::EveryRoot(trees, edge_routes) => {
                self.timetable(trees, edge_routes).latency_of_steps(chunks)
            }
            Trees::OneRoot(..) | Trees::UpAndDown(..) => Time::ZERO,
        }
    }

    /// Returns the chunks that are expected to be fastest in a pipeline along trees of one root,
    /// with at most `max_pieces` pieces in total.
    pub(super) fn fastest_chunks(
        &self,
        size: Bytes,
        max_pieces: u32,
        too_many: impl Fn(u32) -> bool,
    ) -> Vec<Chunks> {
        match self.pipeline() {
            Some(timetable) => pipeline::fastest(&timetable, size, max_pieces, too_many),
            None => vec![Chunks::equal(1)],
        }
    }

    /// Names the routes of transfers that do not use the default routes of the fabric. `before` is
    /// the number of transfers of earlier forests.
    pub(super) fn assign(&self, timed: &TimedSchedule, before: usize, routes: &mut NamedRoutes) {
        let (down, up) = match &self.trees {
            Trees::EveryRoot(_, edge_routes) | Trees::OneRoot(_, edge_routes) => {
                (edge_routes, None)
            }
            Trees::UpAndDown(_, down, up) => (down, Some(up)),
        };
        let edge_routes: Vec<&EdgeRoute> = down
            .all
            .iter()
            .chain(up.iter().flat_map(|up| &up.all))
            .collect();
        for (transfer, edge_route) in (before..).zip(&timed.edge_routes) {
            let edge_route = edge_routes[*edge_route as usize];
            if edge_route.is_named {
                routes.assign(transfer, &edge_route.route);
            }
        }
    }

    /// Returns the timetable of trees of one root, or `None` for trees of every root.
    fn pipeline(&self) -> Option<Timetable<'_>> {
        match &self.trees {
            Trees::OneRoot(trees, edge_routes) => Some(self.timetable(trees, edge_routes)),
            Trees::UpAndDown(trees, down, up) => Some(Timetable {
                up: Some(up),
                ..self.timetable(trees, down)
            }),
            Trees::EveryRoot(..) => None,
        }
    }

    fn timetable<'b>(&'b self, trees: &'b [Tree], edge_routes: &'b EdgeRoutes) -> Timetable<'b> {
        Timetable {
            network: self.links.network,
            trees,
            edge_routes,
            up: None,
        }
    }
}

pub(super) struct PackingGraph<'a> {
    links: Rc<Links<'a>>,
    rates: Vec<(u32, u32, u64)>,
    /// Root of all trees, or `None` if every rank is a root.
    pub(super) root: Option<u32>,
    reversed: bool,
    /// Cables between ranks, if the trees sum up towards a root and broadcast from the root over
    /// the same cables; otherwise `None`.
    cables: Option<Vec<Cable>>,
    /// Optimum time p / q of a block of one bit in seconds, as a reduced fraction.
    ratio: (u128, u128),
    /// Greatest common divisor of all rates.
    unit: u128,
}

impl<'a> PackingGraph<'a> {
    /// Creates the graph and computes its optimum time. Fails if some ranks are unreachable, or if
    /// the search needs more than `max_search` steps.
    pub(super) fn new(
        links: &Rc<Links<'a>>,
        root: Option<u32>,
        reversed: bool,
        max_search: u64,
    ) -> Result<PackingGraph<'a>, PlannerError> {
        let rates = match reversed {
            true => links.reversed(),
            false => links.rates.clone(),
        };
        let rated: Vec<RatedLink> = rates
            .iter()
            .map(|&(from, to, rate)| (from, to, Some(rate)))
            .collect();
        let cuts = root.map_or(Cuts::EachRank, Cuts::From);
        let cut = tightest(
            links.ranks,
            links.vertices as usize,
            &rated,
            cuts,
            max_search,
        );
        let cut = cut.ok_or_else(|| {
            unfit(
                PlacementProblem::Unfit,
                "flows share no links, so there are no links to pack",
            )
        })?;
        if cut.rate == 0 {
            return Err(unfit(
                PlacementProblem::Unfit,
                &unreachable_sentence(&cut, links.ranks, reversed),
            ));
        }
        let unit = rates.iter().fold(0, |unit, link| gcd(unit, link.2.into()));
        if !cut.is_tightest {
            let sentence = "the graph is too large to search for trees unless trees are requested";
            return Err(unfit(PlacementProblem::Unfit, sentence));
        }
        Ok(PackingGraph {
            links: Rc::clone(links),
            rates,
            root,
            reversed,
            cables: None,
            ratio: reduce_fraction(cut.blocks, cut.rate),
            unit,
        })
    }

    /// Creates the graph for trees that sum up towards a root and broadcast from the root, over
    /// cables that connect ranks directly. Fails if the fabric has switches, if a rank has no
    /// cable, or if the search needs more than `max_search` steps.
    pub(super) fn up_and_down(
        links: &Rc<Links<'a>>,
        max_search: u64,
    ) -> Result<PackingGraph<'a>, PlannerError> {
        let unfit = |sentence| Err(unfit(PlacementProblem::Unfit, sentence));
        if links.vertices > links.ranks {
            return unfit(
                "trees of one root for an all_reduce need ranks that are connected directly",
            );
        }
        let cables = links.cables();
        let Some(partition) = tightest_partition(links.ranks, &cables, max_search) else {
            return unfit("no trees of one root for an all_reduce were found");
        };
        let root = links.central_rank(&cables);
        Ok(PackingGraph {
            links: Rc::clone(links),
            rates: links.rates.clone(),
            root,
            reversed: false,
            ratio: reduce_fraction(partition.count - 1, partition.rate),
            unit: cables.iter().fold(0, |unit, cable| gcd(unit, cable.2)),
            cables: Some(cables),
        })
    }

    /// Returns the minimum number of trees per root that reaches the optimum.
    pub(super) fn trees(&self) -> u128 {
        let (_, q) = self.ratio;
        q / gcd(q, self.unit)
    }

    /// Returns the forests of [`scatter_trees`], in which each tree has its own relay. Forests that
    /// do not nearly reach the optimum are left out. Forests of groups are included only if packing
    /// takes too long, or if the same number of packed trees does not reach the optimum.
    pub(super) fn relay_trees(&self) -> Vec<Vec<Tree>> {
        let Some(root) = self.root.filter(|_| self.cables.is_none()) else {
            return Vec::new();
        };
        let mut forests = scatter_trees::trees(self.links.network, root, self.reversed, self.ratio);
        let (ranks, exact) = (self.links.ranks, self.trees());
        forests.retain(|trees| {
            let has_every_relay = trees.len() + 1 == ranks as usize;
            has_every_relay || ranks > scatter_trees::MAX_RELAYS || trees.len() as u128 % exact != 0
        });
        forests
    }

    /// Estimates the time of the steps with `trees` trees of every root before the trees are
    /// packed; zero for trees of one root. Each rank receives the blocks of all other ranks, `bits`
    /// bits each.
    pub(super) fn expected(&self, trees: u32, chunks: u32, bits: u128) -> Time {
        let slowest = self.rates.iter().map(|link| link.2).min().unwrap_or(0);
        if self.root.is_some() || slowest == 0 {
            return Time::ZERO;
        }
        let longest = match self.rates.iter().all(|link| link.2 == slowest) {
            true => 1,
            false => MAX_STEP_PIECES,
        };
        let mut into = vec![0u128; self.links.ranks as usize];
        for &(_, to, rate) in self.rates.iter().filter(|link| link.1 < self.links.ranks) {
            into[to as usize] += u128::from(rate);
        }
        let into = into.into_iter().min().unwrap_or(0).max(1);
        let others = u128::from(self.links.ranks - 1);
        let pieces = others * u128::from(trees) * u128::from(chunks);
        let in_step = (longest * into / u128::from(slowest)).max(1);
        candidate_bound::estimate_transmission(
            self.links.network,
            pieces.div_ceil(in_step),
            others * bits,
            into,
        )
    }

    /// Returns a forest with `count` trees per root. `None` if the capacities into and out of a
    /// switch differ, or if packing visits more than `max_work` links.
    pub(super) fn forest(
        &self,
        count: u32,
        may_name_routes: bool,
        max_work: u64,
    ) -> Option<Forest<'a>> {
        let forest_of = |trees| Forest {
            links: Rc::clone(&self.links),
            count,
            trees,
            reversed: self.reversed,
        };
        if let (Some(cables), Some(root)) = (&self.cables, self.root) {
            return Some(forest_of(self.up_and_down_trees(
                cables,
                (root, count),
                may_name_routes,
                max_work,
            )?));
        }
        let mut relay_trees = self.relay_trees().into_iter();
        if let Some(trees) = relay_trees.find(|trees| trees.len() == count as usize) {
            let edge_routes = EdgeRoutes::new(
                self.links.network,
                &trees,
                self.reversed,
                None,
                &mut Vec::new(),
            );
            return Some(forest_of(Trees::OneRoot(trees, edge_routes)));
        }
        let wanted = (0..self.links.ranks)
            .map(|rank| match self.root {
                Some(root) if root != rank => 0,
                _ => count,
            })
            .collect::<Vec<u32>>();
        let at = |step: u128| -> Option<Capacities> {
            let mut capacities = Capacities::default();
            for &(from, to, rate) in &self.rates {
                *capacities.entry((from, to)).or_default() +=
                    self.scaled(rate.into(), count, step)?;
            }
            Some(capacities)
        };
        let vertices = self.links.vertices;
        let mut work = max_work;
        let least =
            least_step(|step| edge_splitting::has_room(vertices, &at(step)?, &wanted, &mut work))?;
        let capacities = at(least)?;
        let is_route = |from: u32, switch: u32, to: u32| {
            if may_name_routes {
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
        let (capacities, paths) =
            edge_splitting::without_switches(vertices, &capacities, &wanted, is_route, &mut work)?;
        let mut links: Vec<(u32, u32, u128)> = capacities
            .into_iter()
            .map(|((from, to), capacity)| (from, to, capacity))
            .collect();
        links.sort_unstable();
        let paths = may_name_routes.then_some(paths);
        let edge_routes = |trees: &[Tree]| {
            EdgeRoutes::new(
                self.links.network,
                trees,
                self.reversed,
                paths,
                &mut Vec::new(),
            )
        };
        Some(forest_of(match self.root {
            Some(root) => {
                let mut trees = shallow_trees(&links, (self.links.ranks, root, count), max_work)?;
                let mut edge_routes = edge_routes(&trees);
                balance_loads(
                    self.links.network,
                    &mut trees,
                    &mut edge_routes,
                    self.reversed,
                );
                Trees::OneRoot(trees, edge_routes)
            }
            None => {
                let trees = Packing::new(&links, wanted).pack(max_work)?;
                let edge_routes = edge_routes(&trees);
                Trees::EveryRoot(trees, edge_routes)
            }
        }))
    }

    /// Returns the capacity floor(U b) of a link with rate b = `rate`, for the U of step `step` of
    /// the search (see [`SEARCH_STEPS`]).
    fn scaled(&self, rate: u128, trees: u32, step: u128) -> Option<u128> {
        let (p, q) = self.ratio;
        let scaled = rate.checked_mul(p)?;
        let scaled = scaled.checked_mul(u128::from(trees) * SEARCH_STEPS + step)?;
        Some(scaled / q.checked_mul(SEARCH_STEPS)?)
    }

    /// Returns `count` trees of a root, with routes towards the root and away from the root.
    fn up_and_down_trees(
        &self,
        cables: &[Cable],
        (root, count): (u32, u32),
        may_name_routes: bool,
        max_work: u64,
    ) -> Option<Trees> {
        let (ranks, network) = (self.links.ranks, self.links.network);
        let at = |step: u128| -> Option<Option<Capacities>> {
            let scaled_cables = cables
                .iter()
                .map(|&(one, other, rate)| Some((one, other, self.scaled(rate, count, step)?)));
            let scaled_cables: Vec<Cable> = scaled_cables.collect::<Option<_>>()?;
            away_from(root, ranks, &scaled_cables, count.into(), max_work)
        };
        let least = least_step(|step| Some(at(step)?.is_some()))?;
        let mut links: Vec<(u32, u32, u128)> = at(least)??
            .into_iter()
            .map(|((from, to), capacity)| (from, to, capacity))
            .collect();
        links.sort_unstable();
        let trees = shallow_trees(&links, (ranks, root, count), max_work)?;
        let paths = links
            .iter()
            .map(|&(from, to, capacity)| ((from, to), vec![(Vec::new(), capacity)]));
        let paths: Option<Paths> = may_name_routes.then(|| paths.collect());
        // If several cables connect two ranks, the messages in both directions are divided among
        // them.
        let mut load = Vec::new();
        let down = EdgeRoutes::new(network, &trees, false, paths.clone(), &mut load);
        let up = EdgeRoutes::new(network, &trees, true, paths, &mut load);
        Some(Trees::UpAndDown(trees, down, up))
    }
}

/// Returns the first step of the search for U with room for the trees. The search is a bisection.
fn least_step(mut has_room: impl FnMut(u128) -> Option<bool>) -> Option<u128> {
    let (mut least, mut most) = (0, SEARCH_STEPS);
    if has_room(0)? {
        return Some(0);
    }
    // There is room at the latest when every link can carry every tree once.
    while !has_room(most)? {
        (least, most) = (most, most.checked_mul(2)?);
    }
    while most - least > 1 {
        let middle = least.midpoint(most);
        if has_room(middle)? {
            most = middle;
        } else {
            least = middle;
        }
    }
    Some(most)
}

fn reduce_fraction(one: u128, other: u128) -> (u128, u128) {
    let divisor = gcd(one, other).max(1);
    (one / divisor, other / divisor)
}

/// Returns an error message about ranks that cannot be reached, or that cannot reach others.
fn unreachable_sentence(cut: &TightestCut, ranks: u32, reversed: bool) -> String {
    let inside = cut.vertices.iter().filter(|vertex| **vertex < ranks);
    let inside: Vec<String> = inside.map(u32::to_string).collect();
    let first = inside[..inside.len().min(MAX_NAMED_RANKS)].join(", ");
    let others = match inside.len().saturating_sub(MAX_NAMED_RANKS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = match reversed {
        true => "cannot send to",
        false => "cannot be reached from",
    };
    let ranks = plural(inside.len(), "rank");
    format!("{ranks} ({first}{others}) {what} the other ranks")
}

pub(super) fn unfit(problem: PlacementProblem, sentence: &str) -> PlannerError {
    PlannerError::Placement(PlacementError::new(problem, sentence))
}
