//! Long computations of the core, which Ctrl-C stops.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use opticoll::interrupt;
use opticoll::interrupt::Stopped;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{IntoPyErr, MemoryLimitError, OrRaise};
use crate::memory;

/// Interval between checks for signals while the core works: unnoticeably short for a user, and
/// negligible as computing time.
const PERIOD: Duration = Duration::from_millis(50);

/// Stack of the worker thread, as large as the stack of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Runs work without the interpreter lock. Signals are checked every [`PERIOD`]. If a signal
/// handler raises an exception (Ctrl-C: `KeyboardInterrupt`), all work of the core stops. If the
/// forecast memory of the work exceeds the limit, `MemoryLimitError` is raised.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    memory::set_limit();
    py.detach(|| {
        thread::scope(|scope| {
            let (sender, ended) = channel::<()>();
            let worker = thread::Builder::new().stack_size(STACK_BYTES);
            let worker = worker.spawn_scoped(scope, move || {
                // Dropping the sender reports the end of the work, even after a panic.
                let _sender = sender;
                interrupt::interruptible(work)
            })?;
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    raised = Some(error);
                    interrupt::interrupt();
                    break;
                }
            }
            let outcome = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (raised, outcome) {
                (Some(error), _) => Err(error),
                (None, Ok(result)) => Ok(result),
                (None, Err(Stopped::Interrupted)) => Err(PyKeyboardInterrupt::new_err(())),
                (None, Err(Stopped::MemoryLimitExceeded(much))) => {
                    Err(MemoryLimitError::new_err(much.to_string()))
                }
            }
        })
    })
}

/// Runs work as [`run`] does, and converts its error to an exception.
pub(crate) fn attempt<T: Send, E: IntoPyErr + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    run(py, work)?.or_raise()
}

/// Progress callback: passes numbers to Python, and returns false to stop the work.
pub(crate) type Tell<'a> = dyn FnMut(&[u64]) -> bool + Send + 'a;

/// Runs work as [`attempt`] does, and reports its progress to `watch`. An exception in `watch`
/// stops the work.
pub(crate) fn watched<T: Send, E: IntoPyErr + Send>(
    py: Python<'_>,
    watch: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Tell<'_>) -> Result<T, E> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let outcome = run(py, || {
        work(&mut |numbers| {
            if let Some(watch) = &watch {
                let called = Python::attach(|py| watch.call1(py, PyTuple::new(py, numbers)?));
                raised = called.err();
            }
            raised.is_none()
        })
    })?;
    match raised {
        Some(error) => Err(error),
        None => outcome.or_raise(),
    }
}

/// Stops all work of the compiled core on every thread: each call in progress raises
/// `KeyboardInterrupt`.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.interrupt_all()
#[pyfunction]
pub(crate) fn interrupt_all() {
    interrupt::interrupt();
}
