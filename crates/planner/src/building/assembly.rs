//! Assembly of plans from parts: steps whose wavelengths are assigned step by step, and plans for
//! smaller rings that are embedded in some of the ranks.
//!
//! The ranks r_0 < r_1 < ... < r_(n-1) of a ring form a smaller ring of n ranks. Link i of the
//! smaller ring consists of the links from r_i to r_(i+1), and these stretches share no link. On
//! the large ring, the lightpath from a to b of a smaller ring runs from r_a to r_b in the same
//! direction. So lightpaths that do not collide on the smaller ring do not collide on the large
//! ring. Several such plans can run at the same time on disjoint channels.

use std::ops::Range;

use crate::building::claim_steps;
use crate::{PlannerError, empty_plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::placement::{Assignment, assign};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};
use rustc_hash::FxHashMap;

pub(crate) type Move = (Transfer, Direction);

/// A lightpath that carries several ranges of chunks. `chunks` lists the ranges in order.
pub(crate) struct SharedMove {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) chunks: Vec<Range<u32>>,
}

impl SharedMove {
    /// Divides `chunks` evenly among `stripes` lightpaths. If there are fewer chunks than
    /// `stripes`, every lightpath carries one chunk.
    pub(crate) fn cut(
        source: u32,
        destination: u32,
        chunks: Vec<Range<u32>>,
        stripes: u32,
    ) -> Vec<SharedMove> {
        let count = chunks.iter().map(|range| range.end - range.start).sum();
        let mut ranges = chunks.into_iter();
        let mut current_range = 0..0;
        let mut take_part = |part: Range<u32>| {
            let mut remaining = part.end - part.start;
            let mut chunks = Vec::new();
            while remaining > 0 {
                if current_range.is_empty() {
                    let Some(next) = ranges.next() else { break };
                    current_range = next;
                }
                let end = current_range.end.min(current_range.start + remaining);
                remaining -= end - current_range.start;
                chunks.extend((end > current_range.start).then_some(current_range.start..end));
                current_range.start = end;
            }
            SharedMove {
                source,
                destination,
                chunks,
            }
        };
        cut(0..count, stripes).map(&mut take_part).collect()
    }

    pub(crate) fn transfers(&self) -> impl Iterator<Item = Transfer> + '_ {
        self.chunks.iter().map(|chunks| Transfer {
            chunk: chunks.start,
            count: chunks.end - chunks.start,
            source: self.source,
            destination: self.destination,
            action: Action::Copy,
        })
    }
}

/// A placed lightpath: (lightpath, its wavelength and direction, its slot).
pub(crate) type Placed<'a> = (&'a SharedMove, Light, u32);

