//! Repetition of the rows of a plan: a row stands for several lightpaths.
//!
//! A row stands for R K P *copies*. Copy (r, k, p) differs from its row in three ways:
//!
//! - **r rotations**, with R = 1 or R = N. Rank v becomes v + r mod N, and chunks move with the
//!   blocks of their ranks ([`rotated_chunk`]). The fabric defines the effect of a rotation on
//!   light ([`Rotation`]): the copies of a row use l adjacent channels, and copy r uses the channel
//!   whose number is r mod l higher. On a ring, l is the number of links of the lightpath and
//!   divides N. The copies on one channel leave ranks that are congruent modulo l, so that they
//!   follow one another around the ring without a gap. All rows leave rank 0.
//! - **k of K stripes**: the channel number is k higher, and the chunk k P higher.
//! - **p of P pieces**: the slot is p later, and the chunk p higher. Each step of the schedule is
//!   then one slot.
//!
//! A plan repeats by rotations, or by stripes and pieces, never by both. The verifier decides
//! whether the rows are enough to prove the plan; `opticoll-verify` states and proves the
//! conditions (`rotation_symmetric.rs`, `pipelined.rs`). In short:
//!
//! - Rotations need a collective that looks the same from every rank ([`chunks_per_rank`]), and a
//!   fabric whose ranks and links are alike. A rotation then maps the plan to itself, except for
//!   the channels. The channels used are the same on every link, so that counting them on one link
//!   is enough.
//! - Stripes and pieces need rows with a single chunk, whose number is a multiple of K P. Every
//!   chunk is then the copy of one chunk of the rows, in the same block. It is carried by the same
//!   transfers in the same order, p slots later.
//! - With converters at every rank there are no channels. Then l is 1, and copies are counted per
//!   link.
//!
//! The expanded plan lists all copies step by step; within a step by row, and then by rotation or
//! stripe.

use std::borrow::Cow;
use std::ops::Range;

use super::{Lightpath, Plan};
use crate::collective::{Collective, CollectiveKind};
use crate::schedule::Transfer;
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_fabric::fabric::{Hop, Rotation};

/// Numbers of copies that each row of a plan stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// Number of rotations of each row: 1, or the number of ranks.
    pub rotations: u32,
    /// Number of stripes of each row: copies on adjacent channels.
    pub stripes: u32,
    /// Number of pieces of each row: copies in consecutive slots.
    pub pieces: u32,
}

impl Repetition {
    /// Repetition of a plan in which each row stands for one lightpath.
    pub const NONE: Repetition = Repetition {
        rotations: 1,
        stripes: 1,
        pieces: 1,
    };

    /// Returns the number of lightpaths that each row stands for.
    pub fn copies(self) -> u64 {
        self.copies_in_slot() * u64::from(self.pieces)
    }

    /// Returns the number of copies of a row that are in the same slot.
    fn copies_in_slot(self) -> u64 {
        u64::from(self.rotations) * u64::from(self.stripes)
    }

    /// Returns whether each row stands for all its rotations.
    pub fn is_rotation_symmetric(self) -> bool {
        self.rotations != 1
    }

    /// Returns whether each row stands for its stripes and pieces.
    pub fn is_pipelined(self) -> bool {
        (self.stripes, self.pieces) != (1, 1)
    }
}

/// Memory of a lightpath, in bytes, while a plan is expanded.
const BYTES_PER_LIGHTPATH: u64 = 25;

/// Returns the number of chunks by which a rotation by one rank moves each chunk. `None` if the
/// collective does not look the same from every rank. In an all_to_all, a chunk for rank N - 1
/// becomes a chunk for rank 0, and therefore moves by N blocks less.
pub fn chunks_per_rank(collective: &Collective) -> Option<u32> {
    let is_symmetric = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => true,
        CollectiveKind::AllReduce => collective.pieces() % collective.ranks() == 0,
        _ => false,
    };
    if collective.kind() == CollectiveKind::AllToAll && collective.demand().is_none() {
        return Some((collective.ranks() + 1) * collective.pieces());
    }
    is_symmetric.then(|| collective.chunks() / collective.ranks())
}

