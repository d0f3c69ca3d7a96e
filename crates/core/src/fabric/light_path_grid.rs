//! Computers joined by light paths that are set up when they are needed and released afterwards: the
//! grid over an optical burst-switched network.
//!
//! A light path joins a port of one rank with a port of another and serves both ways at once (full
//! duplex). A rank has k ports, and so holds paths to at most k others at a time. Setting up any number of
//! paths at one instant takes one time, releasing them another. The network between is not modelled: every
//! path can be had.

use super::light::{Field, Light, LightKind};
use super::{Fabric, FabricError, FamilyRecord};
use crate::spec::Spec;
use crate::units::{Rate, Time};

/// Ranks with ports for light paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LightPathGrid {
    /// The number of ranks, p.
    pub ranks: u32,
    /// Ports of a rank, k: to so many others it can hold paths at once.
    pub ports: u32,
    /// From the first bit sent to the first bit received, alpha.
    pub latency: Time,
    /// Rate of a path, each way; 1 / beta.
    pub rate: Rate,
    /// To set up any number of paths at one instant.
    pub establish: Time,
    /// To release any number of paths at one instant; with `establish` gamma.
    pub release: Time,
}

/// The ports of a light path's two ends.
pub const LIGHT: LightKind = LightKind {
    form: "{source_port}.{destination_port}",
    example: "0.1",
    relays: false,
    fields: &[
        Field {
            name: "source_port",
            bits: 8,
            names: &[],
            star: false,
            shifts: false,
            meaning: "the port of the rank that sends",
        },
        Field {
            name: "destination_port",
            bits: 16,
            names: &[],
            star: false,
            shifts: false,
            meaning: "the port of the rank that receives",
        },
    ],
};

/// The light of a message: the ports that its path joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortsLight {
    /// The port of the rank that sends, 0..ports.
    pub source_port: u8,
    /// The port of the rank that receives, 0..ports.
    pub destination_port: u16,
}

impl From<Light> for PortsLight {
    fn from(Light(word): Light) -> PortsLight {
        PortsLight {
            source_port: (word >> 16) as u8,
            destination_port: word as u16,
        }
    }
}

impl From<PortsLight> for Light {
    fn from(light: PortsLight) -> Light {
        Light(u32::from(light.source_port) << 16 | u32::from(light.destination_port))
    }
}

const MOST_RANKS: u32 = 1 << 20;
/// A plan numbers ports with 8 bits.
const MOST_PORTS: u32 = 1 << 8;

/// The family's record. Its defaults are the values of the paper.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "light_path_grid",
    summary: "Ranks with a few ports each, joined by light paths that are set up and released",
    citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS Grid",
    options: &[
        ("ranks", "number of ranks; required"),
        (
            "ports",
            "ports of a rank: to so many others it holds paths at once; default 1",
        ),
        ("latency", "of a message; default 100us"),
        ("rate", "of a path, each way; default 1Gb/s"),
        (
            "establish",
            "time to set up any number of paths at once; default 5ms",
        ),
        (
            "release",
            "time to release any number of paths at once; default that to set up",
        ),
    ],
    build,
};

fn build(spec: &Spec) -> Result<Fabric, FabricError> {
    let known: Vec<&str> = RECORD.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)?;
    let ranks = spec.count("ranks", 1, MOST_RANKS)?;
    let ranks = ranks.ok_or(FabricError::Missing {
        family: RECORD.name,
        key: "ranks",
        example: "light_path_grid:ranks=64,ports=2",
    })?;
    let time = |key: &str, default: Time| match spec.option(key) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|error| spec.refuse(key, error)),
    };
    let rate = spec.option("rate").unwrap_or("1Gb/s");
    let establish = time("establish", Time::from_ps(5_000_000_000))?;
    Ok(Fabric::LightPathGrid(LightPathGrid {
        ranks,
        ports: spec.count("ports", 1, MOST_PORTS)?.unwrap_or(1),
        latency: time("latency", Time::from_ps(100_000_000))?,
        rate: rate.parse().map_err(|error| spec.refuse("rate", error))?,
        establish,
        release: time("release", establish)?,
    }))
}

impl LightPathGrid {
    /// The complete spelling.
    pub fn spec(&self) -> Spec {
        let spec = Spec::new(RECORD.name)
            .with("ranks", self.ranks)
            .with("ports", self.ports)
            .with("latency", self.latency)
            .with("rate", self.rate)
            .with("establish", self.establish);
        if self.release == self.establish {
            return spec;
        }
        spec.with("release", self.release)
    }
}
