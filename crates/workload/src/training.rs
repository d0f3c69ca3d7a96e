//! Training by data parallelism: what an iteration takes, and which part of it waits for the network.
//!
//! Every device holds the whole model and computes on its own batch. An iteration runs the layers forward,
//! then backward in reverse; the gradients of a layer are there when its backward pass ends. Gradients are
//! sent in buckets ([`buckets`]), each an all_reduce, which becomes ready with the last of its gradients.
//! One communication stream takes the buckets in their order. With C the end of the backward pass, r_k
//! the time at which bucket k is ready and t_k the time of its all_reduce,
//!
//! e_0 = 0, e_k = max(r_k, e_(k-1)) + t_k, T = max(C, e_K),
//!
//! where without overlap r_k = C for all k. All that is sent before C is hidden behind computation. After
//! C all buckets are ready, so that the stream never pauses: T - C is spent on sending, and is split into
//! reconfiguration, control and the rest. A bucket that C cuts in two is split as it is as a whole.
//!
//! What an all_reduce costs, [`Cost`], is simulated ([`cost`]); the time of a layer follows from its shape
//! and a [`device`], or is a measurement. Loading of input, the optimizer's step and stragglers are not
//! modelled; all devices are equal.
//!
//! ```
//! use std::collections::BTreeMap;
//! use opticoll_base::units::{Bytes, Time};
//! use opticoll_workload::training::{self, Cost, TimedLayer, buckets};
//! let layer = |forward, backward, bytes| TimedLayer {
//!     name: "layer".into(),
//!     tensors: vec![Bytes::new(bytes)],
//!     forward: Time::from_ps(forward),
//!     backward: Time::from_ps(backward),
//! };
//! let layers = [layer(10, 20, 8), layer(10, 20, 8)];
//! let sent = buckets::group(&layers, "tensor".parse()?)?;
//! let cost = Cost { time: Time::from_ps(25), ..Cost::default() };
//! let costs = BTreeMap::from([(Bytes::new(8), cost)]);
//! let iteration = training::iterate(&layers, &sent, true, &costs)?;
//! // The second layer's gradient is ready at 40 and hidden but for 5; the first one's at 60.
//! assert_eq!((iteration.compute.ps(), iteration.time.ps()), (60, 90));
//! # Ok::<(), training::TrainingError>(())
//! ```

pub mod buckets;
mod convolutional;
pub mod cost;
pub mod device;
pub mod experts;
pub mod groups;
pub mod memory;
pub mod models;
mod transformer;

use std::collections::BTreeMap;

use thiserror::Error;

use buckets::Bucket;
use device::ComputeRate;
use opticoll_base::names::shown;
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Bytes, Time, UnitError};
pub use transformer::TransformerShape;

/// Why a training run was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrainingError {
    /// No model or device has this name.
    #[error("unknown {what} `{}`{hint}", shown(name))]
    Unknown {
        /// `model` or `device`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// An option is unknown or does not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A text that is no throughput or no rule for buckets, or a time or size beyond 64 bits.
    #[error("{what}: `{}` is none: {hint}", shown(text))]
    Text {
        /// What was expected.
        what: &'static str,
        /// The text as given.
        text: String,
        /// How to write it.
        hint: String,
    },
    /// A time or size left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// No sample is computed on.
    #[error("a batch of 0 samples trains nothing; give at least 1")]
    EmptyBatch,
    /// A model without computation has no share of a given throughput.
    #[error("the model has no layer that computes; give times of its layers")]
    NoComputation,
    /// Groups of ranks that do not fit the fabric or the model.
    #[error("{0}")]
    Groups(String),
    /// The cost of an all_reduce is missing.
    #[error("the cost of an all_reduce of {size} is not given")]
    NoCost {
        /// The size of a bucket.
        size: Bytes,
    },
}

/// A gradient tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name in the model.
    pub name: String,
    /// How many parameters it has.
    pub parameters: u64,
    /// Which ranks divide it.
    pub division: Division,
}

/// Which ranks divide a tensor among them; the others hold copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Division {
    /// None: a normalization, a bias behind a sum, a layer that is no part of a transformer.
    #[default]
    Whole,
    /// The ranks of a tensor-parallel group.
    Tensor,
    /// The ranks of an expert-parallel group, each expert again among those of a tensor-parallel group.
    Expert,
}

