//! The memory that a model takes on a device where every device holds all of it, by formulas.
//!
//! Training in mixed precision with Adam takes 16 bytes a parameter: 2 for the weight and 2 for the gradient
//! in 16 bits, 12 for the optimizer's 32-bit weight, momentum and variance (Rajbhandari et al., ZeRO,
//! arXiv:1910.02054, section 3.1). What the forward pass leaves for the backward pass are the
//! [activations](super::Layer::activations) of the layers, for each sample. Buffers of a framework and
//! fragmentation come on top; recomputation, which saves memory, is not modelled.
//!
//! **Groups of ranks.** A rank holds the parameters of its stage, the matrices divided among T tensor-parallel ranks and
//! the experts besides among E expert-parallel ranks. Of D replicas each holds a D-th of the optimizer's state, the
//! gradients and the parameters, as far as they are sharded (ZeRO, section 5: with a model of Psi parameters
//! 4 Psi + 12 Psi / D, 2 Psi + 14 Psi / D and 16 Psi / D); experts have D / E replicas. Of the activations of a block T
//! ranks divide a part (Korthikanti et al., arXiv:2205.05198, equation 2). A stage holds those of as many micro-batches
//! as there are stages from it to the last, but not of more than there are (section 4.2.3 there: 1F1B).
//! Activations of experts grow with the tokens that they get.
//!
//! ```
//! use opticoll_workload::training::{memory, models};
//! let model = models::parse("gpt3_175b")?;
//! // 16 bytes for each of 175 billion parameters are 2.8 TB.
//! assert_eq!(memory::forecast(&model, 1).states() / 1_000_000_000, 2_793);
//! # Ok::<(), opticoll_workload::training::TrainingError>(())
//! ```

use super::experts::ExpertLoads;
use super::groups::stages::{held, stage_of};
use super::groups::{Groups, Sharding};
use super::{Division, Model};

/// Bytes of a 16-bit weight.
const WEIGHT: u128 = 2;
/// Bytes of a 16-bit gradient.
const GRADIENT: u128 = 2;
/// Bytes of Adam's 32-bit weight, momentum and variance.
const OPTIMIZER: u128 = 12;

/// The most tensor-parallel ranks that are proposed: as many devices as servers have.
const MOST_TENSOR: u32 = 8;

/// Bytes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Of weights.
    pub weights: u128,
    /// Of gradients.
    pub gradients: u128,
    /// Of the optimizer's state.
    pub optimizer: u128,
    /// Of what the forward pass leaves for the backward pass.
    pub activations: u128,
}

impl Memory {
    /// The memory of so many parameters, without activations.
    pub fn of_parameters(parameters: u64) -> Memory {
        let parameters = u128::from(parameters);
        Memory {
            weights: WEIGHT * parameters,
            gradients: GRADIENT * parameters,
            optimizer: OPTIMIZER * parameters,
            activations: 0,
        }
    }

    /// What does not depend on the batch.
    pub fn states(&self) -> u128 {
        self.weights + self.gradients + self.optimizer
    }

    /// All of it.
    pub fn total(&self) -> u128 {
        self.states() + self.activations
    }
}

/// The memory of a model that trains on so many samples at once.
pub fn forecast(model: &Model, batch: u64) -> Memory {
    let sample: u128 = model
        .layers
        .iter()
        .map(|layer| u128::from(layer.activations))
        .sum();
    Memory {
        activations: sample * u128::from(batch),
        ..Memory::of_parameters(model.parameters())
    }
}

/// What a forecast with groups of ranks depends on beside the model.
#[derive(Debug, Clone, Copy)]
pub struct GroupedMemory<'a> {
    /// The groups.
    pub groups: Groups,
    /// What replicas divide.
    pub sharding: Sharding,
    /// Samples of a micro-batch.
    pub samples: u64,
    /// Micro-batches of an iteration.
    pub micro_batches: u64,
    /// Tokens of each expert in a micro-batch; evenly where none are given.
    pub loads: Option<&'a ExpertLoads>,
}

