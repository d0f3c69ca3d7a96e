//! The Python classes `TrainingModel` and `TimedModel`, and the costs of all_reduces.

use std::collections::BTreeMap;

use opticoll::simulate::SimulationError;
use opticoll::simulate::passed_parts::passed_parts;
use opticoll::units::{Bytes, Time};
use opticoll::workload::training::{
    self, Cost, Model, TimedLayer,
    buckets::{self, Bucket, Buckets},
    cost, device,
    device::ComputeRate,
    groups::Groups,
    memory, models,
    operators::{self, Narrow, Part, Portion, Work},
};
use pyo3::prelude::*;

use crate::error::{OrRaise, TrainingError};
use crate::fabric::{BillEntry, bill_entries};
use crate::interrupt;
use crate::method::{Settings, method};
use crate::plan::Plan;
use crate::table::Outcome;

/// A neural network whose training can be timed: its layers with their parameters and operations.
///
/// Parameters
/// ----------
/// spec : str
///     A name, or a name with options, such as `resnet50` or `gpt:layers=12,width=768` (see
///     `opticoll list models`, which also names the source of each model).
/// sequence : int, optional
///     Tokens of a sample; may exceed the positions of the model (default: as in `spec`).
///
/// Raises
/// ------
/// TrainingError
///     The model is unknown, or an option is unknown or out of range.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> model = opticoll.TrainingModel("resnet50")
/// >>> model.name, model.label, model.parameters
/// ('resnet50', 'ResNet50', 25557032)
/// >>> model.sample, model.epoch_samples, model.operations
/// ('image', 1281167, (8178368512, 16120709120))
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct TrainingModel {
    model: Model,
}

#[pymethods]
impl TrainingModel {
    #[new]
    #[pyo3(signature = (spec, sequence = None))]
    fn new(spec: &str, sequence: Option<u32>) -> PyResult<TrainingModel> {
        models::with_sequence(spec, sequence)
            .map(|model| TrainingModel { model })
            .or_raise()
    }

    /// Returns the memory that training needs on a device, in bytes: weights, gradients, optimizer
    /// state, activations and working memory.
    ///
    /// Parameters
    /// ----------
    /// batch : int
    ///     Samples per device and iteration.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The batch is negative or not below 2^64.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.TrainingModel("resnet50").memory(32)
    /// (51114064, 51114064, 306684384, 1422653952, 0)
    fn memory(&self, batch: u64) -> (u128, u128, u128, u128, u128) {
        let forecast = memory::forecast(&self.model, batch);
        let states = (forecast.weights, forecast.gradients, forecast.optimizer);
        (
            states.0,
            states.1,
            states.2,
            forecast.activations,
            forecast.working,
        )
    }

    /// Returns the operators of all layers on one rank of a group, with their times.
    ///
    /// Parameters
    /// ----------
    /// samples : int
    ///     Samples of a micro-batch.
    /// device : str
    ///     A device such as `h100`.
    /// tensor : int
    ///     Ranks that divide each matrix.
    ///
    /// Returns
    /// -------
    /// list
    ///     Tuples of the layer, the operator, and three pairs for the forward and the backward
    ///     pass: operations, bytes, and seconds.
    ///
    /// Raises
    /// ------
    /// TrainingError
    ///     The device is unknown, or has an efficiency in place of the times of operators; or the
    ///     model cannot be divided among `tensor` ranks.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.TrainingModel("gpt2_small").operators(1, "h100")[2][:3]
    /// ('block0.query_key_value', 'product', (3623878656, 7247757312))
    #[pyo3(signature = (samples, device, tensor = 1))]
    fn operators(&self, samples: u64, device: &str, tensor: u32) -> PyResult<Vec<OperatorTimes>> {
        let device = device::with_operators(device).or_raise()?;
        let groups = Groups::new(tensor, [tensor, 1, 1, 1], None, &self.model).or_raise()?;
        let portion = Portion {
            tensor: groups.tensor.into(),
            narrow: device.narrow(),
            ..Portion::whole(samples, self.model.assignments())
        };
        let mut times = Vec::new();
        for layer in &self.model.layers {
            for operator in operators::operators(layer, portion) {
                let passes = [&operator.forward, &operator.backward];
                let sum = |of: fn(&Work) -> u128| {
                    let [forward, backward] = passes.map(|works| works.iter().map(of).sum());
                    (forward, backward)
                };
                let seconds = passes
                    .map(|works| -> f64 { works.iter().map(|work| device.seconds(work)).sum() });
                times.push((
                    layer.name.clone(),
                    operator.name,
                    sum(Work::operations),
                    sum(Work::bytes),
                    (seconds[0], seconds[1]),
                ));
            }
        }
        Ok(times)
    }

