//! Assignment of a fibre, a wavelength and a slot to every transfer. Paths are never changed.
//!
//! The transfers of a step are placed one after the other. Each transfer is assigned the earliest
//! slot of the step in which a channel (a wavelength of a fibre) is free on every link of its path
//! and both ranks have free ports. If several channels are free in this slot, the named assignment
//! selects one of them. If all slots are full, the step is extended by a slot.
//!
//! | assignment | choice |
//! |---|---|
//! | `auto` | `optimal` if the step is a one-stage all-to-all, else `first_fit` |
//! | `optimal` | the optimal construction for a one-stage all-to-all; refuses other steps |
//! | `first_fit` | the lowest channel |
//! | `best_fit` | the channel with the shortest free gap around the path |
//!
//! If a direction has an idle link, its paths are placed in the order of their first links, counted
//! from the idle link. The paths are then intervals of a line, and first fit by left end needs
//! exactly as many wavelengths as the most loaded link. Otherwise, the longest path is placed
//! first.

pub mod channel_occupancy;
mod converters;
mod optimal;
mod order;

use std::collections::BTreeMap;

use crate::distinct_wavelengths;
use crate::wdm_ring::route::{Arc, loads};
use crate::{PlacementError, PlacementProblem};
use channel_occupancy::ChannelOccupancy;
use opticoll_base::interrupt;
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{WdmLight, WdmRing};
use opticoll_plan::plan::{Lightpath, NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::Schedule;

/// Rule that selects one of the channels that are free on a path in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// The optimal construction if the step is a one-stage all-to-all, otherwise first fit.
    Auto,
    /// The optimal construction for a one-stage all-to-all. Other steps are refused.
    Optimal,
    /// The free channel with the lowest index.
    FirstFit,
    /// The channel with the shortest gap of free links around the path.
    BestFit,
}

/// Declaration of an assignment.
pub struct AssignmentRecord {
    /// Name, as users type it.
    pub name: &'static str,
    /// Description of the rule in one sentence.
    pub summary: &'static str,
    /// Paper or book that defines the rule.
    pub citation: &'static str,
    /// Rule that selects a channel.
    pub assignment: Assignment,
}

/// Records of all assignments. The first record is the default.
pub const RECORDS: &[AssignmentRecord] = &[
    AssignmentRecord {
        name: "auto",
        summary: "optimal for a step that is a one-stage all-to-all, otherwise first_fit",
        citation: "opticoll",
        assignment: Assignment::Auto,
    },
    AssignmentRecord {
        name: "optimal",
        summary: "Construction for one-stage all-to-all with the number of wavelengths of the load \
                  bound",
        citation: "The bound: Opatrny, Theoretical Computer Science 2003",
        assignment: Assignment::Optimal,
    },
    AssignmentRecord {
        name: "first_fit",
        summary: "The lowest free channel",
        citation: "Zang, Jue and Mukherjee, A Review of Routing and Wavelength Assignment, \
            Optical Networks Magazine 2000",
        assignment: Assignment::FirstFit,
    },
    AssignmentRecord {
        name: "best_fit",
        summary: "The free channel whose unused stretch around the route is shortest",
        citation: "Sathishkumar and Mahalingam, IJCSIT 2015",
        assignment: Assignment::BestFit,
    },
];

impl Assignment {
    /// Default assignment.
    pub const AUTO: Assignment = Assignment::Auto;

    /// Parses the name of an assignment, such as `first_fit`.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn parse(text: &str) -> Result<Assignment, PlacementError> {
        let mut records = RECORDS.iter();
        let record = records.find(|record| same_name(record.name, text));
        let record = record.ok_or_else(|| {
            let hint = suggest(text, RECORDS.iter().map(|record| record.name));
            let sentence = format!(
                "unknown wavelength assignment `{}`{hint}",
                terminal_text(text)
            );
            refused(PlacementProblem::Assignment, sentence)
        })?;
        Ok(record.assignment)
    }
}

/// Routes the transfers of a schedule over the shorter arcs, and assigns channels and slots by the
/// rule named `assignment`, such as `first_fit`.
///
/// # Errors
/// The assignment is unknown, or the ring cannot carry the schedule.
pub(crate) fn place_by_name(
    schedule: Schedule,
    fabric: &Fabric,
    ring: &WdmRing,
    assignment: &str,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let assignment = Assignment::parse(assignment)?;
    let light = super::route::shortest_arcs(&schedule, ring);
    assign(schedule, light, fabric, assignment, algorithm)
}

