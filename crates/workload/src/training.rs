//! Data-parallel training: the time of an iteration, and the part of this time in which devices
//! wait for the network.
//!
//! Every device stores the whole model and computes on a separate batch. An iteration runs the
//! layers forward, then backward in reverse order. The gradients of a layer are available when the
//! layer's backward pass ends. Gradients are sent in buckets ([`buckets`]). Each bucket is one
//! all_reduce, and is ready when its last gradient is available. One communication stream sends the
//! buckets in order. Let C be the end of the backward pass, r_k the time at which bucket k is
//! ready, t_k the duration of its all_reduce, e_k the end of this all_reduce, K the number of
//! buckets and T the time of the iteration (all in picoseconds):
//!
//! e_0 = 0, e_k = max(r_k, e_(k-1)) + t_k, T = max(C, e_K),
//!
//! Without overlap, r_k = C for all k. Transfers before C are hidden behind computation. After C
//! all buckets are ready, so the stream never pauses. The time T - C is spent on sending, and is
//! divided into reconfiguration, control and data. If an all_reduce is in progress at C, its part
//! after C is divided in the same proportions as the whole all_reduce.
//!
//! [`cost`] simulates the [`Cost`] of an all_reduce. The time of a layer follows from the layer's
//! shape and a [`device`], or is measured. On a device, the optimizer's step follows after all
//! buckets. The model does not include loading of input and stragglers. All devices are equal.
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
//! let iteration = training::iterate(&layers, &sent, true, &costs, Time::ZERO)?;
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
pub mod operators;
pub mod practice;
mod transformer;

use std::collections::BTreeMap;

use thiserror::Error;

use buckets::Bucket;
use device::ComputeRate;
use operators::{Part, Portion};
use opticoll_base::names::terminal_text;
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Bytes, Time, UnitError};
pub use transformer::{LatentShape, TransformerShape};

/// Reason why a computation of training was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrainingError {
    /// No model or device has this name.
    #[error("unknown {what} `{}`{hint}", terminal_text(name))]
    Unknown {
        /// Kind of the name: `model` or `device`.
        what: &'static str,
        /// Unknown name, as the user typed it.
        name: String,
        /// Suggestion: a similar valid name, or all valid names.
        hint: String,
    },
    /// An option is unknown or invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A text is not a valid throughput or bucket rule, or its value exceeds 64 bits.
    #[error("{what}: `{}` is not valid: {hint}", terminal_text(text))]
    Text {
        /// Expected kind of value: `throughput` or `buckets`.
        what: &'static str,
        /// Invalid text, as the user typed it.
        text: String,
        /// Hint on the syntax.
        hint: String,
    },
    /// A time or size exceeds 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The batch is empty.
    #[error("a batch of 0 samples trains nothing; give at least 1")]
    EmptyBatch,
    /// A throughput in samples per second cannot be divided among layers that do not compute.
    #[error("no layer of the model computes; give times of its layers")]
    NoComputation,
    /// Groups of ranks do not fit the fabric or the model.
    #[error("{0}")]
    Groups(String),
    /// The cost of the all_reduce of a bucket is missing.
    #[error("the cost of an all_reduce of {size} is not given")]
    NoCost {
        /// Size of the bucket whose cost is missing.
        size: Bytes,
    },
}

/// Tensor of parameters, for which training computes a gradient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name in the model.
    pub name: String,
    /// Number of parameters.
    pub parameters: u64,
    /// Group of ranks that divide the tensor.
    pub division: Division,
}

/// Group of ranks that divide a tensor. All other ranks store copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Division {
    /// No group, as for a normalization, a bias after a sum, or a layer outside of transformers.
    #[default]
    Whole,
    /// Tensor-parallel group.
    Tensor,
    /// Expert-parallel group. In addition, the ranks of a tensor-parallel group divide each expert.
    Expert,
}

/// Layer of a model: its tensors and its computation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Name in the model.
    pub name: String,
    /// Tensors, in the order of declaration.
    pub tensors: Vec<Tensor>,
    /// Floating-point operations of the forward pass per sample; a multiply-add pair counts as two.
    pub forward: u64,
    /// Number of floating-point operations in the backward pass, per sample.
    pub backward: u64,
    /// Bytes that the forward pass of a sample stores for the backward pass, in 16-bit floats,
    /// without `scores`.
    pub activations: u64,
    /// Bytes of a sample's scores of attention, which FlashAttention does not store. Ranks divide
    /// them.
    pub scores: u64,
    /// Memory of a sample beside all activations.
    pub working: Working,
    /// Parts of the computation, per sample.
    pub parts: Vec<Part>,
    /// Division of the layer among groups of ranks.
    pub split: LayerSplit,
}

