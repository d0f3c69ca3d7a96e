//! Demands of collectives, chunk by chunk: the ranks that hold a chunk before and after, and
//! whether contributions combine.
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
//! A barrier is an all_reduce of no data: each rank must hear, directly or through others, from
//! every rank. Hearing twice from a rank does no harm, so that contributions of a barrier may
//! overlap, as in a dissemination among N ranks if N is no power of two. In all other collectives
//! each contribution is combined exactly once.
//!
//! Each block (or the vector) may be cut into `pieces` chunks with consecutive numbers: chunk =
//! block * pieces + piece. Sizes need not divide evenly: pieces differ by at most one byte.
//!
//! The blocks of an all_to_all may differ: a [`DemandMatrix`] holds the bytes of each block and its
//! chunks.
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

/// Reason why a collective was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectiveError {
    /// The name is not known.
    #[error("unknown collective `{}`{hint}", terminal_text(name))]
    Unknown {
        /// Name as given.
        name: String,
        /// Nearest known name, or all known names.
        hint: String,
    },
    /// There are no ranks.
    #[error("a collective needs at least one rank, got {ranks}")]
    NoRanks {
        /// Number of ranks as given.
        ranks: u32,
    },
    /// The root is not a rank.
    #[error("root {root} does not exist: ranks are 0 to {}", ranks.saturating_sub(1))]
    Root {
        /// Root as given.
        root: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// There are no pieces.
    #[error("a block is cut into 1 piece or more, not 0")]
    NoPieces,
    /// The number of chunks exceeds 32 bits.
    #[error("{kind} on {ranks} ranks would have {chunks} chunks: the maximum is {MAX_CHUNKS}")]
    TooManyChunks {
        /// Collective.
        kind: CollectiveKind,
        /// Number of ranks.
        ranks: u32,
        /// Number of chunks that the collective would have.
        chunks: u128,
    },
    /// The demand is among another number of ranks.
    #[error("the demand is among {demand} ranks, the collective among {ranks}")]
    DemandRanks {
        /// Ranks of the demand.
        demand: u32,
        /// Ranks of the collective.
        ranks: u32,
    },
    /// The collective takes no demand.
    #[error("only all_to_all takes a demand, not {kind}: leave the demand out")]
    NoDemand {
        /// Collective.
        kind: CollectiveKind,
    },
    /// A collective with a demand was cut into pieces; the demand defines its chunks.
    #[error("an all_to_all with a demand is not cut into {pieces} pieces: ask for 1")]
    CutDemand {
        /// Number of pieces as given.
        pieces: u32,
    },
    /// The demand was refused.
    #[error(transparent)]
    Demand(#[from] DemandError),
}

opticoll_base::named_enum! {
    /// Collectives, by their MPI names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CollectiveKind {
        /// Every rank ends with every rank's block.
        AllGather = "all_gather",
        /// Rank i ends with the combination of block i of all ranks.
        ReduceScatter = "reduce_scatter",
        /// Every rank ends with the combination of all ranks' vectors.
        AllReduce = "all_reduce",
        /// Every rank ends with the root's vector.
        Broadcast = "broadcast",
        /// The root ends with the combination of all ranks' vectors.
        Reduce = "reduce",
        /// The root ends with every rank's block.
        Gather = "gather",
        /// Rank i ends with the root's block i.
        Scatter = "scatter",
        /// Rank j ends with block j of every rank.
        AllToAll = "all_to_all",
        /// Every rank ends knowing that all other ranks have entered the barrier.
        Barrier = "barrier",
    }
}

impl CollectiveKind {
    /// Returns what `size` counts for this collective, in words.
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

    /// Parses a name, such as `all_gather`, `all-gather` or `allgather`.
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

/// Maximum number of chunks: chunks and their number have 32 bits.
const MAX_CHUNKS: u128 = u32::MAX as u128;

/// Ranks that hold (or contribute to, or must hold) a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holders {
    /// A single rank.
    One(u32),
    /// Every rank.
    All,
}

