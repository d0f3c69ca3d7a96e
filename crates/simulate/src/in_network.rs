//! Multicasts and aggregations of a plan, as messages between several ranks.
//!
//! Every multicast and every aggregation is one message. The message loads each of its links once
//! (see [`opticoll_fabric::network::in_network`]). It waits for the greatest latency of its routes,
//! then moves its bytes on all its links at the same rate, and ends for all ranks at the same time.

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_fabric::network::in_network::{GroupFinder, GroupLinks};
use opticoll_fabric::network::{InNetwork, Network, Wiring};
use opticoll_plan::plan::routes::FABRIC_ROUTE;
use opticoll_plan::plan::{NamedRoutes, StepMessages};
use opticoll_plan::schedule::{Action, Schedule};

/// Multicasts and aggregations of a plan. Empty for a plan without them.
#[derive(Default)]
pub(crate) struct Groups {
    /// Routes that the plan names, and the links of the groups, each assigned to the first transfer
    /// of the group.
    pub(crate) routes: NamedRoutes,
    /// Number of links of the longest route, indexed by route; only for links of groups.
    longest: FxHashMap<u32, usize>,
    /// Further ranks of each group: receivers of a multicast or senders of an aggregation, except
    /// the rank of the first transfer. Indexed by the first transfer.
    members: FxHashMap<usize, Box<[u32]>>,
}

/// Group of one step: its first transfer, its action, and all its transfers.
struct Group {
    first: usize,
    action: Action,
    transfers: Vec<usize>,
}

impl Groups {
    /// Returns the groups of a schedule whose transfers use the routes `routes`.
    ///
    /// # Errors
    /// The switches cannot carry out a group; returns its first transfer.
    pub(crate) fn of(
        network: &dyn Network,
        schedule: &Schedule,
        routes: &NamedRoutes,
    ) -> Result<Groups, usize> {
        let mut found = Groups {
            routes: routes.clone(),
            ..Groups::default()
        };
        if !schedule.is_in_network() {
            return Ok(found);
        }
        let mut finder = GroupFinder::new(network);
        // Groups of the same ranks on the fabric's routes have the same links.
        let mut known: FxHashMap<(Action, Vec<(u32, u32)>), GroupLinks> = FxHashMap::default();
        for step in 0..schedule.steps() {
            for group in groups(schedule, routes, step) {
                interrupt::check();
                let ends = || group.transfers.iter().map(|one| schedule.ends(*one));
                let key = (group.action, ends().collect::<Vec<_>>());
                let is_named = group.transfers.iter().any(|one| routes.of(*one).is_some());
                let links = match known.get(&key).filter(|_| !is_named) {
                    Some(links) => links.clone(),
                    None => {
                        let route = |(transfer, (source, destination)): (&usize, (u32, u32))| {
                            let mut links = Vec::new();
                            match routes.of(*transfer) {
                                Some(named) => links.extend_from_slice(named),
                                None => network.route(source, destination, &mut links),
                            }
                            links
                        };
                        let of_group = group.transfers.iter().zip(ends()).map(route).collect();
                        let links = finder.links(group.action.adds(), of_group);
                        links.ok_or(group.first)?
                    }
                };
                found.routes.assign(group.first, &links.links);
                let route = found.routes.number(group.first);
                found.longest.insert(route, links.longest);
                let others = ends()
                    .skip(1)
                    .map(|(source, destination)| match group.action {
                        Action::Aggregate => source,
                        _ => destination,
                    });
                found.members.insert(group.first, others.collect());
                if !is_named {
                    known.insert(key, links);
                }
            }
        }
        Ok(found)
    }

    /// Returns whether the plan has groups.
    pub(crate) fn exist(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns the further ranks of the group that begins with `transfer`; `None` if no group does.
    pub(crate) fn members(&self, transfer: usize) -> Option<&[u32]> {
        self.members.get(&transfer).map(|ranks| &**ranks)
    }

    /// Returns `network` with the named routes of the plan and the links of the groups.
    pub(crate) fn on<'a>(&'a self, network: &'a dyn Network) -> NetworkWithGroups<'a> {
        NetworkWithGroups {
            network,
            groups: self,
        }
    }
}

/// Returns the groups of a step, in the order of their first transfers.
fn groups(schedule: &Schedule, routes: &NamedRoutes, step: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut messages = StepMessages::of(schedule, routes, step);
    // Index of the group of each message of the step.
    let mut of_message: Vec<Option<usize>> = Vec::new();
    let actions = schedule.columns(step).action();
    for (place, transfer) in schedule.step(step).enumerate() {
        let action = actions[place];
        match messages.earlier(place) {
            Some(message) => {
                if let Some(group) = of_message[message] {
                    groups[group].transfers.push(transfer);
                }
            }
            None => {
                of_message.push(action.is_in_network().then_some(groups.len()));
                if action.is_in_network() {
                    groups.push(Group {
                        first: transfer,
                        action,
                        transfers: vec![transfer],
                    });
                }
            }
        }
    }
    groups
}

/// Network with the named routes of a plan and the links of its groups. For route r, `route` is
/// called with source r and destination [`FABRIC_ROUTE`].
pub(crate) struct NetworkWithGroups<'a> {
    network: &'a dyn Network,
    groups: &'a Groups,
}

impl Network for NetworkWithGroups<'_> {
    fn ranks(&self) -> u32 {
        self.network.ranks()
    }

    fn wiring(&self) -> &Wiring {
        self.network.wiring()
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        self.network.switch_work(vertex)
    }

    fn same_group(&self, first: u32, second: u32) -> bool {
        self.network.same_group(first, second)
    }

    fn longest_part(&self, source: u32, destination: u32) -> Option<usize> {
        match destination {
            FABRIC_ROUTE => self.groups.longest.get(&source).copied(),
            _ => None,
        }
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        match destination {
            FABRIC_ROUTE => links.extend_from_slice(self.groups.routes.links(source)),
            _ => self.network.route(source, destination, links),
        }
    }
}
