//! Memory that training needs on a device, by formulas.
//!
//! Training in mixed precision with Adam takes 16 bytes per parameter: 2 for the weight and 2 for
//! the gradient in 16 bits, and 12 for the optimizer's 32-bit weight, momentum and variance
//! (Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3.1). The forward pass of each sample
//! stores the [activations](super::Layer::activations) of the layers for the backward pass.
//! Recomputation, which saves memory, is stated by a [`Practice`].
//!
//! **Working memory.** A device needs the most memory when the forward pass of a micro-batch ends,
//! because the backward pass frees activations. At this time it also needs the [`Working`] memory
//! of a layer: logits and gradients of activations, such as 2 s f bytes for the gradients of s
//! tokens in a feed-forward part of width f. The layer with the most working memory counts. Further
//! working memory is
//!
//! * the last message to or from another stage, 2 s h bytes, which the schedule of Megatron-LM
//!   keeps until the next message (`core/pipeline_parallel/schedules.py`);
//! * if gradients are summed up in 32 bits: 16-bit gradients of the matrices. Transformer Engine
//!   keeps one for each shape of matrix (`get_dummy_wgrad` in `pytorch/module/base.py`), so all
//!   blocks share the gradients of a block.
//!
//! Logits have 16 bits, and a copy in 32 bits that their gradients replace (Megatron-LM,
//! `core/tensor_parallel/cross_entropy.py`). A fused loss has no copy. The formulas include neither
//! fragmentation nor memory outside the tensors, such as buffers of NCCL and the context of CUDA.
//!
//! **Groups of ranks.** A rank stores the parameters of its stage. T tensor-parallel ranks divide
//! the matrices, and E expert-parallel ranks also divide the experts. Each of D ranks with the same
//! part of the model (in different replicas, or with different tokens of a sample) stores a D-th of
//! the sharded state: optimizer, gradients or parameters. For a model of Psi parameters, a
//! rank needs 4 Psi + 12 Psi / D bytes if the optimizer is sharded, 2 Psi + 14 Psi / D bytes if
//! gradients are sharded as well, and 16 Psi / D bytes if parameters are sharded as well (ZeRO,
//! section 5). Experts are on D / E ranks. T ranks divide a part of the activations of a block
//! (Korthikanti et al., arXiv:2205.05198, equation 2). Under 1F1B, a stage stores the activations
//! of one micro-batch for itself and of another micro-batch for each later stage, as far as the
//! iteration has enough micro-batches (section 4.2.3 of that paper). Activations of experts grow
//! with the tokens that the experts receive.
//!
//! ```
//! use opticoll_workload::training::{memory, models};
//! let model = models::parse("gpt3_175b")?;
//! // 16 bytes for each of 175 billion parameters are 2.8 TB.
//! assert_eq!(memory::forecast(&model, 1).states() / 1_000_000_000, 2_793);
//! # Ok::<(), opticoll_workload::training::TrainingError>(())
//! ```

use std::collections::BTreeMap;

use super::experts::ExpertLoads;
use super::groups::pipeline::held;
use super::groups::stages::{parameters_on_rank, stage_of};
use super::groups::{Groups, Sharding};
use super::operators::Part;
use super::practice::{ContextExchange, Practice, Recompute};
use super::{Division, Layer, Model, Working};

const WEIGHT: u128 = 2;
const GRADIENT: u128 = 2;
const WIDE_GRADIENT: u128 = 4;
/// Bytes per parameter for Adam's 32-bit weight, momentum and variance.
const OPTIMIZER: u128 = 12;
/// Bytes of a logit in 16 bits, and of its copy in 32 bits.
const WIDE_LOGIT: u128 = 2 + 4;

/// Maximum number of tensor-parallel ranks to suggest: the devices of a usual server.
const MAX_TENSOR: u32 = 8;

/// Memory on a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of weights.
    pub weights: u128,
    /// Bytes of gradients.
    pub gradients: u128,
    /// Bytes of the optimizer's state.
    pub optimizer: u128,
    /// Bytes of activations, which the forward pass stores for the backward pass.
    pub activations: u128,
    /// Bytes of values that exist for a part of the iteration only, such as logits and gradients of
    /// activations.
    pub working: u128,
}

