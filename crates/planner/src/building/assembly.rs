//! Plans put together from parts: steps that are given wavelengths one by one, and plans for smaller
//! rings laid over some of the ranks.
//!
//! Ranks r_0 < r_1 < ... < r_(n-1) of a ring form a ring of n themselves: its link i consists of the
//! links from r_i to r_(i+1), and these stretches share no link. So lightpaths that do not collide
//! on the ring of n do not collide when each runs from r_a to r_b the same way around. Several
//! such plans run side by side on channels of their own.

use std::ops::Range;

use crate::PlannerError;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_placement::wdm_ring::placement::{Assignment, assign};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};
use rustc_hash::FxHashMap;

/// A transfer with its way around.
pub(crate) type Move = (Transfer, Direction);

/// What goes over one lightpath: ranges of chunks, one after the other.
pub(crate) struct SharedMove {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) chunks: Vec<Range<u32>>,
}

impl SharedMove {
    /// Ranges of chunks over `stripes` lightpaths, nearly as many chunks over each; over fewer where there are
    /// fewer chunks.
    pub(crate) fn cut(
        source: u32,
        destination: u32,
        chunks: Vec<Range<u32>>,
        stripes: u32,
    ) -> Vec<SharedMove> {
        let count = chunks.iter().map(|range| range.end - range.start).sum();
        let mut ranges = chunks.into_iter();
        let mut rest = 0..0;
        let mut of_part = |part: Range<u32>| {
            let mut left = part.end - part.start;
            let mut chunks = Vec::new();
            while left > 0 {
                if rest.is_empty() {
                    let Some(next) = ranges.next() else { break };
                    rest = next;
                }
                let end = rest.end.min(rest.start + left);
                left -= end - rest.start;
                chunks.extend((end > rest.start).then_some(rest.start..end));
                rest.start = end;
            }
            SharedMove {
                source,
                destination,
                chunks,
            }
        };
        cut(0..count, stripes).map(&mut of_part).collect()
    }

    /// Its transfers.
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

/// A lightpath with its light and its slot.
pub(crate) type Placed<'a> = (&'a SharedMove, Light, u32);

