//! Table of the channels that are in use on each link in each slot of a step.
//!
//! For each link, the channels are stored as bits of 64-bit words. With few channels, a word covers
//! several slots; with many channels, a slot covers several words. The words of neighbouring links
//! are adjacent in memory, so that a scan along a path is sequential. A further bit for each word
//! and link says whether the word has a free channel. The search checks these bits for some links
//! of a path, and so skips most words that are full.

use crate::wdm_ring::route::Arc;
use opticoll_base::interrupt;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};

/// Table of the channels that are in use on each link, for the slots opened so far.
pub struct ChannelOccupancy {
    ranks: usize,
    channels: u32,
    slots_per_word: u32,
    words_per_slot: u32,
    ports: Option<u32>,
    /// Words whose bits represent the channels in use, `[direction][word][link]`.
    taken: [Vec<u64>; 2],
    /// Number of words allocated for each link in each direction.
    words: usize,
    /// Bits that mark the words with a free channel, `[direction][word / 64][link]`.
    unfilled: [Vec<u64>; 2],
    /// Number of lightpaths that each rank sends, `[slot][rank]`; empty if ports are unlimited.
    sent: Vec<u32>,
    received: Vec<u32>,
    slots: u32,
    /// Arc, ranks (source, destination) and slot of the last placement. The search for an equal arc
    /// starts at this slot, because earlier slots cannot carry it.
    last: Option<(Arc, (u32, u32), u32)>,
}

impl ChannelOccupancy {
    /// Creates a table in which all channels are free.
    pub fn new(ring: &WdmRing) -> ChannelOccupancy {
        let channels = ring.channels();
        let ranks = ring.ranks as usize;
        ChannelOccupancy {
            ranks,
            channels,
            slots_per_word: (64 / channels).max(1),
            words_per_slot: channels.div_ceil(64),
            ports: ring.ports,
            taken: [Vec::new(), Vec::new()],
            words: 0,
            unfilled: [Vec::new(), Vec::new()],
            sent: Vec::new(),
            received: Vec::new(),
            slots: 0,
            last: None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.taken.iter_mut().for_each(Vec::clear);
        self.unfilled.iter_mut().for_each(Vec::clear);
        self.sent.clear();
        self.received.clear();
        self.words = 0;
        self.slots = 0;
        self.last = None;
    }

    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the earliest slot in which a channel is free on all links of `arc` and both ranks
    /// have a free port, and the lowest channel that is free on `arc` in this slot.
    pub(super) fn earliest(&mut self, arc: Arc, ends: (u32, u32)) -> (u32, u32) {
        let mut slot = match self.last {
            Some((last, last_ends, slot)) if last == arc && last_ends == ends => slot,
            _ => 0,
        };
        loop {
            interrupt::check();
            let (free_slot, channel) = self.next_free(slot, arc);
            if self.ports_free(free_slot, ends) {
                return (free_slot, channel);
            }
            slot = free_slot + 1;
        }
    }

    /// Reserves a channel on all links of `arc` in a slot, and a port of each rank of `ends`.
    pub fn take(&mut self, slot: u32, channel: u32, arc: Arc, ends: (u32, u32)) {
        self.open(slot);
        let (word, bit) = self.position(slot, channel);
        let direction = arc.direction as usize;
        let channel_bits = self.channel_bits(word);
        let (row, block) = (word * self.ranks, word / 64 * self.ranks);
        for (first, end) in self.spans(arc) {
            let taken = &mut self.taken[direction][row + first..row + end];
            let unfilled = &mut self.unfilled[direction][block + first..block + end];
            for (taken, unfilled) in taken.iter_mut().zip(unfilled) {
                *taken |= 1 << bit;
                let full = u64::from(*taken & channel_bits == channel_bits);
                *unfilled &= !(full << (word % 64));
            }
        }
        if self.ports.is_some() {
            let row = slot as usize * self.ranks;
            self.sent[row + ends.0 as usize] += 1;
            self.received[row + ends.1 as usize] += 1;
        }
        self.last = Some((arc, ends, slot));
    }

    /// Returns the number of links of `arc` and of the consecutive links before and after `arc` on
    /// which `channel` is free in the slot. If no lightpath uses the channel, returns the number of
    /// all links.
    pub(super) fn gap(&self, slot: u32, channel: u32, arc: Arc) -> u32 {
        let ranks = self.ranks as u32;
        let is_free = |link: u32| !self.is_taken(slot, channel, arc.direction, link % ranks);
        let after = (arc.hops..ranks)
            .take_while(|hop| is_free(arc.first + hop))
            .count() as u32;
        let before = (1..=ranks - arc.hops - after)
            .take_while(|hop| is_free(arc.first + ranks - hop))
            .count() as u32;
        arc.hops + after + before
    }

    fn is_taken(&self, slot: u32, channel: u32, direction: Direction, link: u32) -> bool {
        let (word, bit) = self.position(slot, channel);
        self.words > word
            && self.taken[direction as usize][word * self.ranks + link as usize] >> bit & 1 == 1
    }

    /// Returns the indices of the word and of the bit that represent a channel in a slot.
    fn position(&self, slot: u32, channel: u32) -> (usize, u32) {
        if self.words_per_slot == 1 {
            let word = slot / self.slots_per_word;
            (
                word as usize,
                slot % self.slots_per_word * self.channels + channel,
            )
        } else {
            (
                (slot * self.words_per_slot + channel / 64) as usize,
                channel % 64,
            )
        }
    }

    /// Returns the links of `arc` as two ranges that do not wrap around. The second may be empty.
    fn spans(&self, arc: Arc) -> [(usize, usize); 2] {
        let (first, end) = (arc.first as usize, (arc.first + arc.hops) as usize);
        [
            (first, end.min(self.ranks)),
            (0, end.saturating_sub(self.ranks)),
        ]
    }

    /// Returns a mask of the bits of `word` that are in use on at least one link of `arc`. A word
    /// that is not allocated has no bits in use.
    fn bits_in_use(&self, word: usize, arc: Arc) -> u64 {
        if word >= self.words {
            return 0;
        }
        let row = word * self.ranks;
        let mut bits_in_use = 0;
        for (first, end) in self.spans(arc) {
            // Chunks of 32 links suit vector instructions, and the loop can stop early.
            for links in self.taken[arc.direction as usize][row + first..row + end].chunks(32) {
                bits_in_use = links
                    .iter()
                    .fold(bits_in_use, |bits_in_use, link| bits_in_use | link);
                if bits_in_use == u64::MAX {
                    return bits_in_use;
                }
            }
        }
        bits_in_use
    }

    /// Returns a mask of the bits of `word` that represent channels. The other bits, at the high
    /// end of the word, are never used.
    fn channel_bits(&self, word: usize) -> u64 {
        let bits = if self.words_per_slot == 1 {
            self.slots_per_word * self.channels
        } else {
            let part = word as u32 % self.words_per_slot;
            (self.channels - part * 64).min(64)
        };
        if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        }
    }

