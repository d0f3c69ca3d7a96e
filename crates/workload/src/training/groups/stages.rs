//! Pipeline stages: the part of a model that one rank of each stage stores and computes.

use super::super::buckets::{self, Bucket, Buckets};
use super::super::device::{self, ComputeRate};
use super::super::experts::ExpertLoads;
use super::super::operators::{Portion, VALUE};
use super::super::practice::{ContextExchange, Practice, Recompute};
use super::super::{Division, Layer, Model, TimedLayer, TrainingError};
use super::Groups;
use opticoll_base::units::{Bytes, Time};

/// Part of a layer on one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageLayer {
    /// Index of the layer in the model.
    pub layer: usize,
    /// Number of parameters that the rank stores of each tensor outside of experts, indexed by
    /// tensor.
    pub dense: Vec<u64>,
    /// Number of parameters that the rank stores of each tensor of experts, indexed by tensor.
    pub expert: Vec<u64>,
    /// Number of parameters of experts with several copies, of each tensor of experts, indexed by
    /// tensor. A rank adds the gradients of these experts to those of their other copies.
    pub copied: Vec<u64>,
    /// Forward time of a micro-batch or, with experts, of a chunk of it. The times of all
    /// expert-parallel ranks follow one another for each [phase](ExpertLoads::phase).
    pub forward: Vec<Time>,
    /// Backward time, as for `forward`.
    pub backward: Vec<Time>,
    /// True if the tensor-parallel ranks sum their outputs.
    pub sums_output: bool,
    /// True if the tensor-parallel ranks sum their gradients of the input.
    pub sums_input: bool,
    /// Index of the layer among layers with experts; `None` for a layer without experts.
    pub experts: Option<usize>,
    /// Bytes of a micro-batch on the rank, if the layer is attention: queries; keys and values
    /// together; output.
    pub attention: Option<[u64; 3]>,
}

/// Layers whose sharded parameters are gathered together: a block, or a layer outside of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Index of the first layer of the unit in the stage.
    pub first: usize,
    /// Index after the last layer of the unit in the stage.
    pub end: usize,
    /// Number of parameters outside of experts.
    pub dense: u64,
    /// Number of parameters of experts.
    pub expert: u64,
    /// Chunk of the stage to which the unit belongs.
    pub chunk: u32,
    /// True if the unit is a block.
    pub block: bool,
}

/// Part of a model on one rank of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Layers, in the order of the forward pass.
    pub layers: Vec<StageLayer>,
    /// Units of layers, in the order of the forward pass.
    pub units: Vec<Unit>,
    /// Buckets of gradients outside of experts. [`Bucket::layer`] is the index of the layer in the
    /// stage.
    pub dense: Vec<Bucket>,
    /// Buckets of gradients of experts.
    pub expert: Vec<Bucket>,
    /// Buckets of gradients of experts with several copies.
    pub copied: Vec<Bucket>,
}

/// Parameters for dividing a model into stages.
#[derive(Debug, Clone, Copy)]
pub struct StageRequest<'a> {
    /// Sizes of the groups of ranks.
    pub groups: Groups,
    /// Number of samples per micro-batch.
    pub samples: u64,
    /// Speed of each device.
    pub rate: ComputeRate,
    /// Number of tokens that each expert receives.
    pub loads: &'a ExpertLoads,
    /// Rule that assigns gradients to buckets.
    pub buckets: Buckets,
    /// Number of bytes per gradient.
    pub gradient_bytes: u64,
    /// Recomputation, sequence parallelism, and what ranks store.
    pub practice: Practice,
}

/// Returns the number of blocks of each of `parts` chunks, in the order of the forward pass. If the
/// number of chunks does not divide the number of blocks, the chunks nearest to the ends have one
/// block less, the last chunk first: the last chunk also has the output, and the first chunk the
/// embedding. Llama 3 405B has 126 blocks on 128
/// chunks, of which the first and the last have none (arXiv:2407.21783, section 3.3.2).
fn blocks_of_parts(blocks: u64, parts: u64) -> impl Iterator<Item = u64> {
    let most = blocks.div_ceil(parts);
    let fewer = parts * most - blocks;
    (0..parts).map(move |part| {
        let after = parts - 1 - part;
        let place = if part < after {
            2 * part + 1
        } else {
            2 * after
        };
        most - u64::from(place < fewer)
    })
}

