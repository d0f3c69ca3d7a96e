//! Methods of `Plan` that simulate the plan.

use opticoll::simulate;
use opticoll::simulate::outcome;
use opticoll::simulate::passed_parts::passed_parts;
use opticoll::simulate::{SimulationError, fluid, packet};
use opticoll::units::Bytes;
use pyo3::prelude::*;

use super::{Plan, TimedChoice, present_settings};
use crate::error;
use crate::error::{OrRaise, UnitError};
use crate::fabric::{BillEntry, bill_entries};
use crate::interrupt;
use crate::method::{Settings, Size, method};
use crate::packets::{expected_tuple, report};
use crate::table::Outcome;

impl Plan {
    /// Returns `size`, or the plan's size if `size` is `None`.
    pub(crate) fn size_or(&self, size: Option<Size>) -> PyResult<Bytes> {
        match (size, self.rows().size) {
            (Some(size), _) => size.bytes(),
            (None, Some(size)) => Ok(size),
            (None, None) => Err(UnitError::new_err(
                "the plan has no size of its own; give one, such as `4MiB`",
            )),
        }
    }

    /// Returns the outcome of the simulation that chose the plan, if size and settings are equal.
    fn cached_outcome(&self, size: Bytes, settings: Option<Settings>) -> Option<&outcome::Outcome> {
        let timed = self.timed.as_deref().filter(|timed| timed.size == size);
        let has_settings = |timed: &&TimedChoice| timed.settings == present_settings(settings);
        timed.filter(has_settings).map(|timed| &timed.outcome)
    }
}

