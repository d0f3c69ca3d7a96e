//! Libraries of collectives on machines: what a call costs beyond the transfers of its plan.
//!
//! A [`Library`] is what NCCL costs on one machine: the launch of a call, the latency and the share
//! of the peak rate of each [`Protocol`], and the constants by which NCCL chooses a protocol. The
//! [`Costs`] are numbers that are fitted to measured times; [`NUMBERS`] declares them. The
//! [`Constants`] are public and are not fitted. `simulate` computes times from both.
//!
//! All values are integers: picoseconds, bytes, bits per second, millionths.

use std::fmt;
use std::str::FromStr;

use opticoll_base::spec::{OptionRecord, Spec, SpecError};
use opticoll_base::units::{Bytes, Rate, Time};

opticoll_base::named_enum! {
    /// Protocol by which NCCL moves data.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Protocol {
        /// 8 of 16 bytes are data, the others are flags: low latency.
        LL = "ll",
        /// 120 of 128 bytes are data; needs NVLink.
        LL128 = "ll128",
        /// Whole chunks with one flag: the highest rate and latency.
        Simple = "simple",
        /// Switches add and multicast chunks; only for all_reduce.
        Nvls = "nvls",
    }
}

/// Decimal number as a whole number of millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millionths(pub u64);

impl Millionths {
    /// Returns the number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for Millionths {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % 1_000_000);
        let point = format!("{}.{decimals}", self.0 / 1_000_000);
        formatter.write_str(point.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Millionths {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Millionths, &'static str> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 6 || whole.is_empty() {
            return Err("must be a decimal number with at most 6 decimals, such as 0.825");
        }
        let number = format!("{whole}{decimals:0<6}").parse();
        number.map(Millionths).map_err(|_| "is too large")
    }
}

/// Fitted costs of a library on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Launch and end of a call.
    pub launch: Time,
    /// Latency of a step of LL.
    pub ll_step: Time,
    /// Share of the peak rate that the data of LL reach on all channels together.
    pub ll_rate: Millionths,
    /// Extra time of a call of LL that uses all channels instead of one.
    pub ll_fan: Time,
    /// Extra time of a call of Simple.
    pub simple_setup: Time,
    /// Latency of a step of Simple.
    pub simple_step: Time,
    /// Share of the peak rate that a step of Simple or LL128 reaches.
    pub simple_rate: Millionths,
    /// Exponent q: latency a and transfer x of a step of Simple take (a^q + x^q)^(1/q).
    pub overlap: u64,
    /// Latency of a chunk of NVLS.
    pub nvls_chunk: Time,
    /// Time to post messages to several ranks, for each doubling of their number.
    pub post: Time,
    /// Exponent c: the rate of N ranks that share a bus falls as (2 / N)^c.
    pub crowd: Millionths,
}

/// Unit of one of the [`NUMBERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberUnit {
    /// A time in picoseconds.
    Time,
    /// Millionths of a number without unit.
    Millionths,
    /// A whole number.
    Whole,
}

/// One of the numbers of [`Costs`].
pub struct Number {
    /// Name and meaning, as an option of a fabric.
    pub option: OptionRecord,
    /// Unit of the values.
    pub unit: NumberUnit,
    /// Smallest accepted value, in the smallest unit.
    pub least: u64,
    /// Greatest accepted value, in the smallest unit.
    pub most: u64,
    get: fn(&Costs) -> u64,
    set: fn(&mut Costs, u64),
}

macro_rules! number {
    (@get Time, $value:expr) => { $value.ps() };
    (@get Millionths, $value:expr) => { $value.0 };
    (@get Whole, $value:expr) => { $value };
    (@make Time, $value:expr) => { Time::from_ps($value) };
    (@make Millionths, $value:expr) => { Millionths($value) };
    (@make Whole, $value:expr) => { $value };
    ($field:ident, $unit:ident, $least:literal to $most:literal, $range:literal,
     $meaning:literal) => {
        Number {
            option: OptionRecord::new(stringify!($field), $meaning)
                .range($range)
                .default("that of library")
                .source(FITTED),
            unit: NumberUnit::$unit,
            least: $least,
            most: $most,
            get: |costs| number!(@get $unit, costs.$field),
            set: |costs, value| costs.$field = number!(@make $unit, value),
        }
    };
}

const FITTED: &str = "fitted to NCCL's times; `opticoll list libraries`";

