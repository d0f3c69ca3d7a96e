//! Instants and rates as floating-point numbers, in picoseconds and bytes per picosecond.

use super::FluidError;
use opticoll_base::units::{Rate, Time, UnitError};

/// Rounds an instant (ps) to the nearest picosecond.
pub(super) fn to_time(instant: f64) -> Result<Time, FluidError> {
    // 2^64 is the first number that does not fit.
    if instant >= u64::MAX as f64 {
        return Err(FluidError::Unit(UnitError::Overflow {
            what: "the time of the simulation".into(),
            smallest: "picoseconds",
        }));
    }
    Ok(Time::from_ps(instant.round() as u64))
}

pub(super) fn bytes_per_ps(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 8e12
}