/// Assigns fibres, wavelengths and slots to the transfers of a schedule. `light`, indexed by
/// transfer, contains the direction of each transfer ([`crate::wdm_ring::route::shortest_arcs`]).
///
/// # Errors
/// A transfer goes from a rank to itself or to a rank that does not exist. A transfer crosses a
/// broken fibre or exceeds the reach of light. A step is not a one-stage all-to-all, although the
/// assignment is [`Assignment::Optimal`].
pub fn assign(
    schedule: Schedule,
    mut light: Vec<Light>,
    fabric: &Fabric,
    assignment: Assignment,
    algorithm: String,
) -> Result<Plan, PlacementError> {
    let ring = fabric.needed::<WdmRing>("a wavelength assignment");
    let ring = ring.map_err(|error| refused(PlacementProblem::Family, error))?;
    let mut steps = StepAssignment {
        schedule: &schedule,
        ring,
        assignment,
        grid: ChannelOccupancy::new(ring),
    };
    let transfers = schedule.len();
    let mut slot = vec![0; transfers];
    let mut step_slots = Vec::with_capacity(schedule.steps());
    let mut first_slot = 0;
    for step in 0..schedule.steps() {
        interrupt::check();
        let slots = steps.assign(step, &mut light, |index, slot_of_step| {
            slot[index] = first_slot + slot_of_step;
        })?;
        step_slots.push(first_slot..first_slot + slots);
        first_slot += slots;
    }
    Ok(Plan {
        fabric: fabric.clone(),
        schedule,
        algorithm,
        size: None,
        light,
        slot,
        step_slots,
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    })
}

fn refused(problem: PlacementProblem, sentence: impl std::fmt::Display) -> PlacementError {
    PlacementError::new(problem, sentence)
}

/// Creates the error for a transfer that must cross a broken fibre.
pub fn broken(transfer: usize, source: u32, destination: u32) -> PlacementError {
    let sentence = format!(
        "transfer {transfer} from rank {source} to {destination} would cross a broken fibre, which \
         its algorithm cannot avoid"
    );
    refused(PlacementProblem::Unfit, sentence)
}

struct StepAssignment<'a> {
    schedule: &'a Schedule,
    ring: &'a WdmRing,
    assignment: Assignment,
    grid: ChannelOccupancy,
}

impl StepAssignment<'_> {
    /// Assigns channels and slots to the transfers of one step. Writes the light of each transfer,
    /// calls `put(transfer, slot of the step)` for each transfer, and returns the number of slots.
    fn assign(
        &mut self,
        step: usize,
        light: &mut [Light],
        mut put: impl FnMut(usize, u32),
    ) -> Result<u32, PlacementError> {
        let (schedule, ring, assignment) = (self.schedule, self.ring, self.assignment);
        let range = schedule.step(step);
        let columns = schedule.columns(step);
        let ends = |offset: usize| (columns.source()[offset], columns.destination()[offset]);
        let arcs = range
            .clone()
            .enumerate()
            .map(|(offset, index)| {
                let (source, destination) = ends(offset);
                let direction = WdmLight::from(light[index]).direction;
                let arc = Arc::new(ring, source, destination, direction).ok_or_else(|| {
                    let sentence = format!(
                        "transfer {index} goes from rank {source} to itself or to a rank that does \
                         not exist"
                    );
                    refused(PlacementProblem::Path, sentence)
                })?;
                if !ring.is_whole(source, destination, direction) {
                    return Err(broken(index, source, destination));
                }
                let span = ring.span(source, destination, direction);
                if !ring.reaches(span) {
                    let sentence = format!(
                        "transfer {index} from rank {source} to {destination} spans {span} links, \
                         but the reach of light is {} (`reach`, or the loss budget); use an \
                         algorithm with shorter lightpaths, such as ring",
                        ring.farthest(0)
                    );
                    return Err(refused(PlacementProblem::Unfit, sentence));
                }
                Ok(arc)
            })
            .collect::<Result<Vec<Arc>, _>>()?;
        let first = range.start;
        let mut put = |offset: usize, slot: u32, channel: u32| {
            light[first + offset] = ring.light(arcs[offset].direction, channel);
            put(first + offset, slot);
        };
        if ring.ports.is_none() && matches!(assignment, Assignment::Auto | Assignment::Optimal) {
            if let Some(channels) = optimal::channels(columns, &arcs, ring) {
                for (offset, channel) in channels.iter().enumerate() {
                    interrupt::check();
                    put(offset, channel / ring.channels(), channel % ring.channels());
                }
                return Ok(channels
                    .iter()
                    .max()
                    .map_or(0, |most| most / ring.channels() + 1));
            }
        }
        if assignment == Assignment::Optimal {
            let sentence = format!(
                "step {step}: `optimal` assigns only one-stage all-to-all steps without a limit on \
                 ports; use first_fit"
            );
            return Err(refused(PlacementProblem::Assignment, sentence));
        }
        let order = order::order(&arcs, ring.ranks);
        if ring.converters {
            return Ok(converters::place(ring, &arcs, &order, ends, put));
        }
        self.grid.clear();
        Ok(place(&mut self.grid, assignment, &arcs, &order, ends, put))
    }
}

