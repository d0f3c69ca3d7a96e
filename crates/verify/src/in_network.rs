//! Check of multicasts and aggregations: switches do only what the fabric says that they do.
//!
//! The transfers of a step with the action `multicast`, the same source and the same chunks are one
//! multicast. Its links are the links of its routes, and a link from its first switch back to the
//! source, because the source belongs to the group of receivers. A multicast is valid if
//!
//! - all routes leave the source over the same link, and a link leads back to the source,
//! - every other link of the routes has one predecessor, so that it carries the chunks once,
//! - every vertex at which routes branch, and the end of the first link, is a switch that
//!   multicasts,
//! - no route passes a rank at which another route ends.
//!
//! The transfers of a step with the action `aggregate`, the same destination and the same chunks
//! are one aggregation. It is valid if the same holds for the reversed links and for switches that
//! add.

use rustc_hash::{FxHashMap, FxHashSet};

use super::form::Admitted;
use super::report::{Report, transfer_violation};
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Action;

/// Marker of the rank at which all routes of a group start, in place of a link.
const RANK: u32 = u32::MAX;

/// Reports multicasts and aggregations that the fabric cannot carry out.
pub(super) fn check(plan: &Plan, admitted: &Admitted, report: &mut Report) {
    if !plan.schedule.is_in_network() {
        return;
    }
    for step in 0..plan.schedule.steps() {
        let moved = admitted.moved(plan, step);
        let mut groups: Vec<((Action, u32, u32, u32), usize)> = moved
            .filter_map(|(index, moved)| {
                let hub = match moved.action {
                    Action::Copy | Action::Reduce => return None,
                    Action::Multicast => moved.source,
                    Action::Aggregate => moved.destination,
                };
                Some(((moved.action, hub, moved.chunk, moved.count), index))
            })
            .collect();
        groups.sort_unstable();
        for group in groups.chunk_by(|one, next| one.0 == next.0) {
            interrupt::check();
            let (action, hub, ..) = group[0].0;
            let fault = match plan.fabric.network() {
                None => {
                    let family = plan.fabric.family();
                    let problem = format!("needs switches, but its fabric {family} has none");
                    Some((group[0].1, problem))
                }
                Some(network) => Group::new(network, action == Action::Aggregate).fault(
                    plan,
                    hub,
                    group.iter().map(|(_, transfer)| *transfer),
                ),
            };
            if let Some((transfer, problem)) = fault {
                let (kind, name) = match action {
                    Action::Aggregate => (ViolationKind::Aggregation, "an aggregation"),
                    _ => (ViolationKind::Multicast, "a multicast"),
                };
                let problem = format!("belongs to {name} that {problem}");
                report.add(kind, || Violation {
                    rank: Some(hub),
                    ..transfer_violation(plan, kind, plan.slot[transfer], transfer, &problem)
                });
            }
        }
    }
}

/// Links of a multicast, or reversed links of an aggregation.
struct Group<'a> {
    network: &'a dyn Network,
    adds: bool,
    /// Link before each link of the routes, and a link after each link.
    before: FxHashMap<u32, u32>,
    after: FxHashMap<u32, u32>,
    /// Last links of the routes.
    last: FxHashSet<u32>,
}

impl Group<'_> {
    fn new(network: &dyn Network, adds: bool) -> Group<'_> {
        Group {
            network,
            adds,
            before: FxHashMap::default(),
            after: FxHashMap::default(),
            last: FxHashSet::default(),
        }
    }

    /// Returns the first fault of the group, and the transfer whose route shows it.
    fn fault(
        &mut self,
        plan: &Plan,
        hub: u32,
        transfers: impl Iterator<Item = usize>,
    ) -> Option<(usize, String)> {
        let mut route = Vec::new();
        for transfer in transfers {
            interrupt::check();
            route.clear();
            match plan.routes.of(transfer) {
                Some(links) => route.extend_from_slice(links),
                None => {
                    let (source, destination) = plan.schedule.ends(transfer);
                    self.network.route(source, destination, &mut route);
                }
            }
            if self.adds {
                route.reverse();
            }
            if let Some(problem) = self.add(hub, &route) {
                return Some((transfer, problem));
            }
        }
        None
    }

    /// Adds a route, which starts at `hub`. Returns the rule that the group breaks from then on.
    fn add(&mut self, hub: u32, route: &[u32]) -> Option<String> {
        let name = |link: u32| format!("link {link} ({})", self.network.link_name(link));
        let mut previous = RANK;
        for &link in route {
            // Routes that are no paths are reported by another check.
            let (near, far) = self.ends(link)?;
            if *self.before.entry(link).or_insert(previous) != previous {
                return Some(format!("reaches {} over two links", name(link)));
            }
            let branches = *self.after.entry(previous).or_insert(link) != link;
            if previous == RANK && branches {
                return Some(format!(
                    "uses several links of {}, and a rank neither adds nor multicasts",
                    self.network.vertex_name(near)
                ));
            }
            if previous == RANK {
                if !self.is_able(far) {
                    return Some(self.unable(far));
                }
                if !self.leads_back(hub, far) {
                    let [near, far] = [near, far].map(|vertex| self.network.vertex_name(vertex));
                    return Some(format!("has no link for the part of {near} at {far}"));
                }
            }
            if branches && !self.is_able(near) {
                return Some(self.unable(near));
            }
            previous = link;
        }
        self.last.insert(previous);
        let mut passed = self
            .last
            .iter()
            .filter(|link| self.after.contains_key(link));
        let (_, rank) = self.ends(*passed.next()?)?;
        Some(format!(
            "passes {} on its way to others, and a rank neither adds nor multicasts",
            self.network.vertex_name(rank)
        ))
    }

    /// Returns the vertices at which the group enters and leaves `link`.
    fn ends(&self, link: u32) -> Option<(u32, u32)> {
        let (from, to) = self.network.ends(link)?;
        Some(if self.adds { (to, from) } else { (from, to) })
    }

    fn is_able(&self, vertex: u32) -> bool {
        let ability = self.network.switch_work(vertex);
        match self.adds {
            true => ability.adds(),
            false => ability.multicasts(),
        }
    }

    fn unable(&self, vertex: u32) -> String {
        let vertex = self.network.vertex_name(vertex);
        match self.adds {
            true => format!("needs sums of {vertex}, which does not add"),
            false => format!("needs copies of {vertex}, which does not multicast"),
        }
    }

    /// Returns whether a link leads from `switch` back to `hub` (for an aggregation, from `hub`).
    fn leads_back(&self, hub: u32, switch: u32) -> bool {
        let back = if self.adds {
            (hub, switch)
        } else {
            (switch, hub)
        };
        let mut links = 0..self.network.links().len() as u32;
        links.any(|link| self.network.ends(link) == Some(back))
    }
}
