//! Rules of a `wdm_ring`: light reaches its destination (`light`), and every channel and every port
//! is used by at most one lightpath at a time (`channels`).
//!
//! Links join neighbouring nodes. Light passes through nodes without a rank.

mod channels;
mod light;

pub(super) use channels::keep_one_per_lightpath;
pub(super) use light::too_far;

use std::ops::Range;

use super::RingLink;
use super::ViolationKind;
use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Fault, Report, each, up_to};
use super::rules::Rules;
use opticoll_fabric::fabric::{Light, Named};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::plan::Plan;

pub(super) const RULES: Rules = Rules {
    family: WdmRing::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(ring) => each(|light| wrong_light(ring, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 24,
};

/// Returns the faults of `light`: an unknown fibre or wavelength, or an impossible conversion.
pub(super) fn wrong_light(ring: &WdmRing, light: Light) -> Vec<Fault> {
    let WdmLight {
        fibre, wavelength, ..
    } = WdmLight::from(light);
    let mut faults = Vec::new();
    if u32::from(fibre) >= ring.fibres {
        let problem = format!("is on fibre {fibre}, but fibres are {}", up_to(ring.fibres));
        faults.push((ViolationKind::FibreRange, problem));
    }
    if wavelength == CONVERTED {
        if !ring.converters {
            let problem = "changes its wavelength, but the fabric has no converters".into();
            faults.push((ViolationKind::Conversion, problem));
        }
    } else if u32::from(wavelength) >= ring.wavelengths {
        let wavelengths = up_to(ring.wavelengths);
        let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
        faults.push((ViolationKind::WavelengthRange, problem));
    }
    faults
}

fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(ring) = plan.fabric.downcast::<WdmRing>() else {
        return report.unchecked(plan.fabric.family());
    };
    let riders = light::check(plan, ring, admitted, order, report);
    channels::check(plan, ring, admitted, order, &riders, report);
}

/// Links that the lightpath of a transfer occupies. The links are numbered clockwise by their first
/// node.
#[derive(Clone, Copy, Default)]
struct LitLinks {
    first: u32,
    /// Number of links, counted clockwise from link `first`.
    links: u32,
    transfer: u32,
}

impl LitLinks {
    fn new(plan: &Plan, ring: &WdmRing, transfer: usize) -> LitLinks {
        let ranks = ring.nodes;
        let (source, destination) = plan.schedule.ends(transfer);
        let (source, destination) = match ring.node_of_rank.is_empty() {
            true => (source, destination),
            false => (
                ring.node_of_rank[source as usize],
                ring.node_of_rank[destination as usize],
            ),
        };
        let distance = |from: u32, to: u32| {
            if to >= from {
                to - from
            } else {
                ranks - (from - to)
            }
        };
        let (first, links) = match WdmLight::from(plan.light[transfer]).direction {
            Direction::Clockwise => (source, distance(source, destination)),
            Direction::CounterClockwise => {
                let next_node = destination + 1;
                (
                    if next_node == ranks { 0 } else { next_node },
                    distance(destination, source),
                )
            }
        };
        LitLinks {
            first,
            links,
            transfer: transfer as u32,
        }
    }

    /// Returns the links as one range, or as two ranges if they include the link from the last to
    /// the first node. `ranks` is the number of nodes.
    fn ranges(&self, ranks: u32) -> [Range<u32>; 2] {
        let to_end = ranks - self.first;
        if self.links <= to_end {
            [self.first..self.first + self.links, 0..0]
        } else {
            [self.first..ranks, 0..self.links - to_end]
        }
    }

    fn contains(&self, link: u32, ranks: u32) -> bool {
        self.ranges(ranks).iter().any(|range| range.contains(&link))
    }

    /// Returns whether two lightpaths of the same direction occupy the same links.
    fn occupies_same_links(&self, other: &LitLinks) -> bool {
        (self.first, self.links) == (other.first, other.links)
    }

    /// Returns the first link that both lightpaths occupy.
    fn shared(&self, other: &LitLinks, ranks: u32) -> Option<u32> {
        if self.contains(other.first, ranks) {
            Some(other.first)
        } else if other.contains(self.first, ranks) {
            Some(self.first)
        } else {
            None
        }
    }
}

/// Returns the link that starts at `rank`, in the direction and fibre of the lightpath of
/// `transfer`.
fn link_at(plan: &Plan, transfer: usize, rank: u32) -> RingLink {
    let WdmLight {
        direction, fibre, ..
    } = WdmLight::from(plan.light[transfer]);
    RingLink {
        rank,
        direction,
        fibre,
    }
}

/// Returns the name of a link, such as `clockwise fibre 0 between ranks 2 and 3`. The name has
/// nodes in place of ranks if some nodes have no rank.
fn link_name(link: RingLink, ring: &WdmRing) -> String {
    let ranks = ring.nodes;
    let ends = match ring.node_of_rank.is_empty() {
        true => "ranks",
        false => "nodes",
    };
    let (name, next) = match link.direction {
        Direction::Clockwise => (
            "clockwise",
            if link.rank + 1 == ranks {
                0
            } else {
                link.rank + 1
            },
        ),
        Direction::CounterClockwise => (
            "counter-clockwise",
            if link.rank == 0 {
                ranks - 1
            } else {
                link.rank - 1
            },
        ),
    };
    format!(
        "{name} fibre {} between {ends} {} and {next}",
        link.fibre, link.rank
    )
}
