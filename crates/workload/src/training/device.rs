//! How fast a device computes: its peak rate times the efficiency that a model reaches on it, a rate that
//! was measured in operations or in samples.

use super::TrainingError;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time, UnitError};

/// The declaration of a device.
pub struct DeviceRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where its peak rate comes from.
    pub citation: &'static str,
    /// Peak rate of dense matrix products in 16-bit floats, in operations per second.
    pub peak: u64,
    /// Bytes of its memory; of several versions the largest.
    pub memory: u64,
}

const TERA: u64 = 1_000_000_000_000;
const GIGA: u64 = 1_000_000_000;

/// The part of the peak rate that is reached where nothing else is said, in millionths. ResNet50 on an
/// Ascend 910 reaches 0.20: 2115 images per second of 24.3 GFLOP each (MindSpore 0.5 benchmark, batch 256,
/// mixed precision). Published runs lie between 0.1 and 0.55; large transformers reach the upper half.
const EFFICIENCY: u64 = 200_000;
const MILLION: u64 = 1_000_000;

/// The options of every device.
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

/// How fast a model is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeRate {
    /// Floating-point operations per second, the same for all layers.
    Operations(u64),
    /// Samples per second, in millionths; a layer takes its share by its operations.
    Samples(u64),
}

/// The rate of a device, written `name` or `name:efficiency=0.4`.
///
/// # Errors
/// An unknown device or option, or an efficiency outside of 0 to 1.
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

/// The bytes of memory of a device, written as for [`parse`].
///
/// # Errors
/// An unknown device.
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

/// The rates in which a throughput may be given, in operations or in millionths of samples.
const RATES: &[(&str, u64)] = &[
    ("GFLOP/s", TERA / 1000),
    ("TFLOP/s", TERA),
    ("PFLOP/s", 1000 * TERA),
];
const SAMPLES: &[&str] = &["samples/s", "images/s", "sequences/s"];

/// A measured throughput, such as `50TFLOP/s` or `1100samples/s`.
///
/// # Errors
/// Another unit, or a number that is zero, not exact in millionths, or beyond 64 bits.
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
        _ => Err(refuse("it is beyond 64 bits of operations per second")),
    }
}

/// A decimal number in millionths, if it is one and exact.
fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 6 || !digits(whole) || !digits(fraction) {
        return None;
    }
    format!("{whole}{fraction:0<6}").parse().ok()
}

/// Hands out time to layer after layer: each ends at a rounded instant, so that roundings never add up.
pub(super) struct Clock {
    /// Picoseconds per operation, as a fraction.
    time: u128,
    operations: u128,
    done: u128,
    now: u64,
}

impl ComputeRate {
    /// The clock for a batch of a model with so many operations per sample.
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
            done: 0,
            now: 0,
        })
    }
}

impl Clock {
    /// The clock of work that so many devices divide: each advances by a part of it.
    pub(super) fn divided(mut self, devices: u128) -> Clock {
        self.operations *= devices;
        self
    }

    /// The time that so many operations more take.
    pub(super) fn advance(&mut self, operations: impl Into<u128>) -> Result<Time, UnitError> {
        let done = self.done.checked_add(operations.into());
        self.done = done.unwrap_or(u128::MAX);
        let instant = self
            .done
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
