//! The fluid simulator: against another simulator, against theory, and against a slow one.

#[allow(unreachable_pub)]
mod networks;
mod plans;
mod properties;
mod reference;
mod steps;
mod theory;
