//! What an all_to_all demands where its blocks differ: bytes for each ordered pair of ranks, and how the block of
//! each pair is cut into chunks.
//!
//! Chunks are numbered pair by pair, in the order of sources and of destinations of a source; a pair that demands
//! nothing has no chunk. A range of blocks is thus still a range of chunks. Amounts are bytes where the size is that of the
//! source with the most; for another size S all edges between chunks move in proportion: chunk c ends
//! floor(S e(c) / m) bytes after the beginning, where e(c) adds up the amounts up to chunk c and m is the largest sum of a source.
//!
//! Each demand is stored once and as long as the program runs, so that a [`Collective`](super::Collective) stays a few words
//! which are copied, and two demands are the same where they are at one place.

pub mod generate;

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHasher};
use thiserror::Error;

use opticoll_base::units::Bytes;

/// Why a demand was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DemandError {
    /// A pair of ranks that does not exist.
    #[error(
        "no demand goes from rank {source_rank} to rank {destination}: there are {ranks}, counted from 0"
    )]
    Rank {
        /// The sending rank.
        source_rank: u32,
        /// The receiving rank.
        destination: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// Pairs in another order, or a pair twice.
    #[error(
        "the demand from rank {source_rank} to rank {destination} comes twice or too late: pairs stand in the order of \
         sources, then of destinations"
    )]
    Order {
        /// The sending rank.
        source_rank: u32,
        /// The receiving rank.
        destination: u32,
    },
    /// A chunk without bytes.
    #[error("a chunk from rank {source_rank} to rank {destination} has no bytes: leave it out")]
    Empty {
        /// The sending rank.
        source_rank: u32,
        /// The receiving rank.
        destination: u32,
    },
    /// Nothing at all.
    #[error("the demand is zero for every pair of ranks: nothing is to be sent")]
    Nothing,
    /// More than 64 bits of bytes, or 32 bits of chunks.
    #[error("the demand leaves what can be counted: 2^64 bytes and 2^32 chunks in all")]
    TooLarge,
    /// A generator's name or options.
    #[error(transparent)]
    Spec(#[from] opticoll_base::spec::SpecError),
}

/// The bytes of each ordered pair of ranks, in chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DemandMatrix {
    ranks: u32,
    /// By chunk: source x ranks + destination. Never falls.
    blocks: Vec<u32>,
    /// By chunk: the amounts of all chunks up to it.
    ends: Vec<u64>,
    /// The most that a source sends, itself included.
    largest: u64,
    /// The least amount of a chunk.
    least: u64,
}

impl DemandMatrix {
    /// A demand among so many ranks: source, destination and amount of each chunk, pair by pair in the order of sources,
    /// then of destinations.
    ///
    /// # Errors
    /// Ranks that do not exist, another order, chunks of nothing, no chunk, or more than can be counted.
    pub fn new(
        ranks: u32,
        chunks: impl IntoIterator<Item = (u32, u32, u64)>,
    ) -> Result<DemandMatrix, DemandError> {
        let mut demand = DemandMatrix {
            ranks,
            blocks: Vec::new(),
            ends: Vec::new(),
            largest: 0,
            least: u64::MAX,
        };
        if u64::from(ranks).pow(2) > u64::from(u32::MAX) {
            return Err(DemandError::TooLarge);
        }
        let mut of_source = (0, 0u64);
        for (source_rank, destination, amount) in chunks {
            if source_rank.max(destination) >= ranks {
                return Err(DemandError::Rank {
                    source_rank,
                    destination,
                    ranks,
                });
            }
            if amount == 0 {
                return Err(DemandError::Empty {
                    source_rank,
                    destination,
                });
            }
            let block = source_rank * ranks + destination;
            if demand.blocks.last().is_some_and(|last| *last > block) {
                return Err(DemandError::Order {
                    source_rank,
                    destination,
                });
            }
            let before = demand.ends.last().copied().unwrap_or(0);
            let end = before.checked_add(amount).ok_or(DemandError::TooLarge)?;
            if demand.blocks.len() == u32::MAX as usize {
                return Err(DemandError::TooLarge);
            }
            if of_source.0 != source_rank {
                of_source = (source_rank, 0);
            }
            of_source.1 += amount;
            demand.largest = demand.largest.max(of_source.1);
            demand.least = demand.least.min(amount);
            demand.blocks.push(block);
            demand.ends.push(end);
        }
        match demand.blocks.is_empty() {
            true => Err(DemandError::Nothing),
            false => Ok(demand),
        }
    }