    /// Returns whether a device computes products of 8-bit floats that the model does not have.
    ///
    /// Parameters
    /// ----------
    /// device : str
    ///     A device such as `h100:precision=fp8`.
    ///
    /// Raises
    /// ------
    /// TrainingError
    ///     The device is unknown.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.TrainingModel("resnet50").lacks_products_of("h100:precision=fp8")
    /// True
    fn lacks_products_of(&self, device: &str) -> PyResult<bool> {
        let ComputeRate::Device(device) = device::parse(device).or_raise()? else {
            return Ok(false);
        };
        let is_narrow =
            |part: &Part| matches!(part, Part::Matrix { narrow, .. } if *narrow != Narrow::Never);
        let mut parts = self.model.layers.iter().flat_map(|layer| &layer.parts);
        Ok(device.narrow() && !parts.any(is_narrow))
    }

    /// Returns the work of one pass of some layers on one rank of a group.
    ///
    /// Parameters
    /// ----------
    /// samples : int
    ///     Samples of a micro-batch.
    /// tensor : int
    ///     Ranks that divide each matrix.
    /// layers : list of str, optional
    ///     Names of the layers; None selects all layers.
    /// without : list of str
    ///     Names of operators that are left out.
    /// backward : bool
    ///     Whether the pass is the backward pass.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     A number is negative or not below 2^64.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> model = opticoll.TrainingModel("gpt3_175b")
    /// >>> expand = model.work(1, 8, ["block0.expand"], ["activation"], backward=False)
    /// >>> expand.seconds("h100:products=1,depth=0.000001,launch=0.000001")
    /// 0.0003126770943641717
    #[pyo3(signature = (samples, tensor, layers, without, backward))]
    fn work(
        &self,
        samples: u64,
        tensor: u64,
        layers: Option<Vec<String>>,
        without: Vec<String>,
        backward: bool,
    ) -> DeviceWork {
        let portion = Portion {
            tensor: tensor.max(1),
            ..Portion::whole(samples, self.model.assignments())
        };
        let selected = |name: &String| layers.as_ref().is_none_or(|layers| layers.contains(name));
        let layers = self
            .model
            .layers
            .iter()
            .filter(|layer| selected(&layer.name));
        let operators = layers.flat_map(|layer| operators::operators(layer, portion));
        let works = operators
            .filter(|operator| !without.iter().any(|name| name == operator.name))
            .flat_map(|operator| {
                if backward {
                    operator.backward
                } else {
                    operator.forward
                }
            })
            .collect();
        DeviceWork { works }
    }

    /// Returns the layers with their times on a device.
    ///
    /// Parameters
    /// ----------
    /// batch : int
    ///     Samples per device and iteration.
    /// device : str, optional
    ///     A device such as `a100:efficiency=0.4` (default: the first of `opticoll list devices`).
    /// throughput : str, optional
    ///     A measured throughput of a device, such as `50TFLOP/s` or `1100images/s`, instead of the
    ///     device's own.
    /// bytes_per_parameter : int
    ///     Bytes of a gradient.
    ///
    /// Returns
    /// -------
    /// TimedModel
    ///     `layers` is a list of (name, bytes of each gradient, forward time in picoseconds,
    ///     backward time in picoseconds).
    ///
    /// Raises
    /// ------
    /// TrainingError
    ///     The device is unknown, the throughput is malformed, or the batch is 0.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.TrainingModel("resnet50").timed(32, "a100").layers[0]
    /// ('conv1', [37632], 872078282, 872078282)
    #[pyo3(signature = (batch, device = None, throughput = None, bytes_per_parameter = 4))]
    fn timed(
        &self,
        batch: u64,
        device: Option<&str>,
        throughput: Option<&str>,
        bytes_per_parameter: u64,
    ) -> PyResult<TimedModel> {
        let rate = match throughput {
            Some(text) => device::throughput(text),
            None => device::parse(device.unwrap_or(device::DEVICES[0].name)),
        };
        let timed = |rate| -> Result<TimedModel, training::TrainingError> {
            Ok(TimedModel {
                layers: self.model.timed(batch, rate, bytes_per_parameter)?,
                optimizer: self.model.optimizer(rate)?,
            })
        };
        rate.and_then(timed).or_raise()
    }
}