/// A layer: what it learns and what it computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name in the model.
    pub name: String,
    /// Its tensors in the order of their declaration.
    pub tensors: Vec<Tensor>,
    /// Floating-point operations for a sample, forward: two for a multiplication with addition.
    pub forward: u64,
    /// The same backward.
    pub backward: u64,
    /// Bytes that a sample's forward pass leaves for its backward pass, in 16-bit floats.
    pub activations: u64,
    /// How groups of ranks divide it.
    pub split: LayerSplit,
}

/// How the ranks of a tensor-parallel group divide a layer, and what they then have to sum
/// (Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerSplit {
    /// The block of the transformer that it belongs to; none before the first and after the last.
    pub block: Option<u32>,
    /// Whether they divide its operations.
    pub divided: bool,
    /// Whether the forward pass ends with an all_reduce of its output: a matrix divided by rows.
    pub sums_output: bool,
    /// Whether the backward pass ends with an all_reduce of its input's gradient: a matrix divided by columns, the first
    /// of those that share an input.
    pub sums_input: bool,
    /// The part of its activations that they divide.
    pub divided_activations: u64,
    /// Whether it holds the experts of a block, to which tokens are sent.
    pub experts: bool,
}

/// A model: its layers in the order in which they run forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// As written in full.
    pub name: String,
    /// As printed in figures.
    pub label: String,
    /// What a sample is: an image, or a sequence of so many tokens.
    pub sample: String,
    /// Samples of an epoch on the data that it is known for.
    pub epoch_samples: Option<u64>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// Its shape, if it is a transformer.
    pub transformer: Option<TransformerShape>,
}

/// A layer with its times for one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedLayer {
    /// Its name.
    pub name: String,
    /// The bytes of its gradients, in the order of their declaration.
    pub tensors: Vec<Bytes>,
    /// The time of its forward pass.
    pub forward: Time,
    /// The time of its backward pass.
    pub backward: Time,
}

/// What one all_reduce costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// From its start to the last delivery.
    pub time: Time,
    /// The part of it that circuits are set up, or lasers tuned and receivers locked.
    pub reconfiguration: Time,
    /// The part of it that transmitters ask for receivers and wait for them.
    pub control: Time,
}

opticoll_simulate::rows! {
    /// One row per bucket, in the order of sending.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SentBuckets {
        /// Bytes of its gradients.
        pub bytes: Bytes,
        /// Number of its gradients.
        pub tensors: u32,
        /// The layer whose backward pass completes it.
        pub layer: usize,
        /// When its last gradient was there.
        pub ready: Time,
        /// When its all_reduce began.
        pub start: Time,
        /// When that had ended everywhere.
        pub end: Time,
    }
}

opticoll_simulate::totals! {
    /// An iteration. The time is the sum of `compute`, `exposed`, `reconfiguration` and `control`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Iteration {
        /// From the start to the last gradient.
        pub time: Time,
        /// Forward and backward pass.
        pub compute: Time,
        /// The forward pass.
        pub forward: Time,
        /// Data moving after the backward pass.
        pub exposed: Time,
        /// Reconfiguration after the backward pass.
        pub reconfiguration: Time,
        /// Control after the backward pass.
        pub control: Time,
        /// All all_reduces, hidden or not.
        pub sending: Time,
        /// Reconfiguration, hidden or not.
        pub sending_reconfiguration: Time,
        /// Control, hidden or not.
        pub sending_control: Time,
        /// The buckets in their order.
        pub buckets: Vec<SentBuckets>,
    }
}

impl Model {
    /// All parameters.
    pub fn parameters(&self) -> u64 {
        self.tensors().map(|tensor| tensor.parameters).sum()
    }

