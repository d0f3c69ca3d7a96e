//! Distribution of tokens among experts, and placement of the experts on ranks.
//!
//! A micro-batch of n tokens has n k assignments to experts: each token is assigned to k different
//! experts. The experts of a layer receive assignments in proportion to weights. An expert whose
//! share exceeds n receives n assignments, and the other experts divide the remaining assignments.
//! With a capacity factor c and x experts, an expert accepts at most ceil(c n k / x) assignments
//! from a replica; further assignments are dropped (Lepikhin et al., GShard, arXiv:2006.16668,
//! section 2.2; Fedus et al., Switch Transformers, arXiv:2101.03961, equation 3). If the tokens are
//! sent in chunks, n is the number of tokens of a chunk.
//!
//! [`skews`] has rules for weights, [`placement`] the copies and ranks of the experts.

pub mod placement;
pub mod skews;

use super::TrainingError;
use super::transformer::TransformerShape;

/// Divisor of [`SourceWeights::tokens`].
pub const MILLION: u64 = 1_000_000;

/// Weights of the experts for the tokens of one source rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceWeights {
    /// Tokens of the source that are sent to experts, in millionths of the tokens of a micro-batch.
    /// The other tokens are padding.
    pub tokens: u64,
    /// Weight of each expert.
    pub weights: Vec<u64>,
}

/// Weights of experts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertWeights {
    /// Tables of weights, indexed by table, layer with experts and source. A layer has one row per
    /// expert-parallel source rank, or a single row for all source ranks.
    pub tables: Vec<Vec<Vec<SourceWeights>>>,
    /// Index of the table of each micro-batch. The list repeats.
    pub order: Vec<usize>,
}

opticoll_base::named_enum! {
    /// Rule that assigns experts to ranks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Placement {
        /// Experts are placed in the order of their numbers, the same number on each rank. Further
        /// copies are placed by load.
        Order = "order",
        /// All copies are placed by load.
        Load = "load",
    }
}

/// Sizes and rules for the distribution of tokens.
#[derive(Debug, Clone, Copy)]
pub struct LoadRequest<'a> {
    /// Number of expert-parallel ranks.
    pub ranks: u32,
    /// Number of tokens of a micro-batch.
    pub tokens: u64,
    /// Weights of the experts.
    pub weights: &'a ExpertWeights,
    /// Capacity factor in millionths; `None` means no limit.
    pub capacity: Option<u64>,
    /// Number of copies of experts besides one of each expert.
    pub copies: u64,
    /// Rule that assigns experts to ranks.
    pub placement: Placement,
    /// Number of chunks in which tokens are sent to the experts.
    pub chunks: u64,
}

/// Exchange of a layer with experts in a micro-batch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exchange {
    /// Number of assignments of a chunk, indexed by source rank and target rank.
    between: Vec<Vec<u64>>,
    /// Lower bound on the most assignments of a rank, whatever the placement.
    least: u128,
}

/// Number of assignments of a micro-batch to the experts of each rank, for each layer with experts.
/// Micro-batches with the same table of weights, their **phase**, share an **exchange number** for
/// each layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpertLoads {
    layers: usize,
    /// Number of chunks of a micro-batch.
    pub chunks: u64,
    /// Index of the weights of each micro-batch. The list repeats.
    phases: Vec<usize>,
    /// Exchanges, indexed by exchange number.
    exchanges: Vec<Exchange>,
    /// Ranks of each copy, indexed by layer and expert.
    hosts: Vec<Vec<Vec<usize>>>,
    /// Number of dropped assignments, summed over layers and source ranks, for the micro-batches
    /// until the weights repeat.
    pub dropped: u128,
    /// Number of assignments, including dropped assignments.
    pub assigned: u128,
}

impl ExpertWeights {
    /// Returns equal weights for all experts.
    pub fn even(shape: TransformerShape) -> ExpertWeights {
        let row = SourceWeights {
            tokens: MILLION,
            weights: vec![1; shape.experts as usize],
        };
        ExpertWeights {
            tables: vec![vec![vec![row]; shape.expert_layers() as usize]],
            order: vec![0],
        }
    }

