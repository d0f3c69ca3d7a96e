//! Classes of flows. Flows between the same two ranks with the same weight form a class and have
//! the same rate. This module tracks the progress of each class and the flow that ends first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::conversion::bytes_per_ps;
use super::ledger::FlowLedger;
use super::queue::Queue;
use super::quotient_network::Quotient;
use super::shares::Shares;
use super::{FluidError, Weights};
use opticoll_base::interrupt;
use opticoll_fabric::network::{Network, Sharing};
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Number of cached classes above which the classes without flows are removed.
const MAX_CACHED_CLASSES: usize = 4096;

/// Progress of a class. Rates change more often than flows start, so the fields that a change of
/// rate uses fill one cache line.
#[repr(align(64))]
struct ClassProgress {
    /// Bytes that each flow has moved, counted until `since` from the time when the class got its
    /// first flow.
    served: f64,
    since: f64,
    /// Rate of one flow in bytes per ps.
    rate: f64,
    weight: f64,
    /// Sum of the rates of all flows of the class, in bytes per ps.
    flowing: f64,
    /// Value of `served` at which the next flow ends.
    target: f64,
    /// Index of the flow that ends next.
    first: u32,
    members: u32,
    /// Product of the number of shared links on the route and the number of flows that each flow
    /// stands for.
    shared: u32,
    /// True if `rate` must be updated.
    stale: bool,
}

/// Flows of a class except the flow that ends first, as pairs (value of [`ClassProgress::served`]
/// at which the flow ends, index of the flow). The value is stored as the bits of an `f64`.
type LaterFlows = BinaryHeap<Reverse<(u64, u32)>>;

struct FlowClass {
    pair: (u32, u32),
    /// Maximum rate of each flow (bytes per ps), set by the flow's cap and the unshared links.
    limit: f64,
    latency: f64,
    /// Links whose full rate is available to each flow.
    unshared: Box<[u32]>,
    /// True if [`Shares`] contains an additional link with the capacity `limit`, which only this
    /// class uses.
    has_own_link: bool,
    /// True if every new flow between the two ranks joins this class.
    common: bool,
    /// Bytes of the class's flows that the ledger has not added to the links yet.
    bytes: u128,
    /// `None` until the class has a second flow, because most classes never have one.
    later: Option<Box<LaterFlows>>,
    /// Number of messages that have started but have not been received, plus background flows.
    users: u32,
}

