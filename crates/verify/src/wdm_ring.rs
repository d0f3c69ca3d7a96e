//! Rules of a `wdm_ring`: light reaches its destination (`light`), and every channel and port is
//! used by one lightpath at a time (`channels`).
//!
//! All links are those between nodes: light passes the nodes of ranks that take no part.

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

/// Rules of rings.
pub(super) const RULES: Rules = Rules {
    family: WdmRing::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(ring) => each(|light| wrong_light(ring, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 24,
};

/// Returns the faults of a fibre or wavelength that does not exist, or of an impossible conversion.
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

/// Checks the lightpaths of a plan on a ring of wavelengths.
fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(ring) = plan.fabric.downcast::<WdmRing>() else {
        return report.unchecked(plan.fabric.family());
    };
    let riders = light::check(plan, ring, admitted, order, report);
    channels::check(plan, ring, admitted, order, &riders, report);
}

/// Links that a lightpath occupies: `links` of them, from `first` upwards around the ring.
#[derive(Clone, Copy, Default)]
struct LitLinks {
    first: u32,
    /// Number of links.
    links: u32,
    transfer: u32,
}

impl LitLinks {
    /// Returns the links of a transfer's lightpath.
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
        let apart = |from: u32, to: u32| {
            if to >= from {
                to - from
            } else {
                ranks - (from - to)
            }
        };
        let (first, links) = match WdmLight::from(plan.light[transfer]).direction {
            Direction::Clockwise => (source, apart(source, destination)),
            Direction::CounterClockwise => {
                let above = destination + 1;
                (
                    if above == ranks { 0 } else { above },
                    apart(destination, source),
                )
            }
        };
        LitLinks {
            first,
            links,
            transfer: transfer as u32,
        }
    }

    /// Returns the links as one or two ranges.
    fn ranges(&self, ranks: u32) -> [Range<u32>; 2] {
        let to_end = ranks - self.first;
        if self.links <= to_end {
            [self.first..self.first + self.links, 0..0]
        } else {
            [self.first..ranks, 0..self.links - to_end]
        }
    }

    /// Returns whether a link, given by the rank at which it starts, is among the links.
    fn contains(&self, link: u32, ranks: u32) -> bool {
        self.ranges(ranks).iter().any(|range| range.contains(&link))
    }

    /// Returns whether two lightpaths of a direction occupy the same links.
    fn is_on(&self, other: &LitLinks) -> bool {
        (self.first, self.links) == (other.first, other.links)
    }

    /// Returns the first link that two lightpaths share.
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

/// Returns the link of a transfer's fibre that starts at a rank.
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

/// Returns the name of a link, such as `clockwise fibre 0 between ranks 2 and 3`; the ends are
/// nodes if not every node has a rank.
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
