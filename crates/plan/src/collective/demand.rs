//! Demand of an all_to_all whose blocks differ: the bytes of each ordered pair of ranks, and the
//! chunks into which the block of each pair is divided.
//!
//! Chunks are numbered pair by pair, in the order of sources and then of destinations. A pair
//! without bytes has no chunk. A range of blocks is thus a range of chunks.
//!
//! Let m be the greatest sum of the amounts of a source. If the collective has the size m, the
//! amounts are bytes. For another size S, all bytes scale in proportion: chunk c ends floor(S e(c)
//! / m) bytes after the start, where e(c) is the sum of the amounts up to and including chunk c.
//!
//! Each demand is stored once, until the program ends. A [`Collective`](super::Collective) is
//! therefore only a few words that are copied, and two stored demands are equal if they have the
//! same address.

pub mod generate;

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{LazyLock, Mutex};

use rustc_hash::{FxHashMap, FxHasher};
use thiserror::Error;

use opticoll_base::units::Bytes;

/// Reason why a demand was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DemandError {
    /// A rank of a pair does not exist.
    #[error(
        "the demand from rank {source_rank} to rank {destination} has a rank that does not exist: \
         there are {ranks} ranks, counted from 0"
    )]
    Rank {
        /// Rank that sends.
        source_rank: u32,
        /// Rank that receives.
        destination: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// The pairs are not in order, or a pair occurs twice.
    #[error(
        "the demand from rank {source_rank} to rank {destination} occurs twice or out of order: \
         pairs must be ordered by source, then by destination"
    )]
    Order {
        /// Rank that sends.
        source_rank: u32,
        /// Rank that receives.
        destination: u32,
    },
    /// A chunk has no bytes.
    #[error("a chunk from rank {source_rank} to rank {destination} has no bytes: leave it out")]
    Empty {
        /// Rank that sends.
        source_rank: u32,
        /// Rank that receives.
        destination: u32,
    },
    /// All amounts are zero.
    #[error("the demand is zero for every pair of ranks: nothing is to be sent")]
    Nothing,
    /// The number of bytes exceeds 64 bits, or the number of chunks exceeds 32 bits.
    #[error("the demand is too large: the limits are 2^64 bytes and 2^32 chunks in all")]
    TooLarge,
    /// The name or the options of a generator were rejected.
    #[error(transparent)]
    Spec(#[from] opticoll_base::spec::SpecError),
}

/// Amount of data of each ordered pair of ranks, divided into chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DemandMatrix {
    ranks: u32,
    /// Index of the block of each chunk, which is source x ranks + destination. Indexed by chunk,
    /// in ascending order.
    blocks: Vec<u32>,
    /// Sum of the amounts of all chunks up to and including each chunk, indexed by chunk.
    ends: Vec<u64>,
    /// Greatest sum of the amounts of a source, including its amount for itself.
    largest: u64,
    /// Least amount of a chunk.
    least: u64,
}

