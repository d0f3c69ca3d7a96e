//! Broadcasts along a line of ranks in pieces, a piece behind the other: in each slot every rank but the first receives a piece and
//! every rank but one sends one.
//!
//! The first rank, 0, sends piece t in slot t.
//!
//! * **Ring.** Rank v sends the piece t - v to rank v + 1. After p - 1 slots a piece is everywhere.
//! * **Hypercube** of p = 2^d ranks (Johnsson and Ho, IEEE Transactions on Computers 1989). In slot t all ranks exchange along
//!   dimension j = t mod d. Piece t goes from 0 along j, then along j + 1, j + 2, ... from all that have it, so that after d slots the
//!   ranks with bit j set have it; in slot t + d these send it along j to the others. A rank v other than 0 with bit j clear so sends the
//!   piece t - i, where i is the greatest (j - b) mod d of its set bits b, and one with bit j set the piece t - d. After d + 1 slots a
//!   piece is everywhere.
//!
//!   With K pieces slot K + d - 2 can be the last one. Let the pieces from K on, which 0 would send next, be piece K - 1 once more. Let w be the
//!   first of d slots that follow one another. A rank v receives in slot s of them the piece s - d where its bit is clear, and where its bit is set the
//!   greatest piece behind, so that it receives all pieces s - d of these slots but one: the first slot at which a bit of v is set, say f. In the
//!   last slot at which one is set it receives piece f. So piece f - d came in the d slots before, and after slot K + d - 2 all
//!   pieces below K - 1 are there, and a piece from K - 1 on, too.
//!
//! In every slot one rank, the *spare* one, would send to 0, which has all pieces: it may send there what comes from elsewhere.

/// How pieces go along a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each rank sends to the next.
    Ring,
    /// Along the dimensions of a hypercube in turn.
    Hypercube,
}

/// A line of ranks of which the one at `root` has the pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) shape: Shape,
    pub(super) ranks: u32,
    pub(super) root: u32,
}

/// What a rank receives in a slot: places on the line, and by how many slots the piece is behind that which the root sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PieceHop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) lag: u32,
}

impl Line {
    /// The line in a shape that its ranks can have: a ring where they are no power of two.
    pub(super) fn new(shape: Shape, ranks: u32, root: u32) -> Line {
        let shape = match ranks.is_power_of_two() {
            true => shape,
            false => Shape::Ring,
        };
        Line { shape, ranks, root }
    }

    /// The slots after which a piece is everywhere, counted from that in which the root sends it first.
    pub(super) fn depth(self) -> u32 {
        match (self.ranks, self.shape) {
            (..=1, _) => 0,
            (2, _) => 1,
            (ranks, Shape::Ring) => ranks - 1,
            (ranks, Shape::Hypercube) => ranks.ilog2() + 1,
        }
    }

    /// The place on the line of a number counted from the root.
    fn place(self, number: u32) -> u32 {
        match self.shape {
            Shape::Ring => (number + self.root) % self.ranks,
            Shape::Hypercube => number ^ self.root,
        }
    }

    /// The hops of a slot to all but the root.
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

    /// Who sends to a number in a slot, and which piece.
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

    /// The place that is free to send to the root in a slot.
    pub(super) fn spare(self, slot: u32) -> u32 {
        self.place(match self.shape {
            Shape::Ring => self.ranks - 1,
            Shape::Hypercube => 1 << (slot % self.ranks.ilog2()),
        })
    }
}