/// Returns the chunk to which a rotation by `by` ranks moves `chunk`. Block b becomes block b +
/// `by`. In an all_to_all, the block from rank u to rank v becomes the block from u + `by` to v +
/// `by`. A chunk that does not exist stays the same.
pub fn rotated_chunk(collective: &Collective, chunk: u32, by: u32) -> u32 {
    if collective.kind() != CollectiveKind::AllToAll {
        let moved = chunks_per_rank(collective).unwrap_or(0);
        let by = u64::from(by) * u64::from(moved);
        return add_modulo(chunk, by, collective.chunks());
    }
    if chunk >= collective.chunks() || collective.demand().is_some() {
        return chunk;
    }
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let (block, piece) = (chunk / pieces, chunk % pieces);
    let [source, destination] =
        [block / ranks, block % ranks].map(|rank| add_modulo(rank, by.into(), ranks));
    (source * ranks + destination) * pieces + piece
}

impl Plan {
    /// Returns the plan in which each row, which leaves rank 0, stands for all its rotations.
    pub fn with_all_rotations(self) -> Plan {
        let repetition = Repetition {
            rotations: self.fabric.ranks(),
            ..Repetition::NONE
        };
        Plan { repetition, ..self }
    }

    /// Returns the plan in which each row stands for `pieces` pieces on each of `stripes` stripes.
    /// Requires that each step is one slot.
    pub fn with_stripes_and_pieces(mut self, stripes: u32, pieces: u32) -> Plan {
        let slots = self.slots() + pieces - 1;
        self.step_slots = (0..slots).map(|slot| slot..slot + 1).collect();
        while self.schedule.steps() < slots as usize {
            self.schedule.begin_step();
        }
        if let Some(steps) = &mut self.schedule.claims.schedule_steps {
            *steps = slots;
        }
        self.repetition = Repetition {
            rotations: 1,
            stripes,
            pieces,
        };
        self
    }

    /// Returns the number of lightpaths of the expanded plan.
    pub fn transfers(&self) -> u64 {
        self.len() as u64 * self.repetition.copies()
    }

    /// Returns a copy of `row`. `beside` is the index of the rotation or of the stripe, and `piece`
    /// is the index of the piece.
    pub fn copy(&self, row: usize, beside: u32, piece: u32) -> Lightpath {
        let lightpath = self.lightpath(row);
        match self.repetition.is_rotation_symmetric() {
            true => self.rotate(lightpath, beside),
            false if (beside, piece) == (0, 0) => lightpath,
            false => self.shift(lightpath, beside, piece),
        }
    }

    /// Returns a lightpath from rank 0 rotated by `by` ranks, so that it leaves rank `by`. Ranks
    /// and chunks that do not exist stay the same.
    fn rotate(&self, lightpath: Lightpath, by: u32) -> Lightpath {
        if by == 0 {
            return lightpath;
        }
        let (ranks, transfer) = (self.fabric.ranks(), lightpath.transfer);
        let light = match self.fabric.rotation() {
            Some(rotation) => {
                rotation.shift_channel(lightpath.light, by % rotation.span(&hop(&lightpath)))
            }
            None => lightpath.light,
        };
        Lightpath {
            light,
            transfer: Transfer {
                chunk: rotated_chunk(&self.schedule.collective, transfer.chunk, by),
                source: add_modulo(transfer.source, by.into(), ranks),
                destination: add_modulo(transfer.destination, by.into(), ranks),
                ..transfer
            },
            ..lightpath
        }
    }

    fn shift(&self, lightpath: Lightpath, stripe: u32, piece: u32) -> Lightpath {
        let chunk_offset = u64::from(stripe) * u64::from(self.repetition.pieces) + u64::from(piece);
        let chunk = u64::from(lightpath.transfer.chunk) + chunk_offset;
        let channels = self.fabric.numbered_channels();
        Lightpath {
            slot: lightpath.slot.saturating_add(piece),
            light: channels.map_or(lightpath.light, |channels| {
                channels.shift_channel(lightpath.light, stripe)
            }),
            transfer: Transfer {
                chunk: u32::try_from(chunk).unwrap_or(u32::MAX),
                ..lightpath.transfer
            },
        }
    }

    /// Returns the number of adjacent channels that the rotations of `row` use.
    pub fn span(&self, row: usize) -> u32 {
        let rotation = self.fabric.rotation();
        rotation.map_or(1, |rotation| rotation.span(&hop(&self.lightpath(row))))
    }