/// All flow classes, and the links that they share.
pub(super) struct Classes<'a> {
    network: &'a dyn Network,
    /// Routes that a plan names. The pair of ranks (r, [`FABRIC_ROUTE`]) stands for route r.
    routes: NamedRoutes,
    /// Quotient, if one flow stands for all equivalent flows ([`super::quotient`]); `None` if every
    /// flow is simulated.
    quotient: Option<&'a Quotient>,
    weights: Weights,
    shares: Shares,
    progress: Vec<ClassProgress>,
    classes: Vec<FlowClass>,
    by_pair: FxHashMap<(u32, u32), u32>,
    cache_limit: usize,
    ends: Queue,
    stale: Vec<u32>,
    changed: Vec<u32>,
    route: Vec<u32>,
    /// Number of equivalent flows that a flow of a new class stands for on each link of `route`;
    /// empty if all these numbers are 1.
    times: Vec<f64>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(
        network: &'a dyn Network,
        quotient: Option<&'a Quotient>,
        weights: Weights,
    ) -> Classes<'a> {
        let capacities = network.links().iter().map(|link| bytes_per_ps(link.rate));
        Classes {
            network,
            routes: NamedRoutes::default(),
            quotient,
            weights,
            shares: Shares::new(capacities),
            progress: Vec::new(),
            classes: Vec::new(),
            by_pair: FxHashMap::default(),
            cache_limit: MAX_CACHED_CLASSES,
            ends: Queue::default(),
            stale: Vec::new(),
            changed: Vec::new(),
            route: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Stores the routes that a plan names.
    pub(super) fn take_routes(&mut self, routes: &NamedRoutes) {
        self.routes = routes.clone();
    }

    /// Returns the class of a new flow between the ranks of `pair`. A flow with a finite maximum
    /// rate `cap` (bytes per ps) gets a class of its own. When the flow has ended, the caller calls
    /// [`Classes::leave`].
    pub(super) fn enter(&mut self, pair: (u32, u32), cap: f64) -> Result<u32, FluidError> {
        if cap.is_infinite()
            && let Some(&class) = self.by_pair.get(&pair)
        {
            self.classes[class as usize].users += 1;
            return Ok(class);
        }
        if self.by_pair.len() > self.cache_limit {
            self.remove_idle();
        }
        let class = self.add(pair, cap)?;
        let state = &mut self.classes[class as usize];
        state.common = cap.is_infinite() && !state.has_own_link;
        if state.common {
            self.by_pair.insert(pair, class);
        }
        Ok(class)
    }

    /// Returns a new class for a background flow. When the flow has ended, the caller calls
    /// [`Classes::leave`].
    pub(super) fn enter_alone(&mut self, pair: (u32, u32), cap: f64) -> Result<u32, FluidError> {
        self.add(pair, cap)
    }

    fn add(&mut self, pair: (u32, u32), cap: f64) -> Result<u32, FluidError> {
        self.route.clear();
        match pair.1 == FABRIC_ROUTE && !self.routes.is_empty() {
            true => self.route.extend_from_slice(self.routes.links(pair.0)),
            false => self.network.route(pair.0, pair.1, &mut self.route),
        }
        let links = self.network.links();
        let unknown = |&&link: &&u32| link as usize >= links.len();
        if let Some(&link) = self.route.iter().find(unknown) {
            return Err(FluidError::Link {
                link,
                source_rank: pair.0,
                destination: pair.1,
            });
        }
        let longest = self.network.longest_part(pair.0, pair.1);
        let part = &self.route[..longest.unwrap_or(self.route.len())];
        let latencies = part.iter().map(|&link| links[link as usize].latency.ps());
        let latency = latencies.map(|latency| latency as f64).sum::<f64>();
        let mut unshared = Vec::new();
        let mut limit = cap;
        self.route.retain(|&index| {
            let link = &links[index as usize];
            let shared = link.sharing == Sharing::Shared;
            if !shared {
                unshared.push(index);
                limit = limit.min(bytes_per_ps(link.rate));
            }
            shared
        });
        let is_slower = |&link: &u32| bytes_per_ps(links[link as usize].rate) > limit;
        let own_link =
            if limit.is_finite() && !self.route.is_empty() && self.route.iter().all(is_slower) {
                limit
            } else {
                f64::INFINITY
            };
        let mut shared = self.route.len() as u32;
        if let Some(quotient) = self.quotient {
            shared *= quotient.flow_count(pair.0);
            quotient.find_times(pair.0, &mut self.route, &mut self.times);
        }
        let (route, times) = (&self.route, &self.times);
        let index = self.shares.add_class(route, times, own_link);
        let progress = ClassProgress {
            served: 0.0,
            since: 0.0,
            rate: 0.0,
            weight: match self.weights {
                Weights::InverseLatency if latency > 0.0 => 1.0 / latency,
                _ => 1.0,
            },
            flowing: 0.0,
            target: f64::INFINITY,
            first: u32::MAX,
            members: 0,
            shared,
            stale: false,
        };
        let class = FlowClass {
            pair,
            limit,
            latency,
            unshared: unshared.into(),
            has_own_link: own_link.is_finite(),
            common: false,
            bytes: 0,
            later: None,
            users: 1,
        };
        if index as usize == self.classes.len() {
            self.progress.push(progress);
            self.classes.push(class);
        } else {
            self.progress[index as usize] = progress;
            self.classes[index as usize] = class;
        }
        Ok(index)
    }

    /// Ends a flow's use of a class. A class that no new flow may join is removed with its last
    /// flow.
    pub(super) fn leave(&mut self, class: u32) {
        let state = &mut self.classes[class as usize];
        state.users -= 1;
        if state.users == 0 && !state.common {
            self.shares.remove_class(class);
        }
    }

    /// Removes all classes without flows, so that the number of classes stays bounded.
    fn remove_idle(&mut self) {
        for class in 0..self.classes.len() as u32 {
            interrupt::check();
            let state = &mut self.classes[class as usize];
            if state.common && state.users == 0 {
                state.common = false;
                self.by_pair.remove(&state.pair);
                self.shares.remove_class(class);
            }
        }
        self.cache_limit = MAX_CACHED_CLASSES.max(2 * self.by_pair.len());
    }

    /// Returns the latency of the route of a flow class (ps).
    pub(super) fn latency(&self, class: u32) -> f64 {
        self.classes[class as usize].latency
    }

    /// Returns whether a link or a cap limits the flows of a class. Unlimited flows take no time.
    pub(super) fn is_bounded(&self, class: u32) -> bool {
        let shared = self.progress[class as usize].shared;
        shared > 0 || self.classes[class as usize].limit.is_finite()
    }

    /// Adds the flow with index `place`, which starts to move at `now` (ps). A flow without `bytes`
    /// moves until [`Classes::stop`].
    pub(super) fn join(
        &mut self,
        class: u32,
        bytes: Option<u64>,
        place: u32,
        now: f64,
        ledger: &mut FlowLedger,
    ) {
        let progress = &mut self.progress[class as usize];
        let state = &mut self.classes[class as usize];
        progress.serve(now);
        state.bytes += u128::from(bytes.unwrap_or(0));
        let target = progress.served + bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
        if progress.members == 0 {
            (progress.target, progress.first) = (target, place);
        } else if (target, place) < (progress.target, progress.first) {
            state
                .later
                .get_or_insert_default()
                .push(Reverse((progress.target.to_bits(), progress.first)));
            (progress.target, progress.first) = (target, place);
        } else {
            let later = state.later.get_or_insert_default();
            later.push(Reverse((target.to_bits(), place)));
        }
        progress.members += 1;
        if progress.members == 1 {
            let unshared = state.unshared.iter().copied();
            for link in self.shares.route(class).chain(unshared) {
                ledger.occupy(link, now);
            }
        }
        self.reweigh(class);
    }

    /// Ends the only flow of a class. The flow has no size, as background flows have none.
    pub(super) fn stop(&mut self, class: u32, now: f64, ledger: &mut FlowLedger) {
        let progress = &mut self.progress[class as usize];
        progress.serve(now);
        self.classes[class as usize].bytes = progress.served.round() as u128;
        progress.members = 0;
        self.vacate(class, now, ledger);
        self.reweigh(class);
    }

    /// Returns the instant (ps) at which the next flow ends if all rates stay constant.
    pub(super) fn next_end(&mut self) -> Option<f64> {
        self.ends.first()
    }

    /// Ends every flow whose last byte moves at or before `limit` (ps). Appends the indices of
    /// these flows to `places`, ordered by class.
    pub(super) fn finish(
        &mut self,
        now: f64,
        limit: f64,
        places: &mut Vec<u32>,
        ledger: &mut FlowLedger,
    ) {
        let mut ending = std::mem::take(&mut self.changed);
        ending.clear();
        self.ends.take_until(limit, &mut ending);
        ending.sort_unstable();
        for &class in &ending {
            interrupt::check();
            let progress = &mut self.progress[class as usize];
            let state = &mut self.classes[class as usize];
            progress.serve(now);
            let reach = progress.served + (limit - now) * progress.rate;
            loop {
                places.push(progress.first);
                progress.members -= 1;
                let later = state.later.as_mut().and_then(|later| later.pop());
                let Some(Reverse((target, place))) = later else {
                    break;
                };
                (progress.target, progress.first) = (f64::from_bits(target), place);
                if progress.target > reach {
                    break;
                }
            }
            if progress.members == 0 {
                self.vacate(class, now, ledger);
            }
            self.reweigh(class);
        }
        self.changed = ending;
    }

    /// Resets a class that has lost its last flow, and adds the bytes of the class to the ledger.
    fn vacate(&mut self, class: u32, now: f64, ledger: &mut FlowLedger) {
        let progress = &mut self.progress[class as usize];
        let state = &mut self.classes[class as usize];
        (progress.served, progress.rate, progress.target) = (0.0, 0.0, f64::INFINITY);
        let flowing = std::mem::take(&mut progress.flowing);
        ledger.flowing -= flowing * f64::from(progress.shared);
        let bytes = std::mem::take(&mut state.bytes);
        let unshared = state.unshared.iter().copied();
        for link in self.shares.route(class).chain(unshared) {
            ledger.vacate(link, now, bytes, flowing);
        }
    }

    /// Updates the weight of a class after the number of its flows has changed.
    fn reweigh(&mut self, class: u32) {
        let progress = &mut self.progress[class as usize];
        if !progress.stale {
            progress.stale = true;
            self.stale.push(class);
        }
        let weight = progress.weight * f64::from(progress.members);
        self.shares.set_weight(class, weight);
    }

    /// Updates the rates after all starts and ends of an instant. [`Classes::changed`] then returns
    /// the flow classes whose rates may have changed.
    pub(super) fn settle(&mut self, now: f64, ledger: &mut FlowLedger) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        self.shares.settle(&mut changed);
        for &class in &changed {
            interrupt::check();
            self.progress[class as usize].stale = false;
        }
        for class in self.stale.drain(..) {
            if std::mem::take(&mut self.progress[class as usize].stale) {
                changed.push(class);
            }
        }
        for &class in &changed {
            interrupt::check();
            self.update(class, now, ledger);
        }
        self.changed = changed;
    }

    /// Returns the flow classes whose rates may have changed in the latest call of
    /// [`Classes::settle`].
    pub(super) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Computes the rate of a class from the levels in [`Shares`], and the instant at which the
    /// next flow of the class ends.
    fn update(&mut self, class: u32, now: f64, ledger: &mut FlowLedger) {
        let progress = &mut self.progress[class as usize];
        if progress.members == 0 {
            self.ends.remove(class);
            return;
        }
        progress.serve(now);
        progress.rate = if progress.shared == 0 {
            self.classes[class as usize].limit
        } else {
            self.shares.level(class) * progress.weight
        };
        let remaining = progress.target - progress.served;
        let end = now + (remaining / progress.rate).max(0.0);
        if end.is_finite() {
            self.ends.set(class, end);
        }
        let flowing = progress.rate * f64::from(progress.members);
        let change = flowing - std::mem::replace(&mut progress.flowing, flowing);
        ledger.flowing += change * f64::from(progress.shared);
        if ledger.meters_links() && change != 0.0 {
            let unshared = self.classes[class as usize].unshared.iter().copied();
            for link in self.shares.route(class).chain(unshared) {
                ledger.change_rate(link, change, now);
            }
        }
    }

    /// Returns the rate of each flow of a class (bytes per ps), and the link that limits the rate.
    pub(super) fn rate(&self, class: u32) -> (f64, Option<u32>) {
        let progress = &self.progress[class as usize];
        if progress.shared > 0
            && let Some(link) = self.shares.bottleneck(class)
        {
            return (progress.rate, Some(link));
        }
        // The slowest unshared link is the bottleneck, unless the flow's cap is lower.
        let state = &self.classes[class as usize];
        let rate = |link: u32| bytes_per_ps(self.network.links()[link as usize].rate);
        let mut unshared = state.unshared.iter().copied();
        (
            progress.rate,
            unshared.find(|&link| rate(link) <= state.limit),
        )
    }

    pub(super) fn members(&self, class: u32) -> impl Iterator<Item = u32> + '_ {
        let progress = &self.progress[class as usize];
        let later = self.classes[class as usize].later.iter();
        let later = later.flat_map(|later| later.iter());
        let first = (progress.members > 0).then_some(progress.first);
        first
            .into_iter()
            .chain(later.map(|Reverse((_, place))| *place))
    }
}

impl ClassProgress {
    /// Adds the bytes that each flow has moved up to the instant `now` (ps) to `served`.
    fn serve(&mut self, now: f64) {
        self.served += self.rate * (now - self.since);
        self.since = now;
    }
}