impl Memory {
    /// Returns the memory of `parameters` parameters, without activations and working memory.
    pub fn for_parameters(parameters: u64) -> Memory {
        let parameters = u128::from(parameters);
        Memory {
            weights: WEIGHT * parameters,
            gradients: GRADIENT * parameters,
            optimizer: OPTIMIZER * parameters,
            activations: 0,
            working: 0,
        }
    }

    /// Returns the number of bytes that do not depend on the batch.
    pub fn states(&self) -> u128 {
        self.weights + self.gradients + self.optimizer
    }

    /// Returns the total number of bytes.
    pub fn total(&self) -> u128 {
        self.states() + self.activations + self.working
    }
}

/// Returns the memory of a device that stores the whole model and trains on `batch` samples, with
/// FlashAttention and without recomputation.
pub fn forecast(model: &Model, batch: u64) -> Memory {
    let [tensor, context, pipeline, expert, data] = [1; 5];
    let alone = GroupedMemory {
        groups: Groups {
            tensor,
            context,
            pipeline,
            expert,
            data,
        },
        sharding: Sharding::Nothing,
        samples: batch,
        micro_batches: 1,
        practice: Practice::USUAL,
        loads: None,
    };
    alone.forecast(model)
}

/// Parameters of a memory forecast with groups of ranks, except the model.
#[derive(Debug, Clone, Copy)]
pub struct GroupedMemory<'a> {
    /// Sizes of the groups of ranks.
    pub groups: Groups,
    /// Training state that replicas divide.
    pub sharding: Sharding,
    /// Number of samples per micro-batch.
    pub samples: u64,
    /// Number of micro-batches per iteration.
    pub micro_batches: u64,
    /// Recomputation, sequence parallelism, and what ranks store.
    pub practice: Practice,
    /// Number of tokens that each expert receives in a micro-batch; `None` if tokens are
    /// distributed evenly.
    pub loads: Option<&'a ExpertLoads>,
}