/// Bytes of a sample that a layer needs beside all stored activations, before the backward pass
/// frees any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Working {
    /// Bytes on each rank; with sequence parallelism, the ranks divide them.
    pub tokens: u64,
    /// Bytes that tensor-parallel ranks divide.
    pub values: u64,
    /// Bytes on each rank, needed with sequence parallelism only: gathered values of all tokens,
    /// and sums before a reduce_scatter.
    pub gathered: u64,
    /// Number of logits, which tensor-parallel ranks divide.
    pub logits: u64,
}

/// Division of a layer among the ranks of a tensor-parallel group, and the sums over these ranks
/// (Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerSplit {
    /// Index of the transformer block; `None` before the first block and after the last block.
    pub block: Option<u32>,
    /// True if the ranks divide the operations of the layer.
    pub divided: bool,
    /// True if an all_reduce sums the output, because a matrix is divided by rows.
    pub sums_output: bool,
    /// True if the backward pass ends with an all_reduce of the input's gradient. This applies to
    /// the first column-divided matrix among those that share an input.
    pub sums_input: bool,
    /// Number of bytes of activations that the ranks divide.
    pub divided_activations: u64,
    /// True if the layer contains the experts of a block, to which tokens are sent.
    pub experts: bool,
}

/// Model: its layers in the order of the forward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Complete specification of the model.
    pub name: String,
    /// Label of the model in figures.
    pub label: String,
    /// Noun for a sample, such as `image` or `sequence of 128 tokens`.
    pub sample: String,
    /// Number of samples per epoch of the dataset on which the model is usually trained.
    pub epoch_samples: Option<u64>,
    /// Layers, in the order of the forward pass.
    pub layers: Vec<Layer>,
    /// Shape of a transformer; `None` for other models.
    pub transformer: Option<TransformerShape>,
}

/// Layer with its times for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedLayer {
    /// Name of the layer.
    pub name: String,
    /// Bytes of each gradient tensor, in the order of declaration.
    pub tensors: Vec<Bytes>,
    /// Time of the forward pass.
    pub forward: Time,
    /// Time of the backward pass.
    pub backward: Time,
}

/// Time of an all_reduce, with the parts of the time for reconfiguration and control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Time from the start to the last delivery.
    pub time: Time,
    /// Part of the time that is spent on circuit setup, laser tuning and receiver locking.
    pub reconfiguration: Time,
    /// Part of the time that is spent on requests and on waiting for receivers.
    pub control: Time,
}

opticoll_simulate::rows! {
    /// A row per bucket, in the order of sending.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SentBuckets {
        /// Total bytes of the bucket's gradients.
        pub bytes: Bytes,
        /// Number of gradients in the bucket.
        pub tensors: u32,
        /// Index of the layer whose backward pass completes the bucket.
        pub layer: usize,
        /// Time at which the last gradient was available.
        pub ready: Time,
        /// Time at which the all_reduce started.
        pub start: Time,
        /// Time at which the all_reduce ended on all ranks.
        pub end: Time,
    }
}

opticoll_simulate::totals! {
    /// Result of an iteration. `time` is the sum of `compute`, `exposed`, `reconfiguration` and
    /// `control`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Iteration {
        /// Time from the start until all gradients are reduced.
        pub time: Time,
        /// Time of the forward pass, the backward pass and the step of the optimizer.
        pub compute: Time,
        /// Time of the forward pass.
        pub forward: Time,
        /// Time of the optimizer's step; zero if the computing times include it.
        pub optimizer: Time,
        /// Time of data transfer after the backward pass.
        pub exposed: Time,
        /// Time of reconfiguration after the backward pass.
        pub reconfiguration: Time,
        /// Time of control after the backward pass.
        pub control: Time,
        /// Time of all all_reduces, hidden or not.
        pub sending: Time,
        /// Time of reconfiguration, hidden or not.
        pub sending_reconfiguration: Time,
        /// Time of control, hidden or not.
        pub sending_control: Time,
        /// Buckets in the order of sending.
        pub buckets: Vec<SentBuckets>,
    }
}

