//! Instants and rates as floating-point numbers: picoseconds, bytes per picosecond.

use super::FluidError;
use opticoll_base::units::{Rate, Time, UnitError};

/// The instant as the interface counts it: the nearest whole picosecond.
pub(super) fn to_time(instant: f64) -> Result<Time, FluidError> {
    // 2^64 itself is the first number that does not fit.
    if instant >= u64::MAX as f64 {
        return Err(FluidError::Unit(UnitError::Overflow {
            what: "the time of the simulation".into(),
            smallest: "picoseconds",
        }));
    }
    Ok(Time::from_ps(instant.round() as u64))
}

/// Bytes per picosecond.
pub(super) fn bytes_per_ps(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 8e12
}
