//! Rules for the weights of experts: Zipf's law, and the workloads of a benchmark of Megatron-LM.
//!
//! The benchmark (`benchmarks/moe/token_imbalance` of NVIDIA/Megatron-LM, pull request 7488) has
//! eight workloads, W0 to W7. In a workload with hot experts, a share s of the tokens choose their
//! k experts among H hot experts only, and the other tokens choose among all x experts. A hot
//! expert therefore receives s k / H + (1 - s) k / x assignments per token, and any other expert
//! (1 - s) k / x. The weights have this ratio, s x + (1 - s) H to (1 - s) H. The benchmark draws
//! the experts of each token; the weights are the expected numbers of its draws. The defaults
//! H = max(k, x / 4), s = 3/4 (1/2 in a burst), a move every 3 steps and a burst in every fourth
//! step are those of the benchmark. A step of the benchmark is a micro-batch here.
//!
//! Three rules deviate from the code of the benchmark and follow its description: `hot_experts`
//! are drawn (the code has the first experts, as in `hot_rank`), `spread` has as many hot experts
//! as `hot_rank` (the code has half of all experts), and the sources of `ragged` have different
//! numbers of tokens (the code has equal numbers). The description gives no numbers for `ragged`;
//! its rule is an assumption.

use super::{ExpertWeights, MILLION, SourceWeights};
use crate::training::TrainingError;
use crate::training::transformer::TransformerShape;
use opticoll_base::hash::shuffled;
use opticoll_base::names::suggest;
use opticoll_base::spec::{OptionRecord, Spec, SpecError};

/// Rule for the weights of experts.
pub struct SkewRule {
    /// Name in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Options of the rule.
    pub options: &'static [OptionRecord],
    /// Function that returns the weights of a layer: a row for each source, or a single row for all
    /// sources.
    rows: fn(&Place, &Spec) -> Result<Vec<SourceWeights>, SpecError>,
    /// Function that returns the variant of a micro-batch, if micro-batches differ.
    variant: Option<Variant>,
}

type Variant = fn(&Place, &Spec, u64) -> Result<u64, SpecError>;

/// Layer whose weights are computed, and the sizes of the model.
struct Place {
    experts: u64,
    top_k: u64,
    ranks: u64,
    layer: u64,
    /// Number that distinguishes micro-batches with different weights.
    variant: u64,
}

const SEED: OptionRecord = OptionRecord::new("seed", "seed of the random order")
    .range("0 to 4294967295")
    .default("0");
const COUNT: OptionRecord = OptionRecord::new("count", "number of hot experts")
    .range("k to the number of experts")
    .default("a fourth of the experts, at least k");
/// Default of [`SHARE`], in millionths.
const USUAL_SHARE: u64 = 750_000;
const SHARE: OptionRecord = OptionRecord::new(
    "share",
    "share of the tokens that choose among hot experts only",
)
.range("0 to 1")
.default("0.75");

