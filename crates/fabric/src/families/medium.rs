//! Media that messages travel over, with one grammar of specifications for all commands.
//!
//! `family:key=value,...` or `preset:key=value,...` names a fabric, a network of bursts or a cost
//! model:
//!
//! | specification | medium |
//! |---|---|
//! | `ladder:rungs=5,rate=10Gb/s` | a [`Fabric`] |
//! | `ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s` | [`Bursts`] |
//! | `hockney:latency=1us,rate=10Gb/s` | a [`MessageCost`] |
//!
//! All families with links accept `wavelengths` (on every link) and `hosts` (at every rank).
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! let bursts = Medium::parse("ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s")?;
//! assert_eq!(Medium::parse(&bursts.to_string())?, bursts);
//! // The caller can provide the number of ranks.
//! let paths = Medium::parse_for("lightpath_grid:ports=2", 8)?;
//! assert!(paths.to_string().contains("ranks=8"));
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

use std::fmt;

use super::{FAMILIES, presets};
use crate::fabric::options::FabricOption;
use crate::fabric::part;
use crate::fabric::part::Part;
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::family::message_cost::MessageCost;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec, SpecError};

/// Medium over which messages travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Medium {
    /// Fabric for which plans are made.
    Fabric(Fabric),
    /// Network of links with wavelengths. Bursts of light reserve the wavelengths.
    Bursts(Bursts),
    /// Cost model of single messages.
    Messages(MessageCost),
}

/// Network for bursts of light: a fabric with wavelengths on every link and hosts at every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bursts {
    /// Fabric with the links and routes.
    pub links: Fabric,
    /// Number of hosts at each rank of the fabric.
    pub hosts: u32,
    /// Number of wavelengths on each link.
    pub wavelengths: u32,
}

const MAX_HOSTS: u32 = 1 << 20;
const MAX_WAVELENGTHS: u32 = 1 << 12;

/// Options that select a part of a fabric. All families with links have these options.
const PART_OPTIONS: [OptionRecord; 3] = [part::WITHOUT, part::DEGRADED, part::MEMBERS];

/// Options that turn a fabric into a network of bursts. All families with links have these options.
const BURST_OPTIONS: [OptionRecord; 2] = [
    OptionRecord::new(
        "wavelengths",
        "wavelengths of each link, for bursts of light",
    )
    .range("1 to 4096")
    .default("none"),
    OptionRecord::new("hosts", "hosts at each rank, if links have wavelengths")
        .range("1 to 1048576")
        .default("1"),
];

/// Option names of earlier versions, each with its current name.
const RENAMED_OPTIONS: &[(&str, &str)] = &[
    ("columns", "rungs"),
    ("nodes", "ranks"),
    ("computers", "hosts"),
    ("terminals", "hosts"),
];

impl Medium {
    /// Parses a specification.
    ///
    /// # Errors
    /// The name is unknown, or an option is wrong or missing.
    pub fn parse(text: &str) -> Result<Medium, FabricError> {
        Medium::read(text.parse()?)
    }

    /// Parses a specification. If the specification has no number of ranks, uses `ranks`.
    pub fn parse_for(text: &str, ranks: u32) -> Result<Medium, FabricError> {
        let spec: Spec = text.parse()?;
        let counts = |record: &FamilyRecord| record.has("ranks");
        let spec = match family(&spec).is_some_and(counts) && spec.option("ranks").is_none() {
            true => spec.with("ranks", ranks),
            false => spec,
        };
        Medium::read(spec)
    }

