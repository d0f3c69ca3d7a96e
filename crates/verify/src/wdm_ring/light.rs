//! Check that light reaches its destination: broken links, dead wavelengths, loss, light trees.
//!
//! With `multicast=drop_and_continue`, ranks can take a share of passing light. Copies of the same
//! chunks that leave one rank in one slot, on one channel of one direction, are then a single
//! lightpath to the farthest destination: a *light tree*. The other copies *ride* on this
//! lightpath: they occupy no link and no transmitter of their own. A light tree carries only these
//! chunks.

use super::super::form::Admitted;
use super::super::order::AdmittedOrder;
use super::super::report::{Report, transfer_violation};
use super::super::{Violation, ViolationKind};
use super::{LitLinks, link_at, link_name};
use opticoll_base::decibels::Decibels;
use opticoll_base::interrupt;
use opticoll_base::names::plural;
use opticoll_fabric::fabric::loss::{LossBudget, Place};
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};
use opticoll_plan::plan::Plan;

/// Role of a transfer in a light tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    /// Transfer that belongs to no light tree.
    NoTree,
    /// Transfer to the farthest destination of a light tree, whose lightpath the tree uses.
    Farthest,
    /// Transfer to a nearer destination, which rides on the lightpath to the farthest destination.
    Rides,
}

/// Role of each transfer in light trees, indexed by transfer. Empty if ranks cannot share light.
pub(super) struct Riders(Vec<Branch>);

impl Riders {
    pub(super) fn rides(&self, transfer: usize) -> bool {
        self.0.get(transfer) == Some(&Branch::Rides)
    }

    /// Returns whether other transfers ride on the lightpath of `transfer`.
    pub(super) fn carries_riders(&self, transfer: usize) -> bool {
        self.0.get(transfer) == Some(&Branch::Farthest)
    }
}

/// Checks every lightpath on its own, and returns the roles of all transfers in light trees.
pub(super) fn check(
    plan: &Plan,
    ring: &WdmRing,
    admitted: &Admitted,
    order: &AdmittedOrder,
    report: &mut Report,
) -> Riders {
    let mut riders = Riders(Vec::new());
    if !ring.cuts.is_empty() || !ring.dead.is_empty() {
        for transfer in admitted.transfers().filter(|&path| admitted.is_lit(path)) {
            interrupt::check();
            cut(plan, ring, transfer, report);
            dead(plan, ring, transfer, report);
        }
    }
    if ring.multicast {
        riders.0.resize(admitted.transfers, Branch::NoTree);
        for slot in order.slots(plan) {
            interrupt::check();
            let transfers = slot.map(|position| order.at(position));
            let lit = transfers.filter(|&path| admitted.is_lit(path));
            trees(plan, ring, lit.collect(), &mut riders.0, report);
        }
    } else if ring.reach.is_some() || ring.budget.is_some() {
        for transfer in admitted.transfers().filter(|&path| admitted.is_lit(path)) {
            interrupt::check();
            check_light(plan, ring, transfer, 0, report);
        }
    }
    riders
}

/// Reports the first broken link that the lightpath of `transfer` crosses.
fn cut(plan: &Plan, ring: &WdmRing, transfer: usize, report: &mut Report) {
    let direction = WdmLight::from(plan.light[transfer]).direction;
    let arc = LitLinks::new(plan, ring, transfer);
    let crossed = ring.cuts.iter().find_map(|link| {
        let start = match direction {
            Direction::Clockwise => link.position,
            Direction::CounterClockwise if link.position + 1 == ring.nodes => 0,
            Direction::CounterClockwise => link.position + 1,
        };
        let is_crossed = link.direction == direction && arc.contains(start, ring.nodes);
        is_crossed.then_some(start)
    });
    let Some(start) = crossed else { return };
    let kind = ViolationKind::BrokenFibre;
    report.add(kind, || {
        let link = link_at(plan, transfer, start);
        let slot = plan.slot[transfer];
        let problem = format!("crosses the {}, which is broken", link_name(link, ring));
        Violation {
            link: Some(link),
            ..transfer_violation(plan, kind, slot, transfer, &problem)
        }
    });
}