impl GroupedMemory<'_> {
    /// Returns the memory of a rank, for the stage that needs the most memory.
    pub fn forecast(&self, model: &Model) -> Memory {
        let stage_of = stage_of(model, self.groups.pipeline, self.practice.chunks);
        let stages = 0..self.groups.pipeline;
        let memories = stages.map(|stage| self.stage_memory(model, stage, &stage_of));
        let largest = memories.max_by_key(Memory::total);
        largest.unwrap_or(Memory::for_parameters(0))
    }

    /// Returns the memory of a rank of `stage`. `stage_of` contains the stage, indexed by layer.
    fn stage_memory(&self, model: &Model, stage: u32, stage_of: &[(u32, u32)]) -> Memory {
        let data = self.groups.shares();
        let gradient = match self.practice.wide_gradients {
            true => WIDE_GRADIENT,
            false => GRADIENT,
        };
        let mut memory = Memory::for_parameters(0);
        let mut experts = 0;
        let mut layers = Vec::new();
        for (layer, &(layer_stage, _)) in model.layers.iter().zip(stage_of) {
            let number = experts;
            experts += usize::from(layer.split.experts);
            if layer_stage != stage {
                continue;
            }
            layers.push((layer, number));
            for tensor in &layer.tensors {
                let parameters = u128::from(parameters_on_rank(
                    model,
                    tensor.parameters,
                    tensor.division,
                    self.groups,
                    self.practice.expert_copies,
                ));
                let replicas = match tensor.division {
                    Division::Expert => data / self.groups.expert,
                    _ => data,
                };
                let part = |sharded: Sharding, bytes: u128| match self.sharding >= sharded {
                    true => (bytes * parameters).div_ceil(u128::from(replicas)),
                    false => bytes * parameters,
                };
                memory.weights += part(Sharding::Parameters, WEIGHT);
                memory.gradients += part(Sharding::Gradients, gradient);
                memory.optimizer += part(Sharding::Optimizer, OPTIMIZER);
            }
        }
        memory.activations = self.stored(model, stage, &layers);
        memory.working = self.working(model, &layers);
        memory
    }

    /// Returns the bytes of activations on a rank of `stage`. `layers` contains the layers of the
    /// stage, each with the number of layers with experts before it.
    fn stored(&self, model: &Model, stage: u32, layers: &[(&Layer, usize)]) -> u128 {
        let (mut all, mut inputs) = (0u128, 0u128);
        let mut block = None;
        let (mut current, mut largest) = (0u128, 0u128);
        for &(layer, number) in layers {
            let bytes = self.layer_activations(model, layer, number);
            all += bytes;
            if layer.split.block != block {
                block = layer.split.block;
                current = 0;
                inputs += block.map_or(0, |_| self.block_input(model));
            }
            current += bytes;
            largest = largest.max(current);
        }
        let ahead = held(
            self.groups.pipeline,
            stage,
            self.micro_batches,
            self.practice.chunks,
            self.practice.overlap_experts,
        );
        let chunks = u128::from(self.practice.chunks);
        match self.practice.recompute {
            // While a block is computed again, all of its values are stored.
            Recompute::Full => (inputs * u128::from(ahead)).div_ceil(chunks) + largest,
            _ => (all * u128::from(ahead)).div_ceil(chunks),
        }
    }

    /// Returns the bytes of the input of a block on a rank, for a micro-batch.
    fn block_input(&self, model: &Model) -> u128 {
        let shape = model.transformer;
        let values = shape.map_or(0, |shape| {
            u128::from(shape.sequence) * u128::from(shape.width)
        });
        let ranks = self.practice.sequence_ranks(self.groups.tensor);
        let ranks = ranks * u64::from(self.groups.context);
        (WEIGHT * values * u128::from(self.samples)).div_ceil(u128::from(ranks))
    }

    /// Returns the bytes of activations of a layer on a rank, for a micro-batch. `number` is the
    /// number of layers with experts before the layer.
    fn layer_activations(&self, model: &Model, layer: &Layer, number: usize) -> u128 {
        let scores = match self.practice.stores_scores() {
            true => u128::from(layer.scores),
            false => 0,
        };
        let divided = u128::from(layer.split.divided_activations);
        let whole = u128::from(layer.activations) - divided;
        let exchanged = match self.practice.context_exchange {
            ContextExchange::AllToAll if self.groups.context > 1 => output_of_attention(layer),
            _ => 0,
        };
        self.on_rank(model, layer, number, [whole, divided + scores + exchanged])
    }

    /// Returns the bytes of working memory on a rank of a stage with these layers.
    fn working(&self, model: &Model, layers: &[(&Layer, usize)]) -> u128 {
        let largest = layers.iter().map(|&(layer, number)| {
            let Working {
                tokens,
                values,
                gathered,
                logits,
            } = layer.working;
            let logit = match self.practice.fused_loss {
                true => WEIGHT,
                false => WIDE_LOGIT,
            };
            let divided = u128::from(values) + logit * u128::from(logits);
            let parts = [tokens.into(), divided];
            let gathered = match self.practice.sequence_ranks(self.groups.tensor) {
                1 => 0,
                _ => self.token_bytes(gathered.into()),
            };
            self.on_rank(model, layer, number, parts) + gathered
        });
        let message = match self.groups.pipeline {
            1 => 0,
            _ => self.block_input(model),
        };
        largest.max().unwrap_or(0) + message + self.gradients_of_matrices(model, layers)
    }

    /// Returns the bytes of the 16-bit gradients of matrices: one for each shape, and several if a
    /// block has several matrices of as many parameters, which may be parts of a larger matrix.
    fn gradients_of_matrices(&self, model: &Model, layers: &[(&Layer, usize)]) -> u128 {
        if !self.practice.wide_gradients {
            return 0;
        }
        // Each expert has matrices of its own, as if a rank stored one expert.
        let experts = model.transformer.map_or(1, |shape| shape.experts.max(1));
        let groups = Groups {
            expert: experts as u32,
            ..self.groups
        };
        let mut most: BTreeMap<u64, usize> = BTreeMap::new();
        for block in layers.chunk_by(|(a, _), (b, _)| a.split.block == b.split.block) {
            let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
            // A lookup in an embedding has no operations, and no gradient of this kind.
            for (layer, _) in block.iter().filter(|(layer, _)| layer.forward > 0) {
                for tensor in &layer.tensors {
                    let super::Tensor {
                        parameters,
                        division,
                        ..
                    } = *tensor;
                    if division != Division::Whole {
                        let parameters = parameters_on_rank(model, parameters, division, groups, 0);
                        *counts.entry(parameters).or_default() += 1;
                    }
                }
            }
            for (parameters, count) in counts {
                let known = most.entry(parameters).or_default();
                *known = count.max(*known);
            }
        }
        let bytes = |(parameters, count)| GRADIENT * u128::from(parameters) * count as u128;
        most.into_iter().map(bytes).sum()
    }

    /// Returns the bytes on a rank for a micro-batch, given bytes of a layer per sample: those that
    /// ranks divide only with sequence parallelism, and those that tensor-parallel ranks divide.
    fn on_rank(
        &self,
        model: &Model,
        layer: &Layer,
        number: usize,
        [tokens, divided]: [u128; 2],
    ) -> u128 {
        let ranks = u128::from(self.practice.sequence_ranks(self.groups.tensor));
        let sample = tokens.div_ceil(ranks) + divided.div_ceil(u128::from(self.groups.tensor));
        match layer.split.experts {
            true => self.expert_bytes(model, number, sample),
            false => self.token_bytes(sample),
        }
    }

    /// Returns the bytes on a rank for its tokens of a micro-batch, if all tokens of a sample take
    /// `sample` bytes.
    fn token_bytes(&self, sample: u128) -> u128 {
        (sample * u128::from(self.samples)).div_ceil(u128::from(self.groups.context))
    }

    /// Returns the bytes of a layer with experts, on the expert-parallel rank with the most tokens.
    /// `layer` counts layers with experts only. `sample` is the number of bytes per sample if
    /// tokens are distributed evenly.
    fn expert_bytes(&self, model: &Model, layer: usize, sample: u128) -> u128 {
        let even = self.token_bytes(sample);
        let (Some(loads), Some(shape)) = (self.loads, model.transformer) else {
            return even;
        };
        let assignments_per_sample = u128::from(shape.sequence * shape.top_k);
        (sample * loads.most_of_layer(layer)).div_ceil(assignments_per_sample)
    }

    /// Searches for groups, a sharding and a number of micro-batches for which the forecast is at
    /// most `bytes`. Returns the parameters with the smallest distance to
    /// `self`, and their forecast. `batch` is the number of samples in all micro-batches.
    pub fn nearest_fit(&self, model: &Model, bytes: u128, batch: u64) -> Option<(Self, Memory)> {
        let ranks = self.groups.ranks();
        let divisors = |number: u32| (1..=number).filter(move |divisor| number % divisor == 0);
        let mut fitting: Vec<([u64; 4], Self, Memory)> = Vec::new();
        for tensor in divisors(ranks).filter(|tensor| *tensor <= MAX_TENSOR) {
            for pipeline in divisors(ranks / tensor) {
                for expert in divisors(ranks / tensor / pipeline) {
                    let numbers = [tensor, self.groups.context, pipeline, expert];
                    let Ok(groups) = Groups::new(ranks, numbers, None, model) else {
                        continue;
                    };
                    for sharding in Sharding::ALL {
                        for micro_batches in [self.micro_batches, batch] {
                            let candidate = GroupedMemory {
                                groups,
                                sharding,
                                samples: batch / micro_batches,
                                micro_batches,
                                practice: Practice {
                                    chunks: 1,
                                    ..self.practice
                                },
                                loads: None,
                            };
                            let memory = candidate.forecast(model);
                            if memory.total() <= bytes {
                                fitting.push((candidate.distance(self), candidate, memory));
                            }
                        }
                    }
                }
            }
        }
        let nearest = fitting.into_iter().min_by_key(|(distance, ..)| *distance);
        nearest.map(|(_, candidate, memory)| (candidate, memory))
    }

    /// Returns the distance from `other`: number of changed parameters, ranks per copy of the
    /// model, stage of ZeRO, number of micro-batches. Distances are compared in this order.
    fn distance(&self, other: &Self) -> [u64; 4] {
        let (groups, other_groups) = (self.groups, other.groups);
        let differ = [
            groups.tensor != other_groups.tensor,
            groups.pipeline != other_groups.pipeline,
            groups.expert != other_groups.expert,
            self.sharding != other.sharding,
            self.micro_batches != other.micro_batches,
        ];
        [
            differ.iter().filter(|differ| **differ).count() as u64,
            u64::from(groups.tensor) * u64::from(groups.pipeline),
            self.sharding as u64,
            self.micro_batches,
        ]
    }
}

/// Returns the bytes per sample of the output of attention. If ranks exchange heads for tokens,
/// Transformer Engine saves the output before the exchange as well
/// (`pytorch/attention/dot_product_attention/context_parallel.py`).
fn output_of_attention(layer: &Layer) -> u128 {
    let attended = layer.parts.iter().find_map(Part::attended);
    attended.map_or(0, |[.., output]| WEIGHT * u128::from(output))
}
