//! Demands of collectives, chunk by chunk: which ranks have a chunk before and after the
//! collective, and whether contributions are combined.
//!
//! | collective | chunks | before | after | combines |
//! |---|---|---|---|---|
//! | `all_gather` | one block per rank | its rank | all | no |
//! | `reduce_scatter` | one block per rank | all contribute | its rank | yes |
//! | `all_reduce` | the vector | all contribute | all | yes |
//! | `broadcast` | the vector | the root | all | no |
//! | `reduce` | the vector | all contribute | the root | yes |
//! | `gather` | one block per rank | its rank | the root | no |
//! | `scatter` | one block per rank | the root | its rank | no |
//! | `all_to_all` | one block per ordered pair | its source | its destination | no |
//! | `barrier` | a signal of no bytes | all contribute | all | yes, as often as you like |
//!
//! A barrier is an all_reduce of no data: each rank must hear from every rank, directly or through
//! other ranks. A rank may hear from another rank twice, so that contributions of a barrier may
//! overlap, for example in a dissemination among N ranks if N is not a power of two. In all other
//! collectives, each contribution is combined exactly once.
//!
//! Each block, or the vector, may be cut into `pieces` chunks with consecutive numbers: chunk =
//! block * pieces + piece. If the size is not a multiple of the number of pieces, pieces differ by
//! at most one byte.
//!
//! The blocks of an all_to_all may differ in size: a [`DemandMatrix`] has their bytes and chunks.
//!
//! ```
//! use opticoll_plan::collective::{Collective, CollectiveKind, Holders};
//! let gather = Collective::new(CollectiveKind::AllGather, 16)?;
//! assert_eq!(gather.chunks(), 16);
//! assert_eq!(gather.before(3), Holders::One(3));
//! assert_eq!(gather.after(3), Holders::All);
//! # Ok::<(), opticoll_plan::collective::CollectiveError>(())
//! ```

pub mod demand;

use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

pub use demand::{DemandError, DemandMatrix};
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_base::units::{Bytes, UnitError, gcd};

/// Reason why a collective was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// No collective has this name.
    #[error("unknown collective `{}`{hint}", terminal_text(name))]
    Unknown {
        /// Name that was given.
        name: String,
        /// Most similar collective name, or all collective names.
        hint: String,
    },
    /// The number of ranks is 0.
    #[error("a collective needs at least one rank, got {ranks}")]
    NoRanks {
        /// Number of ranks that was given.
        ranks: u32,
    },
    /// The root is not a rank of the collective.
    #[error("root {root} does not exist: ranks are 0 to {}", ranks.saturating_sub(1))]
    Root {
        /// Root that was given.
        root: u32,
        /// Number of ranks of the collective.
        ranks: u32,
    },
    /// The number of pieces is 0.
    #[error("a block is cut into 1 piece or more, not 0")]
    NoPieces,
    /// The number of chunks exceeds 32 bits.
    #[error("{kind} on {ranks} ranks would have {chunks} chunks: the maximum is {MAX_CHUNKS}")]
    TooManyChunks {
        /// Kind of the collective.
        kind: CollectiveKind,
        /// Number of ranks of the collective.
        ranks: u32,
        /// Number of chunks that the collective would have.
        chunks: u128,
    },
    /// The demand and the collective have different numbers of ranks.
    #[error("the demand is among {demand} ranks, the collective among {ranks}")]
    DemandRanks {
        /// Number of ranks of the demand.
        demand: u32,
        /// Number of ranks of the collective.
        ranks: u32,
    },
    /// The collective is not an all_to_all, and therefore cannot have a demand.
    #[error("only all_to_all takes a demand, not {kind}: leave the demand out")]
    NoDemand {
        /// Kind of the collective.
        kind: CollectiveKind,
    },
    /// A collective with a demand was to be cut into pieces, but its demand defines its chunks.
    #[error("an all_to_all with a demand is not cut into {pieces} pieces: ask for 1")]
    CutDemand {
        /// Number of pieces that was given.
        pieces: u32,
    },
    /// The demand was rejected.
    #[error(transparent)]
    Demand(#[from] DemandError),
}