impl GroupedMemory<'_> {
    /// The memory of a rank of the stage that needs most.
    pub fn forecast(&self, model: &Model) -> Memory {
        let stage_of = stage_of(model, self.groups.pipeline);
        let stages = 0..self.groups.pipeline;
        let all = stages.map(|stage| self.of_stage(model, stage, &stage_of));
        let most = all.max_by_key(Memory::total);
        most.unwrap_or(Memory::of_parameters(0))
    }

    fn of_stage(&self, model: &Model, stage: u32, stage_of: &[u32]) -> Memory {
        let Groups { tensor, data, .. } = self.groups;
        let mut memory = Memory::of_parameters(0);
        let (mut activations, mut experts) = (0u128, 0);
        for (layer, &own) in model.layers.iter().zip(stage_of) {
            let number = experts;
            experts += usize::from(layer.split.experts);
            if own != stage {
                continue;
            }
            for one in &layer.tensors {
                let parameters = u128::from(held(one.parameters, one.division, self.groups));
                let replicas = match one.division {
                    Division::Expert => data / self.groups.expert,
                    _ => data,
                };
                let part = |sharded: Sharding, bytes: u128| match self.sharding >= sharded {
                    true => (bytes * parameters).div_ceil(u128::from(replicas)),
                    false => bytes * parameters,
                };
                memory.weights += part(Sharding::Parameters, WEIGHT);
                memory.gradients += part(Sharding::Gradients, GRADIENT);
                memory.optimizer += part(Sharding::Optimizer, OPTIMIZER);
            }
            let divided = u128::from(layer.split.divided_activations);
            let whole = u128::from(layer.activations) - divided;
            let sample = whole + divided.div_ceil(u128::from(tensor));
            activations += match layer.split.experts {
                true => self.of_experts(model, number, sample),
                false => sample * u128::from(self.samples),
            };
        }
        let ahead = u64::from(self.groups.pipeline - stage).min(self.micro_batches);
        memory.activations = activations * u128::from(ahead);
        memory
    }

    /// Activations of experts on the rank that gets most tokens.
    fn of_experts(&self, model: &Model, layer: usize, sample: u128) -> u128 {
        let even = sample * u128::from(self.samples);
        let (Some(loads), Some(shape)) = (self.loads, model.transformer) else {
            return even;
        };
        let ranks = 0..self.groups.expert as usize;
        let most = ranks.map(|rank| loads.received(layer, rank)).max();
        let each = u128::from(shape.sequence * shape.top_k);
        (sample * most.unwrap_or(0)).div_ceil(each)
    }

    /// The groups, sharding and micro-batches nearest to these whose forecast is at most so many bytes: with the fewest
    /// changes, then the fewest ranks for a copy of the model.
    pub fn that_fits(&self, model: &Model, bytes: u128, batch: u64) -> Option<(Self, Memory)> {
        let ranks = self.groups.ranks();
        let divisors = |number: u32| (1..=number).filter(move |one| number % one == 0);
        let mut fitting: Vec<([u64; 4], Self, Memory)> = Vec::new();
        for tensor in divisors(ranks).filter(|tensor| *tensor <= MOST_TENSOR) {
            for pipeline in divisors(ranks / tensor) {
                for expert in divisors(ranks / tensor / pipeline) {
                    let numbers = [tensor, pipeline, expert];
                    let Ok(groups) = Groups::new(ranks, numbers, None, model) else {
                        continue;
                    };
                    for sharding in Sharding::ALL {
                        for micro_batches in [self.micro_batches, batch] {
                            let asked = GroupedMemory {
                                groups,
                                sharding,
                                samples: batch / micro_batches,
                                micro_batches,
                                loads: None,
                            };
                            let memory = asked.forecast(model);
                            if memory.total() <= bytes {
                                fitting.push((asked.distance(self), asked, memory));
                            }
                        }
                    }
                }
            }
        }
        let nearest = fitting.into_iter().min_by_key(|(distance, ..)| *distance);
        nearest.map(|(_, asked, memory)| (asked, memory))
    }

    /// How far it is from another: options that differ, ranks for a copy of the model, stage of sharding, micro-batches.
    fn distance(&self, other: &Self) -> [u64; 4] {
        let (own, others) = (self.groups, other.groups);
        let differ = [
            own.tensor != others.tensor,
            own.pipeline != others.pipeline,
            own.expert != others.expert,
            self.sharding != other.sharding,
            self.micro_batches != other.micro_batches,
        ];
        [
            differ.iter().filter(|differ| **differ).count() as u64,
            u64::from(own.tensor) * u64::from(own.pipeline),
            self.sharding as u64,
            self.micro_batches,
        ]
    }
}