getters! { TrainingModel |self|
    /// The name of the model, such as `resnet50`.
    name: &str = &self.model.name;
    /// The name of the model in figures, such as `ResNet50`.
    label: &str = &self.model.label;
    /// The noun for a sample, such as `image`.
    sample: &str = &self.model.sample;
    /// The number of samples in an epoch of the usual data set, or None.
    epoch_samples: Option<u64> = self.model.epoch_samples;
    /// The number of trainable parameters.
    parameters: u64 = self.model.parameters();
    /// The floating-point operations per sample of the forward pass, and of the backward pass.
    operations: (u128, u128) = self.model.operations();
}

/// Layers of a model, with the times and gradients for one batch.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct TimedModel {
    layers: Vec<TimedLayer>,
    optimizer: Time,
}

impl TimedModel {
    fn grouped(&self, rule: &str) -> PyResult<Vec<Bucket>> {
        rule.parse::<Buckets>()
            .and_then(|rule| buckets::group(&self.layers, rule))
            .or_raise()
    }
}

#[pymethods]
impl TimedModel {
    /// Creates a model from tuples, one per layer: name, bytes of each gradient, picoseconds of the
    /// forward pass, picoseconds of the backward pass.
    #[new]
    fn new(layers: Vec<(String, Vec<u64>, u64, u64)>) -> TimedModel {
        let timed = |(name, tensors, forward, backward): (String, Vec<u64>, u64, u64)| TimedLayer {
            name,
            tensors: tensors.into_iter().map(Bytes::new).collect(),
            forward: Time::from_ps(forward),
            backward: Time::from_ps(backward),
        };
        TimedModel {
            layers: layers.into_iter().map(timed).collect(),
            optimizer: Time::ZERO,
        }
    }

    /// The name, the bytes of each gradient, and the picoseconds of the forward and the backward
    /// pass of each layer.
    #[getter]
    fn layers(&self) -> Vec<(&str, Vec<u64>, u64, u64)> {
        let bytes = |layer: &TimedLayer| layer.tensors.iter().map(|tensor| tensor.get()).collect();
        self.layers
            .iter()
            .map(|layer| {
                let times = (layer.forward.ps(), layer.backward.ps());
                (layer.name.as_str(), bytes(layer), times.0, times.1)
            })
            .collect()
    }

    /// Returns the number of bytes of each bucket, in the order of sending.
    fn buckets(&self, rule: &str) -> PyResult<Vec<u64>> {
        let grouped = self.grouped(rule)?;
        Ok(grouped.iter().map(|bucket| bucket.bytes.get()).collect())
    }

    /// Simulates an iteration. `costs` maps the size of an all_reduce to three times in
    /// picoseconds: in total, of reconfiguration, and of control.
    fn iterate(
        &self,
        rule: &str,
        overlap: bool,
        costs: BTreeMap<u64, (u64, u64, u64)>,
    ) -> PyResult<Outcome> {
        let cost = |(time, reconfiguration, control)| Cost {
            time: Time::from_ps(time),
            reconfiguration: Time::from_ps(reconfiguration),
            control: Time::from_ps(control),
        };
        let costs = costs
            .into_iter()
            .map(|(size, parts)| (Bytes::new(size), cost(parts)))
            .collect();
        let grouped = self.grouped(rule)?;
        training::iterate(&self.layers, &grouped, overlap, &costs, self.optimizer)
            .map(Outcome::from_core)
            .or_raise()
    }
}

