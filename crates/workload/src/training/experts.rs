//! How many tokens each expert gets: evenly, by Zipf's law, or as a table says.
//!
//! A micro-batch of n tokens gives n k assignments to experts, k for each token and never two to one expert. The experts
//! of a layer share them in proportion to weights; an expert whose share exceeds n gets n, and the others share the rest.
//! With a capacity factor c, an expert of x takes at most ceil(c n k / x) assignments from a replica; what is above that is
//! dropped (Lepikhin et al., GShard, arXiv:2006.16668, section 2.2; Fedus et al., Switch Transformers, arXiv:2101.03961,
//! equation 3).

use super::TrainingError;
use super::transformer::TransformerShape;
use opticoll_base::hash::shuffled;

/// Weights of the experts, by which they share the tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpertSkew {
    /// All alike.
    Even,
    /// The r-th of them in an order of each layer's own has weight r^-exponent.
    Zipf {
        /// The exponent, 0 or more.
        exponent: f64,
        /// From which the orders are drawn.
        seed: u64,
    },
    /// Per layer of experts, per source (one for all, or one for each expert-parallel rank), the weight of each expert.
    Table(Vec<Vec<Vec<u64>>>),
}

/// The weight of the most popular expert under Zipf's law.
const MOST_WEIGHT: f64 = 4_294_967_296.0;

/// Assignments of a micro-batch in each layer of experts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertLoads {
    /// Experts on each expert-parallel rank.
    experts_per_rank: usize,
    /// Per layer, per source rank, of each expert.
    layers: Vec<Vec<Vec<u64>>>,
    /// Assignments dropped, of all layers and sources.
    pub dropped: u128,
    /// Assignments, with those dropped.
    pub assigned: u128,
}

impl ExpertLoads {
    /// The loads of micro-batches of so many tokens on `ranks` expert-parallel ranks; the capacity factor in millionths.
    ///
    /// # Errors
    /// A table of another shape, or of weights that are all zero; an exponent that is no number.
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
        let most = capacity.map_or(u128::MAX, |factor| {
            (u128::from(factor) * assignments).div_ceil(1_000_000 * experts as u128)
        });
        for layer in 0..shape.layers {
            let weights = weights(skew, layer, experts, shape.layers, ranks)?;
            let mut rows = Vec::with_capacity(ranks as usize);
            for source in 0..ranks as usize {
                let row = weights.get(source).unwrap_or(&weights[0]);
                let mut shared = share(row, assignments, u128::from(tokens)).ok_or_else(|| {
                    TrainingError::Groups(format!(
                        "the experts of layer {layer} take too few tokens: {} of them have a weight, and each token goes to {}",
                        row.iter().filter(|weight| **weight > 0).count(),
                        shape.top_k
                    ))
                })?;
                loads.assigned += assignments;
                for one in &mut shared {
                    loads.dropped += u128::from(*one).saturating_sub(most);
                    *one = u128::from(*one).min(most) as u64;
                }
                rows.push(shared);
            }
            loads.layers.push(rows);
        }
        Ok(loads)
    }

    /// Of a model without experts.
    pub fn none() -> ExpertLoads {
        ExpertLoads {
            experts_per_rank: 0,
            layers: Vec::new(),
            dropped: 0,
            assigned: 0,
        }
    }

    /// The number of layers of experts.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Assignments of a layer that one expert-parallel rank has for another's experts.
    pub fn between(&self, layer: usize, source: usize, target: usize) -> u64 {
        let first = target * self.experts_per_rank;
        let own = &self.layers[layer][source][first..first + self.experts_per_rank];
        own.iter().sum()
    }

    /// Assignments of a layer that a rank's experts get from all.
    pub fn received(&self, layer: usize, target: usize) -> u128 {
        let sources = 0..self.layers[layer].len();
        sources
            .map(|source| u128::from(self.between(layer, source, target)))
            .sum()
    }

    /// Whether all pairs of expert-parallel ranks of a layer exchange as much.
    pub fn is_even(&self, layer: usize) -> bool {
        let ranks = self.layers[layer].len();
        let first = self.between(layer, 0, 0);
        let mut pairs = (0..ranks).flat_map(|one| (0..ranks).map(move |other| (one, other)));
        pairs.all(|(one, other)| self.between(layer, one, other) == first)
    }
}

/// Per source the weights of a layer's experts; one row where all sources are alike.
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
                    "the exponent {exponent} is no number of at least 0"
                )));
            }
            let order = shuffled(experts as u32, seed.wrapping_add(layer));
            let mut row = vec![0; experts];
            for (place, expert) in order.into_iter().enumerate() {
                let weight = MOST_WEIGHT * libm::pow(place as f64 + 1.0, -exponent);
                row[expert as usize] = (weight as u64).max(1);
            }
            Ok(vec![row])
        }
        ExpertSkew::Table(table) => {
            if table.len() as u64 != layers {
                let given = table.len();
                return Err(refuse(format!(
                    "the table has {given} layers, and the model has {layers} with experts"
                )));
            }
            let rows = &table[layer as usize];
            if rows.len() != 1 && rows.len() != ranks as usize {
                return Err(refuse(format!(
                    "layer {layer} has {} sources; one for all, or {ranks}, one for each expert-parallel rank, are needed",
                    rows.len()
                )));
            }
            match rows.iter().find(|row| row.len() != experts) {
                Some(row) => Err(refuse(format!(
                    "layer {layer} has weights of {} experts, and the model has {experts}",
                    row.len()
                ))),
                None => Ok(rows.clone()),
            }
        }
    }
}

/// Divides assignments in proportion to weights, none above `most`; none if too few have a weight.
fn share(weights: &[u64], assignments: u128, most: u128) -> Option<Vec<u64>> {
    let mut shares = vec![0u128; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).filter(|&one| weights[one] > 0).collect();
    let mut left = assignments;
    // Those that exceed the limit get it; then the rest is divided anew.
    loop {
        let sum: u128 = open.iter().map(|&one| u128::from(weights[one])).sum();
        let exceeds = |one: &usize| left * u128::from(weights[*one]) > most * sum;
        let full: Vec<usize> = open.iter().copied().filter(exceeds).collect();
        if full.is_empty() {
            if sum == 0 && left > 0 {
                return None;
            }
            divide(weights, &open, left, sum, &mut shares);
            break;
        }
        for one in &full {
            shares[*one] = most;
            left = left.checked_sub(most)?;
        }
        open.retain(|one| !full.contains(one));
    }
    shares
        .into_iter()
        .map(|one| u64::try_from(one).ok())
        .collect()
}

/// By the largest remainders, earlier experts first.
fn divide(weights: &[u64], open: &[usize], left: u128, sum: u128, shares: &mut [u128]) {
    if sum == 0 {
        return;
    }
    let mut remainders = Vec::with_capacity(open.len());
    let mut given = 0;
    for &one in open {
        let product = left * u128::from(weights[one]);
        shares[one] = product / sum;
        given += product / sum;
        remainders.push((std::cmp::Reverse(product % sum), one));
    }
    remainders.sort_unstable();
    for (_, one) in remainders.into_iter().take((left - given) as usize) {
        shares[one] += 1;
    }
}