opticoll_base::named_enum! {
    /// Kinds of collectives, by their MPI names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CollectiveKind {
        /// Every rank ends with the blocks of all ranks.
        AllGather = "all_gather",
        /// Rank i ends with the sum of block i of all ranks.
        ReduceScatter = "reduce_scatter",
        /// Every rank ends with the sum of the vectors of all ranks.
        AllReduce = "all_reduce",
        /// Every rank ends with the vector of the root.
        Broadcast = "broadcast",
        /// The root ends with the sum of the vectors of all ranks.
        Reduce = "reduce",
        /// The root ends with the blocks of all ranks.
        Gather = "gather",
        /// Rank i ends with block i of the root.
        Scatter = "scatter",
        /// Rank j ends with block j of every rank.
        AllToAll = "all_to_all",
        /// No rank leaves the barrier before all ranks have entered it.
        Barrier = "barrier",
    }
}

impl CollectiveKind {
    /// Returns, in words, the bytes that the size of this collective counts.
    pub const fn size_convention(self) -> &'static str {
        match self {
            CollectiveKind::AllGather | CollectiveKind::Gather | CollectiveKind::Scatter => {
                "bytes of one rank's block"
            }
            CollectiveKind::AllReduce | CollectiveKind::Reduce | CollectiveKind::Broadcast => {
                "bytes of the vector"
            }
            CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => {
                "bytes of one rank's whole input"
            }
            CollectiveKind::Barrier => "not applicable: a barrier moves no bytes",
        }
    }
}

impl FromStr for CollectiveKind {
    type Err = CollectiveError;

    /// Parses a name such as `all_gather`, `all-gather` or `allgather`.
    fn from_str(name: &str) -> Result<CollectiveKind, CollectiveError> {
        CollectiveKind::ALL
            .into_iter()
            .find(|kind| same_name(kind.name(), name))
            .ok_or_else(|| CollectiveError::Unknown {
                name: name.into(),
                hint: suggest(name, CollectiveKind::ALL.map(CollectiveKind::name)),
            })
    }
}

/// Maximum number of chunks, because the index of a chunk has 32 bits.
const MAX_CHUNKS: u128 = u32::MAX as u128;

/// Ranks that have (or contribute to) a chunk before a collective, or must have it afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holders {
    /// A single rank.
    One(u32),
    /// Every rank.
    All,
}

/// Kind of collective with its number of ranks, its root, the number of pieces per block, and the
/// demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Collective {
    kind: CollectiveKind,
    ranks: u32,
    root: u32,
    pieces: u32,
    demand: Option<demand::StoredDemand>,
}

impl Collective {
    /// Returns a collective on `ranks` ranks with root 0 and one piece per block.
    pub fn new(kind: CollectiveKind, ranks: u32) -> Result<Collective, CollectiveError> {
        if ranks == 0 {
            return Err(CollectiveError::NoRanks { ranks });
        }
        Collective {
            kind,
            ranks,
            root: 0,
            pieces: 1,
            demand: None,
        }
        .with_pieces(1)
    }

    /// Returns the collective with another root.
    pub fn with_root(self, root: u32) -> Result<Collective, CollectiveError> {
        if root >= self.ranks {
            return Err(CollectiveError::Root {
                root,
                ranks: self.ranks,
            });
        }
        Ok(Collective { root, ..self })
    }

    /// Returns the collective with each block, or the vector, cut into `pieces` chunks.
    pub fn with_pieces(self, pieces: u32) -> Result<Collective, CollectiveError> {
        if self.demand.is_some() && pieces != 1 {
            return Err(CollectiveError::CutDemand { pieces });
        }
        match u128::from(self.blocks()) * u128::from(pieces) {
            0 => Err(CollectiveError::NoPieces),
            1..=MAX_CHUNKS => Ok(Collective { pieces, ..self }),
            chunks => Err(CollectiveError::TooManyChunks {
                kind: self.kind,
                ranks: self.ranks,
                chunks,
            }),
        }
    }

    /// Returns the all_to_all with the blocks of `demand`. If all blocks of `demand` are equal, the
    /// result has no demand, because the meaning is the same.
    pub fn with_demand(self, demand: DemandMatrix) -> Result<Collective, CollectiveError> {
        if self.kind != CollectiveKind::AllToAll {
            return Err(CollectiveError::NoDemand { kind: self.kind });
        }
        if demand.ranks() != self.ranks {
            let demand = demand.ranks();
            let ranks = self.ranks;
            return Err(CollectiveError::DemandRanks { demand, ranks });
        }
        if self.pieces != 1 {
            let pieces = self.pieces;
            return Err(CollectiveError::CutDemand { pieces });
        }
        if let Some(pieces) = demand.uniform_pieces() {
            return self.without_demand().with_pieces(pieces);
        }
        Ok(Collective {
            demand: Some(demand::StoredDemand::new(demand)),
            ..self
        })
    }

