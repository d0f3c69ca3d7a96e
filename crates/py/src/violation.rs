//! The Python class `Violation`: a finding of the verifier.

use opticoll::verify;
use pyo3::prelude::*;

/// A rule that a plan breaks in one place: an entry of the list that `Plan.verify` returns.
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
    /// The name of the rule, such as `missing` or `link_conflict`.
    kind: &'static str = self.violation.kind.name();
    /// The indices of the transfers at fault, as a list, which may be empty.
    transfers: Vec<usize> = self.violation.transfers.clone();
    /// The slot, or None.
    slot: Option<u32> = self.violation.slot;
    /// The rank, or None.
    rank: Option<u32> = self.violation.rank;
    /// The chunk, or None.
    chunk: Option<u32> = self.violation.chunk;
    /// The link of a ring as (sending rank, direction `cw` or `ccw`, fibre), or None.
    link: Option<(u32, &'static str, u8)> =
        self.violation
            .link
            .map(|link| (link.rank, link.direction.name(), link.fibre));
    /// The wavelength, or None.
    wavelength: Option<u16> = self.violation.wavelength;
    /// The violation, in one sentence.
    sentence: &str = &self.violation.sentence;
}