/// Numbers of [`Costs`].
pub const NUMBERS: &[Number] = &[
    number!(launch, Time, 0 to 1_000_000_000, "0s to 1ms", "launch and end of a call"),
    number!(ll_step, Time, 0 to 1_000_000_000, "0s to 1ms", "latency of a step of LL"),
    number!(ll_rate, Millionths, 1000 to 1_000_000, "0.001 to 1",
        "share of the peak rate that data reach by LL on all channels"),
    number!(ll_fan, Time, 0 to 1_000_000_000, "0s to 1ms",
        "extra time of a call of LL on all channels instead of one"),
    number!(simple_setup, Time, 0 to 1_000_000_000, "0s to 1ms", "extra time of a call of Simple"),
    number!(simple_step, Time, 0 to 1_000_000_000, "0s to 1ms", "latency of a step of Simple"),
    number!(simple_rate, Millionths, 1000 to 1_000_000, "0.001 to 1",
        "share of the peak rate that a step reaches by Simple or LL128"),
    number!(overlap, Whole, 1 to 2, "1 or 2",
        "exponent q: latency a and transfer x of a step of Simple take (a^q + x^q)^(1/q)"),
    number!(nvls_chunk, Time, 0 to 1_000_000_000, "0s to 1ms", "latency of a chunk of NVLS"),
    number!(post, Time, 0 to 1_000_000_000, "0s to 1ms",
        "time to post messages to several ranks, for each doubling of their number"),
    number!(crowd, Millionths, 0 to 4_000_000, "0 to 4",
        "exponent c: the rate of N ranks that share a bus falls as (2 / N)^c"),
];

impl Number {
    /// Returns the value in `costs`, in the smallest unit.
    pub fn of(&self, costs: &Costs) -> u64 {
        (self.get)(costs)
    }

    /// Returns a value as text with its unit.
    pub fn text(&self, value: u64) -> String {
        match self.unit {
            NumberUnit::Time => Time::from_ps(value).to_string(),
            NumberUnit::Millionths => Millionths(value).to_string(),
            NumberUnit::Whole => value.to_string(),
        }
    }

    fn read(&self, spec: &Spec) -> Result<Option<u64>, SpecError> {
        let name = self.option.name;
        let value = match self.unit {
            NumberUnit::Time => spec.value::<Time>(name)?.map(Time::ps),
            NumberUnit::Millionths => spec.value::<Millionths>(name)?.map(|number| number.0),
            NumberUnit::Whole => spec.value::<u64>(name)?,
        };
        match value {
            Some(value) if !(self.least..=self.most).contains(&value) => {
                Err(spec.refuse(name, format!("must be from {}", self.option.range)))
            }
            value => Ok(value),
        }
    }
}

/// NVLS as NCCL's tuner sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Nvls {
    /// Share of the peak rate that chunks reach (`nvlsEfficiency` of `tuning.cc`).
    pub efficiency: Millionths,
    /// Number of channels.
    pub channels: u64,
    /// Rate of all links of a GPU, as NCCL counts them.
    pub links: Rate,
    /// Rates of a head that NCCL tries, in GB/s, in descending order.
    pub speeds: &'static [u64],
}

/// Public constants of a machine and of its version of NCCL. None is fitted.
#[derive(Debug, PartialEq, Eq)]
pub struct Constants {
    /// Name of the record.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the fitted costs.
    pub source: &'static str,
    /// Peak rate of a GPU per direction.
    pub peak: Rate,
    /// Number of channels of a ring; 1 if the link and not a channel limits LL.
    pub channels: u64,
    /// Rate that NCCL's tuner assumes for a ring.
    pub ring_rate: Rate,
    /// Greatest rate that the tuner assumes for LL.
    pub ll_cap: Rate,
    /// Greatest rate that the tuner assumes for LL128; `None` without NVLink.
    pub ll128_cap: Option<Rate>,
    /// Greatest message that NCCL sends point to point by LL.
    pub direct_ll: Bytes,
    /// Number of channels that a rank's messages to all ranks share for LL; 1 if each message has
    /// one channel.
    pub direct_ll_channels: u64,
    /// NVLS; `None` if the machine has none.
    pub nvls: Option<Nvls>,
}

impl Constants {
    /// Returns the latencies in picoseconds that NCCL's tuner assumes for a step within a server:
    /// `hwLat` of `tuning.cc`, for NVLink or PCIe, in the order LL, LL128, Simple.
    pub fn assumed_steps(&self) -> [u64; 3] {
        match self.ll128_cap {
            Some(_) => [600_000, 1_900_000, 3_400_000],
            None => [1_000_000, 2_500_000, 5_700_000],
        }
    }

    /// Returns whether the numbers of the record include `number`.
    pub fn has(&self, number: &Number) -> bool {
        match number.option.name {
            "crowd" => self.ll128_cap.is_none(),
            "ll_fan" => self.ll128_cap.is_some(),
            "nvls_chunk" => self.nvls.is_some(),
            _ => true,
        }
    }
}

