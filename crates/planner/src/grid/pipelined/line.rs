//! Broadcasts along a line of p ranks as pipelines of pieces. In each slot every rank except the
//! first receives a piece, and every rank but one sends a piece.
//!
//! The first rank, rank 0, sends piece t in slot t.
//!
//! * **Ring.** In slot t, rank v sends piece t - v to rank v + 1. After p - 1 slots all ranks have
//!   a piece.
//! * **Hypercube** of p = 2^d ranks (Johnsson and Ho, IEEE Transactions on Computers 1989). In slot
//!   t all ranks exchange along dimension j = t mod d. Piece t travels from rank 0 along dimension
//!   j. In the next slots, all ranks that have the piece send it along j + 1, j + 2, .... After d
//!   slots all ranks with bit j set have the piece. In slot t + d they send the piece along j to
//!   the other ranks. Therefore a rank v other than 0 with bit j clear sends piece t - i, where i
//!   is the maximum of (j - b) mod d over the set bits b of v. A rank with bit j set sends piece
//!   t - d. After d + 1 slots all ranks have the piece.
//!
//! With K pieces, slot K + d - 2 can be the last slot if rank 0 sends piece K - 1 again instead of
//! the pieces from K on. To see this, consider rank v in d consecutive slots from w on. In slot s,
//! rank v receives piece s - d if bit s mod d of v is clear, and otherwise the piece s - i that its
//! partner sends. Rank v receives all pieces s - d of these slots except one: the piece of the
//! first slot f in which a bit of v is set. In the last slot in which a bit of v is set, rank v
//! receives piece f. Hence piece f - d arrived in the d slots before. After slot K + d - 2 all
//! pieces below K - 1 have arrived, and also a piece from K - 1 on.
//!
//! In every slot one rank, the *spare* rank, would send to rank 0, which already has all pieces.
//! The spare rank may send other data to rank 0.

/// Shape of the route of pieces along a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each rank sends to the next rank.
    Ring,
    /// Ranks exchange along the dimensions of a hypercube in turn.
    Hypercube,
}

/// A line of ranks. The rank at position `root` has all pieces at the start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) shape: Shape,
    pub(super) ranks: u32,
    pub(super) root: u32,
}

/// A piece that a rank receives in a slot: positions of sender and receiver on the line. `lag` is
/// the number of slots since the root first sent the piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) lag: u32,
}

impl Line {
    /// Creates a line with this shape, or with the shape of a ring if the number of ranks is not a
    /// power of two.
    pub(super) fn new(shape: Shape, ranks: u32, root: u32) -> Line {
        let shape = match ranks.is_power_of_two() {
            true => shape,
            false => Shape::Ring,
        };
        Line { shape, ranks, root }
    }

    /// Returns the number of slots after which all ranks have a piece, counted from the slot in
    /// which the root first sends the piece.
    pub(super) fn depth(self) -> u32 {
        match (self.ranks, self.shape) {
            (..=1, _) => 0,
            (2, _) => 1,
            (ranks, Shape::Ring) => ranks - 1,
            (ranks, Shape::Hypercube) => ranks.ilog2() + 1,
        }
    }

    /// Returns the position on the line of the rank with number `number`. Here the root has number
    /// 0.
    fn position(self, number: u32) -> u32 {
        match self.shape {
            Shape::Ring => (number + self.root) % self.ranks,
            Shape::Hypercube => number ^ self.root,
        }
    }

    /// Returns the hops in slot `slot`, one hop to every rank except the root.
    pub(super) fn hops(self, slot: u32) -> impl Iterator<Item = PieceHop> {
        (1..self.ranks).map(move |to| {
            let (from, lag) = self.sender(slot, to);
            PieceHop {
                from: self.position(from),
                to: self.position(to),
                lag,
            }
        })
    }

    /// Returns the rank that sends to rank `to` in a slot, and the lag of the piece. Ranks have
    /// numbers as in `position`, so the root has number 0.
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

    /// Returns the position of the spare rank, which may send other data to the root in a slot.
    pub(super) fn spare(self, slot: u32) -> u32 {
        self.position(match self.shape {
            Shape::Ring => self.ranks - 1,
            Shape::Hypercube => 1 << (slot % self.ranks.ilog2()),
        })
    }
}
