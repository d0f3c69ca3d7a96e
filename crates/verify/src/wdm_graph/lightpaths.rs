//! Lightpaths of a slot: the transfers that share light.
//!
//! Transfers with the same route and the same light are one lightpath, which carries their chunks
//! one after another. If converters choose the wavelengths of a transfer (`*`), the transfer is a
//! lightpath of its own.
//!
//! With `multicast=drop_and_continue`, several transfers of the same chunks from one rank, on one
//! light and over the same first link, are a *light tree*, which shares its light with no other
//! transfer.

use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight};
use opticoll_plan::plan::Plan;

/// Lightpath of a slot.
pub(super) struct Lightpath<'a> {
    /// Transfers that share the lightpath, in the order of the plan.
    pub(super) transfers: &'a [usize],
    /// True if the lightpath is a light tree; otherwise all transfers have the same route.
    pub(super) is_tree: bool,
}

impl Lightpath<'_> {
    /// Returns the first transfer whose route contains `link`, or else the first transfer.
    pub(super) fn transfer_on(&self, plan: &Plan, link: u32) -> usize {
        let crosses = |&&transfer: &&usize| {
            let route = plan.routes.of(transfer);
            route.is_some_and(|route| route.contains(&link))
        };
        *self
            .transfers
            .iter()
            .find(crosses)
            .unwrap_or(&self.transfers[0])
    }
}

/// Search for the lightpaths of each slot. Each slot uses the memory of the previous one.
pub(super) struct SlotLightpaths<'a> {
    plan: &'a Plan,
    has_trees: bool,
    /// Transfers of the slot, lightpath by lightpath.
    transfers: Vec<usize>,
    /// Buffer for the transfers that may belong to light trees.
    branches: Vec<usize>,
}

impl<'a> SlotLightpaths<'a> {
    pub(super) fn new(plan: &'a Plan, has_trees: bool) -> SlotLightpaths<'a> {
        SlotLightpaths {
            plan,
            has_trees,
            transfers: Vec::new(),
            branches: Vec::new(),
        }
    }

    /// Returns the lightpaths of the transfers of a slot, in the order of their first transfers.
    /// `is_lit` returns whether the light of a transfer exists; other transfers form no tree.
    pub(super) fn of(
        &mut self,
        slot: impl Iterator<Item = usize>,
        is_lit: impl Fn(usize) -> bool,
    ) -> Vec<Lightpath<'_>> {
        let plan = self.plan;
        self.transfers.clear();
        self.branches.clear();
        for transfer in slot {
            interrupt::check();
            let may_branch = self.has_trees && is_lit(transfer);
            match may_branch
                && plan
                    .routes
                    .of(transfer)
                    .is_some_and(|route| !route.is_empty())
            {
                true => self.branches.push(transfer),
                false => self.transfers.push(transfer),
            }
        }
        let tree = |transfer: usize| {
            let sent = plan.schedule.transfer(transfer);
            let first_link = plan
                .routes
                .of(transfer)
                .and_then(|route| route.first().copied());
            let light = plan.light[transfer];
            (light, sent.source, first_link, sent.chunk, sent.count)
        };
        self.branches
            .sort_by_cached_key(|&transfer| (tree(transfer), transfer));
        let mut of_trees = Vec::new();
        for transfers in self
            .branches
            .chunk_by(|&one, &other| tree(one) == tree(other))
        {
            match transfers {
                [single] => self.transfers.push(*single),
                _ => of_trees.push(transfers),
            }
        }
        let path = |transfer: usize| {
            let light = plan.light[transfer];
            let is_converted = GraphLight::from(light).wavelength == CONVERTED;
            let ends = plan.schedule.ends(transfer);
            (
                plan.routes.number(transfer),
                ends,
                light,
                is_converted.then_some(transfer),
            )
        };
        self.transfers
            .sort_by_cached_key(|&transfer| (path(transfer), transfer));
        let paths = self
            .transfers
            .chunk_by(|&one, &other| path(one) == path(other));
        let paths = paths.map(|transfers| Lightpath {
            transfers,
            is_tree: false,
        });
        let trees = of_trees.into_iter().map(|transfers| Lightpath {
            transfers,
            is_tree: true,
        });
        let mut lightpaths: Vec<Lightpath<'_>> = paths.chain(trees).collect();
        lightpaths.sort_by_key(|lightpath| lightpath.transfers[0]);
        lightpaths
    }
}