    /// A demand of one chunk for each pair, by the amounts row by row: a row for each source.
    ///
    /// # Errors
    /// No amount above zero, or more than can be counted.
    ///
    /// # Panics
    /// There are not `ranks` x `ranks` amounts.
    pub fn of_matrix(ranks: u32, amounts: &[u64]) -> Result<DemandMatrix, DemandError> {
        assert_eq!(amounts.len() as u64, u64::from(ranks).pow(2));
        let pairs = (0u64..).zip(amounts).filter(|(_, amount)| **amount > 0);
        let chunk = |(block, &amount): (u64, &u64)| {
            let ends = (block / u64::from(ranks), block % u64::from(ranks));
            (ends.0 as u32, ends.1 as u32, amount)
        };
        DemandMatrix::new(ranks, pairs.map(chunk))
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The most that a rank sends, itself included: the size for which amounts are bytes.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The number of chunks.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Whether there are no chunks: never.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Pairs with a demand, in order: source, destination and their chunks.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, Range<u32>)> + '_ {
        let mut start = 0;
        self.blocks
            .chunk_by(|one, other| one == other)
            .map(move |own| {
                let chunks = start..start + own.len() as u32;
                start = chunks.end;
                (own[0] / self.ranks, own[0] % self.ranks, chunks)
            })
    }

    /// The amounts row by row: a row for each source.
    pub fn matrix(&self) -> Vec<u64> {
        let mut matrix = vec![0; self.ranks as usize * self.ranks as usize];
        for (source, destination, chunks) in self.pairs() {
            let block = source as usize * self.ranks as usize + destination as usize;
            matrix[block] = self.edge(chunks.end) - self.edge(chunks.start);
        }
        matrix
    }

    /// The block of every pair of different ranks where these are all alike, whatever ranks have for themselves.
    pub fn even_block(&self) -> Option<u64> {
        let (mut others, mut block) = (0, None);
        for (source, destination, chunks) in self.pairs() {
            if source == destination {
                continue;
            }
            let amount = self.edge(chunks.end) - self.edge(chunks.start);
            if *block.get_or_insert(amount) != amount {
                return None;
            }
            others += 1;
        }
        let all = u64::from(self.ranks) * u64::from(self.ranks - 1);
        block.filter(|_| others == all)
    }

    /// The number of chunks of each block where all blocks, a rank's own included, and all chunks are alike: then the demand
    /// says what an all_to_all without a demand says.
    pub(super) fn uniform_pieces(&self) -> Option<u32> {
        let blocks = u64::from(self.ranks).pow(2);
        let pieces = self.blocks.len() as u64 / blocks;
        let first = *self.ends.first()?;
        let is_uniform = self.blocks.len() as u64 == blocks * pieces
            && (0u64..)
                .zip(&self.blocks)
                .all(|(chunk, own)| u64::from(*own) == chunk / pieces)
            && (1u64..)
                .zip(&self.ends)
                .all(|(count, end)| Some(*end) == first.checked_mul(count));
        is_uniform.then_some(pieces as u32)
    }

    /// The same demand with one chunk for each pair.
    pub fn in_whole_blocks(&self) -> DemandMatrix {
        let pairs = self.pairs().map(|(source, destination, chunks)| {
            (
                source,
                destination,
                self.edge(chunks.end) - self.edge(chunks.start),
            )
        });
        let mut whole = DemandMatrix {
            ranks: self.ranks,
            blocks: Vec::new(),
            ends: Vec::new(),
            largest: self.largest,
            least: u64::MAX,
        };
        let mut end = 0;
        for (source, destination, amount) in pairs {
            end += amount;
            whole.blocks.push(source * self.ranks + destination);
            whole.ends.push(end);
            whole.least = whole.least.min(amount);
        }
        whole
    }

    /// The amount of a chunk.
    pub fn amount(&self, chunk: u32) -> u64 {
        self.edge(chunk + 1) - self.edge(chunk)
    }

    /// Source x ranks + destination of a chunk.
    pub(super) fn block(&self, chunk: u32) -> u32 {
        self.blocks[chunk as usize]
    }

    /// The chunks of some blocks, counted as source x ranks + destination.
    pub fn chunks_of(&self, blocks: Range<u32>) -> Range<u32> {
        let first = |block: u32| self.blocks.partition_point(|own| *own < block) as u32;
        first(blocks.start)..first(blocks.end)
    }

    /// The amounts of all chunks before one.
    fn edge(&self, chunk: u32) -> u64 {
        match chunk {
            0 => 0,
            chunk => self.ends[chunk as usize - 1],
        }
    }

    /// The bytes of all chunks before one, where the collective has a size.
    pub(super) fn bytes_before(&self, size: Bytes, chunk: u32) -> u128 {
        u128::from(size.get()) * u128::from(self.edge(chunk)) / u128::from(self.largest)
    }

    /// The fewest bytes that a chunk has at a size.
    pub(super) fn least_bytes(&self, size: Bytes) -> Bytes {
        let least = u128::from(size.get()) * u128::from(self.least) / u128::from(self.largest);
        Bytes::new(least as u64)
    }
}

/// A demand that is stored once: the same where it is at the same place.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredDemand(&'static DemandMatrix);

/// All demands of this process, by their hash; looked up only.
static STORED: LazyLock<Mutex<FxHashMap<u64, Vec<&'static DemandMatrix>>>> =
    LazyLock::new(Mutex::default);

impl StoredDemand {
    /// The one that is equal, or this one from now on.
    pub(super) fn new(demand: DemandMatrix) -> StoredDemand {
        let mut hasher = FxHasher::default();
        demand.hash(&mut hasher);
        let mut stored = STORED.lock().unwrap_or_else(|broken| broken.into_inner());
        let alike = stored.entry(hasher.finish()).or_default();
        if let Some(same) = alike.iter().find(|stored| ***stored == demand) {
            return StoredDemand(same);
        }
        let stored: &'static DemandMatrix = Box::leak(Box::new(demand));
        alike.push(stored);
        StoredDemand(stored)
    }

    pub(super) fn get(self) -> &'static DemandMatrix {
        self.0
    }
}

impl PartialEq for StoredDemand {
    fn eq(&self, other: &StoredDemand) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for StoredDemand {}

impl Hash for StoredDemand {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.ranks, self.0.largest, self.0.blocks.len()).hash(state);
    }
}
