//! Media that messages travel over, with one grammar of specifications for all commands.
//!
//! `family:key=value,...` or `preset:key=value,...` names a fabric or a cost model:
//!
//! | specification | medium |
//! |---|---|
//! | `wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s` | a [`Fabric`] |
//! | `hockney:latency=1us,rate=10Gb/s` | a [`MessageCost`] |
//!
//! ```
//! use opticoll_fabric::families::Medium;
//! let ladder = Medium::parse("wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s")?;
//! assert_eq!(Medium::parse(&ladder.to_string())?, ladder);
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
use crate::family::wdm_graph::{self, WdmGraph};
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, Spec, SpecError};

/// Medium over which messages travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Medium {
    /// Fabric for which plans are made.
    Fabric(Fabric),
    /// Cost model of single messages.
    Messages(MessageCost),
}

/// Options that select a part of a fabric. All families with links have these options.
const PART_OPTIONS: [OptionRecord; 3] = [part::WITHOUT, part::DEGRADED, part::MEMBERS];

/// Options of fabrics with lightpaths that electrical families do not have.
const LIGHT_OPTIONS: [&str; 2] = ["wavelengths", "hosts"];

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
        let unknown = |key: &str, hint: String| {
            FabricError::Spec(SpecError::UnknownOption {
                name: spec.name().into(),
                key: key.into(),
                hint,
            })
        };
        for (old, new) in RENAMED_OPTIONS {
            if spec.option(old).is_some() && !record.has(old) && record.has(new) {
                return Err(unknown(old, format!("; write {new}=...")));
            }
        }
        if !record.has_links() {
            return (record.build)(&spec).map(Medium::Fabric);
        }
        let mut light_options = LIGHT_OPTIONS.into_iter();
        if let Some(key) = light_options.find(|key| spec.option(key).is_some() && !record.has(key))
        {
            let family = wdm_graph::over(record.name).unwrap_or(wdm_graph::GRAPH.name);
            let hint = format!(": its links are electrical; for fibres write {family}:...");
            return Err(unknown(key, hint));
        }
        let whole_spec = PART_OPTIONS
            .iter()
            .fold(spec.clone(), |spec, option| spec.without(option.name));
        let whole = (record.build)(&whole_spec)?;
        let part = spec
            .options()
            .find(|(key, _)| whole_spec.option(key).is_none());
        if let (Some((key, _)), true) = (part, whole.has_light()) {
            let problem = "with light between servers, state it for the outside, or leave it out";
            return Err(spec.refuse(key, problem).into());
        }
        Part::build(whole, &spec).map(Medium::Fabric)
    }

    /// Returns the fabric for which plans are made.
    ///
    /// # Errors
    /// The medium is a cost model, or a graph of fibres with several hosts at each rank.
    pub fn fabric(self) -> Result<Fabric, FabricError> {
        match self {
            Medium::Fabric(fabric) => match fabric.downcast::<WdmGraph>() {
                Some(graph) if graph.hosts > 1 => Err(FabricError::NoFabric {
                    family: fabric.family(),
                    reason: "plans need hosts=1; several hosts at a rank request lightpaths on \
                        demand: use traffic, congestion or replay --bursts",
                }),
                _ => Ok(fabric),
            },
            Medium::Messages(cost) => Err(FabricError::NoFabric {
                family: cost.family(),
                reason: "it is a cost model of single messages; use it in replay",
            }),
        }
    }
}

impl FamilyRecord {
    /// Returns all options of the family. Families with links also have the options that select a
    /// part.
    pub fn all_options(&self) -> Vec<FabricOption> {
        let mut options = (self.options)();
        if self.has_links() {
            options.extend(PART_OPTIONS.map(FabricOption::from));
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

impl fmt::Display for Medium {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Medium::Fabric(fabric) => fabric.fmt(formatter),
            Medium::Messages(cost) => cost.spec().fmt(formatter),
        }
    }
}
