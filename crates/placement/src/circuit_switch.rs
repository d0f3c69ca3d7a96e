//! Placement on the circuit switch: ranks whose ports are joined by an optical circuit switch.

pub mod placement; // from a schedule to a plan
pub mod routes; // over which ranks messages go