    /// All tensors, in the order of the layers.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.layers.iter().flat_map(|layer| &layer.tensors)
    }

    /// Floating-point operations for a sample: forward, and backward.
    pub fn operations(&self) -> (u128, u128) {
        let sum = |of: fn(&Layer) -> u64| self.layers.iter().map(of).map(u128::from).sum();
        (sum(|layer| layer.forward), sum(|layer| layer.backward))
    }

    /// The layers with their times for a batch on a device of some rate, and gradients of so many
    /// bytes per parameter.
    ///
    /// # Errors
    /// No samples, no layer that computes where a rate in samples is to be shared out, or a time or
    /// size beyond 64 bits.
    pub fn timed(
        &self,
        batch: u64,
        rate: ComputeRate,
        bytes_per_parameter: u64,
    ) -> Result<Vec<TimedLayer>, TrainingError> {
        if batch == 0 {
            return Err(TrainingError::EmptyBatch);
        }
        let (forward, backward) = self.operations();
        let mut clock = rate.clock(batch, forward + backward)?;
        let mut layers: Vec<TimedLayer> = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let bytes = |tensor: &Tensor| {
                let bytes = tensor.parameters.checked_mul(bytes_per_parameter);
                bytes.map(Bytes::new).ok_or_else(|| UnitError::Overflow {
                    what: format!("the gradient `{}`", tensor.name),
                    smallest: "bytes",
                })
            };
            layers.push(TimedLayer {
                name: layer.name.clone(),
                tensors: layer.tensors.iter().map(bytes).collect::<Result<_, _>>()?,
                forward: clock.advance(layer.forward)?,
                backward: Time::ZERO,
            });
        }
        for (timed, layer) in layers.iter_mut().zip(&self.layers).rev() {
            timed.backward = clock.advance(layer.backward)?;
        }
        Ok(layers)
    }
}

/// Runs one iteration.
///
/// # Errors
/// The cost of a bucket's size is missing, or a time beyond 64 bits.
pub fn iterate(
    layers: &[TimedLayer],
    buckets: &[Bucket],
    overlap: bool,
    costs: &BTreeMap<Bytes, Cost>,
) -> Result<Iteration, TrainingError> {
    let mut forward = Time::ZERO;
    for layer in layers {
        forward = forward.plus(layer.forward)?;
    }
    let mut done = vec![forward; layers.len()];
    let mut compute = forward;
    for (layer, end) in layers.iter().zip(&mut done).rev() {
        compute = compute.plus(layer.backward)?;
        *end = compute;
    }
    let mut iteration = Iteration {
        time: compute,
        compute,
        forward,
        exposed: Time::ZERO,
        reconfiguration: Time::ZERO,
        control: Time::ZERO,
        sending: Time::ZERO,
        sending_reconfiguration: Time::ZERO,
        sending_control: Time::ZERO,
        buckets: Vec::with_capacity(buckets.len()),
    };
    let mut free = Time::ZERO;
    for &bucket in buckets {
        let missing = TrainingError::NoCost { size: bucket.bytes };
        let cost = *costs.get(&bucket.bytes).ok_or(missing)?;
        let ready = if overlap { done[bucket.layer] } else { compute };
        let start = ready.max(free);
        free = start.plus(cost.time)?;
        iteration.buckets.push(SentBuckets {
            bytes: bucket.bytes,
            tensors: bucket.tensors,
            layer: bucket.layer,
            ready,
            start,
            end: free,
        });
        iteration.count(start, free, cost)?;
    }
    iteration.time = compute.max(free);
    Ok(iteration)
}

impl Iteration {
    /// Adds an all_reduce to what was sent, and its part after the backward pass to what waits.
    fn count(&mut self, start: Time, end: Time, cost: Cost) -> Result<(), TrainingError> {
        self.sending = self.sending.plus(cost.time)?;
        self.sending_reconfiguration = self.sending_reconfiguration.plus(cost.reconfiguration)?;
        self.sending_control = self.sending_control.plus(cost.control)?;
        let after = end.ps().saturating_sub(start.max(self.compute).ps());
        if after == 0 {
            return Ok(());
        }
        let share = |part: Time| {
            let scaled = u128::from(part.ps()) * u128::from(after) / u128::from(cost.time.ps());
            Time::from_ps(scaled as u64)
        };
        let (reconfiguration, control) = (share(cost.reconfiguration), share(cost.control));
        self.reconfiguration = self.reconfiguration.plus(reconfiguration)?;
        self.control = self.control.plus(control)?;
        let data = after.saturating_sub(reconfiguration.ps() + control.ps());
        self.exposed = self.exposed.plus(Time::from_ps(data))?;
        Ok(())
    }
}