/// Returns the number of slots up to the last in use.
fn slots(placed: &[Placed<'_>]) -> u32 {
    placed.iter().map(|(.., slot)| slot + 1).max().unwrap_or(0)
}

/// Returns the greatest number of lightpaths that a rank sends, or receives, in one slot.
pub(crate) fn most_ends<'a>(moves: impl Iterator<Item = (&'a SharedMove, u32)>) -> u32 {
    let mut counts: FxHashMap<(u32, u32, bool), u32> = FxHashMap::default();
    for (own, slot) in moves {
        interrupt::check();
        *counts.entry((own.source, slot, true)).or_default() += 1;
        *counts.entry((own.destination, slot, false)).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

/// Where a plan for a smaller ring goes.
pub(crate) struct Embedding {
    /// The rank for each of its ranks, in ascending order.
    pub(crate) members: Vec<u32>,
    /// The channel that its channel 0 becomes.
    pub(crate) first_channel: u32,
    /// Its chunk i stands for the chunks `edges[i]..edges[i + 1]`.
    pub(crate) edges: Vec<u32>,
}

/// What is left of a transfer.
pub(crate) enum PartOf {
    Nothing,
    /// One range of its chunks.
    Range(Transfer),
    Several,
}

/// A plan that grows step by step.
pub(crate) struct Assembly {
    plan: Plan,
    ring: WdmRing,
}

impl Assembly {
    /// A plan without steps.
    pub(crate) fn new(ring: &WdmRing, collective: Collective) -> Assembly {
        Assembly {
            ring: ring.clone(),
            plan: Plan {
                fabric: Fabric::new(ring.clone()),
                schedule: Schedule::new(collective),
                algorithm: String::new(),
                size: None,
                light: Vec::new(),
                slot: Vec::new(),
                step_slots: Vec::new(),
                relays: Vec::new(),
                routes: NamedRoutes::default(),
                repetition: Repetition::NONE,
            },
        }
    }

    /// Adds a step of transfers, with the wavelengths and slots that it needs; nothing where there
    /// are none.
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
        self.append(&placed?);
        Ok(())
    }

    /// Adds a step of lightpaths along the line from rank 0 to the last. Where a rank has too few
    /// ports for its own, they are also tried in shares, by the sum of their ends modulo the number
    /// of shares: in each, every rank and every link has about as many.
    pub(crate) fn shared_line(&mut self, moves: &[SharedMove]) -> Result<(), PlannerError> {
        let towards = |own: &SharedMove| match own.destination > own.source {
            true => Direction::Clockwise,
            false => Direction::CounterClockwise,
        };
        let directed: Vec<_> = moves.iter().map(|own| (own, towards(own))).collect();
        let placed = self.placed(&directed)?;
        let ports = self.ring.ports.unwrap_or(u32::MAX);
        let shares = most_ends(moves.iter().map(|own| (own, 0))).div_ceil(ports);
        if shares <= 1 {
            self.shared_slots(placed.into_iter());
            return Ok(());
        }
        let mut shared: Vec<Placed<'_>> = Vec::with_capacity(moves.len());
        for share in 0..shares {
            let is_own =
                |(own, _): &&(&SharedMove, _)| (own.source + own.destination) % shares == share;
            let own: Vec<_> = directed.iter().filter(is_own).copied().collect();
            let before = slots(&shared);
            let own = self.placed(&own)?.into_iter();
            shared.extend(own.map(|(own, light, slot)| (own, light, before + slot)));
        }
        let is_shorter = slots(&shared) < slots(&placed);
        self.shared_slots(if is_shorter { shared } else { placed }.into_iter());
        Ok(())
    }

    /// Returns lightpaths with the wavelengths and slots that they need.
    pub(crate) fn placed<'a>(
        &self,
        moves: &[(&'a SharedMove, Direction)],
    ) -> Result<Vec<Placed<'a>>, PlannerError> {
        let mut schedule = Schedule::new(self.plan.schedule.collective);
        schedule.begin_step();
        let mut lit = Vec::with_capacity(moves.len());
        let mut light = Vec::with_capacity(moves.len());
        // The first transfer stands for all of its lightpath.
        for &(own, direction) in moves {
            if let Some(first) = own.transfers().next() {
                schedule.push(first);
                lit.push(own);
                light.push(WdmLight::towards(direction));
            }
        }
        let auto = Assignment::AUTO;
        let placed = assign(schedule, light, &self.plan.fabric, auto, String::new())?;
        let light = placed.light.into_iter().zip(placed.slot);
        let lit = lit.into_iter().zip(light);
        Ok(lit.map(|(own, (light, slot))| (own, light, slot)).collect())
    }

    /// Adds a step of lightpaths with their light and their slots, which count from 0; nothing where there are
    /// none.
    pub(crate) fn shared_slots<'a>(&mut self, moves: impl Iterator<Item = Placed<'a>>) {
        let before = self.plan.slots();
        let mut slots = 0;
        for (own, light, slot) in moves {
            interrupt::check();
            if slots == 0 {
                self.plan.schedule.begin_step();
            }
            slots = slots.max(slot + 1);
            for transfer in own.transfers() {
                self.plan.schedule.push(transfer);
                self.plan.light.push(light);
                self.plan.slot.push(before + slot);
            }
        }
        if slots > 0 {
            self.plan.step_slots.push(before..before + slots);
        }
    }

    /// Adds the steps of a plan for the same fabric, whose chunks have the same numbers.
    fn append(&mut self, part: &Plan) {
        self.append_refined(part, 1);
    }

    /// Adds the steps of a plan for the same fabric, each of whose chunks is `factor` chunks here.
    pub(crate) fn append_refined(&mut self, part: &Plan, factor: u32) {
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

    /// Adds the steps of a plan for the same fabric with what `part_of` says of each transfer; returns false, with only some
    /// steps added, where that is in several ranges of chunks.
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

    /// Adds the steps of a plan for a smaller ring, at all places side by side.
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
                    self.lay(inner, index, place, before);
                }
            }
        }
    }

    fn lay(&mut self, inner: &Plan, index: usize, place: &Embedding, before: u32) {
        let transfer = inner.schedule.transfer(index);
        let light = WdmLight::from(inner.light[index]);
        // A smaller ring has one fibre.
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

    /// The plan so far.
    pub(crate) fn finish(mut self, algorithm: String) -> Plan {
        self.plan.algorithm = algorithm;
        self.plan.schedule.claims = Claims {
            schedule_steps: Some(self.plan.schedule.steps() as u32),
            ..Claims::default()
        };
        self.plan
    }
}

/// The ring that every k-th part of a ring's channels is for `ranks` of its ranks. Without
/// converters, so that its plans fit anywhere: what has wavelengths without them has them with.
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

/// `parts` ranges of nearly equal length that make up a range, in order; fewer where it is too short.
pub(crate) fn cut(range: Range<u32>, parts: u32) -> impl Iterator<Item = Range<u32>> {
    let length = u64::from(range.end - range.start);
    let parts = u64::from(parts).min(length);
    let edge = move |part: u64| range.start + (length * part / parts.max(1)) as u32;
    (0..parts).map(move |part| edge(part)..edge(part + 1))
}
