//! Search for repetitions: groups of lightpaths that are shifted copies of each other.
//!
//! A *block* is a lightpath with repetitions, at first with none. The search sorts blocks in one of
//! several orders. Consecutive blocks with the same shift from each to the next become a single
//! block with one more repetition. Each order finds other patterns: rotations on one wavelength,
//! transfers from one source, transfers to one destination, transfers over the same distance. The
//! search tries all orders for long sequences first, then for short sequences, until it finds no
//! more.

use crate::plan::{Lightpath, Plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::light::{LightKind, MAX_FIELDS};

/// Numbers of ranks and chunks, which are the moduli of shifts, and the fields of light that shift.
#[derive(Clone, Copy)]
pub(super) struct Modulus {
    ranks: u32,
    chunks: u32,
    kind: Option<&'static LightKind>,
    /// Mask of the bits of light that are written before the last word of the light.
    leading: u32,
    /// Mask of the bits of light that all copies of a repetition share.
    alike: u32,
}

impl Modulus {
    pub(super) fn of(plan: &Plan) -> Modulus {
        let kind = plan.fabric.light();
        Modulus {
            ranks: plan.fabric.ranks(),
            chunks: plan.schedule.collective.chunks(),
            kind,
            leading: kind.map_or(0, LightKind::leading),
            alike: kind.map_or(0, |kind| kind.mask(|field| !field.shifts)),
        }
    }
}

/// Difference between each copy and the previous copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CopyShift {
    pub(super) chunk: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Shift in slots between copies of a pipelined plan; 0 in other plans.
    pub(super) slot: u32,
    /// Number of ranks by which a copy is rotated in an all_to_all. The rotation moves ranks and
    /// blocks.
    pub(super) turn: u32,
    /// Shift of each field of light, indexed by field.
    pub(super) light: [u32; MAX_FIELDS],
}

/// Number of copies, including the first, and the shift from each copy to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repetition {
    pub(super) count: u32,
    pub(super) shift: CopyShift,
}

/// Lightpath with its repetitions; the innermost repetition comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepeatedLightpath {
    pub(super) base: Lightpath,
    pub(super) repetitions: Vec<Repetition>,
}

impl RepeatedLightpath {
    /// Returns the number of lightpaths that the statement stands for.
    pub(super) fn lightpaths(&self) -> u64 {
        let counts = self.repetitions.iter().map(|repetition| repetition.count);
        counts.map(u64::from).product()
    }
}

/// Minimum length of a sequence in the first and in the second pass. If the minimum were 2, any two
/// blocks would form a sequence, which would break up longer sequences.
const MIN_SEQUENCE_LENGTHS: [usize; 2] = [8, 3];

/// Sort order in which sequences are searched.
#[derive(Clone, Copy)]
enum SortOrder {
    Light,
    Source,
    Destination,
    Hops,
}

impl SortOrder {
    const ALL: [SortOrder; 4] = [
        SortOrder::Light,
        SortOrder::Source,
        SortOrder::Destination,
        SortOrder::Hops,
    ];

    fn key(self, lightpath: &Lightpath, modulus: &Modulus) -> [u32; 6] {
        let Lightpath {
            light, transfer, ..
        } = *lightpath;
        let ranks = modulus.ranks;
        let hops = (transfer.destination + ranks - transfer.source) % ranks;
        let (action, leading) = (transfer.action as u32, light.0 & modulus.leading);
        let light = light.0 & !modulus.leading;
        let (source, destination, chunk) = (transfer.source, transfer.destination, transfer.chunk);
        match self {
            SortOrder::Light => [action, leading, light, hops, source, chunk],
            SortOrder::Source => [action, leading, source, light, destination, chunk],
            SortOrder::Destination => [action, leading, destination, light, source, chunk],
            SortOrder::Hops => [action, leading, hops, light, source, chunk],
        }
    }
}

/// Returns the lightpaths of one slot as repeated lightpaths, in a canonical order.
pub(super) fn compress(mut lightpaths: Vec<Lightpath>, modulus: Modulus) -> Vec<RepeatedLightpath> {
    lightpaths.sort_unstable();
    let mut blocks: Vec<RepeatedLightpath> = lightpaths
        .into_iter()
        .map(|base| RepeatedLightpath {
            base,
            repetitions: Vec::new(),
        })
        .collect();
    for shortest in MIN_SEQUENCE_LENGTHS {
        loop {
            let before = blocks.len();
            for order in SortOrder::ALL {
                interrupt::check();
                sort(&mut blocks, order, &modulus);
                blocks = merge_sequences(blocks, shortest, modulus);
            }
            if blocks.len() == before {
                break;
            }
        }
    }
    sort(&mut blocks, SortOrder::Light, &modulus);
    blocks
}

fn sort(blocks: &mut [RepeatedLightpath], order: SortOrder, modulus: &Modulus) {
    blocks.sort_by(|one, other| {
        one.repetitions.cmp(&other.repetitions).then_with(|| {
            order
                .key(&one.base, modulus)
                .cmp(&order.key(&other.base, modulus))
        })
    });
}

/// Merges each sequence of at least `shortest` repeated lightpaths with equal shifts into one.
fn merge_sequences(
    blocks: Vec<RepeatedLightpath>,
    shortest: usize,
    modulus: Modulus,
) -> Vec<RepeatedLightpath> {
    let mut merged = Vec::new();
    let mut first = 0;
    while first < blocks.len() {
        interrupt::check();
        let sequence = sequence_length(&blocks[first..], modulus);
        let mut block = blocks[first].clone();
        if let Some((count, shift)) = sequence.filter(|(count, _)| *count >= shortest) {
            block.repetitions.push(Repetition {
                count: count as u32,
                shift,
            });
            first += count;
        } else {
            first += 1;
        }
        merged.push(block);
    }
    merged
}

/// Returns the length and the shift of the sequence that begins at the start of `blocks`.
fn sequence_length(blocks: &[RepeatedLightpath], modulus: Modulus) -> Option<(usize, CopyShift)> {
    let shift = shift(blocks.first()?, blocks.get(1)?, modulus)?;
    let equal_shifts = blocks
        .windows(2)
        .take_while(|pair| self::shift(&pair[0], &pair[1], modulus) == Some(shift))
        .count();
    Some((equal_shifts + 1, shift))
}

/// Returns the shift from `one` to `other`; `None` if there is none.
fn shift(
    one: &RepeatedLightpath,
    other: &RepeatedLightpath,
    modulus: Modulus,
) -> Option<CopyShift> {
    let (from, to) = (&one.base, &other.base);
    let difference = |from: u32, to: u32, modulus: u32| {
        if to >= from {
            to - from
        } else {
            to + (modulus - from)
        }
    };
    let alike = one.repetitions == other.repetitions
        && from.transfer.action == to.transfer.action
        && from.transfer.count == to.transfer.count
        && (from.light.0 ^ to.light.0) & modulus.alike == 0;
    if !alike {
        return None;
    }
    let mut light = [0; MAX_FIELDS];
    if let Some(kind) = modulus.kind {
        for (field, by) in light[..kind.fields.len()].iter_mut().enumerate() {
            let [from, to] = [from.light, to.light].map(|light| kind.value(light, field));
            *by = to.checked_sub(from)?;
        }
    }
    Some(CopyShift {
        chunk: difference(from.transfer.chunk, to.transfer.chunk, modulus.chunks),
        source: difference(from.transfer.source, to.transfer.source, modulus.ranks),
        destination: difference(
            from.transfer.destination,
            to.transfer.destination,
            modulus.ranks,
        ),
        slot: 0,
        turn: 0,
        light,
    })
}