    /// Returns the rows that have a piece in `slot`. Requires that rows are sorted by slot.
    pub fn under_way(&self, slot: u32) -> Range<usize> {
        let pieces = u64::from(self.repetition.pieces);
        let end = self.slot.partition_point(|&first| first <= slot);
        let ended = |&first: &u32| u64::from(first) + pieces <= u64::from(slot);
        self.slot.partition_point(ended).min(end)..end
    }

    /// Returns the number of lightpaths of the expanded plan in all slots before `slot`.
    fn before(&self, slot: u32) -> u64 {
        let pieces = self.repetition.pieces;
        let sent = self
            .slot
            .iter()
            .map(|first| u64::from(slot.saturating_sub(*first).min(pieces)));
        sent.sum::<u64>() * self.repetition.copies_in_slot()
    }

    /// Returns the index, in the expanded plan, of the copy that [`Plan::copy`] returns.
    pub fn number(&self, row: usize, beside: u32, piece: u32) -> u64 {
        if !self.repetition.is_pipelined() {
            return row as u64 * self.repetition.copies_in_slot() + u64::from(beside);
        }
        let slot = self.slot[row] + piece;
        let index = (row - self.under_way(slot).start) as u64;
        self.before(slot) + index * self.repetition.copies_in_slot() + u64::from(beside)
    }

    /// Returns the lightpath with index `number` in the expanded plan; `None` if there is none.
    pub fn numbered(&self, number: u64) -> Option<Lightpath> {
        if number >= self.transfers() {
            return None;
        }
        if !self.repetition.is_pipelined() {
            let copies_in_slot = self.repetition.copies_in_slot();
            return Some(self.copy(
                (number / copies_in_slot) as usize,
                (number % copies_in_slot) as u32,
                0,
            ));
        }
        let (mut slot, mut above) = (0, self.slots());
        while above - slot > 1 {
            let middle = slot + (above - slot) / 2;
            match self.before(middle) <= number {
                true => slot = middle,
                false => above = middle,
            }
        }
        Some(self.at_position(slot, number - self.before(slot)))
    }

    /// Returns the lightpath at position `index` of `slot` in a pipelined plan.
    fn at_position(&self, slot: u32, index: u64) -> Lightpath {
        let stripes = u64::from(self.repetition.stripes);
        let row = self.under_way(slot).start + (index / stripes) as usize;
        self.copy(row, (index % stripes) as u32, slot - self.slot[row])
    }

    /// Returns the lightpaths in `slot`, each with its index in the expanded plan.
    pub fn lightpaths_in_slot(&self, slot: u32) -> Box<dyn Iterator<Item = (u64, Lightpath)> + '_> {
        let copies_in_slot = self.repetition.copies_in_slot();
        if self.repetition.is_pipelined() {
            let count = self.under_way(slot).len() as u64 * copies_in_slot;
            let in_slot = (0..count).map(move |index| self.at_position(slot, index));
            return Box::new((self.before(slot)..).zip(in_slot));
        }
        let in_slot = (0..self.len()).filter(move |&row| self.slot[row] == slot);
        let numbers = in_slot
            .flat_map(move |row| row as u64 * copies_in_slot..(row as u64 + 1) * copies_in_slot);
        Box::new(numbers.filter_map(move |number| Some((number, self.numbered(number)?))))
    }

    /// Returns the plan with the first `count` rotations of every row, in the order of steps.
    pub fn rotated_rows(&self, count: u32) -> Plan {
        let mut plan = self.without_lightpaths();
        plan.reserve(self.len() * count as usize);
        for step in 0..self.schedule.steps() {
            plan.schedule.begin_step();
            for row in self.schedule.step(step) {
                interrupt::check();
                for rotation in 0..count {
                    interrupt::check();
                    plan.push(self.rotate(self.lightpath(row), rotation));
                }
            }
        }
        plan
    }

    /// Returns the plan with a row for every lightpath. Stops if the plan does not fit into memory
    /// (see [`memory::check_forecast`]).
    pub fn expanded(&self) -> Cow<'_, Plan> {
        if self.repetition == Repetition::NONE {
            return Cow::Borrowed(self);
        }
        if self.repetition.is_rotation_symmetric() {
            return Cow::Owned(self.rotated_rows(self.repetition.rotations));
        }
        let bytes = self.transfers().saturating_mul(BYTES_PER_LIGHTPATH);
        memory::check_forecast("writing out every transfer of this plan", bytes);
        let mut plan = self.without_lightpaths();
        plan.reserve(self.transfers() as usize);
        for slot in 0..self.slots() {
            plan.schedule.begin_step();
            for (_, lightpath) in self.lightpaths_in_slot(slot) {
                interrupt::check();
                plan.push(lightpath);
            }
        }
        Cow::Owned(plan)
    }

    /// Returns the plan with a row for every lightpath. Does not copy a plan without repetition.
    pub fn into_expanded(self) -> Plan {
        match self.repetition {
            Repetition::NONE => self,
            _ => self.expanded().into_owned(),
        }
    }
}

