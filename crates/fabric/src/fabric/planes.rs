//! Ranks in rows and columns. A circuit connects two ranks of the same row or column.

use std::fmt;

/// Plane of a circuit: all circuits within rows, or all circuits within columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Plane {
    /// The circuit stays in a row and leads from column to column.
    Row = 0,
    /// The circuit stays in a column and leads from row to row.
    Column = 1,
}

impl Plane {
    /// Both planes.
    pub const BOTH: [Plane; 2] = [Plane::Row, Plane::Column];

    /// Returns `row` or `column`.
    pub const fn name(self) -> &'static str {
        match self {
            Plane::Row => "row",
            Plane::Column => "column",
        }
    }

    /// Returns the other plane.
    pub const fn other(self) -> Plane {
        match self {
            Plane::Row => Plane::Column,
            Plane::Column => Plane::Row,
        }
    }

    /// Returns the plane with number 0 or 1, or `None` for other numbers.
    pub const fn numbered(number: u8) -> Option<Plane> {
        match number {
            0 => Some(Plane::Row),
            1 => Some(Plane::Column),
            _ => None,
        }
    }
}

impl fmt::Display for Plane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Machine whose ranks are at positions of a grid. Some positions may have no rank.
pub trait Planes {
    /// Returns the number of rows.
    fn rows(&self) -> u32;

    /// Returns the number of columns.
    fn columns(&self) -> u32;

    /// Returns the rank at a position of the grid, or `None` if the position has no rank.
    fn rank_at(&self, row: u32, column: u32) -> Option<u32>;

    /// Returns whether `rank` can send and receive over circuits of `plane`.
    fn works(&self, rank: u32, plane: Plane) -> bool;
}
