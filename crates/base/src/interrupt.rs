//! Interruption of long computations, for example by Ctrl-C in a terminal or a notebook.
//!
//! A caller starts interruptible work with [`interruptible`]. Long loops of the work call
//! [`check`]. After a call of [`interrupt`], the next [`check`] on each thread stops the work. The
//! stack unwinds as in a panic, but no message is printed. A function whose only failure is an
//! interruption need not return a `Result`. The work returns no partial result. Data that the work
//! borrowed mutably may be half changed.
//!
//! ```
//! use opticoll_base::interrupt::{check, interrupt, interruptible};
//!
//! let sum = interruptible(|| (0..1000u32).inspect(|_| check()).sum::<u32>());
//! assert_eq!(sum.ok(), Some(499_500));
//! let stopped = interruptible(|| {
//!     interrupt(); // from another thread, as a rule
//!     loop {
//!         check();
//!     }
//! });
//! assert!(stopped.is_err());
//! ```

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};

use crate::memory::MemoryLimitExceeded;

/// Number of calls of [`interrupt`] so far.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Value of [`BEGUN`] on a thread whose work cannot be interrupted.
const NEVER: u64 = u64::MAX;

thread_local! {
    /// Value of [`INTERRUPTS`] when the work of this thread began.
    static BEGUN: Cell<u64> = const { Cell::new(NEVER) };
}

/// Reason why interruptible work stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// A call of [`interrupt`].
    #[error("interrupted")]
    Interrupted,
    /// A memory forecast exceeds the limit
    /// ([`memory::check_forecast`](crate::memory::check_forecast)).
    #[error(transparent)]
    MemoryLimitExceeded(#[from] MemoryLimitExceeded),
}

/// Stops all work that has been started by [`interruptible`].
pub fn interrupt() {
    INTERRUPTS.fetch_add(1, Ordering::Relaxed);
}

/// Unwinds the stack if the work on this thread has been interrupted. Loops that may take longer
/// than a few milliseconds call this function.
#[inline]
pub fn check() {
    let interrupts = INTERRUPTS.load(Ordering::Relaxed);
    if interrupts > 0 {
        stop_if_begun_before(interrupts);
    }
}

#[cold]
fn stop_if_begun_before(interrupts: u64) {
    if BEGUN.get() < interrupts {
        resume_unwind(Box::new(Stopped::Interrupted))
    }
}

/// Runs `work`, which [`interrupt`] or a memory forecast above the limit may stop early.
///
/// # Errors
/// The reason why `work` stopped early.
pub fn interruptible<T>(work: impl FnOnce() -> T) -> Result<T, Stopped> {
    let before = BEGUN.replace(INTERRUPTS.load(Ordering::Relaxed));
    let done = catch_unwind(AssertUnwindSafe(work));
    BEGUN.set(before);
    done.map_err(stopped)
}

/// Converts the payload of an unwound stack into the reason why the work stopped. If the payload
/// comes from a panic, the function continues the panic.
fn stopped(payload: Box<dyn Any + Send>) -> Stopped {
    let payload = match payload.downcast::<MemoryLimitExceeded>() {
        Ok(exceeded) => return Stopped::MemoryLimitExceeded(*exceeded),
        Err(payload) => payload,
    };
    match payload.downcast::<Stopped>() {
        Ok(stopped) => *stopped,
        Err(panic) => resume_unwind(panic),
    }
}

/// Calls `work` for all `parts` at the same time: for the first part on this thread, for each other
/// part on a new thread. Returns the results in the order of `parts`. An interruption stops all
/// calls.
pub fn parallel_map<P: Send, R: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> R + Sync,
) -> Vec<R> {
    let begun = BEGUN.get();
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return Vec::new();
    };
    let work = &work;
    thread::scope(|scope| {
        let spawn = |part| {
            scope.spawn(move || {
                BEGUN.set(begun);
                work(part)
            })
        };
        let threads: Vec<_> = parts.map(spawn).collect();
        let join = |thread: ScopedJoinHandle<'_, R>| {
            thread
                .join()
                .unwrap_or_else(|payload| resume_unwind(payload))
        };
        let first = work(first);
        [first]
            .into_iter()
            .chain(threads.into_iter().map(join))
            .collect()
    })
}

/// Runs `first` on this thread and `second` on a new thread, at the same time. An interruption
/// stops both functions. If one of them panics, this function still waits for the other.
pub fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl FnOnce() -> B + Send) -> (A, B) {
    let begun = BEGUN.get();
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            BEGUN.set(begun);
            second()
        });
        let first = first();
        let second = thread
            .join()
            .unwrap_or_else(|payload| resume_unwind(payload));
        (first, second)
    })
}
