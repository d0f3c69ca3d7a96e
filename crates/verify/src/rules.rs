//! Rules of a fabric family, in the form in which the verifier calls them.

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Report, WrongLight};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// Rules of a fabric family whose plans place circuits in slots.
pub(super) struct Rules {
    pub(super) family: &'static str,
    /// Function that finds light with numbers that do not exist, such as an unknown wavelength.
    pub(super) wrong_light: fn(&Fabric) -> WrongLight<'_>,
    /// Function that checks all circuits of a plan, slot by slot.
    pub(super) check: fn(&Plan, &Admitted, &AdmittedOrder, &mut Report),
    /// Memory that the check needs for each transfer, in bytes.
    pub(super) bytes_per_transfer: u64,
}