impl Model {
    /// Returns the number of parameters.
    pub fn parameters(&self) -> u64 {
        self.tensors().map(|tensor| tensor.parameters).sum()
    }

    /// Returns all tensors, in the order of the layers.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.layers.iter().flat_map(|layer| &layer.tensors)
    }

    /// Returns the number of floating-point operations per sample in the forward pass, and the
    /// number in the backward pass.
    pub fn operations(&self) -> (u128, u128) {
        let sum = |operations: fn(&Layer) -> u64| {
            self.layers.iter().map(operations).map(u128::from).sum()
        };
        (sum(|layer| layer.forward), sum(|layer| layer.backward))
    }

    /// Returns the number of assignments of tokens to the experts of a block, per sample.
    pub fn assignments(&self) -> u64 {
        self.transformer
            .map_or(0, |shape| shape.sequence * shape.top_k)
    }

    /// Returns the layers with their times for `batch` samples on a device with speed `rate`. Each
    /// parameter has a gradient of `bytes_per_parameter` bytes.
    ///
    /// Fails for a batch of 0 samples, for a rate in samples if no layer computes, and if a time or
    /// size exceeds 64 bits.
    pub fn timed(
        &self,
        batch: u64,
        rate: ComputeRate,
        bytes_per_parameter: u64,
    ) -> Result<Vec<TimedLayer>, TrainingError> {
        if batch == 0 {
            return Err(TrainingError::EmptyBatch);
        }
        let portion = Portion::whole(batch, self.assignments());
        let layers: Vec<_> = (0..self.layers.len())
            .map(|layer| (layer, portion))
            .collect();
        let times = device::times(rate, self, &layers)?;
        let timed = |(layer, [forward, backward, _]): (&Layer, [Time; 3])| {
            let bytes = |tensor: &Tensor| {
                let bytes = tensor.parameters.checked_mul(bytes_per_parameter);
                bytes.map(Bytes::new).ok_or_else(|| UnitError::Overflow {
                    what: format!("the gradient `{}`", tensor.name),
                    smallest: "bytes",
                })
            };
            Ok(TimedLayer {
                name: layer.name.clone(),
                tensors: layer.tensors.iter().map(bytes).collect::<Result<_, _>>()?,
                forward,
                backward,
            })
        };
        self.layers.iter().zip(times).map(timed).collect()
    }

    /// Returns the time of the optimizer's step on a device that updates all parameters. Rates
    /// other than those of operators include this time.
    ///
    /// # Errors
    /// Fails if the time exceeds 64 bits.
    pub fn optimizer(&self, rate: ComputeRate) -> Result<Time, TrainingError> {
        Ok(rate.optimizer(self.parameters(), 0)?)
    }
}

/// Simulates an iteration. `costs` contains the cost of an all_reduce, indexed by size of the
/// bucket. `optimizer` is the time of the optimizer's step after all buckets.
///
/// # Errors
/// Fails if the cost of a bucket's size is missing or a time exceeds 64 bits.
pub fn iterate(
    layers: &[TimedLayer],
    buckets: &[Bucket],
    overlap: bool,
    costs: &BTreeMap<Bytes, Cost>,
    optimizer: Time,
) -> Result<Iteration, TrainingError> {
    let mut forward = Time::ZERO;
    for layer in layers {
        forward = forward.plus(layer.forward)?;
    }
    let mut gradient_times = vec![forward; layers.len()];
    let mut compute = forward;
    for (layer, end) in layers.iter().zip(&mut gradient_times).rev() {
        compute = compute.plus(layer.backward)?;
        *end = compute;
    }
    let mut iteration = Iteration {
        time: compute,
        compute,
        forward,
        optimizer,
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
        let ready = if overlap {
            gradient_times[bucket.layer]
        } else {
            compute
        };
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
    iteration.time = compute.max(free).plus(optimizer)?;
    iteration.compute = compute.plus(optimizer)?;
    Ok(iteration)
}

impl Iteration {
    /// Adds an all_reduce to the totals of sending. The part of the all_reduce after the backward
    /// pass is also added to the exposed times.
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