/// Returns the stage and the chunk of each layer, indexed by layer. Consecutive chunks belong to
/// consecutive stages. Layers before the first block belong to the first chunk, and layers after
/// the last block to the last chunk.
pub fn stage_of(model: &Model, stages: u32, chunks: u32) -> Vec<(u32, u32)> {
    let blocks = model.transformer.map_or(1, |shape| shape.layers);
    let parts = stages * chunks;
    let of_blocks: Vec<u32> = blocks_of_parts(blocks, parts.into())
        .zip(0..)
        .flat_map(|(count, part)| std::iter::repeat_n(part, count as usize))
        .collect();
    let mut after_blocks = false;
    let part = |layer: &Layer| match layer.split.block {
        Some(block) => {
            after_blocks = true;
            of_blocks[block as usize]
        }
        None if after_blocks => parts - 1,
        None => 0,
    };
    let parts = model.layers.iter().map(part);
    parts.map(|part| (part % stages, part / stages)).collect()
}

/// Returns the time of the optimizer's step on a rank of each stage. `sharded` is true if replicas
/// divide the optimizer's state, and `summed` if gradients are sums in 32 bits.
///
/// # Errors
/// Fails if a time exceeds 64 bits.
pub fn optimizer(
    stages: &[Stage],
    groups: Groups,
    sharded: bool,
    summed: bool,
    rate: ComputeRate,
) -> Result<Vec<Time>, TrainingError> {
    let step = |stage: &Stage| {
        let share = |parameters: u64, replicas: u32| match sharded {
            true => parameters.div_ceil(u64::from(replicas)),
            false => parameters,
        };
        let dense: u64 = stage.units.iter().map(|unit| unit.dense).sum();
        let expert: u64 = stage.units.iter().map(|unit| unit.expert).sum();
        let shares = groups.shares();
        let parameters = share(dense, shares) + share(expert, shares / groups.expert);
        let stored = if summed { dense + expert } else { 0 };
        Ok(rate.optimizer(parameters, stored)?)
    };
    stages.iter().map(step).collect()
}

/// Returns the number of parameters of a tensor of `model` that one rank stores. `parameters` is
/// the number of parameters of the whole tensor. `copies` is the number of copies of experts
/// besides one of each expert.
pub fn parameters_on_rank(
    model: &Model,
    parameters: u64,
    division: Division,
    groups: Groups,
    copies: u64,
) -> u64 {
    match division {
        Division::Whole => parameters,
        Division::Tensor => parameters.div_ceil(u64::from(groups.tensor)),
        Division::Expert => {
            let experts = experts(model);
            let on_rank = (experts + copies).div_ceil(u64::from(groups.expert));
            experts_part(parameters, on_rank, experts, groups)
        }
    }
}

/// Returns the number of parameters of `part` of the `experts` experts, on one of the ranks that
/// divide an expert.
fn experts_part(parameters: u64, part: u64, experts: u64, groups: Groups) -> u64 {
    let divisor = u128::from(experts) * u128::from(groups.tensor);
    (u128::from(parameters) * u128::from(part)).div_ceil(divisor) as u64
}

fn experts(model: &Model) -> u64 {
    model.transformer.map_or(1, |shape| shape.experts).max(1)
}

/// Divides a model into stages.
///
/// # Errors
/// Fails for a batch of 0 samples, for a rate in samples if no layer computes, and if a time or
/// size exceeds 64 bits.
pub fn stages(model: &Model, request: &StageRequest<'_>) -> Result<Vec<Stage>, TrainingError> {
    if request.samples == 0 {
        return Err(TrainingError::EmptyBatch);
    }
    let stage_of = stage_of(model, request.groups.pipeline, request.practice.chunks);
    let numbers = expert_numbers(model);
    (0..request.groups.pipeline)
        .map(|stage| {
            let stage_layers: Vec<usize> = (0..model.layers.len())
                .filter(|&layer| stage_of[layer].0 == stage)
                .collect();
            let layers = divided(model, &stage_layers, &numbers, request)?;
            Ok(Stage {
                units: units(model, &layers, &stage_of),
                dense: grouped(&layers, |layer| &layer.dense, request)?,
                expert: grouped(&layers, |layer| &layer.expert, request)?,
                copied: grouped(&layers, |layer| &layer.copied, request)?,
                layers,
            })
        })
        .collect()
}

