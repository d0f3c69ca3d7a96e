//! The records of everything that has a name, as dictionaries.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::FabricOption;
use opticoll::families;
use opticoll::families::FAMILIES;
use opticoll::placement::wdm_ring::placement;
use opticoll::simulate::SettingRecord;
use opticoll::simulate::setting::HelpLevel;
use opticoll::spec::OptionRecord;
use opticoll::workload::training::{device, models as training_models};
use opticoll::{algorithms, fabric, planner, simulate};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::fabric::Fabric;

/// One entry of `opticoll list`.
#[derive(IntoPyObject)]
pub(crate) struct Record {
    name: &'static str,
    label: &'static str,
    summary: &'static str,
    citation: &'static str,
    options: Vec<OptionEntry>,
    collective: Option<&'static str>,
    by_size: bool,
    family: Option<String>,
}

impl Record {
    fn new(name: &'static str, summary: &'static str, citation: &'static str) -> Record {
        Record {
            name,
            label: name,
            summary,
            citation,
            options: Vec::new(),
            collective: None,
            by_size: false,
            family: None,
        }
    }
}

/// What is listed of an option.
#[derive(IntoPyObject)]
pub(crate) struct OptionEntry {
    name: &'static str,
    meaning: String,
    unit: Option<&'static str>,
    range: Option<String>,
    default: Option<String>,
    required: bool,
    source: Option<&'static str>,
}

/// A text where there is one.
fn said<T: AsRef<str>>(text: T) -> Option<T> {
    (!text.as_ref().is_empty()).then_some(text)
}

/// Something of a record under a name.
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

fn option(one: &OptionRecord) -> OptionEntry {
    of_fabric("", FabricOption::from(*one))
}

/// An option of a family whose source is that of each option that has none of its own.
fn of_fabric(citation: &'static str, one: FabricOption) -> OptionEntry {
    OptionEntry {
        unit: said(one.record.unit),
        range: said(one.range),
        required: one.default.is_none(),
        default: one.default.and_then(said),
        source: said(one.record.source).or(said(citation)),
        ..entry(one.record.name, one.record.meaning)
    }
}

/// A word, and how the records of that kind are read.
type Kind = (&'static str, fn() -> Vec<Record>);

/// Reads records that are a name, a summary and a citation.
macro_rules! cited {
    ($records:path) => {
        || {
            let records = $records.iter();
            records
                .map(|one| Record::new(one.name, one.summary, one.citation))
                .collect()
        }
    };
}

/// What has records.
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
    ("collectives", collectives),
    ("wavelengths", wavelength_assignments),
];

/// The records of a kind, such as `algorithms`; KeyError for another word.
#[pyfunction]
#[pyo3(signature = (kind) -> "list[Record]")]
pub(crate) fn records(kind: &str) -> PyResult<Vec<Record>> {
    let found = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, read) = found.ok_or_else(|| PyKeyError::new_err(kind.to_owned()))?;
    Ok(read())
}

/// Whether a fabric is of a kind that an algorithm plans for: links or light.
#[pyfunction]
pub(crate) fn plans_for(collective: &str, algorithm: &str, fabric: &Fabric) -> bool {
    let mut planners = planner::PLANNERS.iter().filter(|one| {
        let kinds = one.collectives.iter();
        one.name == algorithm && kinds.map(|kind| kind.name()).any(|name| name == collective)
    });
    planners.all(|one| one.applies(&fabric.fabric))
}

/// All algorithms, by collective, the default of each first.
fn algorithms() -> Vec<Record> {
    let record = |one: &algorithms::Algorithm| Record {
        label: one.label,
        options: planner::options(one).iter().map(option).collect(),
        collective: Some(one.collective.name()),
        family: (!one.families.is_empty()).then(|| one.families.join(", ")),
        ..Record::new(one.name, one.summary, one.citation)
    };
    let mut records: Vec<Record> = algorithms::records().iter().map(record).collect();
    for one in planner::PLANNERS {
        records.extend(one.collectives.iter().map(|collective| Record {
            label: one.label,
            options: one.options.iter().map(option).collect(),
            collective: Some(collective.name()),
            by_size: one.by_size,
            ..Record::new(one.name, one.summary, one.citation)
        }));
    }
    records.sort_by_key(|record| {
        let of = |kind: &CollectiveKind| Some(kind.name()) == record.collective;
        CollectiveKind::ALL.iter().position(of)
    });
    records
}

/// All fabric families.
fn fabrics() -> Vec<Record> {
    let record = |one: &&fabric::FamilyRecord| Record {
        options: one
            .all_options()
            .into_iter()
            .map(|option| of_fabric(one.citation, option))
            .collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    FAMILIES.iter().map(record).collect()
}

/// All presets; listed as options are what each stands for, and what is unconfirmed.
fn presets() -> Vec<Record> {
    let record = |one: &fabric::PresetRecord| Record {
        options: [("stands for", one.spec), ("unconfirmed", one.unconfirmed)]
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| entry(name, text))
            .collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    families::presets().map(record).collect()
}

/// The record of a setting: its default, what it takes, the simulators that know it, and the help that shows it
/// where that is not any.
fn setting(one: &SettingRecord) -> Record {
    let values = [
        ("values", one.values.range()),
        ("unit", one.values.unit().into()),
    ];
    let values = values.into_iter().filter(|(_, text)| !text.is_empty());
    let default = [("default", one.default.to_owned())];
    let known = one
        .simulators
        .iter()
        .map(|name| ("simulator", (*name).to_owned()));
    let hidden = (one.level == HelpLevel::All).then(|| ("help", "--help-all".to_owned()));
    let options = default.into_iter().chain(values).chain(known);
    Record {
        options: options
            .chain(hidden)
            .map(|(name, text)| entry(name, text))
            .collect(),
        ..Record::new(one.name, one.summary, "")
    }
}

/// All settings of simulators of plans.
fn settings() -> Vec<Record> {
    simulate::method::settings().map(setting).collect()
}

/// All settings of bursts.
fn burst_settings() -> Vec<Record> {
    let settings = simulate::burst::SETTINGS.iter();
    settings.map(|one| setting(&one.record)).collect()
}

/// All settings of collectives over lightpaths that may be blocked.
fn congestion_settings() -> Vec<Record> {
    let settings = simulate::burst::collective::SETTINGS.iter();
    settings.map(|one| setting(&one.record)).collect()
}

/// What may follow the blocking of a lightpath.
fn congestion_policies() -> Vec<Record> {
    simulate::burst::collective::POLICIES
        .iter()
        .map(|one| Record::new(one.name, one.summary, ""))
        .collect()
}

/// All models of training.
fn models() -> Vec<Record> {
    let record = |one: &training_models::ModelRecord| Record {
        label: one.label,
        options: one.options.iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    training_models::MODELS.iter().map(record).collect()
}

/// All devices that compute, the default first.
fn devices() -> Vec<Record> {
    let record = |one: &device::DeviceRecord| Record {
        options: device::OPTIONS.iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    device::DEVICES.iter().map(record).collect()
}

/// All collectives; the summary says what a size means.
fn collectives() -> Vec<Record> {
    CollectiveKind::ALL
        .iter()
        .map(|kind| Record::new(kind.name(), kind.size_convention(), ""))
        .collect()
}

/// All wavelength assignments, the default first.
fn wavelength_assignments() -> Vec<Record> {
    let record =
        |one: &placement::AssignmentRecord| Record::new(one.name, one.summary, one.citation);
    placement::RECORDS.iter().map(record).collect()
}
