//! The bidirectional WDM ring of the OpTree and WRHT papers (TeraRack).
//!
//! Rank i is joined to rank i+1 (mod N) by `fibres` directed fibres clockwise, and to rank i-1 by
//! as many counter-clockwise. Each directed fibre carries `wavelengths` channels. A lightpath
//! occupies one channel of one fibre on every link between its ends, and its light is converted
//! to another wavelength on the way only where the fabric has converters.
//!
//! The link with index i of a direction is the one that *starts* at rank i: clockwise i -> i+1,
//! counter-clockwise i -> i-1.

use super::{Fabric, FabricError, FamilyRecord, PresetRecord};
use crate::spec::Spec;
use crate::units::{Rate, Time};

/// The way around the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Towards higher ranks.
    Clockwise = 0,
    /// Towards lower ranks.
    CounterClockwise = 1,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Clockwise, Direction::CounterClockwise];

    /// `cw` or `ccw`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Clockwise => "cw",
            Direction::CounterClockwise => "ccw",
        }
    }

    /// The other way around.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Clockwise => Direction::CounterClockwise,
            Direction::CounterClockwise => Direction::Clockwise,
        }
    }
}

/// A bidirectional ring with wavelength-division multiplexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WdmRing {
    /// Ranks on the ring, N.
    pub ranks: u32,
    /// Wavelengths per directed fibre, w.
    pub wavelengths: u32,
    /// Fibres per direction.
    pub fibres: u32,
    /// Rate of one wavelength, B.
    pub rate: Rate,
    /// Time to set a rank's ring resonators to other wavelengths.
    pub reconfiguration: Time,
    /// Optical-electrical-optical conversion at the end of each lightpath.
    pub conversion: Time,
    /// Propagation over one link.
    pub propagation: Time,
    /// How many lightpaths a rank may send at once, and likewise receive; `None`: as many as its
    /// fibres have channels.
    pub ports: Option<u32>,
    /// Whether every rank can convert passing light to any wavelength.
    pub converters: bool,
}

/// The largest counts accepted: beyond them link and channel numbers would not fit their columns.
const MOST_RANKS: u32 = 1 << 20;
const MOST_WAVELENGTHS: u32 = 4096;
const MOST_FIBRES: u32 = 64;

/// The family's record.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "wdm_ring",
    summary: "Bidirectional optical ring with wavelength-division multiplexing",
    citation: "Khani et al., TeraRack: A Tbps Rack for Machine Learning Training, 2020",
    options: &[
        ("ranks", "number of ranks; required"),
        ("wavelengths", "wavelengths per directed fibre; required"),
        ("fibres", "fibres per direction; default 1"),
        ("rate", "rate per wavelength; default 40Gb/s"),
        (
            "reconfiguration",
            "time to reconfigure circuits; default 25us",
        ),
        (
            "conversion",
            "O/E/O delay at the end of each lightpath; default 0s",
        ),
        ("propagation", "delay per hop; default 0s"),
        (
            "ports",
            "lightpaths a rank may send, and receive, at once; default all",
        ),
        (
            "converters",
            "wavelength converters at every rank: none or full; default none",
        ),
    ],
    build,
};

/// Presets, each named for its source.
pub const PRESETS: &[PresetRecord] = &[
    PresetRecord {
        name: "optree_paper",
        summary: "The evaluation of the OpTree paper: one fibre per direction, 40 Gb/s, 25 us",
        citation: "Dai et al., OpTree, section IV.A",
        spec: "wdm_ring:ranks=1024,wavelengths=64,fibres=1,rate=40Gb/s,reconfiguration=25us",
    },
    PresetRecord {
        name: "terarack",
        summary: "A TeraRack of 256 ranks with two fibres per direction",
        citation: "Khani et al., TeraRack, 2020; rates and delays as in Dai et al., OpTree",
        spec: "wdm_ring:ranks=256,wavelengths=64,fibres=2,rate=40Gb/s,reconfiguration=25us",
    },
];

const EXAMPLE: &str = "wdm_ring:ranks=1024,wavelengths=64";

fn build(spec: &Spec) -> Result<Fabric, FabricError> {
    let known: Vec<&str> = RECORD.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)?;
    let required = |key: &'static str, most: u32| {
        spec.count(key, 1, most)?.ok_or(FabricError::Missing {
            family: RECORD.name,
            key,
            example: EXAMPLE,
        })
    };
    let time = |key: &str, default: Time| match spec.option(key) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|error| spec.refuse(key, error)),
    };
    let ranks = required("ranks", MOST_RANKS)?;
    let wavelengths = required("wavelengths", MOST_WAVELENGTHS)?;
    let fibres = spec.count("fibres", 1, MOST_FIBRES)?.unwrap_or(1);
    let rate = spec.option("rate").unwrap_or("40Gb/s");
    let ports = match spec.option("ports") {
        None | Some("all") => None,
        Some(_) => spec.count("ports", 1, 2 * fibres * wavelengths)?,
    };
    let converters = match spec.option("converters") {
        None | Some("none") => false,
        Some("full") => true,
        Some(_) => return Err(spec.refuse("converters", "must be `none` or `full`").into()),
    };
    Ok(Fabric::WdmRing(WdmRing {
        ranks,
        wavelengths,
        fibres,
        rate: rate.parse().map_err(|error| spec.refuse("rate", error))?,
        reconfiguration: time("reconfiguration", Time::from_ps(25_000_000))?,
        conversion: time("conversion", Time::ZERO)?,
        propagation: time("propagation", Time::ZERO)?,
        ports,
        converters,
    }))
}

impl WdmRing {
    /// Channels per direction: fibres times wavelengths.
    pub fn channels(&self) -> u32 {
        self.fibres * self.wavelengths
    }

    /// The number of links from `source` to `destination` in a direction: 0..N.
    pub fn hops(&self, source: u32, destination: u32, direction: Direction) -> u32 {
        let (from, to) = match direction {
            Direction::Clockwise => (source, destination),
            Direction::CounterClockwise => (destination, source),
        };
        if to >= from {
            to - from
        } else {
            to + self.ranks - from
        }
    }

    /// The complete spelling.
    pub fn spec(&self) -> Spec {
        let mut spec = Spec::new(RECORD.name)
            .with("ranks", self.ranks)
            .with("wavelengths", self.wavelengths)
            .with("fibres", self.fibres)
            .with("rate", self.rate)
            .with("reconfiguration", self.reconfiguration);
        if self.conversion != Time::ZERO {
            spec = spec.with("conversion", self.conversion);
        }
        if self.propagation != Time::ZERO {
            spec = spec.with("propagation", self.propagation);
        }
        if let Some(ports) = self.ports {
            spec = spec.with("ports", ports);
        }
        if self.converters {
            spec = spec.with("converters", "full");
        }
        spec
    }
}
