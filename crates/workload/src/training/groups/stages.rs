//! A model divided among the ranks of its groups: what one rank of each stage holds and computes.

use super::super::buckets::{self, Bucket, Buckets};
use super::super::device::ComputeRate;
use super::super::experts::ExpertLoads;
use super::super::{Division, Layer, Model, TimedLayer, TrainingError};
use super::Groups;
use opticoll_base::units::{Bytes, Time};

/// A layer as one rank holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageLayer {
    /// The layer in the model.
    pub layer: usize,
    /// Parameters of each tensor that all replicas hold.
    pub dense: Vec<u64>,
    /// Parameters of each tensor of experts.
    pub expert: Vec<u64>,
    /// The time of a micro-batch forward, at each expert-parallel rank.
    pub forward: Vec<Time>,
    /// The same backward.
    pub backward: Vec<Time>,
    /// Whether its output is summed over the tensor-parallel ranks.
    pub sums_output: bool,
    /// Whether the gradient of its input is.
    pub sums_input: bool,
    /// Its number among the layers of experts, if it is one.
    pub experts: Option<usize>,
}

/// Layers whose sharded parameters are gathered together: a block, or a layer outside of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// The first of its layers in the stage.
    pub first: usize,
    /// The layer of the stage behind its last.
    pub end: usize,
    /// Parameters that all replicas hold.
    pub dense: u64,
    /// Parameters of experts.
    pub expert: u64,
}

/// What one rank of a stage holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its layers, in the order in which they run forward.
    pub layers: Vec<StageLayer>,
    /// Units of layers.
    pub units: Vec<Unit>,
    /// Buckets of gradients that all replicas reduce; layers are counted in the stage.
    pub dense: Vec<Bucket>,
    /// Buckets of gradients of experts.
    pub expert: Vec<Bucket>,
}

/// What a division depends on beside the model.
#[derive(Debug, Clone, Copy)]
pub struct StageRequest<'a> {
    /// The groups.
    pub groups: Groups,
    /// Samples of a micro-batch.
    pub samples: u64,
    /// How fast a device computes.
    pub rate: ComputeRate,
    /// Tokens of each expert.
    pub loads: &'a ExpertLoads,
    /// Which gradients share a collective.
    pub buckets: Buckets,
    /// Bytes of a gradient.
    pub gradient_bytes: u64,
}

/// The stage in which each layer of a model stands: blocks in equal parts, what comes before the first block in the
/// first stage, what comes after the last in the last.
pub fn stage_of(model: &Model, stages: u32) -> Vec<u32> {
    let blocks = model.transformer.map_or(1, |shape| shape.layers);
    let mut behind = false;
    let stage = |layer: &Layer| match layer.split.block {
        Some(block) => {
            behind = true;
            (u64::from(block) * u64::from(stages) / blocks) as u32
        }
        None if behind => stages - 1,
        None => 0,
    };
    model.layers.iter().map(stage).collect()
}

/// Parameters of a tensor on one rank.
pub fn held(parameters: u64, division: Division, groups: Groups) -> u64 {
    match division {
        Division::Whole => parameters,
        Division::Tensor => parameters.div_ceil(u64::from(groups.tensor)),
        Division::Expert => {
            parameters.div_ceil(u64::from(groups.tensor) * u64::from(groups.expert))
        }
    }
}

/// The stages of a model.
///
/// # Errors
/// No samples, no layer that computes where a rate in samples is shared out, a time or size beyond 64 bits.
pub fn stages(model: &Model, request: &StageRequest<'_>) -> Result<Vec<Stage>, TrainingError> {
    if request.samples == 0 {
        return Err(TrainingError::EmptyBatch);
    }
    let stage_of = stage_of(model, request.groups.pipeline);
    let mut experts_before = 0;
    (0..request.groups.pipeline)
        .map(|stage| {
            let own: Vec<usize> = (0..model.layers.len())
                .filter(|&layer| stage_of[layer] == stage)
                .collect();
            let layers = divided(model, &own, experts_before, request)?;
            experts_before += layers.iter().filter(|one| one.experts.is_some()).count();
            Ok(Stage {
                units: units(model, &layers),
                dense: grouped(&layers, |layer| &layer.dense, request)?,
                expert: grouped(&layers, |layer| &layer.expert, request)?,
                layers,
            })
        })
        .collect()
}

fn divided(
    model: &Model,
    own: &[usize],
    experts_before: usize,
    request: &StageRequest<'_>,
) -> Result<Vec<StageLayer>, TrainingError> {
    let mut experts = experts_before;
    let mut layers = Vec::with_capacity(own.len());
    for &number in own {
        let layer = &model.layers[number];
        let tensors = |expert: bool| {
            let tensors = layer.tensors.iter();
            let own = tensors.filter(|one| (one.division == Division::Expert) == expert);
            own.map(|one| held(one.parameters, one.division, request.groups))
                .collect()
        };
        let split = layer.split;
        layers.push(StageLayer {
            layer: number,
            dense: tensors(false),
            expert: tensors(true),
            forward: Vec::new(),
            backward: Vec::new(),
            sums_output: split.sums_output,
            sums_input: split.sums_input,
            experts: split.experts.then_some(experts),
        });
        experts += usize::from(split.experts);
    }
    for rank in 0..request.groups.expert as usize {
        time(model, &mut layers, rank, request)?;
    }
    Ok(layers)
}

/// Adds the times of an expert-parallel rank.
fn time(
    model: &Model,
    layers: &mut [StageLayer],
    rank: usize,
    request: &StageRequest<'_>,
) -> Result<(), TrainingError> {
    let (forward, backward) = model.operations();
    let total = forward + backward;
    let tensor = u128::from(request.groups.tensor);
    let mut clock = request.rate.clock(1, total)?.divided(tensor);
    let work = |own: &StageLayer, of: fn(&Layer) -> u64| {
        let layer = &model.layers[own.layer];
        let operations = u128::from(of(layer));
        let all = match (own.experts, model.transformer) {
            (Some(number), Some(shape)) => {
                let each = operations / u128::from(shape.sequence * shape.top_k);
                each * request.loads.received(number, rank)
            }
            _ => operations * u128::from(request.samples),
        };
        if layer.split.divided {
            all
        } else {
            all * tensor
        }
    };
    for own in layers.iter_mut() {
        let spent = clock.advance(work(own, |layer| layer.forward))?;
        own.forward.push(spent);
    }
    for own in layers.iter_mut().rev() {
        let spent = clock.advance(work(own, |layer| layer.backward))?;
        own.backward.push(spent);
    }
    Ok(())
}

fn units(model: &Model, layers: &[StageLayer]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut block = None;
    for (place, layer) in layers.iter().enumerate() {
        let own = model.layers[layer.layer].split.block;
        if own.is_none() || own != block || units.is_empty() {
            units.push(Unit {
                first: place,
                end: place,
                dense: 0,
                expert: 0,
            });
        }
        block = own;
        if let Some(unit) = units.last_mut() {
            unit.end = place + 1;
            unit.dense += layer.dense.iter().sum::<u64>();
            unit.expert += layer.expert.iter().sum::<u64>();
        }
    }
    units
}

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