/// All rules.
pub const SKEWS: &[SkewRule] = &[
    SkewRule {
        name: "balanced",
        summary: "Equal weights (W0)",
        options: &[],
        rows: |place, _| Ok(every_source(vec![1; place.experts as usize])),
        variant: None,
    },
    SkewRule {
        name: "zipf",
        summary: "The r-th most popular expert has weight r^-exponent; each layer has its own \
                  random order of experts",
        options: &[
            OptionRecord::new("exponent", "exponent of Zipf's law")
                .range("0 to 64")
                .default("1"),
            SEED,
        ],
        rows: zipf,
        variant: None,
    },
    SkewRule {
        name: "hot_experts",
        summary: "A fixed set of experts, drawn for each layer, is hot (W1)",
        options: &[COUNT, SHARE, SEED],
        rows: |place, spec| {
            let order = shuffled(place.experts as u32, seed(spec)?.wrapping_add(place.layer));
            let count = count(place, spec)? as usize;
            hot(
                place,
                spec,
                order[..count].iter().map(|&expert| expert.into()),
                USUAL_SHARE,
            )
        },
        variant: None,
    },
    SkewRule {
        name: "hot_rank",
        summary: "Consecutive experts are hot, from the first expert of a rank on (W2)",
        options: &[
            OptionRecord::new("rank", "rank of the first hot expert")
                .range("0 to the number of expert-parallel ranks - 1")
                .default("0"),
            COUNT,
            SHARE,
        ],
        rows: |place, spec| {
            let last = (place.ranks - 1) as u32;
            let rank = u64::from(spec.count("rank", 0, last)?.unwrap_or(0));
            let first = rank * place.experts / place.ranks;
            hot(place, spec, first..first + count(place, spec)?, USUAL_SHARE)
        },
        variant: None,
    },
    SkewRule {
        name: "spread",
        summary: "Hot experts are at equal distances, so that they are on different ranks (W3)",
        options: &[COUNT, SHARE],
        rows: |place, spec| {
            let count = count(place, spec)?;
            hot(
                place,
                spec,
                (0..count).map(|hot| hot * place.experts / count),
                USUAL_SHARE,
            )
        },
        variant: None,
    },
    SkewRule {
        name: "ragged",
        summary: "Sources have different numbers of tokens, from all tokens at source 0 down to \
                  the share `least` at the last source; the rest is padding, which no expert gets \
                  (W4)",
        options: &[
            OptionRecord::new("least", "share of the tokens of the last source")
                .range("0 to 1")
                .default("0.5"),
        ],
        rows: ragged,
        variant: None,
    },
    SkewRule {
        name: "zero_rank",
        summary: "The first experts receive nothing, so that their ranks are idle (W5)",
        options: &[OptionRecord::new("count", "number of idle experts")
            .range("0 to the number of experts - k")
            .default("half of the experts")],
        rows: |place, spec| {
            let most = place.experts.saturating_sub(place.top_k);
            let idle = spec
                .count("count", 0, most as u32)?
                .map_or(place.experts / 2, u64::from);
            let weight = |expert| u64::from(expert >= idle.min(most));
            Ok(every_source((0..place.experts).map(weight).collect()))
        },
        variant: None,
    },
    SkewRule {
        name: "rotating",
        summary: "Consecutive experts are hot; every few micro-batches the next experts are hot \
                  (W6)",
        options: &[
            OptionRecord::new(
                "every",
                "number of micro-batches after which other experts are hot",
            )
            .range("1 to 1048576")
            .default("3"),
            COUNT,
            SHARE,
        ],
        rows: |place, spec| {
            let count = count(place, spec)?;
            hot(
                place,
                spec,
                place.variant..place.variant + count,
                USUAL_SHARE,
            )
        },
        variant: Some(|place, spec, micro_batch| {
            Ok(micro_batch / every(spec)? * count(place, spec)? % place.experts)
        }),
    },
    SkewRule {
        name: "burst",
        summary: "The first experts are hot in the last micro-batch of each period; in the other \
                  micro-batches all experts are alike (W7)",
        options: &[
            OptionRecord::new("period", "number of micro-batches from burst to burst")
                .range("1 to 1048576")
                .default("4"),
            COUNT,
            SHARE.default("0.5"),
        ],
        rows: |place, spec| hot(place, spec, 0..place.variant * count(place, spec)?, 500_000),
        variant: Some(|_, spec, micro_batch| {
            let period: u64 = spec.count("period", 1, MAX_STEPS)?.unwrap_or(4).into();
            Ok(u64::from((micro_batch + 1) % period == 0))
        }),
    },
];

/// Weight of the most popular expert under Zipf's law. The other weights are rounded down to
/// integers of at least 1.
const MAX_WEIGHT: f64 = 4_294_967_296.0;

/// Maximum of `every` and `period`, the maximum number of micro-batches.
const MAX_STEPS: u32 = 1 << 20;

