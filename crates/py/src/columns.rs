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

/// Maximum number of transfers that are converted to columns, which takes about 4 GB of memory.
const MAX_TRANSFERS: u64 = 1 << 26;

/// Returns a column for each field of a plan's transfers, in the order of the schedule.
pub(crate) fn plan_columns<'py>(py: Python<'py>, plan: &plan::Plan) -> PyResult<Columns<'py>> {
    let transfers = plan.transfers();
    if transfers > MAX_TRANSFERS {
        return Err(ScheduleError::new_err(format!(
            "columns of {transfers} transfers are too large: {MAX_TRANSFERS} at most; \
             `slot_columns` gives those of a slot"
        )));
    }
    let whole = interrupt::run(py, || plan.expanded())?;
    to_columns(py, &whole)
}

/// Returns the columns of the transfers of one slot, and their indices in the plan.
pub(crate) fn slot_columns<'py>(
    py: Python<'py>,
    plan: &plan::Plan,
    slot: u32,
) -> PyResult<Columns<'py>> {
    let (indices, plan) = interrupt::run(py, || {
        let mut slot_plan = plan.without_lightpaths();
        let transfers = plan.lightpaths_in_slot(slot);
        let indices: Vec<u64> = transfers
            .map(|(index, lightpath)| {
                slot_plan.push(lightpath);
                index
            })
            .collect();
        (indices, slot_plan)
    })?;
    let columns = to_columns(py, &plan)?;
    columns.set_item("transfer", indices.into_pyarray(py))?;
    Ok(columns)
}

/// Returns the columns of the hops of relayed transfers, in one slot or in all slots.
pub(crate) fn hop_columns<'py>(
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
    let values =
        |field: fn(&Hop) -> u32| -> Vec<u32> { hops.iter().map(|(_, hop)| field(hop)).collect() };
    let transfers: Vec<u64> = hops.iter().map(|(transfer, _)| *transfer).collect();
    let columns = PyDict::new(py);
    columns.set_item("transfer", transfers.into_pyarray(py))?;
    columns.set_item("source", values(|hop| hop.from).into_pyarray(py))?;
    columns.set_item("destination", values(|hop| hop.to).into_pyarray(py))?;
    columns.set_item("slot", values(|hop| hop.slot).into_pyarray(py))?;
    let light = hops.iter().map(|(_, hop)| hop.light);
    set_light(py, plan.fabric.light(), light, &columns)?;
    Ok(columns)
}

/// Returns the columns of the transfers that a plan stores.
fn to_columns<'py>(py: Python<'py>, plan: &plan::Plan) -> PyResult<Bound<'py, PyDict>> {
    let schedule = &plan.schedule;
    let values = |field: fn(&Transfer) -> u32| -> Vec<u32> {
        schedule
            .transfers()
            .map(|transfer| field(&transfer))
            .collect()
    };
    let actions: Vec<u8> = schedule
        .transfers()
        .map(|transfer| transfer.action as u8)
        .collect();
    let columns = PyDict::new(py);
    columns.set_item("chunk", values(|transfer| transfer.chunk).into_pyarray(py))?;
    columns.set_item("count", values(|transfer| transfer.count).into_pyarray(py))?;
    columns.set_item(
        "source",
        values(|transfer| transfer.source).into_pyarray(py),
    )?;
    columns.set_item(
        "destination",
        values(|transfer| transfer.destination).into_pyarray(py),
    )?;
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

/// Adds a column for each field of the light. A column has the smallest type that holds its values.
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