/// Reports a lightpath on a dead wavelength of its fibre.
fn dead(plan: &Plan, ring: &WdmRing, transfer: usize, report: &mut Report) {
    let WdmLight {
        fibre, wavelength, ..
    } = WdmLight::from(plan.light[transfer]);
    let is_dead = ring
        .dead
        .iter()
        .any(|dead| dead.fibre == u32::from(fibre) && dead.wavelength == u32::from(wavelength));
    if !is_dead {
        return;
    }
    let kind = ViolationKind::DeadWavelength;
    report.add(kind, || {
        let slot = plan.slot[transfer];
        let problem = format!("is on wavelength {wavelength} of fibre {fibre}, which is dead");
        Violation {
            wavelength: Some(wavelength),
            ..transfer_violation(plan, kind, slot, transfer, &problem)
        }
    });
}

/// Groups the transfers of a slot into light trees, and checks that light reaches each destination.
fn trees(
    plan: &Plan,
    ring: &WdmRing,
    mut transfers: Vec<usize>,
    branches: &mut [Branch],
    report: &mut Report,
) {
    let links = |transfer: usize| LitLinks::new(plan, ring, transfer).links;
    let tree = |transfer: usize| {
        let sent = plan.schedule.transfer(transfer);
        let light = plan.light[transfer];
        (light, sent.source, sent.chunk, sent.count)
    };
    transfers.sort_by_cached_key(|&transfer| (tree(transfer), links(transfer), transfer));
    for tree_transfers in transfers.chunk_by(|&one, &other| tree(one) == tree(other)) {
        let (mut drops, mut nearer) = (0, None);
        for &transfer in tree_transfers {
            interrupt::check();
            let length = links(transfer);
            drops += u32::from(nearer.is_some_and(|nearer| nearer < length));
            nearer = Some(length);
            check_light(plan, ring, transfer, drops, report);
        }
        if let [riders @ .., farthest] = tree_transfers
            && !riders.is_empty()
        {
            riders
                .iter()
                .for_each(|&rider| branches[rider] = Branch::Rides);
            branches[*farthest] = Branch::Farthest;
        }
    }
}

/// Reports a lightpath that exceeds the reach, or that is too weak after `drops` ranks have taken a
/// share of its light.
fn check_light(plan: &Plan, ring: &WdmRing, transfer: usize, drops: u32, report: &mut Report) {
    let links = LitLinks::new(plan, ring, transfer).links;
    let Some(problem) = too_far(ring, links.into(), drops) else {
        return;
    };
    let kind = ViolationKind::Reach;
    let slot = plan.slot[transfer];
    report.add(kind, || {
        transfer_violation(plan, kind, slot, transfer, &problem)
    });
}

/// Returns the reason why light does not reach its destination after `links` links and `drops`
/// ranks that have taken a share of it. `None` if light reaches the destination.
pub(crate) fn too_far(ring: &WdmRing, links: u64, drops: u32) -> Option<String> {
    if let Some(reach) = ring.reach.filter(|&reach| links > reach.into()) {
        return Some(format!(
            "spans {links} links, but the reach of light is {}",
            plural(reach as usize, "link")
        ));
    }
    let power_margin = power_margin(ring, ring.budget.as_ref()?, links, drops);
    (power_margin < 0).then(|| {
        format!(
            "spans {links} links, after which the received power is {} dB below the sensitivity",
            Decibels::from_millionths(-power_margin)
        )
    })
}

/// Returns the power margin, in millionths of a dB, after `links` links and after `drops` ranks
/// have taken a share of the light.
fn power_margin(ring: &WdmRing, budget: &LossBudget, links: u64, drops: u32) -> i64 {
    let passed = i128::from(links.saturating_sub(1)) * i128::from(ring.resonators);
    let lost = [
        (Place::Fixed, 1),
        (Place::Link, links.into()),
        (Place::Through, passed),
        (Place::Split, drops.into()),
        (Place::Drop, 1),
    ];
    let lost = lost.into_iter().map(|(place, count): (Place, i128)| {
        count * i128::from(budget.losses[place as usize].millionths())
    });
    let power = budget.launch_power.millionths() - budget.sensitivity.millionths();
    i64::try_from(i128::from(power) - lost.sum::<i128>()).unwrap_or(i64::MIN + 1)
}
