//! Groups of ranks that share the plan of a collective.
//!
//! Two groups of equally many ranks are **alike** if the links of one group can be renamed to those
//! of the other, such that the route from member i to member j becomes the route from member i to
//! member j, and equal links have equal rates, latencies and rules for sharing. A plan that names
//! no routes then puts the same flows on the same links in both groups, so it takes the same time
//! in each of them, if the group is alone.

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::{Link, Network};

/// Routes between the members of a group. The first list has, for each route, its number of links
/// and then the links, numbered in the order of their first use. The second list has these links.
type RouteShape = (Vec<u32>, Vec<Link>);

/// Classes of groups that are alike, numbered in the order of their first groups.
#[derive(Debug, Default)]
pub(super) struct AlikeGroups {
    classes: FxHashMap<RouteShape, u32>,
    of_members: FxHashMap<Vec<u32>, u32>,
}

impl AlikeGroups {
    /// Returns the class of the group `members`, in ascending order. Without a network, and for all
    /// ranks of the fabric, the class depends on the number of members only.
    pub(super) fn class(&mut self, fabric: Option<&Fabric>, members: &[u32]) -> u32 {
        let network = fabric.and_then(|fabric| fabric.network());
        let Some(network) = network.filter(|network| network.ranks() as usize > members.len())
        else {
            return u32::MAX;
        };
        if let Some(known) = self.of_members.get(members) {
            return *known;
        }
        let next = self.classes.len() as u32;
        let shape = shape(network, members);
        let class = *self.classes.entry(shape).or_insert(next);
        self.of_members.insert(members.to_vec(), class);
        class
    }
}

fn shape(network: &dyn Network, members: &[u32]) -> RouteShape {
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    let (mut uses, mut links, mut route) = (Vec::new(), Vec::new(), Vec::new());
    for &source in members {
        interrupt::check();
        for &destination in members.iter().filter(|&&other| other != source) {
            route.clear();
            network.route(source, destination, &mut route);
            uses.push(route.len() as u32);
            for link in &route {
                let next = links.len() as u32;
                let number = *numbers.entry(*link).or_insert(next);
                if number == next {
                    links.push(network.links()[*link as usize]);
                }
                uses.push(number);
            }
        }
    }
    (uses, links)
}
