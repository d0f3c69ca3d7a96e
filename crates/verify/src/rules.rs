//! Rules of a family, as the verifier calls them.

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Report, WrongLight};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// Rules of a family whose plans place circuits in slots.
pub(super) struct Rules {
    /// Name of the family.
    pub(super) family: &'static str,
    /// Function that finds light whose numbers do not exist.
    pub(super) wrong_light: fn(&Fabric) -> WrongLight<'_>,
    /// Function that checks all circuits of a plan, slot by slot.
    pub(super) check: fn(&Plan, &Admitted, &AdmittedOrder, &mut Report),
    /// Memory of the check for each transfer, in bytes.
    pub(super) bytes_per_transfer: u64,
}
