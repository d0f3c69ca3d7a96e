//! Speed of devices: a [`Device`] tells the time of each operator. An efficiency, or a measured
//! rate in operations or samples per second, replaces the times of the operators.
//!
//! The time of an operator is the longer one of its computation and its traffic to memory, plus a
//! launch of each kernel. Let P be the peak rate and B the peak bandwidth of the memory. Traffic
//! takes bytes / (B `memory`). Computation takes
//!
//! | operator | time |
//! |---|---|
//! | product of m x k by k x n | operations / (P `products`) (1 + `depth` / k) |
//! | if the output is added to 32-bit values | the same, with 4 times `depth` |
//! | if n is no multiple of 8 | the same / `odd_output`: rows of the output are not aligned |
//! | if k or m is no multiple of 8 | the same / `odd_input` |
//! | product of 8-bit inputs | operations / (P8 `fp8_products`) (1 + `fp8_depth` / k) |
//! | convolution from a to b channels | operations / (P `products`) (1 + `channels` / a) (1 + `channels` / b) |
//! | attention, heads of width d | operations / (P `attention`) (1 + `head` / d) |
//! | attention to s keys, backward | the same (1 + `keys` / s) |
//!
//! The term with `depth` is the time in which a product writes its output. A product that adds its
//! output to 32-bit values moves 8 bytes of each value in place of 2 bytes. Each product of an
//! expert is a kernel, except products of 8-bit inputs.
//!
//! P8 is the peak rate of products of 8-bit floats, whose rows are aligned at multiples of 16. The
//! width of a head is the mean of the widths of its keys and values.
//!
//! If the host takes longer to launch the kernels of a block (`host` for each) than the device
//! takes to execute them, the block takes the time of the host. With CUDA graphs, `host` is 0.
//!
//! These constants are fitted to measured times. A device without measured times has the constants
//! of an H100, as shares of its own peaks.

mod list;

pub use list::{DEVICES, DeviceRecord};

use super::operators::{self, ALIGNED, Portion, VALUE, Work};
use super::{Layer, Model, TrainingError};
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time, UnitError};

/// Constants of a device that are fitted to measured times; the header states what they mean.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "`OPTIONS` documents the constants")]
pub struct Fitted {
    pub products: f64,
    pub depth: f64,
    pub odd_output: f64,
    pub odd_input: f64,
    pub channels: f64,
    pub attention: f64,
    pub head: f64,
    pub keys: f64,
    pub memory: f64,
    /// Microseconds.
    pub launch: f64,
    /// Microseconds.
    pub host: f64,
    pub fp8_products: f64,
    pub fp8_depth: f64,
}

const TERA: u64 = 1_000_000_000_000;
const GIGA: u64 = 1_000_000_000;
const MILLION: u64 = 1_000_000;

/// Name of the option that replaces the times of operators.
const EFFICIENCY: &str = "efficiency";

/// Name of the option that selects 8-bit products.
const PRECISION: &str = "precision";

const fn constant(name: &'static str, meaning: &'static str) -> OptionRecord {
    OptionRecord::new(name, meaning)
        .range("above 0, at most 1000000")
        .default("as fitted")
}

/// Options of every device: an efficiency, the precision, and the constants in the order of
/// `PLACES`.
pub const OPTIONS: &[OptionRecord] = &[
    OptionRecord::new(
        EFFICIENCY,
        "part of the peak rate that all layers reach, in place of the times of operators",
    )
    .range("above 0, at most 1")
    .default("none"),
    OptionRecord::new(
        PRECISION,
        "bf16, or fp8: products of blocks have 8-bit inputs, except those of a router",
    )
    .range("bf16 or fp8")
    .default("bf16"),
    constant(
        "products",
        "share of the peak rate that long products reach",
    ),
    constant(
        "depth",
        "length of sums at which a product takes twice the time",
    ),
    constant(
        "odd_output",
        "share that remains if rows of the output are not aligned",
    ),
    constant(
        "odd_input",
        "share that remains if rows of an input are not aligned",
    ),
    constant(
        "channels",
        "channels at which a convolution takes twice the time",
    ),
    constant(
        "attention",
        "share of the peak rate that attention with wide heads reaches",
    ),
    constant(
        "head",
        "width of heads at which attention takes twice the time",
    ),
    constant(
        "keys",
        "keys at which the backward pass of attention takes twice the time",
    ),
    constant(
        "memory",
        "share of the peak bandwidth of the memory that kernels reach",
    ),
    constant("launch", "microseconds of a kernel that does nothing"),
    constant(
        "host",
        "microseconds that the host takes to launch a kernel",
    )
    .range("0 to 1000000"),
    constant(
        "fp8_products",
        "share of the peak rate of 8-bit products that long products reach",
    ),
    constant(
        "fp8_depth",
        "length of sums at which an 8-bit product takes twice the time",
    ),
];

