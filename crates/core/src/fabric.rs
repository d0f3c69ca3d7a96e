//! What the machine is: ranks, fibres, wavelengths, rates and delays. A fabric knows nothing of
//! collectives, schedules or simulators.
//!
//! Fabrics are spelled `family:key=value,...`, or by the name of a preset:
//!
//! ```
//! use opticoll::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=1024,wavelengths=64")?;
//! assert_eq!(fabric.ranks(), 1024);
//! let preset = Fabric::parse("terarack:ranks=256")?;
//! assert!(preset.to_string().contains("fibres=2"));
//! # Ok::<(), opticoll::fabric::FabricError>(())
//! ```

pub mod wdm_ring;

use std::fmt;

use thiserror::Error;

use crate::spec::{Spec, SpecError};
use crate::spelling::{same_name, suggest};
pub use wdm_ring::{Direction, WdmRing};

/// Why a fabric was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FabricError {
    /// Neither a family nor a preset has this name.
    #[error("unknown fabric `{name}`{hint}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The spelling or an option is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A family needs an option that was not given.
    #[error("`{family}` needs {key}=..., for example {example}")]
    Missing {
        /// The family.
        family: &'static str,
        /// The option that is missing.
        key: &'static str,
        /// A complete spelling.
        example: &'static str,
    },
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fabric {
    /// A bidirectional ring of ranks with wavelength-division multiplexing.
    WdmRing(WdmRing),
}

/// The declaration of a fabric family.
pub struct FamilyRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where the model comes from.
    pub citation: &'static str,
    /// Options with their meaning and default.
    pub options: &'static [(&'static str, &'static str)],
    /// Builds the fabric from its options.
    build: fn(&Spec) -> Result<Fabric, FabricError>,
}

/// A named machine: a family with values from a stated source.
pub struct PresetRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where the values come from.
    pub citation: &'static str,
    /// The family and values it stands for.
    pub spec: &'static str,
}

/// All fabric families.
pub const FAMILIES: &[FamilyRecord] = &[wdm_ring::RECORD];

/// All presets.
pub const PRESETS: &[PresetRecord] = wdm_ring::PRESETS;

impl Fabric {
    /// Reads a spelling such as `wdm_ring:ranks=16,wavelengths=2` or `optree_paper:ranks=512`;
    /// options given to a preset replace its own.
    pub fn parse(text: &str) -> Result<Fabric, FabricError> {
        let mut spec: Spec = text.parse()?;
        if let Some(preset) = PRESETS
            .iter()
            .find(|preset| same_name(preset.name, spec.name()))
        {
            let base: Spec = preset.spec.parse()?;
            let kept = base.options().filter(|(key, _)| spec.option(key).is_none());
            let mut merged = Spec::new(base.name());
            for (key, value) in kept.chain(spec.options()) {
                merged = merged.with(key, value);
            }
            spec = merged;
        }
        match FAMILIES
            .iter()
            .find(|family| same_name(family.name, spec.name()))
        {
            Some(family) => (family.build)(&spec),
            None => Err(FabricError::Unknown {
                name: spec.name().into(),
                hint: suggest(
                    spec.name(),
                    FAMILIES
                        .iter()
                        .map(|family| family.name)
                        .chain(PRESETS.iter().map(|preset| preset.name)),
                ),
            }),
        }
    }

    /// The family's name.
    pub fn family(&self) -> &'static str {
        match self {
            Fabric::WdmRing(_) => wdm_ring::RECORD.name,
        }
    }

    /// The number of ranks, N.
    pub fn ranks(&self) -> u32 {
        match self {
            Fabric::WdmRing(ring) => ring.ranks,
        }
    }
}

impl fmt::Display for Fabric {
    /// The complete spelling, which [`Fabric::parse`] reads back to the same fabric.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fabric::WdmRing(ring) => ring.spec().fmt(formatter),
        }
    }
}
