//! Transfers and hops of plans as NumPy columns.

use numpy::{IntoPyArray, PyArray1};
use opticoll::fabric::{Hop, Light, LightKind};
use opticoll::plan;
use opticoll::schedule::Transfer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::ScheduleError;
use crate::interrupt;

type Columns<'py> = Bound<'py, PyDict>;

/// The most transfers that are put into columns: some 4 GB on the way.
const MOST_COLUMNS: u64 = 1 << 26;

/// The columns of all transfers.
pub(crate) fn of_plan<'py>(py: Python<'py>, plan: &plan::Plan) -> PyResult<Columns<'py>> {
    let transfers = plan.transfers();
    if transfers > MOST_COLUMNS {
        return Err(ScheduleError::new_err(format!(
            "columns of {transfers} transfers are too large: {MOST_COLUMNS} at most; \
             `slot_columns` gives those of a slot"
        )));
    }
    let whole = interrupt::run(py, || plan.written_out())?;
    to_columns(py, &whole)
}

/// The columns of the transfers of a slot, and their indices in the plan.
pub(crate) fn of_slot<'py>(
    py: Python<'py>,
    plan: &plan::Plan,
    slot: u32,
) -> PyResult<Columns<'py>> {
    let (indices, plan) = interrupt::run(py, || {
        let mut here = plan.without_lightpaths();
        let of_slot = plan.lightpaths_in_slot(slot);
        let indices: Vec<u64> = of_slot
            .map(|(index, lightpath)| {
                here.push(lightpath);
                index
            })
            .collect();
        (indices, here)
    })?;
    let columns = to_columns(py, &plan)?;
    columns.set_item("transfer", indices.into_pyarray(py))?;
    Ok(columns)
}

/// The columns of the hops of a slot, or of all slots.
pub(crate) fn of_hops<'py>(
    py: Python<'py>,
    plan: &plan::Plan,
    slot: Option<u32>,
) -> PyResult<Columns<'py>> {
    let hops: Vec<(u64, Hop)> = interrupt::run(py, || {
        let relays = plan.fabric.light().is_some_and(|kind| kind.relays);
        let transfers = (0..plan.len()).filter(|_| relays);
        let hops = transfers.flat_map(|transfer| {
            plan.hops_of(transfer)
                .map(move |hop| (transfer as u64, hop))
        });
        hops.filter(|(_, hop)| slot.is_none_or(|slot| hop.slot == slot))
            .collect()
    })?;
    let of =
        |part: fn(&Hop) -> u32| -> Vec<u32> { hops.iter().map(|(_, hop)| part(hop)).collect() };
    let transfers: Vec<u64> = hops.iter().map(|(transfer, _)| *transfer).collect();
    let columns = PyDict::new(py);
    columns.set_item("transfer", transfers.into_pyarray(py))?;
    columns.set_item("source", of(|hop| hop.from).into_pyarray(py))?;
    columns.set_item("destination", of(|hop| hop.to).into_pyarray(py))?;
    columns.set_item("slot", of(|hop| hop.slot).into_pyarray(py))?;
    let light = hops.iter().map(|(_, hop)| hop.light);
    set_light(py, plan.fabric.light(), light, &columns)?;
    Ok(columns)
}

fn to_columns<'py>(py: Python<'py>, plan: &plan::Plan) -> PyResult<Bound<'py, PyDict>> {
    let schedule = &plan.schedule;
    let of = |part: fn(&Transfer) -> u32| -> Vec<u32> {
        schedule.transfers().map(|moved| part(&moved)).collect()
    };
    let actions: Vec<u8> = schedule.transfers().map(|one| one.action as u8).collect();
    let columns = PyDict::new(py);
    columns.set_item("chunk", of(|one| one.chunk).into_pyarray(py))?;
    columns.set_item("count", of(|one| one.count).into_pyarray(py))?;
    columns.set_item("source", of(|one| one.source).into_pyarray(py))?;
    columns.set_item("destination", of(|one| one.destination).into_pyarray(py))?;
    columns.set_item("action", actions.into_pyarray(py))?;
    set_light(
        py,
        plan.fabric.light(),
        plan.light.iter().copied(),
        &columns,
    )?;
    columns.set_item("slot", PyArray1::from_slice(py, &plan.slot))?;
    Ok(columns)
}

/// A column for each field of light, of the smallest type that holds it.
fn set_light(
    py: Python<'_>,
    kind: Option<&LightKind>,
    light: impl Iterator<Item = Light> + Clone,
    columns: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(kind) = kind else {
        return Ok(());
    };
    for (index, field) in kind.fields.iter().enumerate() {
        let values = light.clone().map(|light| kind.value(light, index));
        let column = match field.bits {
            0..=8 => values
                .map(|value| value as u8)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .into_any(),
            9..=16 => values
                .map(|value| value as u16)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .into_any(),
            _ => values.collect::<Vec<_>>().into_pyarray(py).into_any(),
        };
        columns.set_item(field.name, column)?;
    }
    Ok(())
}