/// Number of [`OPTIONS`] before the constants.
const BEFORE_CONSTANTS: usize = 2;

/// Places of the constants, in the order of [`OPTIONS`].
const PLACES: [fn(&mut Fitted) -> &mut f64; 13] = [
    |fitted| &mut fitted.products,
    |fitted| &mut fitted.depth,
    |fitted| &mut fitted.odd_output,
    |fitted| &mut fitted.odd_input,
    |fitted| &mut fitted.channels,
    |fitted| &mut fitted.attention,
    |fitted| &mut fitted.head,
    |fitted| &mut fitted.keys,
    |fitted| &mut fitted.memory,
    |fitted| &mut fitted.launch,
    |fitted| &mut fitted.host,
    |fitted| &mut fitted.fp8_products,
    |fitted| &mut fitted.fp8_depth,
];

/// Device whose operators have times of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Peak rate in operations per second.
    peak: f64,
    /// Peak rate of 8-bit products, if blocks have such products.
    narrow_peak: Option<f64>,
    /// Peak bandwidth of the memory in bytes per second.
    bandwidth: f64,
    fitted: Fitted,
}

impl Device {
    /// Returns whether blocks have 8-bit products.
    pub fn narrow(&self) -> bool {
        self.narrow_peak.is_some()
    }

    /// Returns the time of some work in seconds.
    pub fn seconds(&self, work: &Work) -> f64 {
        let fitted = &self.fitted;
        let mut peak = self.peak;
        let slower = match *work {
            Work::Product {
                m,
                n,
                k,
                narrow,
                summed,
                ..
            } => {
                let aligned = ALIGNED / operators::width(narrow);
                let odd = if n % aligned != 0 {
                    fitted.odd_output
                } else if k % aligned != 0 || m % aligned != 0 {
                    fitted.odd_input
                } else {
                    1.0
                };
                let (products, depth) = match self.narrow_peak.filter(|_| narrow) {
                    Some(narrow_peak) => {
                        peak = narrow_peak;
                        (fitted.fp8_products, fitted.fp8_depth)
                    }
                    None => (fitted.products, fitted.depth),
                };
                let depth = depth * (operators::output(summed) / VALUE) as f64;
                (1.0 + depth / k as f64) / (products * odd)
            }
            Work::Convolution { channels, .. } => {
                let narrow = |channels: u64| 1.0 + fitted.channels / channels as f64;
                narrow(channels[0]) * narrow(channels[1]) / fitted.products
            }
            Work::Attention {
                head,
                value,
                keys,
                backward,
                ..
            } => {
                let short = if backward {
                    fitted.keys / keys as f64
                } else {
                    0.0
                };
                let width = (head + value) as f64 / 2.0;
                (1.0 + fitted.head / width) * (1.0 + short) / fitted.attention
            }
            Work::Values { .. } => 0.0,
        };
        let computing = work.operations() as f64 / peak * slower;
        let traffic = work.bytes() as f64 / (self.bandwidth * fitted.memory);
        computing.max(traffic) + f64::from(work.kernels()) * fitted.launch / MILLION as f64
    }

