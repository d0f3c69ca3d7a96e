//! Placement on the switch grid of the ODDL paper: tunable circuits through wavelength-selective
//! switches.

pub mod placement;
pub mod route;
pub mod switches;
