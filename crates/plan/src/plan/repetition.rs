//! How the rows of a plan repeat, and which lightpaths that makes.
//!
//! A row stands for R K P *copies*. Copy (r, k, p) differs from its row by three translations:
//!
//! - **r rotations**, of R = 1 or N: rank v becomes v + r mod N, and chunks move with the blocks of their ranks
//!   ([`turned_chunk`]). The fabric says what a rotation does to light ([`Rotation`]): the copies of a row take l channels side by
//!   side, and the copy r is r mod l channels further. Around a ring, l is the number of links, and divides N: those on one
//!   channel leave ranks that are congruent modulo l, and so follow one another around the ring without a gap. Rows leave rank 0.
//! - **k stripes**, of K: k channels further, k P chunks later.
//! - **p pieces**, of P: p slots and p chunks later. Each step of the schedule is then one slot.
//!
//! A plan repeats by rotations, or by stripes and pieces, never by both. Whether the rows are enough to judge it, the verifier decides:
//! `opticoll-verify` states the conditions and proves them (`folded.rs`, `pipelined.rs`). In short:
//!
//! - Rotations need a collective that looks the same from every rank ([`chunks_per_rank`]) and a fabric whose ranks and links are alike.
//!   Then a rotation turns the plan into itself, but for the channels, and these are counted on one link for all.
//! - Stripes and pieces need rows of one chunk each, whose number is a multiple of K P. Then every chunk is the copy of one chunk of the
//!   rows, in the same block and by the same transfers in the same order, p slots later.
//! - With converters at every rank there are no channels: l is 1, and copies are counted by link.
//!
//! The whole plan has its copies step by step, in each step by row, then by rotation or stripe.

use std::borrow::Cow;
use std::ops::Range;

use super::{Lightpath, Plan};
use crate::collective::{Collective, CollectiveKind};
use crate::schedule::Transfer;
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_fabric::fabric::{Hop, Rotation};

/// How often the rows of a plan repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// R: turned by 0, 1 and so on ranks; 1, or as many as there are ranks.
    pub rotations: u32,
    /// K: on channels side by side.
    pub stripes: u32,
    /// P: in slots that follow one another.
    pub pieces: u32,
}

impl Repetition {
    /// That of a plan whose rows are all lightpaths.
    pub const NONE: Repetition = Repetition {
        rotations: 1,
        stripes: 1,
        pieces: 1,
    };

    /// How many lightpaths each row stands for.
    pub fn copies(self) -> u64 {
        self.beside() * u64::from(self.pieces)
    }

    /// How many of these are in one slot.
    fn beside(self) -> u64 {
        u64::from(self.rotations) * u64::from(self.stripes)
    }

    /// Whether rows stand for their rotations.
    pub fn is_folded(self) -> bool {
        self.rotations != 1
    }

    /// Whether rows stand for their stripes and pieces.
    pub fn is_pipelined(self) -> bool {
        (self.stripes, self.pieces) != (1, 1)
    }
}

/// What a lightpath takes while a plan is written out, in bytes.
const BYTES_WRITTEN_OUT: u64 = 25;

/// By how many chunks a rotation by one rank moves each chunk, if a collective looks the same from
/// every rank. In an all_to_all those for rank N - 1 move by N blocks less, to the blocks for rank 0.
pub fn chunks_per_rank(collective: &Collective) -> Option<u32> {
    let turns = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter => true,
        CollectiveKind::AllReduce => collective.pieces() % collective.ranks() == 0,
        _ => false,
    };
    if collective.kind() == CollectiveKind::AllToAll && collective.demand().is_none() {
        return Some((collective.ranks() + 1) * collective.pieces());
    }
    turns.then(|| collective.chunks() / collective.ranks())
}

/// What a rotation by so many ranks makes of a chunk: block b becomes block b + r, in an all_to_all the block from rank u to
/// rank v that from u + r to v + r. A chunk that does not exist stays.
pub fn turned_chunk(collective: &Collective, chunk: u32, by: u32) -> u32 {
    if collective.kind() != CollectiveKind::AllToAll {
        let moved = chunks_per_rank(collective).unwrap_or(0);
        let by = u64::from(by) * u64::from(moved);
        return turned(chunk, by, collective.chunks());
    }
    if chunk >= collective.chunks() || collective.demand().is_some() {
        return chunk;
    }
    let (ranks, pieces) = (collective.ranks(), collective.pieces());
    let (block, piece) = (chunk / pieces, chunk % pieces);
    let [source, destination] =
        [block / ranks, block % ranks].map(|rank| turned(rank, by.into(), ranks));
    (source * ranks + destination) * pieces + piece
}

