//! `Collective`.

use opticoll::collective::{self, CollectiveKind, Holders};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;

/// A collective operation: which rank has which chunk at the start, and which rank needs it at the end.
///
/// A **chunk** is the unit that transfers move. The collective has `chunks` of them: per rank or per pair of ranks a block,
/// or parts of one vector, each cut into `pieces`.
///
/// Parameters
/// ----------
/// kind : str
///     The name, such as `all_gather` (see `opticoll list collectives`).
/// ranks : int
///     Number of ranks.
/// root : int
///     The root rank of broadcast, reduce, gather and scatter; 0 for the others.
/// pieces : int
///     Number of chunks into which each block is cut.
///
/// Raises
/// ------
/// CollectiveError
///     The name is unknown, or a number is out of range.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> collective = opticoll.Collective("reduce", 8, root=3, pieces=2)
/// >>> collective
/// Collective('reduce', 8, root=3, pieces=2)
/// >>> collective.kind, collective.ranks, collective.root, collective.pieces
/// ('reduce', 8, 3, 2)
/// >>> collective.chunks, collective.combines, collective.size_convention
/// (2, True, 'bytes of the vector')
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
                "chunk {chunk} is none of 0 to {}",
                chunks - 1
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

    /// The name of the collective, such as `all_gather`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.collective.kind().name()
    }

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.collective.ranks()
    }

    /// The root rank; 0 for collectives without a root.
    #[getter]
    fn root(&self) -> u32 {
        self.collective.root()
    }

    /// The number of chunks into which each block is cut.
    #[getter]
    fn pieces(&self) -> u32 {
        self.collective.pieces()
    }

    /// The number of chunks.
    #[getter]
    fn chunks(&self) -> u32 {
        self.collective.chunks()
    }

    /// Whether the collective reduces chunks, as reduce, reduce_scatter and all_reduce do.
    #[getter]
    fn combines(&self) -> bool {
        self.collective.combines()
    }

    /// What the size of this collective counts, in words.
    #[getter]
    fn size_convention(&self) -> &'static str {
        self.collective.kind().size_convention()
    }

    /// The rank that has a chunk at the start; None for all ranks.
    ///
    /// Parameters
    /// ----------
    /// chunk : int
    ///     The chunk, from 0 to `chunks` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     There is no such chunk.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Collective("scatter", 8, root=2).before(5)
    /// 2
    fn before(&self, chunk: u32) -> PyResult<Option<u32>> {
        self.holders(chunk, self.collective.before(chunk))
    }

    /// The rank that needs a chunk at the end; None for all ranks.
    ///
    /// Parameters
    /// ----------
    /// chunk : int
    ///     The chunk, from 0 to `chunks` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     There is no such chunk.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Collective("scatter", 8, root=2).after(5)
    /// 5
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