    fn read(spec: Spec) -> Result<Medium, FabricError> {
        let spec = expanded(spec)?;
        let record = family(&spec).ok_or_else(|| FabricError::Unknown {
            name: spec.name().into(),
            hint: suggest(
                spec.name(),
                FAMILIES
                    .iter()
                    .map(|family| family.name)
                    .chain(presets().map(|preset| preset.name)),
            ),
        })?;
        if let Some(cost) = MessageCost::read(&spec) {
            return cost.map(Medium::Messages);
        }
        let has_links = record.has_links();
        let is_burst_option = |key: &str| {
            has_links && !record.has(key) && BURST_OPTIONS.iter().any(|option| option.name == key)
        };
        let accepts = |key: &str| record.has(key) || is_burst_option(key);
        let has_burst_options = spec.options().any(|(key, _)| is_burst_option(key));
        let build = |spec: &Spec| match has_links {
            true => {
                let whole_spec = PART_OPTIONS
                    .iter()
                    .fold(spec.clone(), |spec, option| spec.without(option.name));
                Part::build((record.build)(&whole_spec)?, spec)
            }
            false => (record.build)(spec),
        };
        for (old, new) in RENAMED_OPTIONS {
            if spec.option(old).is_some() && (has_burst_options || !record.has(old)) && accepts(new)
            {
                return Err(FabricError::Spec(SpecError::UnknownOption {
                    name: spec.name().into(),
                    key: (*old).into(),
                    hint: match has_burst_options && record.has(old) {
                        true => format!(
                            " with wavelengths, which make it a network of bursts; write {new}=..."
                        ),
                        false => format!("; write {new}=..."),
                    },
                }));
            }
        }
        if !has_burst_options {
            return build(&spec).map(Medium::Fabric);
        }
        let wavelengths = spec.count("wavelengths", 1, MAX_WAVELENGTHS)?;
        Ok(Medium::Bursts(Bursts {
            hosts: spec.count("hosts", 1, MAX_HOSTS)?.unwrap_or(1),
            wavelengths: wavelengths.ok_or(FabricError::Missing {
                family: record.name,
                key: "wavelengths",
                example: "hosts=10,wavelengths=28",
            })?,
            links: build(&spec.without("hosts").without("wavelengths"))?,
        }))
    }

    /// Returns the fabric for which plans are made.
    ///
    /// # Errors
    /// The medium is a network of bursts or a cost model.
    pub fn fabric(self) -> Result<Fabric, FabricError> {
        match self {
            Medium::Fabric(fabric) => Ok(fabric),
            Medium::Bursts(bursts) => Err(FabricError::NoFabric {
                family: bursts.links.family(),
                reason: "with wavelengths on its links it is a network of bursts; use it in \
                    traffic, congestion or replay",
            }),
            Medium::Messages(cost) => Err(FabricError::NoFabric {
                family: cost.family(),
                reason: "it is a cost model of single messages; use it in replay",
            }),
        }
    }
}

impl FamilyRecord {
    /// Returns all options of the family. Families with links also have the options that select a
    /// part or make a network of bursts.
    pub fn all_options(&self) -> Vec<FabricOption> {
        let mut options = (self.options)();
        if self.has_links() {
            options.extend(
                PART_OPTIONS
                    .into_iter()
                    .chain(BURST_OPTIONS)
                    .map(FabricOption::from),
            );
        }
        options
    }

    fn has(&self, key: &str) -> bool {
        (self.options)().iter().any(|own| own.record.name == key)
    }

    fn has_links(&self) -> bool {
        let example: Option<Spec> = self.example.parse().ok();
        let example = example.and_then(|spec| (self.build)(&spec).ok());
        example.is_some_and(|fabric| fabric.network().is_some())
    }
}

/// Returns the family that a specification names directly or through a preset.
fn family(spec: &Spec) -> Option<&'static FamilyRecord> {
    let preset = presets().find(|preset| same_name(preset.name, spec.name()));
    let name = preset.map_or(spec.name(), |preset| {
        preset.spec.split(':').next().unwrap_or_default()
    });
    let mut records = FAMILIES.iter().copied();
    records.find(|record| same_name(record.name, name))
}

/// Replaces a preset by its family and options. Options in `spec` take precedence.
fn expanded(spec: Spec) -> Result<Spec, SpecError> {
    let Some(preset) = presets().find(|preset| same_name(preset.name, spec.name())) else {
        return Ok(spec);
    };
    let base: Spec = preset.spec.parse()?;
    let defaults = base.options().filter(|(key, _)| spec.option(key).is_none());
    let merged = defaults.chain(spec.options());
    Ok(merged.fold(Spec::new(base.name()), |merged, (key, value)| {
        merged.with(key, value)
    }))
}

impl fmt::Display for Bursts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.links.spec().with("hosts", self.hosts);
        spec.with("wavelengths", self.wavelengths).fmt(formatter)
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Medium::Fabric(fabric) => fabric.fmt(formatter),
            Medium::Bursts(bursts) => bursts.fmt(formatter),
            Medium::Messages(cost) => cost.spec().fmt(formatter),
        }
    }
}