#[pymethods]
impl Plan {
    /// Simulates the plan, and returns its time and other results.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit such as `"4MiB"` (default: the
    ///     size of the plan).
    /// watch : callable, optional
    ///     Callback of the packet simulator, called at intervals as `watch(events,
    ///     messages_delivered, time_ps)`.
    /// timeline : bool
    ///     True to record the load of links and buffers over time, with the packet simulator.
    /// settings
    ///     The simulator and its settings, as text: `simulator="packet"`, `policy="free"`,
    ///     `start="step"`. `opticoll list settings` lists all settings. By default the simulator is
    ///     `circuit` under the policy `every_step` on a `wdm_ring`, and `fluid` on electrical
    ///     fabrics.
    ///
    /// Returns
    /// -------
    /// Outcome
    ///     Its total `time_ps` is the time in picoseconds.
    ///
    /// Raises
    /// ------
    /// UnitError
    ///     No size is given and the plan has none, or the size is malformed.
    /// SimulationError
    ///     A setting is unknown or does not apply; the attribute `setting` names the setting.
    /// MemoryLimitError
    ///     The simulation would need more memory than the limit.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> plan.simulate("4MiB").time_ps
    /// 12957912000
    /// >>> plan.simulate("4MiB", policy="free").time_ps
    /// 12582912000
    #[pyo3(signature = (
        size: "int | str | None" = None, *, watch: "Callable[[int, int, int], None] | None" = None,
        timeline = false, **settings: "Unpack[Settings]"
    ))]
    fn simulate(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        watch: Option<Py<PyAny>>,
        timeline: bool,
        settings: Option<Settings>,
    ) -> PyResult<Outcome> {
        let mut method = method(settings.clone())?;
        if timeline {
            method.packet.options.timeline_bin = Some(simulate::TIMELINE_BIN);
        }
        let size = self.size_or(size)?;
        if let Some(outcome) = self.cached_outcome(size, settings).filter(|_| !timeline) {
            return Ok(Outcome::from_core(outcome.clone()));
        }
        interrupt::watched(py, watch, |tell| {
            let mut watch = |progress: &packet::PacketProgress| report(tell, progress);
            simulate::run_watched(self.rows(), size, &method, &mut watch)
        })
        .map(Outcome::from_core)
    }

    /// Returns what a simulation of the plan needed of the parts of the fabric, as a tuple (parts,
    /// bytes).
    ///
    /// Parts has the form of `Fabric.bill`, with the bytes that pass the parts of each kind in
    /// halves of bytes instead of the number of parts. Half of a byte passes the parts at each end
    /// of a link or circuit. Bytes are those that ranks send over circuits. They are None on a
    /// network of links, where all transmitters are always lit.
    ///
    /// Parameters
    /// ----------
    /// outcome : Outcome
    ///     Result of a simulation of this plan.
    /// size : int or str, optional
    ///     Size of the collective in the simulation (default: the size of the plan).
    ///
    /// Raises
    /// ------
    /// SimulationError
    ///     The outcome is not the result of a simulation of a plan.
    /// UnitError
    ///     No size is given and the plan has none, or the size is malformed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2,rate=1Gb/s", "binomial")
    /// >>> parts, lit = plan.passed_parts(plan.simulate("1KiB"), "1KiB")
    /// >>> parts[0], lit
    /// (('transceiver', 'at ranks', 1000000000, None, 2048), None)
    #[pyo3(signature = (outcome: "Outcome", size: "int | str | None" = None))]
    fn passed_parts(
        &self,
        py: Python<'_>,
        outcome: &Outcome,
        size: Option<Size>,
    ) -> PyResult<(Vec<BillEntry>, Option<u128>)> {
        let size = self.size_or(size)?;
        let outcome: &outcome::Outcome = outcome.get().ok_or_else(|| {
            error::SimulationError::new_err(
                "the outcome is not the result of a simulation of a plan",
            )
        })?;
        let passed = interrupt::run(py, || passed_parts(self.rows(), size, outcome))?;
        let passed = passed.or_raise()?;
        Ok((bill_entries(&passed.halves_of_bytes), passed.lit_bytes))
    }

    /// Forecasts the work of the packet simulator: the number of messages, the number of chunks,
    /// and an estimate of the number of forwards by routers.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit (default: the size of the plan).
    /// settings
    ///     Settings of the packet simulator, as for `simulate`.
    ///
    /// Raises
    /// ------
    /// SimulationError
    ///     The fabric has no routers, or a setting is unknown or does not apply.
    /// UnitError
    ///     No size is given and the plan has none, or the size is malformed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "torus:dims=4x4", "ring")
    /// >>> plan.expected_packets("1MiB")
    /// (240, 491520, 1105920)
    #[pyo3(signature = (size: "int | str | None" = None, **settings: "Unpack[Settings]"))]
    fn expected_packets(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        settings: Option<Settings>,
    ) -> PyResult<(u64, u64, u64)> {
        let method = method(settings)?;
        let size = self.size_or(size)?;
        let plan = self.rows();
        interrupt::attempt(py, || {
            let settings = simulate::packet_settings(&plan.fabric, &method)?;
            let work = packet::work_of(&plan.schedule, &plan.fabric, size, &settings);
            let expected = packet::expected_work(&plan.fabric, &work, &settings.options)?;
            Ok::<_, SimulationError>(expected_tuple(expected))
        })
    }

    /// Returns the messages of a plan on an electrical fabric, as a list of (transfer, start, end)
    /// with times in picoseconds.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit (default: the size of the plan).
    /// start : str
    ///     The start rule: `rendezvous`, `step` or another of `opticoll list start_rules`.
    ///
    /// Raises
    /// ------
    /// SimulationError
    ///     The fabric is not electrical, or the start rule is unknown.
    /// UnitError
    ///     No size is given and the plan has none, or the size is malformed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> plan.message_times("1MiB")[:2]
    /// [(0, 0, 83886080), (1, 0, 83886080)]
    #[pyo3(signature = (size: "int | str | None" = None, start = "rendezvous"))]
    fn message_times(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        start: &str,
    ) -> PyResult<Vec<(usize, u64, u64)>> {
        let rule = start.parse().or_raise()?;
        let size = self.size_or(size)?;
        let options = fluid::FlowOptions::default();
        let times = interrupt::attempt(py, || {
            fluid::message_times(self.rows(), size, rule, &options)
        })?;
        let row =
            |message: fluid::MessageTime| (message.transfer, message.start.ps(), message.end.ps());
        Ok(times.into_iter().map(row).collect())
    }
}