pub(super) fn hop(lightpath: &Lightpath) -> Hop {
    Hop {
        from: lightpath.transfer.source,
        to: lightpath.transfer.destination,
        light: lightpath.light,
        slot: lightpath.slot,
        route: super::routes::FABRIC_ROUTE,
    }
}

/// Returns the rotation-symmetric plan that stands for `plan`: only the rows that leave rank 0.
/// `None` if a rotation does not map `plan` to itself. Also `None` if `plan` uses other channels
/// than the rotations of the rows.
///
/// Each lightpath is rotated back to rank 0, and gets the channel that its row would have. The plan
/// is symmetric if and only if all ranks then send the same lightpaths in every step.
pub fn fold(plan: &Plan) -> Option<Plan> {
    let rotation = plan.fabric.rotation()?;
    let collective = plan.schedule.collective;
    chunks_per_rank(&collective)?;
    let ranks = plan.fabric.ranks();
    let columns = [plan.light.len(), plan.slot.len()];
    if collective.ranks() != ranks || columns != [plan.len(); 2] {
        return None;
    }
    // Ranges that continue from the blocks for rank N - 1 to the blocks for rank 0 would be split.
    if collective.kind() == CollectiveKind::AllToAll && !plan.schedule.has_single_chunks() {
        return None;
    }
    // Lightpaths of each rank, rotated back to rank 0, each with its step.
    let mut sent: Vec<Vec<(usize, Lightpath)>> = vec![Vec::new(); ranks as usize];
    for step in 0..plan.schedule.steps() {
        for index in plan.schedule.step(step) {
            interrupt::check();
            let lightpath = plan.lightpath(index);
            let rotated = rotated_back(rotation, collective, lightpath)?;
            sent[lightpath.transfer.source as usize].push((step, rotated));
        }
    }
    let mut rows = plan.without_lightpaths();
    for step in 0..plan.schedule.steps() {
        rows.schedule.begin_step();
        let step_rows = sent[0].iter().filter(|(at, _)| *at == step);
        step_rows.for_each(|(_, lightpath)| rows.push(*lightpath));
    }
    sent.iter_mut().for_each(|sent| sent.sort_unstable());
    let is_symmetric = sent.windows(2).all(|pair| pair[0] == pair[1]);
    is_symmetric.then(|| rows.with_all_rotations())
}

/// Returns a lightpath rotated back to rank 0; `None` if no rotation does this.
fn rotated_back(
    rotation: &dyn Rotation,
    collective: Collective,
    lightpath: Lightpath,
) -> Option<Lightpath> {
    let transfer = lightpath.transfer;
    let (by, ranks) = (transfer.source, collective.ranks());
    if by >= ranks || transfer.destination >= ranks {
        return None;
    }
    let span = rotation.span(&hop(&lightpath));
    if ranks % span != 0 {
        return None;
    }
    let back = u64::from(ranks - by);
    Some(Lightpath {
        light: rotation.rotate_back(lightpath.light, span, by % span)?,
        transfer: Transfer {
            chunk: rotated_chunk(&collective, transfer.chunk, ranks - by),
            source: 0,
            destination: add_modulo(transfer.destination, back, ranks),
            ..transfer
        },
        ..lightpath
    })
}

/// Returns (`number` + `by`) mod `modulus`. A `number` of at least `modulus` stays the same.
fn add_modulo(number: u32, by: u64, modulus: u32) -> u32 {
    if number >= modulus {
        return number;
    }
    ((u64::from(number) + by) % u64::from(modulus)) as u32
}
