//! Distribution of tokens among experts: even, by Zipf's law, or by a table.
//!
//! A micro-batch of n tokens has n k assignments to experts: each token is assigned to k different
//! experts. The experts of a layer receive assignments in proportion to weights. An expert whose
//! share exceeds n receives n assignments, and the other experts divide the remaining assignments.
//! With a capacity factor c and x experts, an expert accepts at most ceil(c n k / x) assignments
//! from a replica; further assignments are dropped (Lepikhin et al., GShard, arXiv:2006.16668,
//! section 2.2; Fedus et al., Switch Transformers, arXiv:2101.03961, equation 3).

use super::TrainingError;
use super::transformer::TransformerShape;
use opticoll_base::hash::shuffled;

/// Weights in proportion to which experts receive tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpertSkew {
    /// Equal weights.
    Even,
    /// The r-th expert has weight r^-exponent. The order of the experts is drawn at random for each
    /// layer.
    Zipf {
        /// Exponent, at least 0.
        exponent: f64,
        /// Seed from which the orders are drawn.
        seed: u64,
    },
    /// Weight of each expert, indexed by layer with experts, source and expert. A layer has one row
    /// per expert-parallel source rank, or a single row for all source ranks.
    Table(Vec<Vec<Vec<u64>>>),
}

/// Weight of the most popular expert under Zipf's law. The other weights are rounded down to
/// integers of at least 1.
const MAX_WEIGHT: f64 = 4_294_967_296.0;

/// Number of assignments of a micro-batch to each expert, for each layer with experts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertLoads {
    /// Number of experts on each expert-parallel rank.
    experts_per_rank: usize,
    /// Number of assignments, indexed by layer, source rank and expert.
    layers: Vec<Vec<Vec<u64>>>,
    /// Number of dropped assignments, summed over layers and source ranks.
    pub dropped: u128,
    /// Number of assignments, including dropped assignments.
    pub assigned: u128,
}

impl ExpertLoads {
    /// Computes the assignments of micro-batches of `tokens` tokens on `ranks` expert-parallel
    /// ranks. `capacity` is the capacity factor in millionths; `None` means no limit.
    ///
    /// # Errors
    /// Fails if a table has another shape or only zero weights, or if an exponent is negative or
    /// not a number.
    pub fn new(
        shape: TransformerShape,
        ranks: u32,
        tokens: u64,
        skew: &ExpertSkew,
        capacity: Option<u64>,
    ) -> Result<ExpertLoads, TrainingError> {
        let experts = shape.experts as usize;
        let mut loads = ExpertLoads {
            experts_per_rank: experts / (ranks as usize).max(1),
            ..ExpertLoads::none()
        };
        if experts == 0 {
            return Ok(loads);
        }
        let assignments = u128::from(tokens) * u128::from(shape.top_k);
        let limit = capacity.map_or(u128::MAX, |factor| {
            (u128::from(factor) * assignments).div_ceil(1_000_000 * experts as u128)
        });
        let layers = shape.expert_layers();
        for layer in 0..layers {
            let weights = weights(skew, layer, experts, layers, ranks)?;
            let mut rows = Vec::with_capacity(ranks as usize);
            for source in 0..ranks as usize {
                let row = weights.get(source).unwrap_or(&weights[0]);
                let mut shared = share(row, assignments, u128::from(tokens)).ok_or_else(|| {
                    TrainingError::Groups(format!(
                        "the experts of layer {layer} receive too few tokens: {} experts have a \
                         weight, but each token goes to {} experts",
                        row.iter().filter(|weight| **weight > 0).count(),
                        shape.top_k
                    ))
                })?;
                loads.assigned += assignments;
                for load in &mut shared {
                    loads.dropped += u128::from(*load).saturating_sub(limit);
                    *load = u128::from(*load).min(limit) as u64;
                }
                rows.push(shared);
            }
            loads.layers.push(rows);
        }
        Ok(loads)
    }

    /// Creates the loads of a model without experts.
    pub fn none() -> ExpertLoads {
        ExpertLoads {
            experts_per_rank: 0,
            layers: Vec::new(),
            dropped: 0,
            assigned: 0,
        }
    }

    /// Returns the number of layers with experts.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Returns the number of assignments in `layer` from the tokens of rank `source` to the experts
    /// of rank `target`. Both are expert-parallel ranks.
    pub fn between(&self, layer: usize, source: usize, target: usize) -> u64 {
        let first = target * self.experts_per_rank;
        let loads = &self.layers[layer][source][first..first + self.experts_per_rank];
        loads.iter().sum()
    }