    /// Returns the time of some works, one after another.
    ///
    /// # Errors
    /// Fails if the time exceeds 64 bits of picoseconds.
    pub fn time<'a>(&self, works: impl IntoIterator<Item = &'a Work>) -> Result<Time, UnitError> {
        rounded(works.into_iter().map(|work| self.seconds(work)).sum())
    }

    /// Returns the times of layers as [`times`] does.
    fn times(
        &self,
        model: &Model,
        layers: &[(usize, Portion)],
    ) -> Result<Vec<[Time; 3]>, TrainingError> {
        let mut times = Vec::with_capacity(layers.len());
        for block in layers.chunk_by(|a, b| {
            let block = |layer: usize| model.layers[layer].split.block;
            block(a.0).is_some() && block(a.0) == block(b.0)
        }) {
            let passes: Vec<[Pass; 3]> = block
                .iter()
                .map(|&(layer, portion)| self.passes(&model.layers[layer], portion))
                .collect();
            // The host runs ahead of the device within a pass of a block.
            let slower: [f64; 3] = std::array::from_fn(|pass| {
                let device: f64 = passes.iter().map(|layer| layer[pass].seconds).sum();
                let kernels: f64 = passes.iter().map(|layer| layer[pass].kernels).sum();
                let host = kernels * self.fitted.host / MILLION as f64;
                if host > device { host / device } else { 1.0 }
            });
            for layer in &passes {
                let mut time = [Time::ZERO; 3];
                for (pass, time) in time.iter_mut().enumerate() {
                    *time = rounded(layer[pass].seconds * slower[pass])?;
                }
                times.push(time);
            }
        }
        Ok(times)
    }

    /// Returns the passes of a layer: forward, backward, and what selective recomputation computes
    /// again.
    fn passes(&self, layer: &Layer, portion: Portion) -> [Pass; 3] {
        let narrow = self.narrow();
        let operators = operators::operators(layer, Portion { narrow, ..portion });
        let sum = |works: &mut dyn Iterator<Item = &Work>| {
            let mut pass = Pass::default();
            for work in works {
                pass.seconds += self.seconds(work);
                pass.kernels += f64::from(work.kernels());
            }
            pass
        };
        let again = operators.iter().filter(|operator| operator.recomputed);
        [
            sum(&mut operators.iter().flat_map(|operator| &operator.forward)),
            sum(&mut operators.iter().flat_map(|operator| &operator.backward)),
            sum(&mut again.flat_map(|operator| &operator.forward)),
        ]
    }
}

/// Time of a pass through a layer on the device, and its number of kernels.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    seconds: f64,
    kernels: f64,
}

/// Returns a time in whole picoseconds.
fn rounded(seconds: f64) -> Result<Time, UnitError> {
    let picoseconds = (seconds * TERA as f64).round();
    if picoseconds >= u64::MAX as f64 {
        return Err(too_long());
    }
    Ok(Time::from_ps(picoseconds as u64))
}

fn too_long() -> UnitError {
    UnitError::Overflow {
        what: "the time of a batch".into(),
        smallest: "picoseconds",
    }
}

/// Speed of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ComputeRate {
    /// Each operator has its own time.
    Device(Device),
    /// Number of floating-point operations per second, equal for all layers.
    Operations(u64),
    /// Number of samples per second, in millionths. The time of a sample is divided among the
    /// layers in proportion to their operations.
    Samples(u64),
}

/// Parses the specification of a device, such as `a100` or `a100:efficiency=0.4`, to its speed.
///
/// # Errors
/// Fails for an unknown device or option, and for a value that is out of range.
pub fn parse(text: &str) -> Result<ComputeRate, TrainingError> {
    let spec: Spec = text.parse()?;
    let record = find(&spec)?;
    spec.only_declared(OPTIONS)?;
    let narrow_peak = match spec.option(PRECISION) {
        None | Some("bf16") => None,
        Some("fp8") if spec.option(EFFICIENCY).is_some() => {
            let problem = "an efficiency replaces the times of operators; leave one of both out";
            return Err(spec.refuse(PRECISION, problem).into());
        }
        Some("fp8") if record.narrow_peak > 0 => Some(record.narrow_peak as f64),
        Some("fp8") => {
            let has = |device: &&DeviceRecord| device.narrow_peak > 0;
            let devices = DEVICES.iter().filter(has).map(|device| device.name);
            let problem = format!(
                "{} has no products of 8-bit floats; {} have",
                record.name,
                devices.collect::<Vec<_>>().join(", ")
            );
            return Err(spec.refuse(PRECISION, problem).into());
        }
        Some(_) => return Err(spec.refuse(PRECISION, "must be bf16 or fp8").into()),
    };
    if let Some(text) = spec.option(EFFICIENCY) {
        let efficiency = millionths(text)
            .filter(|part| (1..=MILLION).contains(part))
            .ok_or_else(|| {
                spec.refuse(EFFICIENCY, "must be above 0 and at most 1, such as 0.35")
            })?;
        let rate = u128::from(record.peak) * u128::from(efficiency) / u128::from(MILLION);
        return Ok(ComputeRate::Operations(rate as u64));
    }
    let mut fitted = record.fitted;
    for (option, place) in OPTIONS[BEFORE_CONSTANTS..].iter().zip(PLACES) {
        if let Some(text) = spec.option(option.name) {
            let value = millionths(text)
                .filter(|&value| value <= MILLION * MILLION)
                .filter(|&value| value > 0 || option.name == "host")
                .ok_or_else(|| {
                    let problem = "must be above 0 and at most 1000000, with at most 6 decimals";
                    spec.refuse(option.name, problem)
                })?;
            *place(&mut fitted) = value as f64 / MILLION as f64;
        }
    }
    Ok(ComputeRate::Device(Device {
        peak: record.peak as f64,
        narrow_peak,
        bandwidth: record.bandwidth as f64,
        fitted,
    }))
}

