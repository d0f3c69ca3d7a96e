//! The passive star coupler: a wavelength is sent by one rank at a time and heard by all that tune to it.

pub mod placement; // from a schedule to a plan
