//! Stops long work from outside: Ctrl-C in a terminal or a notebook.
//!
//! Long loops call [`check`]. Whoever starts work that may be stopped does so by [`interruptible`];
//! [`interrupt`] then stops all of it, on every thread, at the next [`check`]. The stack is unwound as by a
//! panic, but nothing is printed, so that functions that cannot fail need no error for it. Nothing that
//! was under way is returned; what it borrowed is as it was left.
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

use crate::memory::TooMuch;

/// How often [`interrupt`] was called.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

/// Work that nothing stops.
const NEVER: u64 = u64::MAX;

thread_local! {
    /// How often [`interrupt`] had been called when the work of this thread began.
    static BEGUN: Cell<u64> = const { Cell::new(NEVER) };
}

/// Why work was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// By [`interrupt`].
    #[error("interrupted")]
    Interrupted,
    /// By [`memory::take`](crate::memory::take).
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

/// Stops all work that [`interruptible`] has started so far.
pub fn interrupt() {
    INTERRUPTS.fetch_add(1, Ordering::Relaxed);
}

/// Stops here if the work on this thread is to stop: for loops that may take longer than a few milliseconds.
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

/// Does work that [`interrupt`] stops, or a forecast of its memory.
///
/// # Errors
/// The work was stopped.
pub fn interruptible<T>(work: impl FnOnce() -> T) -> Result<T, Stopped> {
    let before = BEGUN.replace(INTERRUPTS.load(Ordering::Relaxed));
    let done = catch_unwind(AssertUnwindSafe(work));
    BEGUN.set(before);
    done.map_err(stopped)
}

/// Why work was stopped, from what it left behind; a panic goes on.
fn stopped(left: Box<dyn Any + Send>) -> Stopped {
    let left = match left.downcast::<TooMuch>() {
        Ok(much) => return Stopped::TooMuch(*much),
        Err(left) => left,
    };
    match left.downcast::<Stopped>() {
        Ok(stopped) => *stopped,
        Err(panic) => resume_unwind(panic),
    }
}

/// Does parts of this thread's work side by side, the first on this thread and each other on one of its own; all
/// stop when the whole does. The results come in the order of the parts.
pub fn side_by_side<P: Send, R: Send>(
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
        let others: Vec<_> = parts.map(spawn).collect();
        let join = |other: ScopedJoinHandle<'_, R>| {
            other.join().unwrap_or_else(|left| resume_unwind(left))
        };
        let first = work(first);
        [first]
            .into_iter()
            .chain(others.into_iter().map(join))
            .collect()
    })
}

/// Does two parts of this thread's work at once, the second on a thread of its own; both stop when the whole does. Where one
/// part panics, the other is still waited for.
pub fn both<A, B: Send>(here: impl FnOnce() -> A, there: impl FnOnce() -> B + Send) -> (A, B) {
    let begun = BEGUN.get();
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            BEGUN.set(begun);
            there()
        });
        let one = here();
        let other = other.join().unwrap_or_else(|left| resume_unwind(left));
        (one, other)
    })
}