/// Returns a device whose operators have times of their own. `text` is a specification as for
/// [`parse`].
///
/// # Errors
/// Fails like [`parse`], and for a device with an efficiency.
pub fn with_operators(text: &str) -> Result<Device, TrainingError> {
    match parse(text)? {
        ComputeRate::Device(device) => Ok(device),
        _ => {
            let spec: Spec = text.parse()?;
            Err(spec
                .refuse(EFFICIENCY, "replaces the times of operators")
                .into())
        }
    }
}

/// Returns the names and values of those constants above 0 that affect the times of a device.
/// `text` is a specification as for [`parse`].
///
/// # Errors
/// Fails like [`with_operators`].
pub fn constants(text: &str) -> Result<Vec<(&'static str, f64)>, TrainingError> {
    let mut device = with_operators(text)?;
    let narrow = device.narrow();
    let names = OPTIONS[BEFORE_CONSTANTS..].iter().map(|option| option.name);
    Ok(names
        .zip(PLACES)
        .map(|(name, place)| (name, *place(&mut device.fitted)))
        .filter(|(name, value)| *value > 0.0 && (narrow || !name.starts_with("fp8_")))
        .collect())
}

/// Returns the memory of a device in bytes. `text` is a specification as for [`parse`].
pub fn memory(text: &str) -> Result<Bytes, TrainingError> {
    Ok(Bytes::new(find(&text.parse()?)?.memory))
}

fn find(spec: &Spec) -> Result<&'static DeviceRecord, TrainingError> {
    DEVICES
        .iter()
        .find(|record| same_name(record.name, spec.name()))
        .ok_or_else(|| TrainingError::Unknown {
            what: "device",
            name: spec.name().into(),
            hint: suggest(spec.name(), DEVICES.iter().map(|record| record.name)),
        })
}

/// Units of throughput, each with its value in operations per second.
const RATES: &[(&str, u64)] = &[
    ("GFLOP/s", TERA / 1000),
    ("TFLOP/s", TERA),
    ("PFLOP/s", 1000 * TERA),
];
const SAMPLES: &[&str] = &["samples/s", "images/s", "sequences/s"];

/// Parses a measured throughput, such as `50TFLOP/s` or `1100samples/s`.
///
/// # Errors
/// Fails for an unknown unit, and for a number that is zero, has more than 6 decimals, or exceeds
/// 64 bits.
pub fn throughput(text: &str) -> Result<ComputeRate, TrainingError> {
    let refuse = |hint: &str| TrainingError::Text {
        what: "throughput",
        text: text.into(),
        hint: hint.into(),
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = trimmed.split_at(split.unwrap_or(trimmed.len()));
    let unit = unit.trim_start();
    let number = millionths(number)
        .filter(|&number| number > 0)
        .ok_or_else(|| refuse("write a number above 0 and a unit, such as 50TFLOP/s"))?;
    if SAMPLES.contains(&unit) {
        return Ok(ComputeRate::Samples(number));
    }
    let (_, rate) = RATES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| {
            refuse("known units are GFLOP/s, TFLOP/s, PFLOP/s and samples/s of one device")
        })?;
    let operations = u128::from(number) * u128::from(*rate) / u128::from(MILLION);
    match u64::try_from(operations) {
        Ok(operations) if operations > 0 => Ok(ComputeRate::Operations(operations)),
        _ => Err(refuse("it exceeds 64 bits of operations per second")),
    }
}

