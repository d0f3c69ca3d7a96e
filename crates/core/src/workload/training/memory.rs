//! The memory that a model takes on a device where every device holds all of it, by formulas.
//!
//! Training in mixed precision with Adam takes 16 bytes a parameter: 2 for the weight and 2 for the gradient
//! in 16 bits, 12 for the optimizer's 32-bit weight, momentum and variance (Rajbhandari et al., ZeRO,
//! arXiv:1910.02054, section 3.1). What the forward pass leaves for the backward pass are the
//! [activations](super::Layer::activations) of the layers, for each sample. Buffers of a framework and
//! fragmentation come on top; recomputation and sharding, which save memory, are not modelled.
//!
//! ```
//! use opticoll::workload::training::{memory, models};
//! let model = models::parse("gpt3_175b")?;
//! // 16 bytes for each of 175 billion parameters are 2.8 TB.
//! assert_eq!(memory::forecast(&model, 1).states() / 1_000_000_000, 2_793);
//! # Ok::<(), opticoll::workload::training::TrainingError>(())
//! ```

use super::Model;

/// Bytes of a 16-bit weight.
const WEIGHT: u128 = 2;
/// Bytes of a 16-bit gradient.
const GRADIENT: u128 = 2;
/// Bytes of Adam's 32-bit weight, momentum and variance.
const OPTIMIZER: u128 = 12;

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