/// Returns the weights that the specification `spec` describes, for the layers with experts of a
/// model on `ranks` expert-parallel ranks, in `micro_batches` micro-batches.
///
/// # Errors
/// Fails for an unknown name or option, and for a value out of range.
pub fn generate(
    spec: &Spec,
    shape: TransformerShape,
    ranks: u32,
    micro_batches: u64,
) -> Result<ExpertWeights, TrainingError> {
    let rule = SKEWS.iter().find(|one| one.name == spec.name());
    let rule = rule.ok_or_else(|| SpecError::Unknown {
        what: "skew",
        name: spec.name().into(),
        hint: suggest(spec.name(), SKEWS.iter().map(|one| one.name)),
    })?;
    spec.only_declared(rule.options)?;
    let mut place = Place {
        experts: shape.experts,
        top_k: shape.top_k,
        ranks: u64::from(ranks.max(1)),
        layer: 0,
        variant: 0,
    };
    let mut weights = ExpertWeights {
        tables: Vec::new(),
        order: Vec::new(),
    };
    let mut variants = Vec::new();
    let differing = if rule.variant.is_some() {
        micro_batches
    } else {
        1
    };
    for micro_batch in 0..differing.max(1) {
        if let Some(variant) = rule.variant {
            place.variant = variant(&place, spec, micro_batch)?;
        }
        let known = variants.iter().position(|one| *one == place.variant);
        weights.order.push(known.unwrap_or(variants.len()));
        if known.is_none() {
            variants.push(place.variant);
            let of_layer = |layer: u64| {
                place.layer = layer;
                (rule.rows)(&place, spec)
            };
            let table: Result<_, _> = (0..shape.expert_layers()).map(of_layer).collect();
            weights.tables.push(table?);
        }
    }
    Ok(weights)
}

fn every_source(weights: Vec<u64>) -> Vec<SourceWeights> {
    let tokens = MILLION;
    vec![SourceWeights { tokens, weights }]
}

/// Returns weights with the experts `hot`, counted modulo the number of experts. `usual` is the
/// default of the option `share`, in millionths.
fn hot(
    place: &Place,
    spec: &Spec,
    hot: impl Iterator<Item = u64>,
    usual: u64,
) -> Result<Vec<SourceWeights>, SpecError> {
    let share = millionths(spec, "share", usual)?;
    let hot: Vec<u64> = hot.map(|expert| expert % place.experts).collect();
    let count = hot.len() as u64;
    if count == 0 {
        return Ok(every_source(vec![1; place.experts as usize]));
    }
    let cold = (MILLION - share) * count;
    let mut weights = vec![cold; place.experts as usize];
    for expert in hot {
        weights[expert as usize] = share * place.experts + cold;
    }
    Ok(every_source(weights))
}

fn zipf(place: &Place, spec: &Spec) -> Result<Vec<SourceWeights>, SpecError> {
    let exponent: f64 = spec.value("exponent")?.unwrap_or(1.0);
    if !(0.0..=64.0).contains(&exponent) {
        return Err(spec.refuse("exponent", "must be a number from 0 to 64"));
    }
    let order = shuffled(place.experts as u32, seed(spec)?.wrapping_add(place.layer));
    let mut weights = vec![0; place.experts as usize];
    for (number, expert) in order.into_iter().enumerate() {
        let weight = MAX_WEIGHT * libm::pow(number as f64 + 1.0, -exponent);
        weights[expert as usize] = (weight as u64).max(1);
    }
    Ok(every_source(weights))
}

fn ragged(place: &Place, spec: &Spec) -> Result<Vec<SourceWeights>, SpecError> {
    let padding = MILLION - millionths(spec, "least", 500_000)?;
    let last = (place.ranks - 1).max(1);
    let row = |source| SourceWeights {
        tokens: MILLION - padding * source / last,
        weights: vec![1; place.experts as usize],
    };
    Ok((0..place.ranks).map(row).collect())
}

fn count(place: &Place, spec: &Spec) -> Result<u64, SpecError> {
    let given = spec.count("count", place.top_k as u32, place.experts as u32)?;
    let usual = (place.experts / 4).max(place.top_k);
    Ok(given.map_or(usual.min(place.experts), u64::from))
}

fn seed(spec: &Spec) -> Result<u64, SpecError> {
    Ok(spec.count("seed", 0, u32::MAX)?.unwrap_or(0).into())
}

fn every(spec: &Spec) -> Result<u64, SpecError> {
    Ok(spec.count("every", 1, MAX_STEPS)?.unwrap_or(3).into())
}

/// Parses an option from 0 to 1 as millionths.
fn millionths(spec: &Spec, key: &str, usual: u64) -> Result<u64, SpecError> {
    match spec.value::<f64>(key)? {
        None => Ok(usual),
        Some(share) if (0.0..=1.0).contains(&share) => Ok((share * MILLION as f64).round() as u64),
        Some(_) => Err(spec.refuse(key, "must be a number from 0 to 1")),
    }
}