    /// Returns a mask of the words in a block of 64 words that may have a free channel along `arc`.
    /// The mask is determined from a sample of the links of `arc`.
    fn candidates(&self, block: usize, arc: Arc) -> u64 {
        const SAMPLES: u32 = 8;
        let row = block * self.ranks;
        let unfilled = &self.unfilled[arc.direction as usize];
        if row >= unfilled.len() {
            return u64::MAX;
        }
        (0..=SAMPLES).fold(u64::MAX, |candidates, sample| {
            let link = arc.first + (arc.hops - 1) * sample / SAMPLES;
            candidates & unfilled[row + link as usize % self.ranks]
        })
    }

    /// Returns the first slot, at or after `slot`, in which a channel is free on all links of
    /// `arc`, and the lowest free channel in this slot.
    pub fn next_free(&self, slot: u32, arc: Arc) -> (u32, u32) {
        let (first, bit) = self.position(slot, 0);
        let mut block = first / 64;
        let mut candidates = self.candidates(block, arc) & (u64::MAX << (first % 64));
        let (word, bit) = loop {
            while candidates == 0 {
                interrupt::check();
                block += 1;
                candidates = self.candidates(block, arc);
            }
            let word = block * 64 + candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let mut open = !self.bits_in_use(word, arc) & self.channel_bits(word);
            if word == first {
                open &= u64::MAX << bit;
            }
            if open != 0 {
                break (word as u32, open.trailing_zeros());
            }
        };
        if self.words_per_slot == 1 {
            (
                word * self.slots_per_word + bit / self.channels,
                bit % self.channels,
            )
        } else {
            (
                word / self.words_per_slot,
                word % self.words_per_slot * 64 + bit,
            )
        }
    }

    /// Returns all channels that are free on all links of `arc` in a slot, in increasing order.
    pub(super) fn free(&self, slot: u32, arc: Arc) -> Vec<u32> {
        let (first, shift) = self.position(slot, 0);
        let mut channels = Vec::new();
        for part in 0..self.words_per_slot {
            interrupt::check();
            let word = first + part as usize;
            let mut open = !self.bits_in_use(word, arc) & self.channel_bits(word);
            if self.words_per_slot == 1 {
                open >>= shift;
                if self.channels < 64 {
                    open &= (1 << self.channels) - 1;
                }
            }
            while open != 0 {
                channels.push(part * 64 + open.trailing_zeros());
                open &= open - 1;
            }
        }
        channels
    }

    fn ports_free(&self, slot: u32, (source, destination): (u32, u32)) -> bool {
        let Some(ports) = self.ports else { return true };
        if slot >= self.slots {
            return true;
        }
        let row = slot as usize * self.ranks;
        self.sent[row + source as usize] < ports
            && self.received[row + destination as usize] < ports
    }

    /// Extends the table to contain all slots up to and including `slot`.
    fn open(&mut self, slot: u32) {
        if slot < self.slots {
            return;
        }
        self.slots = slot + 1;
        let (word, _) = self.position(slot, self.channels - 1);
        if word >= self.words {
            self.words = word + 1;
            for taken in &mut self.taken {
                taken.resize(self.words * self.ranks, 0);
            }
            for unfilled in &mut self.unfilled {
                unfilled.resize(self.words.div_ceil(64) * self.ranks, u64::MAX);
            }
        }
        if self.ports.is_some() {
            self.sent.resize(self.slots as usize * self.ranks, 0);
            self.received.resize(self.slots as usize * self.ranks, 0);
        }
    }
}