/// Latencies in picoseconds of a step between servers: `hwLat` of NCCL's `tuning.cc` for a network,
/// in the order LL, LL128, Simple.
pub const NETWORK_STEPS: [u64; 3] = [2_700_000, 4_000_000, 14_000_000];

/// Times in picoseconds that NCCL's tuner assumes for a call: `baseLat` of `tuning.cc` for a ring,
/// in the order LL, LL128, Simple.
pub const ASSUMED_CALLS: [u64; 3] = [6_600_000, 14_000_000, 8_400_000];

/// Time in picoseconds that NCCL's tuner assumes for a call of NVLS.
pub const ASSUMED_NVLS_CALL: u64 = 25_000_000;

/// A library on a machine: constants and costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Public constants.
    pub constants: &'static Constants,
    /// Fitted costs.
    pub costs: Costs,
}

/// All records.
pub const LIBRARIES: &[Library] = &[A100_SXM, H100_SXM, B200_SXM, GB200, L40S];

const fn gb(per_second: u32) -> Rate {
    Rate::megabytes(1000 * per_second)
}

const ONE_BOX: &str = "NCCL's times on one server, ai-dynamo/aiconfigurator, Apache-2.0, commit \
    095f58a5; constants: NCCL's tuning.cc and topo.h";

const A100_SXM: Library = Library {
    constants: &Constants {
        name: "a100_sxm",
        summary: "NCCL 2.27 on 2 to 8 A100 around NVSwitches",
        source: ONE_BOX,
        peak: gb(300),
        channels: 24,
        ring_rate: gb(240),
        ll_cap: Rate::megabytes(87_700),
        ll128_cap: Some(gb(480)),
        direct_ll: Bytes::new(512 << 10),
        direct_ll_channels: 32,
        nvls: None,
    },
    costs: Costs {
        launch: Time::from_ps(7_640_000),
        ll_step: Time::from_ps(1_100_000),
        ll_rate: Millionths(312_000),
        ll_fan: Time::from_ps(3_290_000),
        simple_setup: Time::from_ps(16_000_000),
        simple_step: Time::from_ps(6_210_000),
        simple_rate: Millionths(772_000),
        overlap: 1,
        nvls_chunk: Time::ZERO,
        post: Time::from_ps(1_770_000),
        crowd: Millionths(0),
    },
};

const H100_SXM: Library = Library {
    constants: &Constants {
        name: "h100_sxm",
        summary: "NCCL 2.29 on 2 to 8 H100 around NVSwitches",
        source: ONE_BOX,
        peak: gb(450),
        channels: 24,
        ring_rate: gb(360),
        ll_cap: gb(141),
        ll128_cap: Some(gb(440)),
        direct_ll: Bytes::new(16 << 10),
        direct_ll_channels: 1,
        nvls: Some(Nvls {
            efficiency: Millionths(850_000),
            channels: 16,
            links: Rate::megabytes(370_800),
            speeds: &[60, 50, 40, 30, 24, 20],
        }),
    },
    costs: Costs {
        launch: Time::from_ps(4_580_000),
        ll_step: Time::from_ps(806_000),
        ll_rate: Millionths(336_000),
        ll_fan: Time::from_ps(984_000),
        simple_setup: Time::from_ps(6_560_000),
        simple_step: Time::from_ps(4_470_000),
        simple_rate: Millionths(824_000),
        overlap: 1,
        nvls_chunk: Time::from_ps(6_320_000),
        post: Time::from_ps(755_000),
        crowd: Millionths(0),
    },
};

const BLACKWELL: Constants = Constants {
    name: "",
    summary: "",
    source: ONE_BOX,
    peak: gb(900),
    channels: 32,
    ring_rate: gb(720),
    ll_cap: gb(282),
    ll128_cap: Some(gb(552)),
    direct_ll: Bytes::new(16 << 10),
    direct_ll_channels: 1,
    nvls: Some(Nvls {
        efficiency: Millionths(740_000),
        channels: 24,
        links: Rate::megabytes(721_800),
        speeds: &[90, 80, 70, 60, 50, 45, 40, 30],
    }),
};

const B200_SXM: Library = Library {
    constants: &Constants {
        name: "b200_sxm",
        summary: "NCCL 2.29 on 2 to 8 B200 around NVSwitches",
        ..BLACKWELL
    },
    costs: Costs {
        launch: Time::from_ps(7_330_000),
        ll_step: Time::from_ps(1_320_000),
        ll_rate: Millionths(256_000),
        ll_fan: Time::from_ps(1_320_000),
        simple_setup: Time::from_ps(6_670_000),
        simple_step: Time::from_ps(11_000_000),
        simple_rate: Millionths(732_000),
        overlap: 2,
        nvls_chunk: Time::from_ps(9_110_000),
        post: Time::from_ps(797_000),
        crowd: Millionths(0),
    },
};