impl Plan {
    /// The plan whose rows, which leave rank 0, stand for all their rotations.
    pub fn in_all_rotations(self) -> Plan {
        let repetition = Repetition {
            rotations: self.fabric.ranks(),
            ..Repetition::NONE
        };
        Plan { repetition, ..self }
    }

    /// The plan whose rows, in a slot for each step, stand for so many pieces on each of so many stripes.
    pub fn in_pieces(mut self, stripes: u32, pieces: u32) -> Plan {
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

    /// The number of lightpaths of the whole plan.
    pub fn transfers(&self) -> u64 {
        self.len() as u64 * self.repetition.copies()
    }

    /// The copy of a row: which of those side by side, rotations or stripes, and which piece.
    pub fn copy(&self, row: usize, beside: u32, piece: u32) -> Lightpath {
        let lightpath = self.lightpath(row);
        match self.repetition.is_folded() {
            true => self.rotate(lightpath, beside),
            false if (beside, piece) == (0, 0) => lightpath,
            false => self.shift(lightpath, beside, piece),
        }
    }

    /// The rotation of a lightpath from rank 0 that leaves another rank. What is out of range there is so in every rotation.
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
                chunk: turned_chunk(&self.schedule.collective, transfer.chunk, by),
                source: turned(transfer.source, by.into(), ranks),
                destination: turned(transfer.destination, by.into(), ranks),
                ..transfer
            },
            ..lightpath
        }
    }

    /// The copy of a lightpath for a piece on a stripe.
    fn shift(&self, lightpath: Lightpath, stripe: u32, piece: u32) -> Lightpath {
        let behind = u64::from(stripe) * u64::from(self.repetition.pieces) + u64::from(piece);
        let chunk = u64::from(lightpath.transfer.chunk) + behind;
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

    /// On how many channels side by side the rotations of a row are.
    pub fn span(&self, row: usize) -> u32 {
        let rotation = self.fabric.rotation();
        rotation.map_or(1, |rotation| rotation.span(&hop(&self.lightpath(row))))
    }

    /// The rows of which a piece is under way in a slot. Rows must stand in the order of their slots.
    pub fn under_way(&self, slot: u32) -> Range<usize> {
        let pieces = u64::from(self.repetition.pieces);
        let end = self.slot.partition_point(|&first| first <= slot);
        let ended = |&first: &u32| u64::from(first) + pieces <= u64::from(slot);
        self.slot.partition_point(ended).min(end)..end
    }

    /// How many lightpaths of the whole plan are in slots before this one.
    fn before(&self, slot: u32) -> u64 {
        let pieces = self.repetition.pieces;
        let sent = self
            .slot
            .iter()
            .map(|first| u64::from(slot.saturating_sub(*first).min(pieces)));
        sent.sum::<u64>() * self.repetition.beside()
    }

    /// The number of a copy in the whole plan.
    pub fn number(&self, row: usize, beside: u32, piece: u32) -> u64 {
        if !self.repetition.is_pipelined() {
            return row as u64 * self.repetition.beside() + u64::from(beside);
        }
        let slot = self.slot[row] + piece;
        let place = (row - self.under_way(slot).start) as u64;
        self.before(slot) + place * self.repetition.beside() + u64::from(beside)
    }

    /// The lightpath with a number in the whole plan; `None` beyond the last.
    pub fn numbered(&self, number: u64) -> Option<Lightpath> {
        if number >= self.transfers() {
            return None;
        }
        if !self.repetition.is_pipelined() {
            let beside = self.repetition.beside();
            return Some(self.copy((number / beside) as usize, (number % beside) as u32, 0));
        }
        let (mut slot, mut above) = (0, self.slots());
        while above - slot > 1 {
            let middle = slot + (above - slot) / 2;
            match self.before(middle) <= number {
                true => slot = middle,
                false => above = middle,
            }
        }
        Some(self.at(slot, number - self.before(slot)))
    }

    /// The lightpath at a place of a slot of a pipelined plan.
    fn at(&self, slot: u32, place: u64) -> Lightpath {
        let stripes = u64::from(self.repetition.stripes);
        let row = self.under_way(slot).start + (place / stripes) as usize;
        self.copy(row, (place % stripes) as u32, slot - self.slot[row])
    }

    /// The lightpaths of a slot, with their numbers in the whole plan.
    pub fn of_slot(&self, slot: u32) -> Box<dyn Iterator<Item = (u64, Lightpath)> + '_> {
        let beside = self.repetition.beside();
        if self.repetition.is_pipelined() {
            let count = self.under_way(slot).len() as u64 * beside;
            let here = (0..count).map(move |place| self.at(slot, place));
            return Box::new((self.before(slot)..).zip(here));
        }
        let here = (0..self.len()).filter(move |&row| self.slot[row] == slot);
        let numbers = here.flat_map(move |row| row as u64 * beside..(row as u64 + 1) * beside);
        Box::new(numbers.filter_map(move |number| Some((number, self.numbered(number)?))))
    }

    /// The first `count` rotations of every row, step by step.
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

    /// The plan with every lightpath in a row. Where that does not fit into memory, the work stops (see [`memory::take`]).
    pub fn written_out(&self) -> Cow<'_, Plan> {
        if self.repetition == Repetition::NONE {
            return Cow::Borrowed(self);
        }
        if self.repetition.is_folded() {
            return Cow::Owned(self.rotated_rows(self.repetition.rotations));
        }
        let bytes = self.transfers().saturating_mul(BYTES_WRITTEN_OUT);
        memory::take("writing out every transfer of this plan", bytes);
        let mut plan = self.without_lightpaths();
        plan.reserve(self.transfers() as usize);
        for slot in 0..self.slots() {
            plan.schedule.begin_step();
            for (_, lightpath) in self.of_slot(slot) {
                interrupt::check();
                plan.push(lightpath);
            }
        }
        Cow::Owned(plan)
    }

    /// The same of a plan that is needed no longer.
    pub fn into_written_out(self) -> Plan {
        match self.repetition {
            Repetition::NONE => self,
            _ => self.written_out().into_owned(),
        }
    }
}