/// Collective on a number of ranks, with its root and the pieces of each block.
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

    /// Returns the same collective with root `root`.
    pub fn with_root(self, root: u32) -> Result<Collective, CollectiveError> {
        if root >= self.ranks {
            return Err(CollectiveError::Root {
                root,
                ranks: self.ranks,
            });
        }
        Ok(Collective { root, ..self })
    }

    /// Returns the same collective with each block (or the vector) cut into `pieces` chunks.
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

    /// Returns the same all_to_all with the blocks of a demand. If all blocks of the demand are
    /// equal, the result has no demand, because it means the same.
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

    /// Returns the same collective with equal blocks.
    pub fn without_demand(self) -> Collective {
        Collective {
            demand: None,
            ..self
        }
    }

    /// Returns the demand of an all_to_all whose blocks differ; `None` if its blocks are equal.
    pub fn demand(&self) -> Option<&'static DemandMatrix> {
        self.demand.map(demand::StoredDemand::get)
    }

    /// Returns source, destination and bytes of each block with bytes, at a size; nothing without a
    /// demand.
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

    /// Returns the chunks of a range of blocks.
    pub fn chunks_of_blocks(&self, blocks: Range<u32>) -> Range<u32> {
        match self.demand() {
            Some(demand) => demand.chunks_of(blocks),
            None => blocks.start * self.pieces..blocks.end * self.pieces,
        }
    }

    /// Returns the block of a chunk.
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

    /// Returns the number of chunks of each block (or of the vector).
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Returns the number of chunks; chunks are numbered from 0.
    pub fn chunks(&self) -> u32 {
        match self.demand() {
            Some(demand) => demand.len(),
            None => (self.blocks() * u64::from(self.pieces)) as u32,
        }
    }

    /// Returns whether contributions combine (each exactly once, but see [`Collective::overlaps`]).
    /// If not, chunks are only copied.
    pub fn combines(&self) -> bool {
        matches!(
            self.kind,
            CollectiveKind::ReduceScatter
                | CollectiveKind::AllReduce
                | CollectiveKind::Reduce
                | CollectiveKind::Barrier
        )
    }

    /// Returns whether a contribution may be combined into a chunk that already has it, as in a
    /// barrier.
    pub fn overlaps(&self) -> bool {
        self.kind == CollectiveKind::Barrier
    }

    /// Returns the ranks that hold (or contribute to) a chunk before the collective.
    pub fn before(&self, chunk: u32) -> Holders {
        let block = self.block(chunk);
        match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather => Holders::One(block),
            CollectiveKind::AllToAll => Holders::One(block / self.ranks),
            CollectiveKind::Broadcast | CollectiveKind::Scatter => Holders::One(self.root),
            _ => Holders::All,
        }
    }

    /// Returns the ranks that must hold a chunk, with every contribution, after the collective.
    pub fn after(&self, chunk: u32) -> Holders {
        let block = self.block(chunk);
        match self.kind {
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => Holders::One(block),
            CollectiveKind::AllToAll => Holders::One(block % self.ranks),
            CollectiveKind::Reduce | CollectiveKind::Gather => Holders::One(self.root),
            _ => Holders::All,
        }
    }

    /// Returns the bytes of a chunk if the collective has size `size` (see
    /// [`CollectiveKind::size_convention`]). Chunks without a demand differ by at most one byte.
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

    /// Returns the bytes of the smallest chunk.
    pub fn min_chunk_bytes(&self, size: Bytes) -> Bytes {
        match self.demand() {
            Some(demand) => demand.least_bytes(size),
            None => Bytes::new(self.payload(size).get() / self.parts()),
        }
    }

    /// Returns the bytes of every chunk, if all chunks have the same size.
    pub fn uniform_chunk_bytes(&self, size: Bytes) -> Option<Bytes> {
        if self.demand.is_some() {
            return None;
        }
        let (parts, size) = (self.parts(), self.payload(size));
        (size.get() % parts == 0).then(|| Bytes::new(size.get() / parts))
    }

    /// Returns the bytes of `count` chunks from `chunk` on.
    ///
    /// # Errors
    /// A number of bytes beyond 64 bits.
    pub fn range_bytes(&self, size: Bytes, chunk: u32, count: u32) -> Result<Bytes, UnitError> {
        let parts = u128::from(self.parts());
        let size = self.payload(size);
        let demand = self.demand();
        // Bytes of all chunks before a chunk: whole multiples of the size, and a part of one size.
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

    /// Returns the maximum number of bytes of `count` chunks, over all ranges that start a multiple
    /// of `step` chunks after `chunk`, counted modulo all chunks.
    ///
    /// With P parts and size S, `count` chunks have floor(S count / P) bytes, and one more if (S
    /// chunk mod P) + (S count mod P) reaches P. The first term takes every value that is congruent
    /// to S chunk modulo g = gcd(S step, P); the largest of these is P - g + (S chunk mod g).
    ///
    /// # Errors
    /// A number of bytes beyond 64 bits.
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
        let apart = gcd(scaled(step), parts);
        let most = parts - apart + scaled(chunk) % apart;
        let less = (scaled(chunk) + scaled(count)) / parts;
        let more = (most + scaled(count)) / parts - less;
        self.range_bytes(size, chunk, count)?
            .plus(Bytes::new(more as u64))
    }

    /// Returns [`Collective::max_range_bytes`] of a demand by examining each range. Ranges end with
    /// the last chunk.
    fn max_demanded_bytes(
        &self,
        size: Bytes,
        (chunk, count): (u32, u32),
        step: u32,
    ) -> Result<Bytes, UnitError> {
        let chunks = u64::from(self.chunks());
        let apart = gcd(step.into(), chunks.into()) as u64;
        let mut most = Bytes::new(0);
        for turn in 0..chunks / apart {
            let first = (u64::from(chunk) + turn * apart) % chunks;
            let left = (chunks - first).min(count.into()) as u32;
            most = most.max(self.range_bytes(size, first as u32, left)?);
        }
        Ok(most)
    }

    /// Returns the bytes that move if the size is `size`: none in a barrier.
    pub fn payload(&self, size: Bytes) -> Bytes {
        match self.kind {
            CollectiveKind::Barrier => Bytes::new(0),
            _ => size,
        }
    }

    /// Returns the number of chunks into which the bytes of `size` are cut.
    pub fn parts(&self) -> u64 {
        let pieces = u64::from(self.pieces);
        match self.kind {
            CollectiveKind::AllGather | CollectiveKind::Gather | CollectiveKind::Scatter => pieces,
            CollectiveKind::AllToAll => u64::from(self.ranks) * pieces,
            _ => u64::from(self.chunks()),
        }
    }

    /// Returns the number of blocks: one per rank, one per ordered pair of ranks, or one for the
    /// vector.
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
