//! The Python class `Violation`: a finding of the verifier.

use opticoll::verify;
use pyo3::prelude::*;

/// A rule that a plan violates at one place; `Plan.verify` returns a list of violations.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "direct")
/// >>> text = plan.to_text().replace("0>1", "0>2", 1)
/// >>> violation, *more = opticoll.Plan.from_text(text).verify()
/// >>> violation.kind, violation.transfers, violation.slot, violation.rank, violation.chunk
/// ('duplicate', [2, 0], 1, 2, 0)
/// >>> violation.link, violation.wavelength
/// (None, None)
/// >>> for clause in violation.sentence.split(", "):
/// ...     print(clause)
/// slot 1: transfer 2 (rank 0 to 2) brings chunk 0 to rank 2
/// which gets it in slot 0 by transfer 0 (rank 0 to 2)
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Violation {
    violation: verify::Violation,
}

impl Violation {
    pub(crate) fn from_core(violation: verify::Violation) -> Violation {
        Violation { violation }
    }
}

#[pymethods]
impl Violation {
    fn __repr__(&self) -> String {
        format!("<Violation {}>", self.violation)
    }
}

getters! { Violation |self|
    /// The name of the rule, such as `missing` or `collision`.
    kind: &'static str = self.violation.kind.name();
    /// The indices of the transfers that violate the rule, as a list, which may be empty.
    transfers: Vec<usize> = self.violation.transfers.clone();
    /// The slot in which the plan violates the rule, or None if the rule concerns no slot.
    slot: Option<u32> = self.violation.slot;
    /// The rank at which the plan violates the rule, or None if the rule concerns no rank.
    rank: Option<u32> = self.violation.rank;
    /// The chunk for which the plan violates the rule, or None if the rule concerns no chunk.
    chunk: Option<u32> = self.violation.chunk;
    /// The ring's link concerned as (sending rank, direction `cw` or `ccw`, fibre), or None.
    link: Option<(u32, &'static str, u8)> =
        self.violation
            .link
            .map(|link| (link.rank, link.direction.name(), link.fibre));
    /// The wavelength concerned, or None if the rule concerns no wavelength.
    wavelength: Option<u16> = self.violation.wavelength;
    /// A sentence that describes the violation.
    sentence: &str = &self.violation.sentence;
}