/// A lightpath as its light goes.
fn hop(lightpath: &Lightpath) -> Hop {
    Hop {
        from: lightpath.transfer.source,
        to: lightpath.transfer.destination,
        light: lightpath.light,
        slot: lightpath.slot,
    }
}

/// Folds a plan of all lightpaths into what rank 0 sends, if it is its own rotation by every rank and its channels lie as those of
/// rotations do.
///
/// Each lightpath is turned back to rank 0, with the channel that its row would then have. The plan
/// is what rank 0 sends in all rotations if and only if every rank sends the same then, step by step.
pub fn fold(plan: &Plan) -> Option<Plan> {
    let rotation = plan.fabric.rotation()?;
    let collective = plan.schedule.collective;
    chunks_per_rank(&collective)?;
    let ranks = plan.fabric.ranks();
    let columns = [plan.light.len(), plan.slot.len()];
    if collective.ranks() != ranks || columns != [plan.len(); 2] {
        return None;
    }
    // Ranges that go on from the blocks for rank N - 1 to those for rank 0 are cut in two.
    if collective.kind() == CollectiveKind::AllToAll && !plan.schedule.is_in_single_chunks() {
        return None;
    }
    // What each rank sends, turned back to rank 0, with its step.
    let mut sent: Vec<Vec<(usize, Lightpath)>> = vec![Vec::new(); ranks as usize];
    for step in 0..plan.schedule.steps() {
        for index in plan.schedule.step(step) {
            interrupt::check();
            let lightpath = plan.lightpath(index);
            let back = turned_back(rotation, collective, lightpath)?;
            sent[lightpath.transfer.source as usize].push((step, back));
        }
    }
    let mut rows = plan.without_lightpaths();
    for step in 0..plan.schedule.steps() {
        rows.schedule.begin_step();
        let own = sent[0].iter().filter(|(at, _)| *at == step);
        own.for_each(|(_, lightpath)| rows.push(*lightpath));
    }
    sent.iter_mut().for_each(|sent| sent.sort_unstable());
    let same = sent.windows(2).all(|pair| pair[0] == pair[1]);
    same.then(|| rows.in_all_rotations())
}

/// The rotation at rank 0 of a lightpath; `None` where it has none.
fn turned_back(
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
            chunk: turned_chunk(&collective, transfer.chunk, ranks - by),
            source: 0,
            destination: turned(transfer.destination, back, ranks),
            ..transfer
        },
        ..lightpath
    })
}

/// A number moved modulo another; one that is out of range stays.
fn turned(number: u32, by: u64, modulus: u32) -> u32 {
    if number >= modulus {
        return number;
    }
    ((u64::from(number) + by) % u64::from(modulus)) as u32
}
