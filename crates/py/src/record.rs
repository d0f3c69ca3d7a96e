//! The records of everything that has a name, as dictionaries.

use opticoll::collective::CollectiveKind;
use opticoll::spec::OptionRecord;
use opticoll::workload::training::{device, models as training_models};
use opticoll::{algorithm, fabric, planner, simulate, wavelength};
use pyo3::prelude::*;

/// One entry of `opticoll list`.
#[derive(IntoPyObject)]
pub(crate) struct Record {
    name: &'static str,
    label: &'static str,
    summary: &'static str,
    citation: &'static str,
    options: Vec<(&'static str, &'static str)>,
    collective: Option<&'static str>,
    by_size: bool,
    family: Option<&'static str>,
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
fn option(one: &OptionRecord) -> (&'static str, &'static str) {
    (one.name, one.meaning)
}

/// All algorithms, by collective, the default of each first.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<Record> {
    let record = |one: &algorithm::Algorithm| Record {
        label: one.label,
        options: one.options.iter().map(option).collect(),
        collective: Some(one.collective.name()),
        family: one.family,
        ..Record::new(one.name, one.summary, one.citation)
    };
    let mut records: Vec<Record> = algorithm::records().iter().map(record).collect();
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
#[pyfunction]
pub(crate) fn fabrics() -> Vec<Record> {
    let record = |one: &fabric::FamilyRecord| Record {
        options: (one.options)().iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    fabric::FAMILIES.iter().map(record).collect()
}

/// All presets; the only option listed is what each stands for.
#[pyfunction]
pub(crate) fn presets() -> Vec<Record> {
    let record = |one: &fabric::PresetRecord| Record {
        options: vec![("stands for", one.spec)],
        ..Record::new(one.name, one.summary, one.citation)
    };
    fabric::PRESETS.iter().map(record).collect()
}

/// All simulators.
#[pyfunction]
pub(crate) fn simulators() -> Vec<Record> {
    simulate::SIMULATORS
        .iter()
        .map(|one| Record::new(one.name, one.summary, one.citation))
        .collect()
}

/// All settings of simulators; the options are its default and the simulators that know it.
#[pyfunction]
pub(crate) fn settings() -> Vec<Record> {
    let record = |one: &simulate::SettingRecord| {
        let values = Some(("values", one.values)).filter(|_| !one.values.is_empty());
        let known = one.simulators.iter().map(|name| ("simulator", *name));
        let default = [("default", one.default)];
        Record {
            options: values.into_iter().chain(default).chain(known).collect(),
            ..Record::new(one.name, one.summary, "")
        }
    };
    simulate::SETTINGS.iter().map(record).collect()
}

/// All settings of bursts; the only option listed is the default.
#[pyfunction]
pub(crate) fn burst_settings() -> Vec<Record> {
    let record = |one: &simulate::burst::SettingRecord| Record {
        options: vec![("default", one.default)],
        ..Record::new(one.name, one.summary, "")
    };
    simulate::burst::SETTINGS.iter().map(record).collect()
}

/// All settings of collectives over light paths that may be refused, likewise.
#[pyfunction]
pub(crate) fn congestion_settings() -> Vec<Record> {
    let record = |one: &simulate::burst::collective::SettingRecord| Record {
        options: vec![("default", one.default)],
        ..Record::new(one.name, one.summary, "")
    };
    simulate::burst::collective::SETTINGS
        .iter()
        .map(record)
        .collect()
}

/// What may follow the refusal of a light path.
#[pyfunction]
pub(crate) fn congestion_policies() -> Vec<Record> {
    simulate::burst::collective::POLICIES
        .iter()
        .map(|one| Record::new(one.name, one.summary, ""))
        .collect()
}

/// All start rules.
#[pyfunction]
pub(crate) fn start_rules() -> Vec<Record> {
    simulate::fluid::START_RULES
        .iter()
        .map(|one| Record::new(one.name, one.summary, one.citation))
        .collect()
}

/// All policies.
#[pyfunction]
pub(crate) fn policies() -> Vec<Record> {
    simulate::POLICIES
        .iter()
        .map(|one| Record::new(one.name, one.summary, one.citation))
        .collect()
}

/// All models of training.
#[pyfunction]
pub(crate) fn models() -> Vec<Record> {
    let record = |one: &training_models::ModelRecord| Record {
        label: one.label,
        options: one.options.iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    training_models::MODELS.iter().map(record).collect()
}

/// All devices that compute, the default first.
#[pyfunction]
pub(crate) fn devices() -> Vec<Record> {
    let record = |one: &device::DeviceRecord| Record {
        options: device::OPTIONS.iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    device::DEVICES.iter().map(record).collect()
}

/// All collectives; the summary says what a size means.
#[pyfunction]
pub(crate) fn collectives() -> Vec<Record> {
    CollectiveKind::ALL
        .iter()
        .map(|kind| Record::new(kind.name(), kind.size_convention(), ""))
        .collect()
}

/// All wavelength assignments, the default first.
#[pyfunction]
pub(crate) fn wavelength_assignments() -> Vec<Record> {
    let record = |one: &wavelength::AssignmentRecord| Record {
        options: one.options.iter().map(option).collect(),
        ..Record::new(one.name, one.summary, one.citation)
    };
    wavelength::RECORDS.iter().map(record).collect()
}
