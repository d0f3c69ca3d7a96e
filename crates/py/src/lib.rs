//! `opticoll._core`: the binding of the crate `opticoll` to Python.
//!
//! Every function converts its arguments, releases the interpreter lock during long work, calls the
//! core, and converts the result. `interrupt::run` makes Ctrl-C stop the work. The binding contains
//! no other logic. `python/opticoll/_core.pyi` describes the interface for Python.

#![forbid(unsafe_code)]
// Doc comments become Python docstrings, in which `>>>` starts an example, not a quotation.
#![allow(clippy::doc_lazy_continuation)]

/// Declares read-only attributes of a class: `name: Type = value;`, each with its comment.
macro_rules! getters {
    ($kind:ident |$this:ident|
        $($(#[$meaning:meta])* $seen:vis $name:ident: $of:ty = $value:expr;)*) => {
        #[pymethods]
        impl $kind {$(
            $(#[$meaning])*
            #[getter]
            $seen fn $name(&$this) -> $of {
                $value
            }
        )*}
    };
}

mod bound;
mod burst;
mod collective;
mod columns;
mod congestion;
mod error;
mod fabric;
mod grid;
mod groups;
mod interrupt;
mod library;
mod memory;
mod method;
mod packets;
mod pickle;
mod plan;
mod planning;
mod program;
mod record;
mod replay;
mod schedule;
mod table;
mod text;
mod training;
mod violation;

/// The compiled core.
#[pyo3::pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bound::{
        concurrent_flow_bound, relay_tree_costs, slots_bound, throughput_optimum, time_bound,
        time_bounds,
    };
    #[pymodule_export]
    use crate::burst::{burst_fixed_point, check_bursts, engset, erlang_b, simulate_bursts};
    #[pymodule_export]
    use crate::collective::{Collective, Demand, generated_demand};
    #[pymodule_export]
    use crate::congestion::{
        burst_hosts, burst_rate, delivered_plan, place_ranks, simulate_collectives,
    };
    #[pymodule_export]
    use crate::fabric::Fabric;
    #[pymodule_export]
    use crate::grid::{replan, simulate_tasks, task_conflicts};
    #[pymodule_export]
    use crate::groups::{
        GroupedTraining, carries_messages, circuits_agree, expert_weights, uncharged_setup_ps,
        unite,
    };
    #[pymodule_export]
    use crate::interrupt::interrupt_all;
    #[pymodule_export]
    use crate::library::{library_numbers, library_times};
    #[pymodule_export]
    use crate::memory::{memory_limit, set_memory_limit, take_memory};
    #[pymodule_export]
    use crate::method::{check_algorithm, check_settings};
    #[pymodule_export]
    use crate::packets::{expected_traffic, simulate_traffic};
    #[pymodule_export]
    use crate::pickle::{pickled_outcome, pickled_plan};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::planning::{make_plan, plan_collective};
    #[pymodule_export]
    use crate::program::{Program, ProgramProof, ProgramViolation};
    #[pymodule_export]
    use crate::record::{plans_for, records};
    #[pymodule_export]
    use crate::replay::{
        EventTable, Trace, call_names, read_chakra, read_goal_schedule, read_trace, replay_trace,
        write_messages,
    };
    #[pymodule_export]
    use crate::schedule::Schedule;
    #[pymodule_export]
    use crate::table::{Outcome, Table, fields_of};
    #[pymodule_export]
    use crate::text::{
        collective_kind, format_size, format_time, parse_size, parse_time, rounded_rate,
    };
    #[pymodule_export]
    use crate::training::{
        DeviceWork, TimedModel, TrainingModel, check_buckets, collective_cost, device_constants,
        device_memory, parameter_memory,
    };

    #[pymodule_export]
    use crate::violation::Violation;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::error::add_to(module)?;
        module.add("BESIDE", opticoll::family::circuit_switch::BESIDE)?;
        module.add("CONVERTED", opticoll::family::wdm_ring::CONVERTED)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