    /// Returns the collective with equal blocks.
    pub fn without_demand(self) -> Collective {
        Collective {
            demand: None,
            ..self
        }
    }

    /// Returns the demand of an all_to_all whose blocks differ; `None` if all blocks are equal.
    pub fn demand(&self) -> Option<&'static DemandMatrix> {
        self.demand.map(demand::StoredDemand::get)
    }

    /// Returns (source, destination, bytes) of each block that has bytes, for a collective of size
    /// `size`. Empty without a demand.
    pub fn demanded(&self, size: Bytes) -> impl Iterator<Item = (u32, u32, u128)> + use<> {
        let demand = self.demand();
        let pairs = demand.into_iter().flat_map(DemandMatrix::pairs);
        pairs
            .zip(demand.into_iter().cycle())
            .map(move |((source, destination, chunks), demand)| {
                let edge = |chunk| demand.bytes_before(size, chunk);
                (source, destination, edge(chunks.end) - edge(chunks.start))
            })
    }

    /// Returns the chunks of the blocks `blocks`.
    pub fn chunks_of_blocks(&self, blocks: Range<u32>) -> Range<u32> {
        match self.demand() {
            Some(demand) => demand.chunks_of(blocks),
            None => blocks.start * self.pieces..blocks.end * self.pieces,
        }
    }

    fn block(&self, chunk: u32) -> u32 {
        match self.demand() {
            Some(demand) => demand.block(chunk),
            None => chunk / self.pieces,
        }
    }

    /// Returns the kind of collective.
    pub fn kind(&self) -> CollectiveKind {
        self.kind
    }

    /// Returns the number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the root; 0 if the collective has no root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Returns the number of chunks of each block, or of the vector.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Returns the number of chunks. Chunks are numbered from 0.
    pub fn chunks(&self) -> u32 {
        match self.demand() {
            Some(demand) => demand.len(),
            None => (self.blocks() * u64::from(self.pieces)) as u32,
        }
    }

    /// Returns whether ranks combine contributions. If not, chunks are only copied. Each
    /// contribution is combined exactly once, except in a barrier ([`Collective::overlaps`]).
    pub fn combines(&self) -> bool {
        matches!(
            self.kind,
            CollectiveKind::ReduceScatter
                | CollectiveKind::AllReduce
                | CollectiveKind::Reduce
                | CollectiveKind::Barrier
        )
    }

    /// Returns whether a contribution may be added to a chunk that contains it, as in a barrier.
    pub fn overlaps(&self) -> bool {
        self.kind == CollectiveKind::Barrier
    }

    /// Returns the ranks that have `chunk`, or contribute to it, before the collective.
    pub fn before(&self, chunk: u32) -> Holders {
        let block = self.block(chunk);
        match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather => Holders::One(block),
            CollectiveKind::AllToAll => Holders::One(block / self.ranks),
            CollectiveKind::Broadcast | CollectiveKind::Scatter => Holders::One(self.root),
            _ => Holders::All,
        }
    }

    /// Returns the ranks that must have `chunk`, with every contribution, after the collective.
    pub fn after(&self, chunk: u32) -> Holders {
        let block = self.block(chunk);
        match self.kind {
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => Holders::One(block),
            CollectiveKind::AllToAll => Holders::One(block % self.ranks),
            CollectiveKind::Reduce | CollectiveKind::Gather => Holders::One(self.root),
            _ => Holders::All,
        }
    }

    /// Returns the bytes of `chunk` in a collective of size `size` (see
    /// [`CollectiveKind::size_convention`]). Without a demand, the bytes of two chunks differ by at
    /// most one.
    pub fn chunk_bytes(&self, size: Bytes, chunk: u32) -> Bytes {
        if let Some(demand) = self.demand() {
            let edge = |chunk| demand.bytes_before(size, chunk);
            return Bytes::new((edge(chunk + 1) - edge(chunk)) as u64);
        }
        let (parts, part) = (self.parts(), u64::from(chunk) % self.parts());
        let size = self.payload(size);
        let edge = |index: u64| u128::from(size.get()) * u128::from(index) / u128::from(parts);
        Bytes::new((edge(part + 1) - edge(part)) as u64)
    }

    /// Returns the bytes of the smallest chunk in a collective of size `size`.
    pub fn min_chunk_bytes(&self, size: Bytes) -> Bytes {
        match self.demand() {
            Some(demand) => demand.least_bytes(size),
            None => Bytes::new(self.payload(size).get() / self.parts()),
        }
    }

    /// Returns the bytes of every chunk if all chunks have the same number of bytes; otherwise
    /// `None`.
    pub fn uniform_chunk_bytes(&self, size: Bytes) -> Option<Bytes> {
        if self.demand.is_some() {
            return None;
        }
        let (parts, size) = (self.parts(), self.payload(size));
        (size.get() % parts == 0).then(|| Bytes::new(size.get() / parts))
    }

    /// Returns the bytes of the `count` chunks from `chunk` on, in a collective of size `size`.
    /// Fails if the number of bytes exceeds 64 bits.
    pub fn range_bytes(&self, size: Bytes, chunk: u32, count: u32) -> Result<Bytes, UnitError> {
        let parts = u128::from(self.parts());
        let size = self.payload(size);
        let demand = self.demand();
        // Bytes of all chunks before `chunk`. `parts` chunks together have the bytes of the size.
        let before = |chunk: u128| {
            if let Some(demand) = demand {
                return demand.bytes_before(size, chunk as u32);
            }
            let size = u128::from(size.get());
            chunk / parts * size + size * (chunk % parts) / parts
        };
        let first = u128::from(chunk);
        let bytes = before(first + u128::from(count)) - before(first);
        u64::try_from(bytes)
            .map(Bytes::new)
            .map_err(|_| UnitError::Overflow {
                what: format!("{count} chunks of a collective of {size}"),
                smallest: "bytes",
            })
    }

    /// Returns the maximum number of bytes of `count` consecutive chunks. The range may start any
    /// multiple of `step` chunks after `chunk`, modulo the number of chunks.
    ///
    /// With P parts and size S, `count` chunks have floor(S count / P) bytes, and one more if (S
    /// chunk mod P) + (S count mod P) >= P. Over all starts, (S chunk mod P) takes every value that
    /// is congruent to S chunk modulo g = gcd(S step, P). The greatest of these values is P - g +
    /// (S chunk mod g). Fails if the number of bytes exceeds 64 bits.
    pub fn max_range_bytes(
        &self,
        size: Bytes,
        chunk: u32,
        count: u32,
        step: u32,
    ) -> Result<Bytes, UnitError> {
        if self.demand.is_some() {
            return self.max_demanded_bytes(size, (chunk, count), step);
        }
        let parts = u128::from(self.parts());
        let scaled =
            |chunks: u32| u128::from(self.payload(size).get()) * u128::from(chunks) % parts;
        let stride = gcd(scaled(step), parts);
        let greatest = parts - stride + scaled(chunk) % stride;
        let carry_at_start = (scaled(chunk) + scaled(count)) / parts;
        let extra = (greatest + scaled(count)) / parts - carry_at_start;
        self.range_bytes(size, chunk, count)?
            .plus(Bytes::new(extra as u64))
    }

    /// Returns [`Collective::max_range_bytes`] for a collective with a demand, by examining each
    /// range. A range that would continue beyond the last chunk ends at the last chunk.
    fn max_demanded_bytes(
        &self,
        size: Bytes,
        (chunk, count): (u32, u32),
        step: u32,
    ) -> Result<Bytes, UnitError> {
        let chunks = u64::from(self.chunks());
        let stride = gcd(step.into(), chunks.into()) as u64;
        let mut greatest = Bytes::new(0);
        for start in 0..chunks / stride {
            let first = (u64::from(chunk) + start * stride) % chunks;
            let chunks_left = (chunks - first).min(count.into()) as u32;
            greatest = greatest.max(self.range_bytes(size, first as u32, chunks_left)?);
        }
        Ok(greatest)
    }

    /// Returns `size`, or 0 in a barrier, which moves no data.
    pub fn payload(&self, size: Bytes) -> Bytes {
        match self.kind {
            CollectiveKind::Barrier => Bytes::new(0),
            _ => size,
        }
    }

    /// Returns the number of chunks that share the bytes of the size (see
    /// [`CollectiveKind::size_convention`]).
    pub fn parts(&self) -> u64 {
        let pieces = u64::from(self.pieces);
        match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather | CollectiveKind::Scatter => pieces,
            CollectiveKind::AllToAll => u64::from(self.ranks) * pieces,
            _ => u64::from(self.chunks()),
        }
    }

    /// Returns the number of blocks: 1 for a vector, or one per rank or ordered pair of ranks.
    pub fn blocks(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        match self.kind {
            CollectiveKind::AllReduce
            | CollectiveKind::Broadcast
            | CollectiveKind::Reduce
            | CollectiveKind::Barrier => 1,
            CollectiveKind::AllToAll => ranks * ranks,
            _ => ranks,
        }
    }
}
