//! Speed of devices: the peak rate times the efficiency of a model on the device, or a measured
//! rate in operations or samples per second.

use super::TrainingError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time, UnitError};

/// Declaration of a device.
pub struct DeviceRecord {
    /// Name in specifications.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the peak rate.
    pub citation: &'static str,
    /// Peak rate of dense matrix products in 16-bit floats, in operations per second.
    pub peak: u64,
    /// Bytes of memory. If a device has several versions, the largest memory.
    pub memory: u64,
}

const TERA: u64 = 1_000_000_000_000;
const GIGA: u64 = 1_000_000_000;

/// Default efficiency, in millionths of the peak rate. ResNet50 reaches 0.20 on an Ascend 910: 2115
/// images per second of 24.3 GFLOP each (MindSpore 0.5 benchmark, batch 256, mixed precision).
/// Published runs lie between 0.1 and 0.55; large transformers reach the upper half.
const EFFICIENCY: u64 = 200_000;
const MILLION: u64 = 1_000_000;

/// Options of every device.
pub const OPTIONS: &[OptionRecord] =
    &[
        OptionRecord::new("efficiency", "part of the peak rate that the model reaches")
            .range("above 0, at most 1")
            .default("0.2"),
    ];

/// All devices; the first is the default.
pub const DEVICES: &[DeviceRecord] = &[
    DeviceRecord {
        name: "ascend_910",
        summary: "256 TFLOP/s in 16-bit floats, as in the prototype of the ODDL paper",
        citation: "Huawei, launch of the Ascend 910, August 2019",
        peak: 256 * TERA,
        memory: 32 * GIGA,
    },
    DeviceRecord {
        name: "v100",
        summary: "125 TFLOP/s in 16-bit floats",
        citation: "NVIDIA V100 datasheet, SXM2",
        peak: 125 * TERA,
        memory: 32 * GIGA,
    },
    DeviceRecord {
        name: "a100",
        summary: "312 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA A100 datasheet",
        peak: 312 * TERA,
        memory: 80 * GIGA,
    },
    DeviceRecord {
        name: "h100",
        summary: "989 TFLOP/s in 16-bit floats, without sparsity",
        citation: "NVIDIA H100 datasheet, SXM",
        peak: 989 * TERA,
        memory: 80 * GIGA,
    },
    DeviceRecord {
        name: "tpu_v4",
        summary: "275 TFLOP/s in 16-bit floats",
        citation: "Jouppi et al., TPU v4, ISCA 2023, Table 4",
        peak: 275 * TERA,
        memory: 32 * GIGA,
    },
];

/// Speed of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeRate {
    /// Number of floating-point operations per second, equal for all layers.
    Operations(u64),
    /// Number of samples per second, in millionths. The time of a sample is divided among the
    /// layers in proportion to their operations.
    Samples(u64),
}

/// Parses the specification of a device, `name` or `name:efficiency=0.4`, to its speed.
///
/// # Errors
/// Fails for an unknown device or option, and for an efficiency that is 0 or above 1.
pub fn parse(text: &str) -> Result<ComputeRate, TrainingError> {
    let spec: Spec = text.parse()?;
    let record = find(&spec)?;
    spec.only_declared(OPTIONS)?;
    let efficiency = match spec.option("efficiency") {
        None => EFFICIENCY,
        Some(text) => millionths(text)
            .filter(|part| (1..=MILLION).contains(part))
            .ok_or_else(|| {
                spec.refuse("efficiency", "must be above 0 and at most 1, such as 0.35")
            })?,
    };
    let rate = u128::from(record.peak) * u128::from(efficiency) / u128::from(MILLION);
    Ok(ComputeRate::Operations(rate as u64))
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

/// Clock of consecutive layers. The end of each layer is rounded, so rounding errors do not
/// accumulate.
pub(super) struct Clock {
    /// Time per operation in picoseconds, as a fraction `time / operations`.
    time: u128,
    operations: u128,
    completed: u128,
    now: u64,
}

impl ComputeRate {
    /// Creates the clock for a batch of `batch` samples with `operations` operations per sample.
    pub(super) fn clock(self, batch: u64, operations: u128) -> Result<Clock, TrainingError> {
        let second = u128::from(TERA);
        let (time, operations) = match self {
            ComputeRate::Operations(rate) => (u128::from(batch) * second, u128::from(rate)),
            ComputeRate::Samples(_) if operations == 0 => return Err(TrainingError::NoComputation),
            ComputeRate::Samples(rate) => (
                u128::from(batch) * second * u128::from(MILLION) / u128::from(rate),
                operations,
            ),
        };
        Ok(Clock {
            time,
            operations,
            completed: 0,
            now: 0,
        })
    }
}

impl Clock {
    /// Returns the clock of work that is divided evenly among `devices` devices.
    pub(super) fn divided(mut self, devices: u128) -> Clock {
        self.operations *= devices;
        self
    }

    /// Advances the clock by a number of operations. Returns the time that these operations take.
    pub(super) fn advance(&mut self, operations: impl Into<u128>) -> Result<Time, UnitError> {
        let completed = self.completed.checked_add(operations.into());
        self.completed = completed.unwrap_or(u128::MAX);
        let instant = self
            .completed
            .checked_mul(self.time)
            .and_then(|product| u64::try_from(product / self.operations).ok())
            .ok_or_else(|| UnitError::Overflow {
                what: "the time of a batch".into(),
                smallest: "picoseconds",
            })?;
        let spent = instant - self.now;
        self.now = instant;
        Ok(Time::from_ps(spent))
    }
}
