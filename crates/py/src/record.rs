//! Records of everything that has a name, as dictionaries.

use opticoll::collective::CollectiveKind;
use opticoll::components::COMPONENTS;
use opticoll::fabric::FabricOption;
use opticoll::families;
use opticoll::families::FAMILIES;
use opticoll::library::{LIBRARIES, Library, NUMBERS};
use opticoll::placement::wdm_ring::placement;
use opticoll::simulate::SettingRecord;
use opticoll::simulate::setting::HelpLevel;
use opticoll::spec::OptionRecord;
use opticoll::workload::training::experts::skews;
use opticoll::workload::training::{device, models as training_models};
use opticoll::{algorithms, fabric, planner, simulate};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::fabric::Fabric;

/// An entry of `opticoll list`.
#[derive(IntoPyObject)]
pub(crate) struct Record {
    name: &'static str,
    label: &'static str,
    summary: String,
    citation: &'static str,
    options: Vec<OptionEntry>,
    collective: Option<&'static str>,
    depends_on_size: bool,
    family: Option<String>,
}

impl Record {
    fn new(name: &'static str, summary: impl Into<String>, citation: &'static str) -> Record {
        Record {
            name,
            label: name,
            summary: summary.into(),
            citation,
            options: Vec::new(),
            collective: None,
            depends_on_size: false,
            family: None,
        }
    }
}

/// An entry of a record's list of options.
#[derive(IntoPyObject)]
pub(crate) struct OptionEntry {
    name: &'static str,
    meaning: String,
    unit: Option<&'static str>,
    range: Option<String>,
    default: Option<String>,
    required: bool,
    source: Option<String>,
}

/// Returns the text, or `None` if it is empty.
fn non_empty<T: AsRef<str>>(text: T) -> Option<T> {
    (!text.as_ref().is_empty()).then_some(text)
}

/// Returns an option's entry that consists of a name and a meaning.
fn entry(name: &'static str, meaning: impl Into<String>) -> OptionEntry {
    OptionEntry {
        name,
        meaning: meaning.into(),
        unit: None,
        range: None,
        default: None,
        required: false,
        source: None,
    }
}

fn option(record: &OptionRecord) -> OptionEntry {
    family_option("", FabricOption::from(*record))
}

/// Returns the entry of a family's option. An option without a source of its own gets `citation`.
fn family_option(citation: &'static str, option: FabricOption) -> OptionEntry {
    OptionEntry {
        unit: non_empty(option.record.unit),
        range: non_empty(option.range),
        required: option.default.is_none(),
        default: option.default.and_then(non_empty),
        source: non_empty(option.record.source)
            .or(non_empty(citation))
            .map(str::to_owned),
        ..entry(option.record.name, option.record.meaning)
    }
}

/// Name of a kind of records, and a function that returns these records.
type Kind = (&'static str, fn() -> Vec<Record>);

/// Converts records that consist of a name, a summary and a citation.
macro_rules! cited {
    ($records:path) => {
        || {
            let records = $records.iter();
            records
                .map(|record| Record::new(record.name, record.summary, record.citation))
                .collect()
        }
    };
}

/// Kinds of records.
const KINDS: &[Kind] = &[
    ("algorithms", algorithms),
    ("fabrics", fabrics),
    ("presets", presets),
    ("simulators", cited!(simulate::SIMULATORS)),
    ("settings", settings),
    ("burst_settings", burst_settings),
    ("congestion_settings", congestion_settings),
    ("congestion_policies", congestion_policies),
    ("start_rules", cited!(simulate::fluid::START_RULES)),
    ("policies", cited!(simulate::POLICIES)),
    ("models", models),
    ("devices", devices),
    ("skews", skews),
    ("components", components),
    ("libraries", libraries),
    ("collectives", collectives),
    ("wavelengths", cited!(placement::RECORDS)),
];

/// Returns the records of a kind, such as `algorithms`. Raises KeyError if there is no such kind.
#[pyfunction]
#[pyo3(signature = (kind) -> "list[Record]")]
pub(crate) fn records(kind: &str) -> PyResult<Vec<Record>> {
    let entry = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, read) = entry.ok_or_else(|| PyKeyError::new_err(kind.to_owned()))?;
    Ok(read())
}

