//! Placement on the passive star coupler.

pub mod placement; // from a schedule to a plan
