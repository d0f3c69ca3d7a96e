//! Broadcasts along a line of ranks as pipelines of pieces: in each slot every rank except the
//! first receives a piece, and every rank but one sends a piece.
//!
//! The first rank, 0, sends piece t in slot t.
//!
//! * **Ring.** Rank v sends piece t - v to rank v + 1. After p - 1 slots a piece is everywhere.
//! * **Hypercube** of p = 2^d ranks (Johnsson and Ho, IEEE Transactions on Computers 1989). In slot
//!   t all ranks exchange along dimension j = t mod d. Piece t goes from rank 0 along j, then along
//!   j + 1, j + 2, ... from all ranks that have the piece, so that after d slots the ranks with bit
//!   j set have it; in slot t + d these send the piece along j to the other ranks. A rank v other
//!   than 0 with bit j clear therefore sends piece t - i, where i is the greatest (j - b) mod d
//!   over its set bits b; a rank with bit j set sends piece t - d. After d + 1 slots a piece is
//!   everywhere.
//!
//! With K pieces, slot K + d - 2 can be the last slot. Let the pieces from K on, which rank 0 would
//! send next, be piece K - 1 again. Let w be the first of d consecutive slots. In these slots a
//! rank v receives in slot s piece s - d if its bit is clear, and otherwise the greatest piece
//! behind. It receives all pieces s - d of these slots but one: the piece of the first slot f in
//! which a bit of v is set. In the last slot in which a bit is set, rank v receives piece f. Piece
//! f - d therefore arrived in the d slots before, and after slot K + d - 2 all pieces below K - 1
//! have arrived, and a piece from K - 1 on, too.
//!
//! In every slot one rank, the *spare* rank, would send to rank 0, which has all pieces: it may
//! send rank 0 data from elsewhere.

/// Route of pieces along a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each rank sends to the next rank.
    Ring,
    /// Ranks exchange along the dimensions of a hypercube in turn.
    Hypercube,
}

/// A line of ranks; the rank at position `root` has the pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) shape: Shape,
    pub(super) ranks: u32,
    pub(super) root: u32,
}

/// A piece that a rank receives in a slot: positions of sender and receiver on the line, and the
/// number of slots by which the piece is behind the piece that the root sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) lag: u32,
}

impl Line {
    /// Returns the line in a shape that is possible for its ranks: a ring if the number of ranks is
    /// not a power of two.
    pub(super) fn new(shape: Shape, ranks: u32, root: u32) -> Line {
        let shape = match ranks.is_power_of_two() {
            true => shape,
            false => Shape::Ring,
        };
        Line { shape, ranks, root }
    }

    /// Returns the number of slots after which a piece is everywhere, counted from the slot in
    /// which the root first sends the piece.
    pub(super) fn depth(self) -> u32 {
        match (self.ranks, self.shape) {
            (..=1, _) => 0,
            (2, _) => 1,
            (ranks, Shape::Ring) => ranks - 1,
            (ranks, Shape::Hypercube) => ranks.ilog2() + 1,
        }
    }

    /// Returns the position on the line of a number counted from the root.
    fn place(self, number: u32) -> u32 {
        match self.shape {
            Shape::Ring => (number + self.root) % self.ranks,
            Shape::Hypercube => number ^ self.root,
        }
    }

    /// Returns the hops of a slot to all ranks except the root.
    pub(super) fn hops(self, slot: u32) -> impl Iterator<Item = PieceHop> {
        (1..self.ranks).map(move |to| {
            let (from, lag) = self.sender(slot, to);
            PieceHop {
                from: self.place(from),
                to: self.place(to),
                lag,
            }
        })
    }

    /// Returns the sender to a number in a slot, and the lag of its piece.
    fn sender(self, slot: u32, to: u32) -> (u32, u32) {
        if self.shape == Shape::Ring {
            return (to - 1, to - 1);
        }
        let dimensions = self.ranks.ilog2();
        let along = slot % dimensions;
        let from = to ^ (1 << along);
        if to & (1 << along) == 0 {
            return (from, dimensions);
        }
        let behind = (0..dimensions).filter(|bit| from & (1 << bit) != 0);
        let lag = behind.map(|bit| (along + dimensions - bit) % dimensions);
        (from, lag.max().unwrap_or(0))
    }

    /// Returns the position that is free to send to the root in a slot.
    pub(super) fn spare(self, slot: u32) -> u32 {
        self.place(match self.shape {
            Shape::Ring => self.ranks - 1,
            Shape::Hypercube => 1 << (slot % self.ranks.ilog2()),
        })
    }
}