/// Returns the parts of a stage's layers on one rank, with their times. `stage_layers` contains the
/// indices of the layers in the model. `numbers` contains the index among layers with experts,
/// indexed by layer.
fn divided(
    model: &Model,
    stage_layers: &[usize],
    numbers: &[Option<usize>],
    request: &StageRequest<'_>,
) -> Result<Vec<StageLayer>, TrainingError> {
    let mut layers = Vec::with_capacity(stage_layers.len());
    for &number in stage_layers {
        let layer = &model.layers[number];
        let tensors = |expert: bool| {
            let tensors = layer.tensors.iter();
            let selected = tensors.filter(|tensor| (tensor.division == Division::Expert) == expert);
            selected
                .map(|tensor| {
                    let copies = request.practice.expert_copies;
                    let (parameters, division) = (tensor.parameters, tensor.division);
                    parameters_on_rank(model, parameters, division, request.groups, copies)
                })
                .collect()
        };
        let copied = numbers[number].map_or(0, |layer| request.loads.copied(layer));
        let of_experts = layer.tensors.iter();
        let of_experts = of_experts.filter(|tensor| tensor.division == Division::Expert);
        let split = layer.split;
        layers.push(StageLayer {
            layer: number,
            dense: tensors(false),
            expert: tensors(true),
            copied: of_experts
                .filter(|_| copied > 0)
                .map(|tensor| {
                    experts_part(tensor.parameters, copied, experts(model), request.groups)
                })
                .collect(),
            forward: Vec::new(),
            backward: Vec::new(),
            sums_output: split.sums_output,
            sums_input: split.sums_input,
            experts: numbers[number],
            attention: layer.parts.iter().find_map(|part| {
                let ranks = u64::from(request.groups.tensor) * u64::from(request.groups.context);
                let bytes = |values: u64| {
                    let all = values.saturating_mul(VALUE * request.samples);
                    all.div_ceil(ranks)
                };
                part.attended().map(|values| values.map(bytes))
            }),
        });
    }
    for phase in 0..request.loads.phases() {
        for rank in 0..request.groups.expert as usize {
            time(model, &mut layers, (phase, rank), request)?;
        }
    }
    Ok(layers)
}

/// Appends the forward and backward times of the layers on an expert-parallel rank, in
/// micro-batches of a phase.
fn time(
    model: &Model,
    layers: &mut [StageLayer],
    (phase, rank): (usize, usize),
    request: &StageRequest<'_>,
) -> Result<(), TrainingError> {
    let portion = |layer: &StageLayer| Portion {
        samples: request.samples,
        tensor: request.groups.tensor.into(),
        sequence: request.practice.sequence_ranks(request.groups.tensor),
        context: request.groups.context.into(),
        blocks: match request.practice.context_exchange {
            ContextExchange::Ring => request.groups.context.into(),
            ContextExchange::AllToAll => 1,
        },
        flash: request.practice.flash,
        fused_loss: request.practice.fused_loss,
        expert: request.groups.expert.into(),
        expert_copies: request.practice.expert_copies,
        assigned: layer.experts.map_or(0, |layer| {
            let number = request.loads.number(phase, layer);
            let received = request.loads.received(number, rank);
            u64::try_from(received).unwrap_or(u64::MAX)
        }),
        // The device sets it (`Device::passes`).
        narrow: false,
        wide_gradients: request.practice.wide_gradients,
    };
    let portions: Vec<_> = layers
        .iter()
        .map(|layer| (layer.layer, portion(layer)))
        .collect();
    let times = device::times(request.rate, model, &portions)?;
    let selective = request.practice.recompute == Recompute::Selective;
    for (layer, [forward, backward, again]) in layers.iter_mut().zip(times) {
        layer.forward.push(forward);
        layer.backward.push(if selective {
            backward.plus(again)?
        } else {
            backward
        });
    }
    Ok(())
}

/// Returns the index of each layer among the layers with experts, indexed by layer.
fn expert_numbers(model: &Model) -> Vec<Option<usize>> {
    let mut before = 0;
    let number = |layer: &Layer| {
        let number = layer.split.experts.then_some(before);
        before += usize::from(layer.split.experts);
        number
    };
    model.layers.iter().map(number).collect()
}

/// Returns the units of a stage's layers. `stage_of` contains the stage and chunk of each layer of
/// the model.
fn units(model: &Model, layers: &[StageLayer], stage_of: &[(u32, u32)]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut block = None;
    for (place, layer) in layers.iter().enumerate() {
        let layer_block = model.layers[layer.layer].split.block;
        if layer_block.is_none() || layer_block != block || units.is_empty() {
            units.push(Unit {
                first: place,
                end: place,
                dense: 0,
                expert: 0,
                chunk: stage_of[layer.layer].1,
                block: layer_block.is_some(),
            });
        }
        block = layer_block;
        if let Some(unit) = units.last_mut() {
            unit.end = place + 1;
            unit.dense += layer.dense.iter().sum::<u64>();
            unit.expert += layer.expert.iter().sum::<u64>();
        }
    }
    units
}

/// Assigns the gradients of a stage to buckets. `tensors` selects the tensors of a layer.
fn grouped(
    layers: &[StageLayer],
    tensors: fn(&StageLayer) -> &Vec<u64>,
    request: &StageRequest<'_>,
) -> Result<Vec<Bucket>, TrainingError> {
    let layers: Vec<TimedLayer> = layers
        .iter()
        .map(|layer| TimedLayer {
            name: String::new(),
            tensors: tensors(layer)
                .iter()
                .map(|count| Bytes::new(count.saturating_mul(request.gradient_bytes)))
                .collect(),
            forward: Time::ZERO,
            backward: Time::ZERO,
        })
        .collect();
    buckets::group(&layers, request.buckets)
}
