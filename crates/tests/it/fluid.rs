//! The fluid simulator against SimGrid, against theory, and against a slow reference simulator.

#[allow(unreachable_pub)]
pub(crate) mod networks;
mod plans;
mod properties;
mod reference;
mod steps;
mod theory;