/// Returns the number of slots up to the last slot that `placed` uses.
fn slots(placed: &[Placed<'_>]) -> u32 {
    placed.iter().map(|(.., slot)| slot + 1).max().unwrap_or(0)
}

/// Returns the maximum number of lightpaths that a rank sends in a slot or receives in a slot.
/// `moves` are pairs (lightpath, slot).
pub(crate) fn max_lightpaths_of_rank<'a>(
    moves: impl Iterator<Item = (&'a SharedMove, u32)>,
) -> u32 {
    let mut counts: FxHashMap<(u32, u32, bool), u32> = FxHashMap::default();
    for (moved, slot) in moves {
        interrupt::check();
        *counts.entry((moved.source, slot, true)).or_default() += 1;
        *counts.entry((moved.destination, slot, false)).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Position of a smaller ring's plan in a large ring: ranks, channels and chunks.
pub(crate) struct Embedding {
    /// Rank of the large ring for each rank of the smaller ring, in ascending order.
    pub(crate) members: Vec<u32>,
    /// Channel of the large ring that replaces channel 0 of the smaller ring.
    pub(crate) first_channel: u32,
    /// Boundaries of chunk ranges: chunk i of the smaller plan becomes the chunks
    /// `edges[i]..edges[i + 1]`.
    pub(crate) edges: Vec<u32>,
}

/// The part of a transfer that [`Assembly::append_parts`] copies.
pub(crate) enum PartOf {
    Nothing,
    /// Consecutive chunks of the transfer.
    Range(Transfer),
    Several,
}

/// A plan to which steps are appended.
pub(crate) struct Assembly {
    plan: Plan,
    ring: WdmRing,
}

impl Assembly {
    pub(crate) fn new(ring: &WdmRing, collective: Collective) -> Assembly {
        Assembly {
            ring: ring.clone(),
            plan: empty_plan(Fabric::new(ring.clone()), collective, String::new(), 0),
        }
    }

    /// Appends a step with these transfers, and assigns wavelengths and slots to its lightpaths.
    /// Without transfers, no step is appended.
    pub(crate) fn step(&mut self, moves: &[Move]) -> Result<(), PlannerError> {
        if moves.is_empty() {
            return Ok(());
        }
        let mut schedule = Schedule::new(self.plan.schedule.collective);
        schedule.begin_step();
        schedule.reserve(moves.len());
        for (transfer, _) in moves {
            schedule.push(*transfer);
        }
        let light = moves
            .iter()
            .map(|(_, direction)| WdmLight::towards(*direction));
        let fabric = &self.plan.fabric;
        let (auto, name) = (Assignment::AUTO, String::new());
        let placed = assign(schedule, light.collect(), fabric, auto, name);
        self.append_with_factor(&placed?, 1);
        Ok(())
    }

    /// Appends a step of lightpaths along the line from rank 0 to the last rank. If some rank has
    /// more lightpaths than ports, two assignments of slots are tried, and the assignment with
    /// fewer slots is appended. The first assigns slots to all lightpaths together. The second
    /// divides the lightpaths into groups, and the slots of a group follow the slots of the
    /// previous group. A group consists of the lightpaths with the same value of (source +
    /// destination) modulo the number of groups. So every rank and every link has nearly the same
    /// number of lightpaths in each group.
    pub(crate) fn add_line(&mut self, moves: &[SharedMove]) -> Result<(), PlannerError> {
        let towards = |moved: &SharedMove| match moved.destination > moved.source {
            true => Direction::Clockwise,
            false => Direction::CounterClockwise,
        };
        let directed: Vec<_> = moves.iter().map(|moved| (moved, towards(moved))).collect();
        let placed = self.placed(&directed)?;
        let ports = self.ring.ports.unwrap_or(u32::MAX);
        let shares = max_lightpaths_of_rank(moves.iter().map(|moved| (moved, 0))).div_ceil(ports);
        if shares <= 1 {
            self.add_placed(placed.into_iter());
            return Ok(());
        }
        let mut shared: Vec<Placed<'_>> = Vec::with_capacity(moves.len());
        for share in 0..shares {
            let in_share = |(moved, _): &&(&SharedMove, _)| {
                (moved.source + moved.destination) % shares == share
            };
            let moved: Vec<_> = directed.iter().filter(in_share).copied().collect();
            let before = slots(&shared);
            let moved = self.placed(&moved)?.into_iter();
            shared.extend(moved.map(|(moved, light, slot)| (moved, light, before + slot)));
        }
        let is_shorter = slots(&shared) < slots(&placed);
        self.add_placed(if is_shorter { shared } else { placed }.into_iter());
        Ok(())
    }

    /// Assigns wavelengths and slots to the lightpaths of a step. The first slot of the step is
    /// slot 0.
    pub(crate) fn placed<'a>(
        &self,
        moves: &[(&'a SharedMove, Direction)],
    ) -> Result<Vec<Placed<'a>>, PlannerError> {
        let mut schedule = Schedule::new(self.plan.schedule.collective);
        schedule.begin_step();
        let mut lit = Vec::with_capacity(moves.len());
        let mut light = Vec::with_capacity(moves.len());
        // All transfers of a lightpath have the wavelength and the slot of its first transfer.
        for &(moved, direction) in moves {
            if let Some(first) = moved.transfers().next() {
                schedule.push(first);
                lit.push(moved);
                light.push(WdmLight::towards(direction));
            }
        }
        let auto = Assignment::AUTO;
        let placed = assign(schedule, light, &self.plan.fabric, auto, String::new())?;
        let light = placed.light.into_iter().zip(placed.slot);
        let lit = lit.into_iter().zip(light);
        Ok(lit
            .map(|(moved, (light, slot))| (moved, light, slot))
            .collect())
    }

    /// Appends a step of lightpaths that already have wavelengths and slots. The first slot of the
    /// step is slot 0. If `moves` is empty, no step is appended.
    pub(crate) fn add_placed<'a>(&mut self, moves: impl Iterator<Item = Placed<'a>>) {
        let before = self.plan.slots();
        let mut slots = 0;
        for (moved, light, slot) in moves {
            interrupt::check();
            if slots == 0 {
                self.plan.schedule.begin_step();
            }
            slots = slots.max(slot + 1);
            for transfer in moved.transfers() {
                self.plan.schedule.push(transfer);
                self.plan.light.push(light);
                self.plan.slot.push(before + slot);
            }
        }
        if slots > 0 {
            self.plan.step_slots.push(before..before + slots);
        }
    }

    /// Appends the steps of `part`, a plan for the same fabric. Each chunk of `part` becomes
    /// `factor` chunks.
    pub(crate) fn append_with_factor(&mut self, part: &Plan, factor: u32) {
        let before = self.plan.slots();
        let plan = &mut self.plan;
        for step in 0..part.schedule.steps() {
            interrupt::check();
            plan.schedule.begin_step();
            for transfer in part.schedule.columns(step).transfers() {
                plan.schedule.push(Transfer {
                    chunk: transfer.chunk * factor,
                    count: transfer.count * factor,
                    ..transfer
                });
            }
        }
        plan.light.extend_from_slice(&part.light);
        plan.slot.extend(part.slot.iter().map(|slot| before + slot));
        let ranges = part.step_slots.iter();
        plan.step_slots
            .extend(ranges.map(|range| before + range.start..before + range.end));
    }

    /// Appends the steps of `whole`, a plan for the same fabric. Of each transfer, only the chunks
    /// that `part_of` returns are sent. If `part_of` returns `PartOf::Several` for a transfer, the
    /// function stops with some steps appended and returns false.
    pub(crate) fn append_parts(
        &mut self,
        whole: &Plan,
        part_of: impl Fn(Transfer) -> PartOf,
    ) -> bool {
        let before = self.plan.slots();
        let plan = &mut self.plan;
        for step in 0..whole.schedule.steps() {
            interrupt::check();
            plan.schedule.begin_step();
            let transfers = whole.schedule.columns(step).transfers();
            for (index, transfer) in whole.schedule.step(step).zip(transfers) {
                match part_of(transfer) {
                    PartOf::Nothing => {}
                    PartOf::Several => return false,
                    PartOf::Range(part) => {
                        plan.schedule.push(part);
                        plan.light.push(whole.light[index]);
                        plan.slot.push(before + whole.slot[index]);
                    }
                }
            }
        }
        let ranges = whole.step_slots.iter();
        plan.step_slots
            .extend(ranges.map(|range| before + range.start..before + range.end));
        true
    }

    /// Appends the steps of `inner`, a plan for a smaller ring, at several positions at the same
    /// time.
    pub(crate) fn embed(&mut self, inner: &Plan, places: &[Embedding]) {
        let before = self.plan.slots();
        for (step, slots) in inner.step_slots.iter().enumerate() {
            self.plan.schedule.begin_step();
            self.plan
                .step_slots
                .push(before + slots.start..before + slots.end);
            for place in places {
                for index in inner.schedule.step(step) {
                    interrupt::check();
                    self.embed_transfer(inner, index, place, before);
                }
            }
        }
    }

    fn embed_transfer(&mut self, inner: &Plan, index: usize, place: &Embedding, before: u32) {
        let transfer = inner.schedule.transfer(index);
        let light = WdmLight::from(inner.light[index]);
        // A smaller ring has a single fibre.
        let channel = place.first_channel + u32::from(light.wavelength);
        let first = place.edges[transfer.chunk as usize];
        let end = place.edges[(transfer.chunk + transfer.count) as usize];
        self.plan.schedule.push(Transfer {
            chunk: first,
            count: end - first,
            source: place.members[transfer.source as usize],
            destination: place.members[transfer.destination as usize],
            action: transfer.action,
        });
        self.plan
            .light
            .push(self.ring.light(light.direction, channel));
        self.plan.slot.push(before + inner.slot[index]);
    }

    pub(crate) fn finish(mut self, algorithm: String) -> Plan {
        self.plan.algorithm = algorithm;
        self.plan.schedule.claims = claim_steps(&self.plan.schedule);
        self.plan
    }
}

/// Returns the smaller ring that `ranks` ranks of a ring form with `channels` of its channels. The
/// smaller ring has no converters, because a plan with fixed wavelengths is also valid on a ring
/// with converters.
pub(crate) fn smaller(ring: &WdmRing, ranks: u32, channels: u32) -> WdmRing {
    WdmRing {
        ranks,
        nodes: ranks,
        node_of_rank: Vec::new(),
        wavelengths: channels.min(u32::from(CONVERTED) - 1),
        fibres: 1,
        converters: false,
        dead: Vec::new(),
        ..ring.clone()
    }
}

/// Divides a range into `parts` consecutive ranges of nearly equal length, or into single elements
/// if the range has fewer than `parts` elements.
pub(crate) fn cut(range: Range<u32>, parts: u32) -> impl Iterator<Item = Range<u32>> {
    let length = u64::from(range.end - range.start);
    let parts = u64::from(parts).min(length);
    let edge = move |part: u64| range.start + (length * part / parts.max(1)) as u32;
    (0..parts).map(move |part| edge(part)..edge(part + 1))
}
