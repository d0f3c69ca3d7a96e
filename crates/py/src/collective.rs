//! The Python classes `Collective` and `Demand`.

use std::sync::Arc;

use opticoll::collective;
use opticoll::collective::demand::generate;
use opticoll::collective::{CollectiveError, CollectiveKind, DemandMatrix, Holders};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::error::OrRaise;

/// The bytes that each rank sends to each other rank in an all_to_all.
///
/// If the collective has another size than `largest`, all amounts are scaled in proportion.
///
/// Parameters
/// ----------
/// amounts : list of list of int
///     One row for each source, with the bytes for each destination.
///
/// Raises
/// ------
/// CollectiveError
///     The rows do not form a square matrix, or all amounts are zero.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> demand = opticoll.Demand([[0, 300, 100], [0, 0, 200], [50, 0, 0]])
/// >>> demand
/// <Demand of 3 ranks, 400 bytes of one rank at most>
/// >>> demand.ranks, demand.largest, demand.amounts[0], demand.even_block
/// (3, 400, [0, 300, 100], None)
#[pyclass(frozen, eq, hash, module = "opticoll._core", from_py_object)]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct Demand {
    matrix: Arc<DemandMatrix>,
}

impl Demand {
    /// Creates a demand if an all_to_all can have it.
    fn of(demand: DemandMatrix) -> Result<Demand, CollectiveError> {
        collective::Collective::new(CollectiveKind::AllToAll, demand.ranks())?;
        Ok(Demand {
            matrix: Arc::new(demand),
        })
    }
}

#[pymethods]
impl Demand {
    #[new]
    fn new(amounts: Vec<Vec<u64>>) -> PyResult<Demand> {
        let ranks = amounts.len();
        if let Some((place, row)) = (0usize..).zip(&amounts).find(|(_, row)| row.len() != ranks) {
            return Err(crate::error::CollectiveError::new_err(format!(
                "row {place} of the demand has {} amounts: there are {ranks} rows, and as many in \
                    each",
                row.len()
            )));
        }
        let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
        let demand = DemandMatrix::from_matrix(ranks, &amounts.concat());
        demand
            .map_err(CollectiveError::from)
            .and_then(Demand::of)
            .or_raise()
    }

    /// The bytes from each source to each destination, one row per source.
    #[getter]
    pub(crate) fn amounts(&self) -> Vec<Vec<u64>> {
        let rows = self.matrix.matrix();
        rows.chunks(self.ranks().max(1) as usize)
            .map(<[u64]>::to_vec)
            .collect()
    }

    fn __repr__(&self) -> String {
        let (ranks, largest) = (self.ranks(), self.largest());
        format!("<Demand of {ranks} ranks, {largest} bytes of one rank at most>")
    }
}

getters! { Demand |self|
    /// The number of ranks.
    ranks: u32 = self.matrix.ranks();
    /// The largest number of bytes that a rank sends, including bytes to itself.
    ///
    /// For a collective of this size, the amounts are not scaled.
    largest: u64 = self.matrix.largest();
    /// The bytes for each pair of different ranks if all pairs have the same amount; None if blocks
    /// differ.
    even_block: Option<u64> = self.matrix.even_block();
}

/// Returns the demand of a generator such as `zipf:exponent=1.2,seed=0` for `ranks` ranks.
#[pyfunction]
pub(crate) fn generated_demand(spec: &str, ranks: u32) -> PyResult<Demand> {
    let spec = spec.parse().or_raise()?;
    let demand = generate::generate(&spec, ranks).map_err(CollectiveError::from);
    demand.and_then(Demand::of).or_raise()
}

/// Creates the collective that a caller requests by name.
pub(crate) fn requested_collective(
    kind: &str,
    ranks: u32,
    root: u32,
    demand: Option<&Demand>,
) -> PyResult<collective::Collective> {
    let kind: CollectiveKind = kind.parse().or_raise()?;
    let collective = collective::Collective::new(kind, ranks)
        .and_then(|collective| collective.with_root(root))
        .or_raise()?;
    match demand {
        Some(demand) => collective
            .with_demand(DemandMatrix::clone(&demand.matrix))
            .or_raise(),
        None => Ok(collective),
    }
}

/// A collective operation, which determines the rank that has each chunk at the start, and the rank
/// that needs it at the end.
///
/// A **chunk** is the unit that transfers move. The collective has one block per rank, one block
/// per pair of ranks, or a single vector. Each block (or the vector) is cut into `pieces` chunks.
///
/// Parameters
/// ----------
/// kind : str
///     The name, such as `all_gather` (see `opticoll list collectives`).
/// ranks : int
///     Number of ranks.
/// root : int
///     The root rank of broadcast, reduce, gather and scatter; 0 for other collectives.
/// pieces : int
///     Number of chunks into which each block is cut.
/// demand : Demand, optional
///     The bytes of each block of an all_to_all (default: equal blocks).
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
/// >>> demand = opticoll.Demand([[0, 3], [1, 0]])
/// >>> opticoll.Collective("all_to_all", 2, demand=demand).demand.amounts
/// [[0, 3], [1, 0]]
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
    #[pyo3(signature = (kind, ranks, *, root = 0, pieces = 1, demand = None))]
    fn new(
        kind: &str,
        ranks: u32,
        root: u32,
        pieces: u32,
        demand: Option<Demand>,
    ) -> PyResult<Collective> {
        let collective = requested_collective(kind, ranks, root, demand.as_ref())?;
        let collective = collective.with_pieces(pieces).or_raise()?;
        Ok(Collective { collective })
    }

    /// The bytes of each block of an all_to_all; None if all blocks, including a rank's own, are
    /// equal.
    #[getter]
    pub(crate) fn demand(&self) -> Option<Demand> {
        let whole = self.collective.demand()?.whole_blocks();
        Demand::of(whole).ok()
    }

    /// Returns the rank that has a chunk at the start, or None for all ranks.
    ///
    /// Parameters
    /// ----------
    /// chunk : int
    ///     The chunk, from 0 to `chunks` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The chunk does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Collective("scatter", 8, root=2).before(5)
    /// 2
    fn before(&self, chunk: u32) -> PyResult<Option<u32>> {
        self.holders(chunk, self.collective.before(chunk))
    }

    /// Returns the rank that needs a chunk at the end, or None for all ranks.
    ///
    /// Parameters
    /// ----------
    /// chunk : int
    ///     The chunk, from 0 to `chunks` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The chunk does not exist.
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
        let demand = self
            .demand()
            .map(|demand| format!(", demand={}", demand.__repr__()));
        format!(
            "Collective('{kind}', {ranks}, root={}, pieces={}{})",
            self.root(),
            self.pieces(),
            demand.unwrap_or_default()
        )
    }
}

getters! { Collective |self|
    /// The name of the collective, such as `all_gather`.
    pub(crate) kind: &'static str = self.collective.kind().name();
    /// The number of ranks.
    pub(crate) ranks: u32 = self.collective.ranks();
    /// The root rank; 0 for collectives without a root.
    pub(crate) root: u32 = self.collective.root();
    /// The number of chunks into which each block is cut.
    pub(crate) pieces: u32 = self.collective.pieces();
    /// The number of chunks.
    chunks: u32 = self.collective.chunks();
    /// True if the collective reduces chunks, as reduce, reduce_scatter and all_reduce do.
    combines: bool = self.collective.combines();
    /// The quantity that the size of this collective counts, in words.
    size_convention: &'static str = self.collective.kind().size_convention();
}