    /// Checks that the table has the layers and experts of the model, and one source or `ranks`
    /// sources.
    fn check(&self, shape: TransformerShape, ranks: u32) -> Result<(), TrainingError> {
        let refuse =
            |problem: String| Err(TrainingError::Groups(format!("expert-skew: {problem}")));
        let (layers, experts) = (shape.expert_layers(), shape.experts);
        if self.order.iter().any(|&table| table >= self.tables.len()) {
            return refuse("a micro-batch has no table".into());
        }
        for table in &self.tables {
            if table.len() as u64 != layers {
                let table_layers = table.len();
                return refuse(format!(
                    "the table has {table_layers} layers, but the model has {layers} layers with \
                     experts"
                ));
            }
            for (layer, rows) in table.iter().enumerate() {
                if rows.len() != 1 && rows.len() != ranks as usize {
                    return refuse(format!(
                        "layer {layer} has {} sources; give one source for all ranks, or {ranks} \
                         sources, one for each expert-parallel rank",
                        rows.len()
                    ));
                }
                let mut counts = rows.iter().map(|row| row.weights.len());
                if let Some(count) = counts.find(|count| *count as u64 != experts) {
                    return refuse(format!(
                        "layer {layer} has weights of {count} experts, but the model has {experts} \
                         experts"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl ExpertLoads {
    /// Computes the assignments of micro-batches on the ranks of an expert-parallel group.
    ///
    /// # Errors
    /// Fails if a table has another shape or too few weights above 0, if the chunks do not divide
    /// the tokens, or if there are more copies than places.
    pub fn new(
        shape: TransformerShape,
        request: &LoadRequest<'_>,
    ) -> Result<ExpertLoads, TrainingError> {
        let LoadRequest {
            ranks,
            tokens,
            copies,
            chunks,
            ..
        } = *request;
        if shape.experts == 0 {
            return Ok(ExpertLoads::none());
        }
        request.weights.check(shape, ranks)?;
        if chunks == 0 || tokens % chunks != 0 {
            return Err(TrainingError::Groups(format!(
                "expert-chunks {chunks} does not divide the {tokens} tokens of a micro-batch"
            )));
        }
        let most = shape.experts * u64::from(ranks - 1);
        if copies > most {
            return Err(TrainingError::Groups(format!(
                "replicate-experts {copies}: {} experts have at most {most} further copies on \
                 {ranks} expert-parallel ranks",
                shape.experts
            )));
        }
        let mut loads = ExpertLoads {
            layers: shape.expert_layers() as usize,
            chunks,
            phases: request.weights.order.clone(),
            ..ExpertLoads::none()
        };
        let mut by_expert = Vec::new();
        for (phase, table) in request.weights.tables.iter().enumerate() {
            let times = loads.phases.iter().filter(|one| **one == phase).count() as u128;
            let layers = table.iter().enumerate();
            let layers =
                layers.map(|(layer, rows)| loads.shared(shape, request, layer, rows, times));
            by_expert.push(layers.collect::<Result<Vec<_>, _>>()?);
        }
        let sums = |layer: usize| -> Vec<u128> {
            let sum = |expert: usize| {
                let phases = loads.phases.iter().map(|&phase| &by_expert[phase][layer]);
                let sources = phases
                    .flatten()
                    .map(|source: &Vec<u64>| u128::from(source[expert]));
                sources.sum()
            };
            (0..shape.experts as usize).map(sum).collect()
        };
        loads.hosts = (0..loads.layers)
            .map(|layer| hosts(&sums(layer), request))
            .collect();
        for table in &by_expert {
            for (layer, sources) in table.iter().enumerate() {
                let exchange = exchange(sources, &loads.hosts[layer], ranks as usize);
                loads.exchanges.push(exchange);
            }
        }
        Ok(loads)
    }

    /// Returns the assignments of a chunk in `layer`, indexed by source and expert. Counts dropped
    /// assignments for `times` micro-batches.
    fn shared(
        &mut self,
        shape: TransformerShape,
        request: &LoadRequest<'_>,
        layer: usize,
        rows: &[SourceWeights],
        times: u128,
    ) -> Result<Vec<Vec<u64>>, TrainingError> {
        let (top_k, experts) = (u128::from(shape.top_k), u128::from(shape.experts));
        let chunk = request.tokens / self.chunks;
        let limit = request.capacity.map_or(u128::MAX, |factor| {
            (u128::from(factor) * u128::from(chunk) * top_k).div_ceil(u128::from(MILLION) * experts)
        });
        let mut sources = Vec::with_capacity(request.ranks as usize);
        for source in 0..request.ranks as usize {
            let row = rows.get(source).unwrap_or(&rows[0]);
            let tokens = u128::from(chunk) * u128::from(row.tokens) / u128::from(MILLION);
            let assignments = tokens * top_k;
            let mut shared = share(&row.weights, assignments, tokens).ok_or_else(|| {
                TrainingError::Groups(format!(
                    "the experts of layer {layer} receive too few tokens: {} experts have a \
                     weight, but each token goes to {} experts",
                    row.weights.iter().filter(|weight| **weight > 0).count(),
                    shape.top_k
                ))
            })?;
            let micro_batches = times * u128::from(self.chunks);
            self.assigned += assignments * micro_batches;
            for load in &mut shared {
                self.dropped += u128::from(*load).saturating_sub(limit) * micro_batches;
                *load = u128::from(*load).min(limit) as u64;
            }
            sources.push(shared);
        }
        Ok(sources)
    }

    /// Creates the loads of a model without experts.
    pub fn none() -> ExpertLoads {
        ExpertLoads {
            layers: 0,
            chunks: 1,
            phases: Vec::new(),
            exchanges: Vec::new(),
            hosts: Vec::new(),
            dropped: 0,
            assigned: 0,
        }
    }

    /// Returns the number of layers with experts.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Returns the number of different weights of micro-batches, at least 1.
    pub fn phases(&self) -> usize {
        self.phases.iter().max().map_or(1, |last| last + 1)
    }

    /// Returns the index of the weights of a micro-batch.
    pub fn phase(&self, micro_batch: u64) -> usize {
        let count = self.phases.len().max(1) as u64;
        self.phases
            .get((micro_batch % count) as usize)
            .copied()
            .unwrap_or(0)
    }

    /// Returns the exchange number of a layer in the micro-batches with the weights `phase`.
    pub fn number(&self, phase: usize, layer: usize) -> usize {
        phase * self.layers + layer
    }

    /// Returns the number of exchanges. All exchange numbers are smaller.
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Returns the ranks of the copies of each expert of `layer`, indexed by expert.
    pub fn hosts(&self, layer: usize) -> &[Vec<usize>] {
        &self.hosts[layer]
    }

    /// Returns the number of experts of `layer` with several copies.
    pub fn copied(&self, layer: usize) -> u64 {
        let hosts = self.hosts.get(layer).into_iter().flatten();
        hosts.filter(|hosts| hosts.len() > 1).count() as u64
    }

    /// Returns the number of assignments of a chunk in exchange `number` from the tokens of rank
    /// `source` to the experts of rank `target`. Both are expert-parallel ranks.
    pub fn between(&self, number: usize, source: usize, target: usize) -> u64 {
        self.exchanges[number].between[source][target]
    }

    /// Returns the number of assignments of a chunk in exchange `number` from all ranks to the
    /// experts of rank `target`.
    pub fn received(&self, number: usize, target: usize) -> u128 {
        let sources = self.exchanges[number].between.iter();
        sources.map(|targets| u128::from(targets[target])).sum()
    }

    /// Returns the most assignments of a chunk in exchange `number` that a rank receives.
    pub fn most(&self, number: usize) -> u128 {
        let ranks = 0..self.exchanges[number].between.len();
        ranks
            .map(|rank| self.received(number, rank))
            .max()
            .unwrap_or(0)
    }

    /// Returns a lower bound on [`most`](Self::most) for the same copies, whatever their placement.
    pub fn least(&self, number: usize) -> u128 {
        self.exchanges[number].least
    }

    /// Returns the most assignments of a micro-batch in `layer` that a rank receives.
    pub fn most_of_layer(&self, layer: usize) -> u128 {
        let numbers = (0..self.phases()).map(|phase| self.number(phase, layer));
        numbers.map(|number| self.most(number)).max().unwrap_or(0) * u128::from(self.chunks)
    }

    /// Returns whether all pairs of ranks exchange the same number of tokens in exchange `number`.
    pub fn is_even(&self, number: usize) -> bool {
        let between = &self.exchanges[number].between;
        let mut pairs = between.iter().flatten();
        pairs.all(|amount| *amount == between[0][0])
    }
}

/// Returns the ranks of the copies of each expert. `sums` contains the assignments of each expert.
fn hosts(sums: &[u128], request: &LoadRequest<'_>) -> Vec<Vec<usize>> {
    let ranks = request.ranks as usize;
    let copies = placement::copies(sums, request.copies, request.ranks.into());
    let in_order = |expert: usize| match request.placement {
        Placement::Order => Some(expert * ranks / sums.len()),
        Placement::Load => None,
    };
    let given: Vec<Option<usize>> = (0..sums.len()).map(in_order).collect();
    placement::hosts(sums, &copies, &given, ranks, room(&copies, ranks))
}

/// Returns the maximum number of copies of experts on a rank.
fn room(copies: &[u64], ranks: usize) -> usize {
    copies.iter().sum::<u64>().div_ceil(ranks as u64) as usize
}

/// Returns the exchange for the assignments `sources`, indexed by source and expert. `hosts`
/// contains the ranks of the copies of each expert.
fn exchange(sources: &[Vec<u64>], hosts: &[Vec<usize>], ranks: usize) -> Exchange {
    let sum = |expert: usize| sources.iter().map(|loads| u128::from(loads[expert])).sum();
    let sums: Vec<u128> = (0..hosts.len()).map(sum).collect();
    let shares = placement::divided(&sums, hosts, ranks);
    let mut between = vec![vec![0; ranks]; sources.len()];
    for (expert, (hosts, shares)) in hosts.iter().zip(&shares).enumerate() {
        let loads: Vec<u64> = sources.iter().map(|loads| loads[expert]).collect();
        for (targets, parts) in between.iter_mut().zip(proportional(&loads, shares)) {
            for (rank, part) in hosts.iter().zip(parts) {
                targets[*rank] += part;
            }
        }
    }
    let counts: Vec<u64> = hosts.iter().map(|hosts| hosts.len() as u64).collect();
    Exchange {
        between,
        least: placement::lower_bound(&sums, &counts, ranks, room(&counts, ranks)),
    }
}

/// Divides each of the numbers `loads` in proportion to `shares`, which have the same sum. The
/// parts of the first loads together are in proportion, too, except for rounding.
fn proportional(loads: &[u64], shares: &[u128]) -> Vec<Vec<u64>> {
    let sum = shares.iter().sum::<u128>().max(1);
    let mut given = vec![0u128; shares.len()];
    let mut before = 0u128;
    let of_load = |&load: &u64| {
        before += u128::from(load);
        let (mut left, mut parts) = (u128::from(load), vec![0; shares.len()]);
        for (copy, part) in parts.iter_mut().enumerate() {
            *part = (shares[copy] * before / sum)
                .saturating_sub(given[copy])
                .min(left);
            left -= *part;
        }
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by_key(|&copy| std::cmp::Reverse(shares[copy] * before % sum));
        for copy in order.into_iter().take(left as usize) {
            parts[copy] += 1;
        }
        for (given, part) in given.iter_mut().zip(&parts) {
            *given += part;
        }
        parts.into_iter().map(|part| part as u64).collect()
    };
    loads.iter().map(of_load).collect()
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
