//! What the rules of a family are to the verifier.

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Report, WrongLight};
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// The rules of a family whose plans place circuits in slots.
pub(super) struct Rules {
    /// The family.
    pub(super) family: &'static str,
    /// What says of light by itself which numbers do not exist.
    pub(super) wrong_light: fn(&Fabric) -> WrongLight<'_>,
    /// Checks all circuits of a plan, slot by slot.
    pub(super) check: fn(&Plan, &Admitted, &AdmittedOrder, &mut Report),
    /// Bytes that checking takes for each transfer.
    pub(super) bytes_per_transfer: u64,
}