/// Layer, operator, and pairs for both passes: operations, bytes, and seconds.
type OperatorTimes = (String, &'static str, (u128, u128), (u128, u128), (f64, f64));

/// Returns the constants of a device that are fitted to measured times, by name.
#[pyfunction]
pub(crate) fn device_constants(device: &str) -> PyResult<Vec<(&'static str, f64)>> {
    device::constants(device).or_raise()
}

/// Work whose time a device tells, such as one pass of some operators.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct DeviceWork {
    works: Vec<Work>,
}

#[pymethods]
impl DeviceWork {
    /// Returns the product of an m x k by a k x n matrix in 16 bits.
    #[staticmethod]
    fn product(m: u64, n: u64, k: u64) -> DeviceWork {
        DeviceWork {
            works: vec![Work::Product {
                m,
                n,
                k,
                matrices: 1,
                kernels: 1,
                narrow: false,
                summed: false,
            }],
        }
    }

    /// Returns the seconds of the work on a device such as `h100`. Raises TrainingError if the
    /// device is unknown, or has an efficiency in place of the times of operators.
    fn seconds(&self, device: &str) -> PyResult<f64> {
        let device = device::with_operators(device).or_raise()?;
        Ok(self.works.iter().map(|work| device.seconds(work)).sum())
    }
}

/// Returns the memory of a device in bytes (default: of the default device).
#[pyfunction]
#[pyo3(signature = (device = None))]
pub(crate) fn device_memory(device: Option<&str>) -> PyResult<u64> {
    device::memory(device.unwrap_or(device::DEVICES[0].name))
        .map(Bytes::get)
        .or_raise()
}

/// Returns the bytes that parameters need on a device, for weights, gradients and optimizer.
#[pyfunction]
pub(crate) fn parameter_memory(parameters: u64) -> (u128, u128, u128) {
    let states = memory::Memory::for_parameters(parameters);
    (states.weights, states.gradients, states.optimizer)
}

/// Cost of a collective in a plan, with the settings of the simulation.
#[derive(IntoPyObject)]
pub(crate) struct CollectiveCost {
    time_ps: u64,
    reconfiguration_ps: u64,
    control_ps: u64,
    simulator: &'static str,
    policy: Option<&'static str>,
    start: Option<&'static str>,
    reconfigurations: u64,
    passed: (Vec<BillEntry>, Option<u128>),
}

/// Simulates a verified plan, and returns the cost of its collective.
#[pyfunction]
#[pyo3(signature = (plan, size_bytes, **settings: "Unpack[Settings]") -> "CollectiveCost")]
pub(crate) fn collective_cost(
    py: Python<'_>,
    plan: &Bound<'_, Plan>,
    size_bytes: u64,
    settings: Option<Settings>,
) -> PyResult<CollectiveCost> {
    let method = method(settings)?;
    let plan = plan.get();
    interrupt::run(py, || {
        let size = Bytes::new(size_bytes);
        let (cost, outcome) = cost::simulate(plan.rows(), size, &method)?;
        let passed = passed_parts(plan.rows(), size, &outcome)?;
        Ok::<_, SimulationError>((cost, outcome, passed))
    })?
    .map(|(cost, outcome, passed)| CollectiveCost {
        time_ps: cost.time.ps(),
        reconfiguration_ps: cost.reconfiguration.ps(),
        control_ps: cost.control.ps(),
        simulator: outcome.simulator,
        policy: outcome.policy,
        start: outcome.start,
        reconfigurations: outcome.reconfigurations,
        passed: (bill_entries(&passed.halves_of_bytes), passed.lit_bytes),
    })
    .or_raise()
}

/// Checks a rule for buckets independently of the model, and returns its standard form.
#[pyfunction]
pub(crate) fn check_buckets(rule: &str) -> PyResult<String> {
    rule.parse::<Buckets>()
        .map(|rule| rule.to_string())
        .map_err(|problem| TrainingError::new_err(problem.to_string()))
}