impl DemandMatrix {
    /// Returns a demand among `ranks` ranks. `chunks` lists (source, destination, amount) of each
    /// chunk, in the order of sources and then of destinations. Fails if a rank does not exist, if
    /// the chunks are not in order, if a chunk has no bytes, if there is no chunk, or if there are
    /// too many bytes or chunks.
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
        let mut source_sum = (0, 0u64);
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
            if source_sum.0 != source_rank {
                source_sum = (source_rank, 0);
            }
            source_sum.1 += amount;
            demand.largest = demand.largest.max(source_sum.1);
            demand.least = demand.least.min(amount);
            demand.blocks.push(block);
            demand.ends.push(end);
        }
        match demand.blocks.is_empty() {
            true => Err(DemandError::Nothing),
            false => Ok(demand),
        }
    }

    /// Returns a demand with one chunk for each pair with an amount above 0. `amounts` has a row
    /// for each source, one row after another. Fails if no amount is above 0, or if there are too
    /// many bytes or chunks.
    ///
    /// # Panics
    /// If there are not `ranks` x `ranks` amounts.
    pub fn from_matrix(ranks: u32, amounts: &[u64]) -> Result<DemandMatrix, DemandError> {
        assert_eq!(amounts.len() as u64, u64::from(ranks).pow(2));
        let pairs = (0u64..).zip(amounts).filter(|(_, amount)| **amount > 0);
        let chunk = |(block, &amount): (u64, &u64)| {
            let ends = (block / u64::from(ranks), block % u64::from(ranks));
            (ends.0 as u32, ends.1 as u32, amount)
        };
        DemandMatrix::new(ranks, pairs.map(chunk))
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the greatest sum of the amounts of a source, including its amount for itself. If the
    /// size equals this sum, amounts are bytes.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns whether there are no chunks, which is always false.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns (source, destination, range of chunks) of each pair with a demand, in order.
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

    /// Returns the amounts of all pairs: a row for each source, one row after another.
    pub fn matrix(&self) -> Vec<u64> {
        let mut matrix = vec![0; self.ranks as usize * self.ranks as usize];
        for (source, destination, chunks) in self.pairs() {
            let block = source as usize * self.ranks as usize + destination as usize;
            matrix[block] = self.amount_before(chunks.end) - self.amount_before(chunks.start);
        }
        matrix
    }

    /// Returns the amount of every pair of different ranks if all of these amounts are equal;
    /// otherwise `None`. Ignores the amounts of ranks for themselves.
    pub fn even_block(&self) -> Option<u64> {
        let (mut others, mut block) = (0, None);
        for (source, destination, chunks) in self.pairs() {
            if source == destination {
                continue;
            }
            let amount = self.amount_before(chunks.end) - self.amount_before(chunks.start);
            if *block.get_or_insert(amount) != amount {
                return None;
            }
            others += 1;
        }
        let pair_count = u64::from(self.ranks) * u64::from(self.ranks - 1);
        block.filter(|_| others == pair_count)
    }

    /// Returns the number of chunks per block if all blocks and all chunks are equal, including the
    /// blocks of ranks for themselves. Such a demand means the same as no demand.
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

    /// Returns the demand with a single chunk for each pair.
    pub fn whole_blocks(&self) -> DemandMatrix {
        let pairs = self.pairs().map(|(source, destination, chunks)| {
            (
                source,
                destination,
                self.amount_before(chunks.end) - self.amount_before(chunks.start),
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

    /// Returns the amount of `chunk`.
    pub fn amount(&self, chunk: u32) -> u64 {
        self.amount_before(chunk + 1) - self.amount_before(chunk)
    }

    /// Returns the index of the block of `chunk`, which is source x ranks + destination.
    pub(super) fn block(&self, chunk: u32) -> u32 {
        self.blocks[chunk as usize]
    }

    /// Returns the chunks of a range of blocks; the index of a block is source x ranks +
    /// destination.
    pub fn chunks_of(&self, blocks: Range<u32>) -> Range<u32> {
        let first = |block: u32| self.blocks.partition_point(|own| *own < block) as u32;
        first(blocks.start)..first(blocks.end)
    }

    fn amount_before(&self, chunk: u32) -> u64 {
        match chunk {
            0 => 0,
            chunk => self.ends[chunk as usize - 1],
        }
    }

    /// Returns the bytes of all chunks before `chunk`, if the collective has the size `size`.
    pub(super) fn bytes_before(&self, size: Bytes, chunk: u32) -> u128 {
        u128::from(size.get()) * u128::from(self.amount_before(chunk)) / u128::from(self.largest)
    }

    /// Returns the bytes of the smallest chunk, if the collective has the size `size`.
    pub(super) fn least_bytes(&self, size: Bytes) -> Bytes {
        let least = u128::from(size.get()) * u128::from(self.least) / u128::from(self.largest);
        Bytes::new(least as u64)
    }
}

/// Demand that is stored once, so that equal demands have the same address.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredDemand(&'static DemandMatrix);

/// All demands of this process, keyed by their hash.
static STORED: LazyLock<Mutex<FxHashMap<u64, Vec<&'static DemandMatrix>>>> =
    LazyLock::new(Mutex::default);

impl StoredDemand {
    /// Returns the stored demand that equals `demand`. Stores `demand` if there is none.
    pub(super) fn new(demand: DemandMatrix) -> StoredDemand {
        let mut hasher = FxHasher::default();
        demand.hash(&mut hasher);
        let mut stored = STORED.lock().unwrap_or_else(|broken| broken.into_inner());
        let same_hash = stored.entry(hasher.finish()).or_default();
        if let Some(same) = same_hash.iter().find(|stored| ***stored == demand) {
            return StoredDemand(same);
        }
        let stored: &'static DemandMatrix = Box::leak(Box::new(demand));
        same_hash.push(stored);
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
