//! Routes of chunks, improved by moving one chunk at a time to less loaded links.

use super::search::Search;
use super::{BlockTime, ChunkRoutes, ConcurrentFlow, Pair};
use opticoll_base::interrupt;

/// Difference between the tiny numbers that break ties between routes of equal cost.
const TIE_STEP: f64 = 1e-9 / (1u64 << 24) as f64;

/// Returns `number` to the power of 2^squarings.
pub(super) fn power(number: f64, squarings: u32) -> f64 {
    (0..squarings).fold(number, |power, _| power * power)
}

pub(super) struct Packing<'a> {
    flow: &'a ConcurrentFlow<'a>,
    pairs: &'a [Pair],
    chunks: u32,
    squarings: u32,
    tie_seed: u64,
    /// Time of a chunk on each link, divided by the lower bound on the time; indexed by link.
    shares: Vec<f64>,
    loads: Vec<u64>,
    /// Increase of the potential if a link carries one more chunk, indexed by link.
    costs: Vec<f64>,
    pub(super) routes: Vec<Box<[u32]>>,
    /// Routes of the pass with the least time so far.
    best_so_far: Option<ChunkRoutes>,
}

impl<'a> Packing<'a> {
    pub(super) fn new(
        flow: &'a ConcurrentFlow<'a>,
        pairs: &'a [Pair],
        chunks: u32,
        least: BlockTime,
    ) -> Option<Packing<'a>> {
        let whole = least.seconds() * f64::from(chunks);
        let shares = flow.rates.iter().map(|rate| 1.0 / (*rate as f64 * whole));
        let mut packing = Packing {
            flow,
            pairs,
            chunks,
            squarings: 0,
            tie_seed: 0,
            shares: shares.collect(),
            loads: vec![0; flow.rates.len()],
            costs: vec![0.0; flow.rates.len()],
            routes: Vec::with_capacity(pairs.len() * chunks as usize),
            best_so_far: None,
        };
        packing.follow_routes()?;
        let by_routes = (
            packing.time(),
            std::mem::take(&mut packing.routes),
            packing.loads.clone(),
        );
        packing.loads.fill(0);
        packing.assign_shortest_routes()?;
        if !packing.time().is_below(by_routes.0) {
            (_, packing.routes, packing.loads) = by_routes;
        }
        Some(packing)
    }

    /// Assigns to all chunks of a pair the route of the network. If the network has no route for
    /// the pair, assigns a shortest route. `None` if some pair has no route.
    fn follow_routes(&mut self) -> Option<()> {
        let mut search = Search::new(self.flow.away.len());
        let mut route = Vec::new();
        for &pair in self.pairs {
            interrupt::check();
            route.clear();
            self.flow.network.route(pair.0, pair.1, &mut route);
            if !self.flow.joins(pair, &route) {
                search.from(self.flow, pair.0, Some(pair.1), |_| 1.0);
                route = search.route(pair)?;
            }
            for _ in 0..self.chunks {
                self.routes.push(route.as_slice().into());
            }
            for &link in &route {
                self.loads[link as usize] += u64::from(self.chunks);
            }
        }
        Some(())
    }

    /// Assigns a route with the fewest links to every chunk. Each route is built from the
    /// destination backwards: each hop uses the least loaded link that comes from a vertex nearer
    /// to the source.
    fn assign_shortest_routes(&mut self) -> Option<()> {
        let vertices = self.flow.away.len();
        let mut towards = vec![Vec::new(); vertices];
        for (from, links) in (0u32..).zip(&self.flow.away) {
            links
                .iter()
                .for_each(|&(link, to)| towards[to as usize].push((link, from)));
        }
        let mut search = Search::new(vertices);
        let mut last = None;
        let mut route = Vec::new();
        for &(source, destination) in self.pairs {
            interrupt::check();
            if last.replace(source) != Some(source) {
                search.from(self.flow, source, None, |_| 1.0);
            }
            search.distance(destination)?;
            for _ in 0..self.chunks {
                route.clear();
                let mut at = destination;
                while at != source {
                    let before = search.distance(at)? - 1.0;
                    let nearer = towards[at as usize].iter();
                    let nearer = nearer.filter(|(_, from)| search.distance(*from) == Some(before));
                    let full = |link: u32| {
                        (self.loads[link as usize] + 1) as f64 * self.shares[link as usize]
                    };
                    let (link, from) =
                        *nearer.min_by(|one, other| full(one.0).total_cmp(&full(other.0)))?;
                    self.loads[link as usize] += 1;
                    route.push(link);
                    at = from;
                }
                self.routes.push(route.iter().rev().copied().collect());
            }
        }
        Some(())
    }

    /// Sets the power p of the potential to 2^`squarings`.
    pub(super) fn set_power(&mut self, squarings: u32) {
        self.squarings = squarings;
        for link in 0..self.loads.len() {
            self.update_cost(link);
        }
    }

    /// Computes the cost of one more chunk on `link`: the increase of the potential, plus a small
    /// constant. The constant makes the search prefer the route with fewer links among routes of
    /// equal potential.
    fn update_cost(&mut self, link: usize) {
        let (share, load) = (self.shares[link], self.loads[link] as f64);
        let more = power((load + 1.0) * share, self.squarings);
        self.costs[link] = more - power(load * share, self.squarings) + 1e-12;
    }

    /// Adds `change`, which is 1 or -1, to the load of each of `links`.
    fn add(&mut self, links: &[u32], change: i64) {
        for &link in links {
            let load = &mut self.loads[link as usize];
            *load = load.saturating_add_signed(change);
            self.update_cost(link as usize);
        }
    }

    /// Returns the greatest quotient of load and rate over all links.
    pub(super) fn time(&self) -> BlockTime {
        let loads = self.loads.iter().zip(&self.flow.rates);
        let mut time = BlockTime { blocks: 0, rate: 1 };
        for (&load, &rate) in loads {
            let link_time = BlockTime {
                blocks: load.into(),
                rate: u128::from(rate) * u128::from(self.chunks),
            };
            if time.is_below(link_time) {
                time = link_time;
            }
        }
        time
    }

    /// Examines each chunk that crosses a full link, and moves the chunk to the cheapest route. A
    /// link is full if its load over rate is at least `full` times the greatest load over rate.
    /// Each search of shortest routes serves up to `batch` chunks of a source. The pass ends early
    /// after about `max_work` link visits in total. Returns the number of chunks that moved.
    pub(super) fn pass(
        &mut self,
        search: &mut Search,
        full: f64,
        batch: usize,
        max_work: u64,
    ) -> usize {
        let most = self.time().seconds() * full * f64::from(self.chunks);
        let mut moved = 0;
        // Source of the last search, and number of chunks that may still use this search.
        let mut searched = (u32::MAX, 0);
        for place in 0..self.routes.len() {
            interrupt::check();
            let is_full = |link: &u32| {
                let place = *link as usize;
                self.loads[place] as f64 >= most * self.flow.rates[place] as f64
            };
            if !self.routes[place].iter().any(is_full) {
                continue;
            }
            if search.work > max_work {
                break;
            }
            let pair = self.pairs[place / self.chunks as usize];
            let route = std::mem::take(&mut self.routes[place]);
            self.add(&route, -1);
            if searched.0 != pair.0 || searched.1 == 0 {
                self.tie_seed = self
                    .tie_seed
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .wrapping_add(1);
                let until = (batch == 1).then_some(pair.1);
                search.from(self.flow, pair.0, until, |link| self.cost(link));
                searched = (pair.0, batch);
            }
            searched.1 -= 1;
            let cost = |route: &[u32]| {
                route
                    .iter()
                    .map(|link| self.costs[*link as usize])
                    .sum::<f64>()
            };
            let most = cost(&route) * (1.0 + 1e-9);
            let other = search
                .route(pair)
                .filter(|other| other[..] != route[..] && cost(other) <= most);
            let route = match other {
                Some(other) => {
                    moved += 1;
                    other.into()
                }
                None => route,
            };
            self.add(&route, 1);
            self.routes[place] = route;
        }
        let time = self.time();
        if self
            .best_so_far
            .as_ref()
            .is_none_or(|best_so_far| time.is_below(best_so_far.time))
        {
            self.best_so_far = Some(ChunkRoutes {
                chunks: self.chunks,
                routes: self.routes.clone(),
                loads: self.loads.clone(),
                time,
            });
        }
        moved
    }

    /// Returns the cost of one more chunk on `link`, with a tiny relative change that differs from
    /// search to search. If several routes have the same cost, different searches therefore choose
    /// different routes. The excess of a full link thus moves on until it meets a link with room.
    fn cost(&self, link: u32) -> f64 {
        let mixed = self.tie_seed ^ (u64::from(link) + 1).wrapping_mul(0xD134_2543_DE82_EF95);
        let part = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        self.costs[link as usize] * (1.0 + part as f64 * TIE_STEP)
    }

    pub(super) fn best(self) -> ChunkRoutes {
        let time = self.time();
        match self.best_so_far {
            Some(best_so_far) if best_so_far.time.is_below(time) => best_so_far,
            _ => ChunkRoutes {
                chunks: self.chunks,
                routes: self.routes,
                loads: self.loads,
                time,
            },
        }
    }
}