/// Returns False if the algorithm is a planner for another kind of fabric, such as fabrics with
/// links.
#[pyfunction]
pub(crate) fn plans_for(collective: &str, algorithm: &str, fabric: &Fabric) -> bool {
    let mut planners = planner::PLANNERS.iter().filter(|record| {
        let kinds = record.collectives.iter();
        record.name == algorithm && kinds.map(|kind| kind.name()).any(|name| name == collective)
    });
    let is_named = |record: &&algorithms::Algorithm| {
        record.name == algorithm && record.collective.name() == collective
    };
    let is_algorithm = algorithms::records().iter().any(|record| is_named(&record));
    let mut suitable = algorithms::records_for(&fabric.fabric);
    planners.all(|record| record.applies(&fabric.fabric))
        && (!is_algorithm || suitable.any(|record| is_named(&record)))
}

/// Returns the records of all algorithms by collective; the default of a collective is first.
fn algorithms() -> Vec<Record> {
    let record = |algorithm: &algorithms::Algorithm| Record {
        label: algorithm.label,
        options: planner::options(algorithm).iter().map(option).collect(),
        collective: Some(algorithm.collective.name()),
        family: (!algorithm.families.is_empty()).then(|| algorithm.families.join(", ")),
        ..Record::new(algorithm.name, algorithm.description(), algorithm.citation)
    };
    let mut records: Vec<Record> = algorithms::records().iter().map(record).collect();
    for planner in planner::PLANNERS {
        records.extend(planner.collectives.iter().map(|collective| Record {
            label: planner.label,
            options: planner.options.iter().map(option).collect(),
            collective: Some(collective.name()),
            depends_on_size: planner.depends_on_size,
            ..Record::new(planner.name, planner.summary, planner.citation)
        }));
    }
    records.sort_by_key(|record| {
        let is_same = |kind: &CollectiveKind| Some(kind.name()) == record.collective;
        CollectiveKind::ALL.iter().position(is_same)
    });
    records
}

/// Returns the records of all fabric families.
fn fabrics() -> Vec<Record> {
    let record = |family: &&fabric::FamilyRecord| Record {
        options: family
            .all_options()
            .into_iter()
            .map(|option| family_option(family.citation, option))
            .collect(),
        ..Record::new(family.name, family.summary, family.citation)
    };
    FAMILIES.iter().map(record).collect()
}

/// Returns the records of all presets. The options of a record are the specification that the
/// preset stands for, the measurements of its costs, and the values that no source confirms.
fn presets() -> Vec<Record> {
    let record = |preset: &fabric::PresetRecord| Record {
        options: [
            ("stands for", preset.spec.to_owned()),
            ("measured", measured(preset)),
            ("unconfirmed", preset.unconfirmed.to_owned()),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| entry(name, text))
        .collect(),
        ..Record::new(preset.name, preset.summary, preset.citation)
    };
    families::presets().map(record).collect()
}

/// Returns the source of an option's default in the family of a preset.
fn family_source(preset: &fabric::PresetRecord, option: &str) -> &'static str {
    let family = preset.spec.split(':').next().unwrap_or_default();
    let family = FAMILIES.iter().find(|record| record.name == family);
    let options = family.map(|family| family.all_options());
    let mut options = options.into_iter().flatten();
    let found = options.find(|known| known.record.name == option);
    let source = found.map(|known| known.record.source);
    source.filter(|text| !text.is_empty()).unwrap_or("none")
}

/// Returns which measured costs a preset with links has; empty for a preset without links.
fn measured(preset: &fabric::PresetRecord) -> String {
    let fabric = fabric::Fabric::parse(preset.spec).ok();
    let Some(network) = fabric.as_ref().and_then(|fabric| fabric.network()) else {
        return String::new();
    };
    match network.library() {
        Some(library) => format!(
            "launch, protocols and rates: library={}, fitted to times of {}; library=none turns \
             them off",
            library.constants.name, library.constants.summary
        ),
        None => {
            let latency = family_source(preset, "latency");
            format!(
                "no times of collectives: links reach their peak rate, a call has no launch; \
                 latency {} to the farthest rank, source: {latency}",
                opticoll::network::latency(network)
            )
        }
    }
}

