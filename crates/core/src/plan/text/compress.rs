//! Finding repetitions: blocks of lightpaths that are shifted copies of one another.
//!
//! Lightpaths are sorted; runs of at least three with one and the same shift from each to the next
//! become a block with a repetition; then runs of such blocks become blocks with one more, until
//! nothing is gained.

use crate::plan::Lightpath;

/// What ranks and chunks are counted modulo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modulus {
    pub(super) ranks: u32,
    pub(super) chunks: u32,
}

/// By how much each copy differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shift {
    pub(super) chunk: u32,
    pub(super) rank: u32,
    pub(super) fibre: u32,
    pub(super) wavelength: u32,
}

/// So many copies, the first included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repetition {
    pub(super) count: u32,
    pub(super) shift: Shift,
}

/// A lightpath with its repetitions, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) base: Lightpath,
    pub(super) repetitions: Vec<Repetition>,
}

/// The shortest run worth a repetition: with two, any pair would do and spoil longer runs.
const SHORTEST_RUN: usize = 3;

/// The lightpaths of one slot as blocks, in a canonical order.
pub(super) fn compress(mut lightpaths: Vec<Lightpath>, modulus: Modulus) -> Vec<Block> {
    lightpaths.sort_by_key(|lightpath| {
        let Lightpath { circuit, transfer, .. } = *lightpath;
        let hops = (transfer.destination + modulus.ranks - transfer.source) % modulus.ranks;
        (transfer.action, circuit, hops, transfer)
    });
    let mut blocks: Vec<Block> = lightpaths
        .into_iter()
        .map(|base| Block { base, repetitions: Vec::new() })
        .collect();
    loop {
        let before = blocks.len();
        blocks = merge_runs(blocks, modulus);
        if blocks.len() == before {
            return blocks;
        }
    }
}

fn merge_runs(blocks: Vec<Block>, modulus: Modulus) -> Vec<Block> {
    let mut merged = Vec::new();
    let mut first = 0;
    while first < blocks.len() {
        let run = run_length(&blocks[first..], modulus);
        let mut block = blocks[first].clone();
        if let Some((count, shift)) = run.filter(|(count, _)| *count >= SHORTEST_RUN) {
            block.repetitions.push(Repetition { count: count as u32, shift });
            first += count;
        } else {
            first += 1;
        }
        merged.push(block);
    }
    merged
}

/// How many blocks from the first on follow one another by the same shift.
fn run_length(blocks: &[Block], modulus: Modulus) -> Option<(usize, Shift)> {
    let shift = shift(blocks.first()?, blocks.get(1)?, modulus)?;
    let same = blocks
        .windows(2)
        .take_while(|pair| self::shift(&pair[0], &pair[1], modulus) == Some(shift))
        .count();
    Some((same + 1, shift))
}

/// The shift that makes `one` into `other`, if there is one.
fn shift(one: &Block, other: &Block, modulus: Modulus) -> Option<Shift> {
    let (from, to) = (&one.base, &other.base);
    let ahead = |from: u32, to: u32, modulus: u32| {
        if to >= from { to - from } else { to + (modulus - from) }
    };
    let rank = ahead(from.transfer.source, to.transfer.source, modulus.ranks);
    let alike = one.repetitions == other.repetitions
        && from.transfer.action == to.transfer.action
        && from.transfer.count == to.transfer.count
        && from.circuit.direction == to.circuit.direction
        && rank == ahead(from.transfer.destination, to.transfer.destination, modulus.ranks);
    if !alike {
        return None;
    }
    Some(Shift {
        chunk: ahead(from.transfer.chunk, to.transfer.chunk, modulus.chunks),
        rank,
        fibre: to.circuit.fibre.checked_sub(from.circuit.fibre)?.into(),
        wavelength: to.circuit.wavelength.checked_sub(from.circuit.wavelength)?.into(),
    })
}