/// Parses a decimal number with at most 6 decimals, and returns the number in millionths.
fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 6 || !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<6}").parse().ok()
}

/// Clock of consecutive layers that advances in proportion to their operations. The end of each
/// layer is rounded, so rounding errors do not accumulate.
struct Clock {
    /// Time per operation in picoseconds, as a fraction `time / operations`.
    time: u128,
    operations: u128,
    completed: u128,
    now: u64,
}

impl Clock {
    /// Advances the clock by a number of operations. Returns the time that these operations take.
    fn advance(&mut self, operations: u128) -> Result<Time, UnitError> {
        self.completed = self.completed.saturating_add(operations);
        let instant = self
            .completed
            .checked_mul(self.time)
            .and_then(|product| u64::try_from(product / self.operations).ok())
            .ok_or_else(too_long)?;
        let spent = instant - self.now;
        self.now = instant;
        Ok(Time::from_ps(spent))
    }
}

impl ComputeRate {
    /// Returns the time of the optimizer's step over `parameters` parameters of a rank that stores
    /// `sums` 32-bit sums of gradients. Rates other than those of operators include this time.
    ///
    /// # Errors
    /// Fails if the time exceeds 64 bits.
    pub fn optimizer(&self, parameters: u64, sums: u64) -> Result<Time, UnitError> {
        match self {
            ComputeRate::Device(device) => {
                let step = operators::optimizer(parameters, device.narrow());
                let sums = (sums > 0).then(|| operators::gradient_sums(sums, parameters));
                device.time(std::iter::once(&step).chain(&sums))
            }
            _ => Ok(Time::ZERO),
        }
    }
}

/// Returns three times of consecutive layers on one rank: of the forward pass, of the backward
/// pass, and of what selective recomputation computes again. `layers` contains the index of each
/// layer in the model, and the portion of the layer that the rank computes.
///
/// # Errors
/// Fails for a rate in samples if no layer computes, and if a time exceeds 64 bits.
pub(super) fn times(
    rate: ComputeRate,
    model: &Model,
    layers: &[(usize, Portion)],
) -> Result<Vec<[Time; 3]>, TrainingError> {
    let second = u128::from(TERA);
    let (forward, backward) = model.operations();
    let (time, operations) = match rate {
        ComputeRate::Device(device) => return device.times(model, layers),
        ComputeRate::Operations(rate) => (second, u128::from(rate)),
        ComputeRate::Samples(_) if forward + backward == 0 => {
            return Err(TrainingError::NoComputation);
        }
        ComputeRate::Samples(rate) => (
            second * u128::from(MILLION),
            (forward + backward) * u128::from(rate),
        ),
    };
    let first = layers.first();
    let tensor = first.map_or(1, |(_, portion)| portion.tensor);
    let context = first.map_or(1, |(_, portion)| portion.context);
    let mut clock = Clock {
        time,
        operations: operations * u128::from(tensor) * u128::from(context),
        completed: 0,
        now: 0,
    };
    let work = |&(layer, portion): &(usize, Portion), operations: fn(&Layer) -> u64| {
        let layer = &model.layers[layer];
        let one = u128::from(operations(layer));
        let total = if layer.split.experts {
            // The assignments are those of this rank only.
            let assigned = u128::from(portion.assigned) * u128::from(context);
            one / u128::from(model.assignments()) * assigned
        } else {
            one * u128::from(portion.samples)
        };
        total
            * if layer.split.divided {
                1
            } else {
                u128::from(tensor)
            }
    };
    let mut times = vec![[Time::ZERO; 3]; layers.len()];
    for (time, layer) in times.iter_mut().zip(layers) {
        time[0] = clock.advance(work(layer, |layer| layer.forward))?;
        if model.layers[layer.0].scores > 0 && !layer.1.flash {
            time[2] = time[0];
        }
    }
    for (time, layer) in times.iter_mut().zip(layers).rev() {
        time[1] = clock.advance(work(layer, |layer| layer.backward))?;
    }
    Ok(times)
}