/// Returns the record of a setting: its default, its values and the simulators that know it. If
/// only `--help-all` shows the setting, the record says so.
fn setting(record: &SettingRecord) -> Record {
    let values = [
        ("values", record.values.range()),
        ("unit", record.values.unit().into()),
    ];
    let values = values.into_iter().filter(|(_, text)| !text.is_empty());
    let default = [("default", record.default.to_owned())];
    let simulators = record
        .simulators
        .iter()
        .map(|name| ("simulator", (*name).to_owned()));
    let hidden = (record.level == HelpLevel::All).then(|| ("help", "--help-all".to_owned()));
    let options = default.into_iter().chain(values).chain(simulators);
    Record {
        options: options
            .chain(hidden)
            .map(|(name, text)| entry(name, text))
            .collect(),
        ..Record::new(record.name, record.summary, "")
    }
}

/// Returns the records of all settings of the simulators of plans.
fn settings() -> Vec<Record> {
    simulate::timing_model::settings().map(setting).collect()
}

/// Returns the records of all settings of bursts.
fn burst_settings() -> Vec<Record> {
    let settings = simulate::burst::SETTINGS.iter();
    settings.map(|entry| setting(&entry.record)).collect()
}

/// Returns the records of all settings of collectives over lightpaths that may be blocked.
fn congestion_settings() -> Vec<Record> {
    let settings = simulate::burst::collective::SETTINGS.iter();
    settings.map(|entry| setting(&entry.record)).collect()
}

/// Returns the records of the possible reactions to a blocked lightpath.
fn congestion_policies() -> Vec<Record> {
    simulate::burst::collective::POLICIES
        .iter()
        .map(|policy| Record::new(policy.name, policy.summary, ""))
        .collect()
}

/// Returns the records of all models of training.
fn models() -> Vec<Record> {
    let record = |model: &training_models::ModelRecord| Record {
        label: model.label,
        options: model.options.iter().map(option).collect(),
        ..Record::new(model.name, model.summary, model.citation)
    };
    training_models::MODELS.iter().map(record).collect()
}

/// Returns the records of all devices; the default device is first.
fn devices() -> Vec<Record> {
    let record = |device: &device::DeviceRecord| Record {
        options: device::OPTIONS.iter().map(option).collect(),
        ..Record::new(device.name, device.summary, device.citation)
    };
    device::DEVICES.iter().map(record).collect()
}

/// Returns the records of all rules for the weights of experts.
fn skews() -> Vec<Record> {
    let record = |rule: &skews::SkewRule| Record {
        options: rule.options.iter().map(option).collect(),
        ..Record::new(rule.name, rule.summary, "")
    };
    skews::SKEWS.iter().map(record).collect()
}

/// Returns the records of all optical components. The options of a record are its published values,
/// each with its source and the kind of the source.
fn components() -> Vec<Record> {
    let record = |component: &opticoll::components::Component| Record {
        options: component
            .values
            .iter()
            .map(|value| OptionEntry {
                unit: Some(value.unit),
                range: Some(value.value.to_owned()),
                source: Some(format!("{}: {}", value.kind, value.source)),
                ..entry(value.property.name(), value.condition)
            })
            .collect(),
        ..Record::new(component.name, component.summary, "")
    };
    COMPONENTS.iter().map(record).collect()
}

/// Returns the records of all libraries of collectives on machines. The options of a record are its
/// costs, each with its value.
fn libraries() -> Vec<Record> {
    let record = |library: &Library| Record {
        options: NUMBERS
            .iter()
            .filter(|number| library.constants.has(number))
            .map(|number| OptionEntry {
                range: Some(number.text(number.of(&library.costs))),
                source: Some(library.constants.source.into()),
                ..entry(number.option.name, number.option.meaning)
            })
            .collect(),
        ..Record::new(
            library.constants.name,
            library.constants.summary,
            library.constants.source,
        )
    };
    LIBRARIES.iter().map(record).collect()
}

/// Returns the records of all collectives; the summary says which bytes the size counts.
fn collectives() -> Vec<Record> {
    CollectiveKind::ALL
        .iter()
        .map(|kind| Record::new(kind.name(), kind.size_convention(), ""))
        .collect()
}
