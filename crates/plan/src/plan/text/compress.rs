//! Finding repetitions: blocks of lightpaths that are shifted copies of one another.
//!
//! Blocks, at first single lightpaths, are sorted in one of several orders; runs with one and the
//! same shift from each to the next become a block with one repetition more. Each order finds other
//! regularities: rotations side by side on one wavelength, fans out of one source, fans into one
//! destination, equal hops. The orders are gone through for long runs first, then for short ones,
//! until nothing is gained.

use crate::plan::{Lightpath, Plan};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::light::{LightKind, MAX_FIELDS};

/// What ranks and chunks are counted modulo, and in which fields light counts on.
#[derive(Clone, Copy)]
pub(super) struct Modulus {
    ranks: u32,
    chunks: u32,
    kind: Option<&'static LightKind>,
    /// The bits of light that are written in words before the last.
    leading: u32,
    /// The bits of the fields in which the copies of a repetition are alike.
    alike: u32,
}

impl Modulus {
    /// That of the statements of a plan.
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

/// By how much each copy differs from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CopyShift {
    pub(super) chunk: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    /// Of the copies of a pipelined plan: other copies are in one slot.
    pub(super) slot: u32,
    /// Of the rotations of an all_to_all: by how many ranks the copies are turned, with their blocks.
    pub(super) turn: u32,
    /// By how much each field of light counts on.
    pub(super) light: [u32; MAX_FIELDS],
}

/// So many copies, the first included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repetition {
    pub(super) count: u32,
    pub(super) shift: CopyShift,
}

/// A lightpath with its repetitions, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepeatedLightpath {
    pub(super) base: Lightpath,
    pub(super) repetitions: Vec<Repetition>,
}

impl RepeatedLightpath {
    /// The number of lightpaths that it stands for.
    pub(super) fn lightpaths(&self) -> u64 {
        let counts = self.repetitions.iter().map(|repetition| repetition.count);
        counts.map(u64::from).product()
    }
}

/// The shortest runs worth a repetition, first and then: with two, any pair would do and spoil
/// longer runs.
const SHORTEST_RUNS: [usize; 2] = [8, 3];

/// The orders in which runs are looked for.
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

/// The lightpaths of one slot as blocks, in a canonical order.
pub(super) fn compress(mut lightpaths: Vec<Lightpath>, modulus: Modulus) -> Vec<RepeatedLightpath> {
    lightpaths.sort_unstable();
    let mut blocks: Vec<RepeatedLightpath> = lightpaths
        .into_iter()
        .map(|base| RepeatedLightpath {
            base,
            repetitions: Vec::new(),
        })
        .collect();
    for shortest in SHORTEST_RUNS {
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

/// How many blocks from the first on follow one another by the same shift.
fn run_length(blocks: &[RepeatedLightpath], modulus: Modulus) -> Option<(usize, CopyShift)> {
    let shift = shift(blocks.first()?, blocks.get(1)?, modulus)?;
    let same = blocks
        .windows(2)
        .take_while(|pair| self::shift(&pair[0], &pair[1], modulus) == Some(shift))
        .count();
    Some((same + 1, shift))
}

/// The shift that makes `one` into `other`, if there is one.
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
