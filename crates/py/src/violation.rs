//! `Violation`: what the verifier found.

use opticoll::verify;
use pyo3::prelude::*;

/// One rule broken in one place.
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
    #[getter]
    fn kind(&self) -> &'static str {
        self.violation.kind.name()
    }

    #[getter]
    fn transfers(&self) -> Vec<usize> {
        self.violation.transfers.clone()
    }

    #[getter]
    fn slot(&self) -> Option<u32> {
        self.violation.slot
    }

    #[getter]
    fn rank(&self) -> Option<u32> {
        self.violation.rank
    }

    #[getter]
    fn chunk(&self) -> Option<u32> {
        self.violation.chunk
    }

    #[getter]
    fn link(&self) -> Option<(u32, &'static str, u8)> {
        self.violation
            .link
            .map(|link| (link.rank, link.direction.name(), link.fibre))
    }

    #[getter]
    fn wavelength(&self) -> Option<u16> {
        self.violation.wavelength
    }

    #[getter]
    fn sentence(&self) -> &str {
        &self.violation.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Violation {}>", self.violation)
    }
}
