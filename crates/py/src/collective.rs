//! `Collective`.

use opticoll::collective::{self, CollectiveKind, Holders};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;

/// What must be true at the end, chunk by chunk.
#[pyclass(frozen, eq, module = "opticoll._core", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Collective {
    pub(crate) collective: collective::Collective,
}

impl Collective {
    fn holders(&self, chunk: u32, holders: Holders) -> PyResult<Option<u32>> {
        let chunks = self.collective.chunks();
        if chunk >= chunks {
            return Err(PyIndexError::new_err(format!(
                "chunk {chunk} is none of 0..{chunks}"
            )));
        }
        Ok(match holders {
            Holders::One(rank) => Some(rank),
            Holders::All => None,
        })
    }
}

#[pymethods]
impl Collective {
    #[new]
    #[pyo3(signature = (kind, ranks, *, root = 0, pieces = 1))]
    fn new(kind: &str, ranks: u32, root: u32, pieces: u32) -> PyResult<Collective> {
        let kind: CollectiveKind = kind.parse().map_err(IntoPyErr::into_py_err)?;
        let collective = collective::Collective::new(kind, ranks)
            .and_then(|collective| collective.with_root(root))
            .and_then(|collective| collective.with_pieces(pieces))
            .map_err(IntoPyErr::into_py_err)?;
        Ok(Collective { collective })
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.collective.kind().name()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.collective.ranks()
    }

    #[getter]
    fn root(&self) -> u32 {
        self.collective.root()
    }

    #[getter]
    fn pieces(&self) -> u32 {
        self.collective.pieces()
    }

    #[getter]
    fn chunks(&self) -> u32 {
        self.collective.chunks()
    }

    #[getter]
    fn combines(&self) -> bool {
        self.collective.combines()
    }

    #[getter]
    fn size_convention(&self) -> &'static str {
        self.collective.kind().size_convention()
    }

    fn before(&self, chunk: u32) -> PyResult<Option<u32>> {
        self.holders(chunk, self.collective.before(chunk))
    }

    fn after(&self, chunk: u32) -> PyResult<Option<u32>> {
        self.holders(chunk, self.collective.after(chunk))
    }

    fn __repr__(&self) -> String {
        let (kind, ranks) = (self.kind(), self.ranks());
        format!(
            "Collective('{kind}', {ranks}, root={}, pieces={})",
            self.root(),
            self.pieces()
        )
    }
}