const GB200: Library = Library {
    constants: &Constants {
        name: "gb200",
        summary: "NCCL 2.29 on 2 and 4 GPUs of a GB200 NVL72; no time determines nvls_chunk",
        ..BLACKWELL
    },
    costs: Costs {
        launch: Time::from_ps(8_070_000),
        ll_step: Time::from_ps(1_310_000),
        ll_rate: Millionths(256_000),
        ll_fan: Time::from_ps(813_000),
        simple_setup: Time::from_ps(5_940_000),
        simple_step: Time::from_ps(11_300_000),
        simple_rate: Millionths(730_000),
        overlap: 2,
        nvls_chunk: Time::from_ps(8_300_000),
        post: Time::from_ps(601_000),
        crowd: Millionths(0),
    },
};

const L40S: Library = Library {
    constants: &Constants {
        name: "l40s",
        summary: "NCCL 2.27 on 2 to 8 L40S on PCIe",
        source: ONE_BOX,
        peak: gb(32),
        channels: 1,
        ring_rate: gb(20),
        ll_cap: Rate::megabytes(87_700),
        ll128_cap: None,
        direct_ll: Bytes::new(32 << 10),
        direct_ll_channels: 1,
        nvls: None,
    },
    costs: Costs {
        launch: Time::from_ps(5_080_000),
        ll_step: Time::from_ps(1_210_000),
        ll_rate: Millionths(451_000),
        ll_fan: Time::ZERO,
        simple_setup: Time::from_ps(6_520_000),
        simple_step: Time::from_ps(13_700_000),
        simple_rate: Millionths(805_000),
        overlap: 2,
        nvls_chunk: Time::ZERO,
        post: Time::from_ps(1_530_000),
        crowd: Millionths(2_100_000),
    },
};

/// Value of the option `library` of a machine without costs.
const NO_LIBRARY: &str = "none";

const LIBRARY: OptionRecord = OptionRecord::new(
    "library",
    "record of a library of collectives, whose costs `bulk_synchronous` adds to transfers",
)
.range("none, a100_sxm, h100_sxm, b200_sxm, gb200, l40s")
.default("that of the model, none if the model has no record")
.source(FITTED);

impl Library {
    /// Returns the record that is called `name`.
    pub fn named(name: &str) -> Option<Library> {
        let mut libraries = LIBRARIES.iter();
        let found = libraries.find(|library| library.constants.name == name);
        found.copied()
    }

    /// Reads the options `library` and [`NUMBERS`] of a specification. `of_model` is the name of
    /// the record of the machine's model, which applies if the specification names no record.
    ///
    /// # Errors
    /// An unknown record, a value that is not accepted, or a number without a record.
    pub fn read(spec: &Spec, of_model: Option<&str>) -> Result<Option<Library>, SpecError> {
        let named = spec.option(LIBRARY.name).or(of_model);
        let mut library = named.and_then(Library::named);
        if library.is_none() && !matches!(named, None | Some(NO_LIBRARY)) {
            return Err(spec.refuse(LIBRARY.name, format!("must be {}", LIBRARY.range)));
        }
        for number in NUMBERS {
            let Some(value) = number.read(spec)? else {
                continue;
            };
            let Some(library) = &mut library else {
                let problem = "needs a record: give library=h100_sxm, for example";
                return Err(spec.refuse(number.option.name, problem));
            };
            if !library.constants.has(number) {
                let name = library.constants.name;
                let problem = format!("{name} has no such cost");
                return Err(spec.refuse(number.option.name, problem));
            }
            (number.set)(&mut library.costs, value);
        }
        Ok(library)
    }

    /// Adds the record and the numbers that differ from it to a specification. Without a record,
    /// adds `none` if the machine's model has a record (`of_model`).
    pub fn print(library: &Option<Library>, of_model: Option<&str>, spec: Spec) -> Spec {
        let Some(library) = library else {
            return match of_model {
                Some(_) => spec.with(LIBRARY.name, NO_LIBRARY),
                None => spec,
            };
        };
        let name = library.constants.name;
        let spec = spec.with(LIBRARY.name, name);
        let Some(record) = Library::named(name) else {
            return spec;
        };
        NUMBERS.iter().fold(spec, |spec, number| {
            let value = number.of(&library.costs);
            match value == number.of(&record.costs) {
                true => spec,
                false => spec.with(number.option.name, number.text(value)),
            }
        })
    }

    /// Returns the records of the options `library` and [`NUMBERS`].
    pub fn options() -> impl Iterator<Item = OptionRecord> {
        std::iter::once(LIBRARY).chain(NUMBERS.iter().map(|number| number.option))
    }
}