    /// Returns the number of assignments in `layer` from all ranks to the experts of rank `target`.
    pub fn received(&self, layer: usize, target: usize) -> u128 {
        let sources = 0..self.layers[layer].len();
        sources
            .map(|source| u128::from(self.between(layer, source, target)))
            .sum()
    }

    /// Returns whether all pairs of ranks exchange the same number of tokens in `layer`.
    pub fn is_even(&self, layer: usize) -> bool {
        let ranks = self.layers[layer].len();
        let first = self.between(layer, 0, 0);
        let mut pairs =
            (0..ranks).flat_map(|source| (0..ranks).map(move |target| (source, target)));
        pairs.all(|(source, target)| self.between(layer, source, target) == first)
    }
}

/// Returns the weights of a layer's experts, indexed by source rank and expert. A single row stands
/// for all source ranks.
fn weights(
    skew: &ExpertSkew,
    layer: u64,
    experts: usize,
    layers: u64,
    ranks: u32,
) -> Result<Vec<Vec<u64>>, TrainingError> {
    let refuse = |problem: String| TrainingError::Groups(format!("expert-skew: {problem}"));
    match skew {
        ExpertSkew::Even => Ok(vec![vec![1; experts]]),
        ExpertSkew::Zipf { exponent, seed } => {
            if !(exponent.is_finite() && *exponent >= 0.0) {
                return Err(refuse(format!(
                    "the exponent {exponent} is not a number of at least 0"
                )));
            }
            let order = shuffled(experts as u32, seed.wrapping_add(layer));
            let mut row = vec![0; experts];
            for (place, expert) in order.into_iter().enumerate() {
                let weight = MAX_WEIGHT * libm::pow(place as f64 + 1.0, -exponent);
                row[expert as usize] = (weight as u64).max(1);
            }
            Ok(vec![row])
        }
        ExpertSkew::Table(table) => {
            if table.len() as u64 != layers {
                let table_layers = table.len();
                return Err(refuse(format!(
                    "the table has {table_layers} layers, but the model has {layers} layers with \
                     experts"
                )));
            }
            let rows = &table[layer as usize];
            if rows.len() != 1 && rows.len() != ranks as usize {
                return Err(refuse(format!(
                    "layer {layer} has {} sources; give one source for all ranks, or {ranks} \
                     sources, one for each expert-parallel rank",
                    rows.len()
                )));
            }
            match rows.iter().find(|row| row.len() != experts) {
                Some(row) => Err(refuse(format!(
                    "layer {layer} has weights of {} experts, but the model has {experts} experts",
                    row.len()
                ))),
                None => Ok(rows.clone()),
            }
        }
    }
}

/// Divides `assignments` in proportion to `weights`, with at most `max_share` assignments per
/// expert. Returns `None` if too few experts have a weight above 0.
fn share(weights: &[u64], assignments: u128, max_share: u128) -> Option<Vec<u64>> {
    let mut shares = vec![0u128; weights.len()];
    let mut open: Vec<usize> = (0..weights.len())
        .filter(|&expert| weights[expert] > 0)
        .collect();
    let mut remaining = assignments;
    // Experts above the limit get the limit; the remaining assignments are divided again.
    loop {
        let sum: u128 = open.iter().map(|&expert| u128::from(weights[expert])).sum();
        let exceeds = |expert: &usize| remaining * u128::from(weights[*expert]) > max_share * sum;
        let full: Vec<usize> = open.iter().copied().filter(exceeds).collect();
        if full.is_empty() {
            if sum == 0 && remaining > 0 {
                return None;
            }
            divide(weights, &open, remaining, sum, &mut shares);
            break;
        }
        for expert in &full {
            shares[*expert] = max_share;
            remaining = remaining.checked_sub(max_share)?;
        }
        open.retain(|expert| !full.contains(expert));
    }
    shares
        .into_iter()
        .map(|share| u64::try_from(share).ok())
        .collect()
}

/// Divides the `remaining` assignments among the experts `open` in proportion to `weights`, by the
/// largest-remainder method. Among equal remainders, earlier experts come first. `sum` is the sum
/// of the weights of these experts. Writes the numbers of assignments to `shares`, which is indexed
/// by expert.
fn divide(weights: &[u64], open: &[usize], remaining: u128, sum: u128, shares: &mut [u128]) {
    if sum == 0 {
        return;
    }
    let mut remainders = Vec::with_capacity(open.len());
    let mut assigned = 0;
    for &expert in open {
        let product = remaining * u128::from(weights[expert]);
        shares[expert] = product / sum;
        assigned += product / sum;
        remainders.push((std::cmp::Reverse(product % sum), expert));
    }
    remainders.sort_unstable();
    for (_, expert) in remainders.into_iter().take((remaining - assigned) as usize) {
        shares[expert] += 1;
    }
}
