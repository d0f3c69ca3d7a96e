//! Forecasts of memory use, which stop a computation before an allocation exceeds the memory limit.
//!
//! Code that allocates large tables first calls [`check_forecast`]. If the forecast exceeds the
//! limit, the work stops like interrupted work (see [`crate::interrupt`]) and returns
//! [`MemoryLimitExceeded`] instead of a result. The memory is never allocated. A function whose
//! only failure is this limit need not return a `Result`. At first there is no limit; a program
//! usually sets the limit to the free memory of the machine.
//!
//! ```
//! use opticoll_base::interrupt::{Stopped, interruptible};
//! use opticoll_base::memory::{self, MemoryLimitExceeded};
//!
//! memory::set_limit(1 << 20);
//! let forecast = || memory::check_forecast("a table of prices", 1 << 30);
//! let stopped = interruptible(forecast).unwrap_err();
//! assert_eq!(
//!     stopped.to_string(),
//!     "a table of prices needs about 1.07 GB of memory, and the limit is 1.05 MB"
//! );
//! let Stopped::MemoryLimitExceeded(MemoryLimitExceeded { bytes, .. }) = stopped else { panic!() };
//! assert_eq!(bytes, 1 << 30);
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum forecast in bytes; 2^64 - 1 means no limit.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Memory forecast above the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} needs about {} of memory, and the limit is {}", Amount(*.bytes), Amount(*.limit))]
pub struct MemoryLimitExceeded {
    /// Name of the data that would have been allocated, such as `a table of prices`.
    pub what: String,
    /// Forecast in bytes.
    pub bytes: u64,
    /// Limit in bytes.
    pub limit: u64,
}

/// Sets the limit in bytes for all work of the process.
pub fn set_limit(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Returns the limit in bytes; 2^64 - 1 means no limit.
pub fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Stops the work if `bytes`, the forecast for the data named `what`, exceeds the memory limit.
#[inline]
pub fn check_forecast(what: &str, bytes: u64) {
    let limit = limit();
    if bytes > limit {
        let what = what.to_owned();
        resume_unwind(Box::new(MemoryLimitExceeded { what, bytes, limit }));
    }
}

/// Runs `work` for a caller that has an alternative if `work` needs too much memory.
///
/// # Errors
/// `work` made a forecast above the memory limit.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, MemoryLimitExceeded> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.map_err(|payload| match payload.downcast::<MemoryLimitExceeded>() {
        Ok(exceeded) => *exceeded,
        Err(other) => resume_unwind(other),
    })
}

/// Stops the work, as [`check_forecast`] does, with an error that already exists.
pub fn refuse(exceeded: MemoryLimitExceeded) -> ! {
    resume_unwind(Box::new(exceeded))
}

/// Number of bytes, which is printed with three digits and a decimal unit.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
        let power = (self.0.max(1).ilog10() / 3) as usize;
        let scale = 1000u64.pow(power as u32);
        let rounded = (u128::from(self.0) * 100 + u128::from(scale / 2)) / u128::from(scale);
        let (whole, hundredths) = (rounded / 100, rounded % 100);
        match (power, whole) {
            (0, _) | (_, 100..) => write!(formatter, "{whole} {}", UNITS[power]),
            _ => write!(formatter, "{whole}.{hundredths:02} {}", UNITS[power]),
        }
    }
}
