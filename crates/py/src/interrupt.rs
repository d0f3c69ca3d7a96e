//! Long work of the core, which Ctrl-C stops.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use opticoll::interrupt;
use opticoll::interrupt::Stopped;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error::MemoryLimitError;
use crate::memory;

/// How often signals are looked for while the core works.
const PERIOD: Duration = Duration::from_millis(50);

/// As much as a main thread has.
const STACK_BYTES: usize = 8 << 20;

/// Does work without the interpreter lock. Signals are looked for meanwhile, and where a handler raises
/// (Ctrl-C: `KeyboardInterrupt`), all work of the core stops. Work whose memory is forecast to exceed the limit
/// raises `MemoryLimitError`.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    memory::set_limit();
    py.detach(|| {
        thread::scope(|scope| {
            let (sender, ended) = channel::<()>();
            let worker = thread::Builder::new().stack_size(STACK_BYTES);
            let worker = worker.spawn_scoped(scope, move || {
                // Dropped at the end, also by a panic.
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
            let done = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (raised, done) {
                (Some(error), _) => Err(error),
                (None, Ok(result)) => Ok(result),
                (None, Err(Stopped::Interrupted)) => Err(PyKeyboardInterrupt::new_err(())),
                (None, Err(Stopped::TooMuch(much))) => {
                    Err(MemoryLimitError::new_err(much.to_string()))
                }
            }
        })
    })
}

/// Stop all work of the compiled core, on every thread: each call that is under way raises `KeyboardInterrupt`.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.interrupt_all()
#[pyfunction]
pub(crate) fn interrupt_all() {
    interrupt::interrupt();
}