/// Assigns slots and channels to the arcs of a step in the given order. `ends` returns the ranks of
/// an arc. Calls `put(index of the arc, slot, channel)`, and returns the number of slots.
fn place(
    grid: &mut ChannelOccupancy,
    assignment: Assignment,
    arcs: &[Arc],
    order: &[usize],
    ends: impl Fn(usize) -> (u32, u32),
    mut put: impl FnMut(usize, u32, u32),
) -> u32 {
    for &offset in order {
        interrupt::check();
        let arc = arcs[offset];
        let (slot, lowest) = grid.earliest(arc, ends(offset));
        let channel = match assignment {
            Assignment::BestFit => {
                let free = grid.free(slot, arc).into_iter();
                let shortest = free.min_by_key(|&channel| grid.gap(slot, channel, arc));
                shortest.unwrap_or(lowest)
            }
            _ => lowest,
        };
        grid.take(slot, channel, arc, ends(offset));
        put(offset, slot, channel);
    }
    grid.slots()
}

/// Returns the result of [`crate::wavelengths_used`] for a ring.
pub(crate) fn wavelengths_used(plan: &Plan, ring: &WdmRing) -> u32 {
    if !ring.converters {
        return distinct_wavelengths(plan);
    }
    if plan.repetition.is_rotation_symmetric() {
        return max_load_of_symmetric_plan(plan, ring);
    }
    if !plan.repetition.is_pipelined() {
        return max_load(plan, ring);
    }
    // All stripes of a pipelined plan are up at the same time.
    let mut simultaneous = plan.without_lightpaths();
    for row in 0..plan.len() {
        for stripe in 0..plan.repetition.stripes {
            let lightpath = plan.copy(row, stripe, 0);
            simultaneous.push(Lightpath {
                slot: 0,
                ..lightpath
            });
        }
    }
    max_load(&simultaneous, ring)
}

/// Returns the maximum number of lightpaths of a rotation-symmetric plan on one fibre of one link
/// in one slot. A lightpath of h links has one copy for each rank, and h of these copies cross each
/// link. The function counts the copies from ranks 0 to h - 1, because their fibres and slots equal
/// those of the h copies that cross any link.
fn max_load_of_symmetric_plan(plan: &Plan, ring: &WdmRing) -> u32 {
    let mut loads = BTreeMap::new();
    for row in 0..plan.len() {
        interrupt::check();
        let transfer = plan.schedule.transfer(row);
        let direction = WdmLight::from(plan.light[row]).direction;
        for source in 0..ring.hops(transfer.source, transfer.destination, direction) {
            let lightpath = plan.copy(row, source, 0);
            let fibre = WdmLight::from(lightpath.light).fibre;
            *loads.entry((lightpath.slot, fibre, direction)).or_insert(0) += 1;
        }
    }
    loads.into_values().max().unwrap_or(0)
}

/// Returns the maximum number of lightpaths on one fibre of one link in one slot.
fn max_load(plan: &Plan, ring: &WdmRing) -> u32 {
    let place = |index: &usize| {
        let light = WdmLight::from(plan.light[*index]);
        (plan.slot[*index], light.fibre, light.direction)
    };
    let mut indices: Vec<usize> = (0..plan.len()).collect();
    indices.sort_unstable_by_key(place);
    let mut greatest = 0;
    for alike in indices.chunk_by(|first, second| place(first) == place(second)) {
        let direction = WdmLight::from(plan.light[alike[0]]).direction;
        let arcs: Vec<Arc> = alike
            .iter()
            .filter_map(|&index| {
                let transfer = plan.schedule.transfer(index);
                Arc::new(ring, transfer.source, transfer.destination, direction)
            })
            .collect();
        let most = loads(direction, &arcs, ring.ranks).into_iter().max();
        greatest = greatest.max(most.unwrap_or(0));
    }
    greatest
}
