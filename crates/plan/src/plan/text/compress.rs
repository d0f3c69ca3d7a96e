//! Search for repetitions: blocks of lightpaths that are shifted copies of one another.
//!
//! Blocks, at first single lightpaths, are sorted in one of several orders. A run of blocks with
//! the same shift from each to the next becomes a block with one more repetition. Each order finds
//! other patterns: rotations side by side on one wavelength, fans out of a source, fans into a
//! destination, equal hops. The search tries all orders for long runs first, then for short ones,
//! until no run is found.

use crate::plan::{Lightpath, Plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::light::{LightKind, MAX_FIELDS};

/// Moduli of ranks and chunks, and the fields of light that shift.
#[derive(Clone, Copy)]
pub(super) struct Modulus {
    ranks: u32,
    chunks: u32,
    kind: Option<&'static LightKind>,
    /// Bits of light that are written in words before the last word.
    leading: u32,
    /// Bits of the fields that all copies of a repetition share.
    alike: u32,
}

impl Modulus {
    /// Returns the moduli of a plan.
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

/// Difference between each copy and the copy before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CopyShift {
    pub(super) chunk: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Shift in slots of the copies of a pipelined plan; 0 for other copies.
    pub(super) slot: u32,
    /// Rotation in ranks, with their blocks, of the copies of an all_to_all.
    pub(super) turn: u32,
    /// Shift of each field of light.
    pub(super) light: [u32; MAX_FIELDS],
}

/// Number of copies, including the first, and their shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repetition {
    pub(super) count: u32,
    pub(super) shift: CopyShift,
}

/// Lightpath with its repetitions, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepeatedLightpath {
    pub(super) base: Lightpath,
    pub(super) repetitions: Vec<Repetition>,
}

impl RepeatedLightpath {
    /// Returns the number of lightpaths that the block stands for.
    pub(super) fn lightpaths(&self) -> u64 {
        let counts = self.repetitions.iter().map(|repetition| repetition.count);
        counts.map(u64::from).product()
    }
}

/// Minimum length of a run, in the first and in the second pass. With 2 any pair would be a run and
/// spoil longer runs.
const MIN_RUN_LENGTHS: [usize; 2] = [8, 3];

/// Order in which runs are searched.
#[derive(Clone, Copy)]
enum RunOrder {
    Light,
    Source,
    Destination,
    Hops,
}

impl RunOrder {
    const ALL: [RunOrder; 4] = [
        RunOrder::Light,
        RunOrder::Source,
        RunOrder::Destination,
        RunOrder::Hops,
    ];

    /// Returns the sort key of a lightpath.
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
            RunOrder::Light => [action, leading, light, hops, source, chunk],
            RunOrder::Source => [action, leading, source, light, destination, chunk],
            RunOrder::Destination => [action, leading, destination, light, source, chunk],
            RunOrder::Hops => [action, leading, hops, light, source, chunk],
        }
    }
}

/// Returns the lightpaths of one slot as blocks, in a canonical order.
pub(super) fn compress(mut lightpaths: Vec<Lightpath>, modulus: Modulus) -> Vec<RepeatedLightpath> {
    lightpaths.sort_unstable();
    let mut blocks: Vec<RepeatedLightpath> = lightpaths
        .into_iter()
        .map(|base| RepeatedLightpath {
            base,
            repetitions: Vec::new(),
        })
        .collect();
    for shortest in MIN_RUN_LENGTHS {
        loop {
            let before = blocks.len();
            for order in RunOrder::ALL {
                interrupt::check();
                sort(&mut blocks, order, &modulus);
                blocks = merge_runs(blocks, shortest, modulus);
            }
            if blocks.len() == before {
                break;
            }
        }
    }
    sort(&mut blocks, RunOrder::Light, &modulus);
    blocks
}

fn sort(blocks: &mut [RepeatedLightpath], order: RunOrder, modulus: &Modulus) {
    blocks.sort_by(|one, other| {
        one.repetitions.cmp(&other.repetitions).then_with(|| {
            order
                .key(&one.base, modulus)
                .cmp(&order.key(&other.base, modulus))
        })
    });
}

/// Merges runs of at least `shortest` blocks, which follow one another in `blocks`.
fn merge_runs(
    blocks: Vec<RepeatedLightpath>,
    shortest: usize,
    modulus: Modulus,
) -> Vec<RepeatedLightpath> {
    let mut merged = Vec::new();
    let mut first = 0;
    while first < blocks.len() {
        interrupt::check();
        let run = run_length(&blocks[first..], modulus);
        let mut block = blocks[first].clone();
        if let Some((count, shift)) = run.filter(|(count, _)| *count >= shortest) {
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

/// Returns the length and shift of the run that starts with the first block.
fn run_length(blocks: &[RepeatedLightpath], modulus: Modulus) -> Option<(usize, CopyShift)> {
    let shift = shift(blocks.first()?, blocks.get(1)?, modulus)?;
    let same = blocks
        .windows(2)
        .take_while(|pair| self::shift(&pair[0], &pair[1], modulus) == Some(shift))
        .count();
    Some((same + 1, shift))
}

/// Returns the shift from `one` to `other`, if there is one.
fn shift(
    one: &RepeatedLightpath,
    other: &RepeatedLightpath,
    modulus: Modulus,
) -> Option<CopyShift> {
    let (from, to) = (&one.base, &other.base);
    let ahead = |from: u32, to: u32, modulus: u32| {
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
        chunk: ahead(from.transfer.chunk, to.transfer.chunk, modulus.chunks),
        source: ahead(from.transfer.source, to.transfer.source, modulus.ranks),
        destination: ahead(
            from.transfer.destination,
            to.transfer.destination,
            modulus.ranks,
        ),
        slot: 0,
        turn: 0,
        light,
    })
}
