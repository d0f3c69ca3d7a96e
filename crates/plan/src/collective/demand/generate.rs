//! Generators of demands by name: `uniform`, `random:seed=0`, `zipf:exponent=1.2,seed=0`,
//! `one_hot:seed=0`.
//!
//! Amounts are fractions of a size. With `random`, `zipf` and `one_hot`, no rank sends to itself.
//! With `uniform`, each rank also has an amount for itself, as in an all_to_all without a demand.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::{DemandError, DemandMatrix};
use opticoll_base::names::suggest;
use opticoll_base::spec::{OptionRecord, Spec, SpecError};

/// Generator of demands.
pub struct DemandGenerator {
    /// Name in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Options of the generator.
    pub options: &'static [OptionRecord],
    /// Function that returns the amounts of all pairs of ranks: a row for each source, one row
    /// after another.
    amounts: fn(u32, &Spec) -> Result<Vec<u64>, SpecError>,
}

const SEED: OptionRecord = OptionRecord::new("seed", "seed of the random numbers")
    .range("0 to 4294967295")
    .default("0");

/// All generators.
pub const GENERATORS: &[DemandGenerator] = &[
    DemandGenerator {
        name: "uniform",
        summary: "The same amount for every pair of ranks, and for each rank's block for itself",
        options: &[],
        amounts: |ranks, _| Ok(vec![WHOLE; squared(ranks)]),
    },
    DemandGenerator {
        name: "random",
        summary: "A random amount for each pair of ranks, uniform in [0, 1]",
        options: &[SEED],
        amounts: |ranks, spec| {
            let mut random = random(spec)?;
            Ok(off_diagonal(ranks, |_, _| random.random_range(0..=WHOLE)))
        },
    },
    DemandGenerator {
        name: "zipf",
        summary: "From every other rank to the k-th most wanted rank an amount proportional to \
                  k^-exponent (hot experts)",
        options: &[
            OptionRecord::new("exponent", "exponent of Zipf's law")
                .range("0 to 10")
                .default("1"),
            SEED,
        ],
        amounts: zipf,
    },
    DemandGenerator {
        name: "one_hot",
        summary: "Every rank sends all bytes to one other rank, chosen at random",
        options: &[SEED],
        amounts: |ranks, spec| {
            let mut random = random(spec)?;
            let draw = |source: u32| {
                let other = random.random_range(0..ranks.max(2) - 1);
                other + u32::from(other >= source)
            };
            let hot: Vec<u32> = (0..ranks).map(draw).collect();
            Ok(off_diagonal(ranks, |source, destination| {
                WHOLE * u64::from(hot[source as usize] == destination)
            }))
        },
    },
];

/// Amount that represents the fraction 1.
const WHOLE: u64 = 1 << 32;

/// Maximum number of ranks of a generated demand, whose amounts need 2 GB of memory.
const MAX_RANKS: u32 = 1 << 14;

/// Returns the demand among `ranks` ranks that the specification `spec` describes. Fails for an
/// unknown name or option, for too many ranks, or if no amount is above 0. The last case occurs for
/// a single rank that does not send to itself.
pub fn generate(spec: &Spec, ranks: u32) -> Result<DemandMatrix, DemandError> {
    let generator = GENERATORS.iter().find(|one| one.name == spec.name());
    let generator = generator.ok_or_else(|| SpecError::Unknown {
        what: "demand",
        name: spec.name().into(),
        hint: suggest(spec.name(), GENERATORS.iter().map(|one| one.name)),
    })?;
    spec.only_declared(generator.options)?;
    if ranks > MAX_RANKS {
        return Err(DemandError::TooLarge);
    }
    DemandMatrix::from_matrix(ranks, &(generator.amounts)(ranks, spec)?)
}

fn squared(ranks: u32) -> usize {
    ranks as usize * ranks as usize
}

fn random(spec: &Spec) -> Result<Pcg64, SpecError> {
    let seed = spec.count(SEED.name, 0, u32::MAX)?.unwrap_or(0);
    Ok(Pcg64::new(seed.into(), 0))
}

/// Returns the amounts of all pairs of ranks, a row for each source. `amount(u, v)` returns the
/// amount from rank u to another rank v. The amount of a rank for itself is 0.
fn off_diagonal(ranks: u32, mut amount: impl FnMut(u32, u32) -> u64) -> Vec<u64> {
    let mut amounts = Vec::with_capacity(squared(ranks));
    for source in 0..ranks {
        for destination in 0..ranks {
            let is_own = source == destination;
            amounts.push(if is_own {
                0
            } else {
                amount(source, destination)
            });
        }
    }
    amounts
}

fn zipf(ranks: u32, spec: &Spec) -> Result<Vec<u64>, SpecError> {
    let exponent: f64 = spec.value("exponent")?.unwrap_or(1.0);
    if !(0.0..=10.0).contains(&exponent) {
        return Err(spec.refuse("exponent", "must be from 0 to 10"));
    }
    let mut places: Vec<u32> = (1..=ranks).collect();
    places.shuffle(&mut random(spec)?);
    let share = |place: &u32| libm::pow(f64::from(*place), -exponent) * WHOLE as f64;
    let shares: Vec<u64> = places
        .iter()
        .map(|place| (share(place) as u64).max(1))
        .collect();
    Ok(off_diagonal(ranks, |_, destination| {
        shares[destination as usize]
    }))
}
