//! Ranks in rows and columns, within which circuits lead from any rank to any other.

use std::fmt;

/// Along which a circuit leads: a row or a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Plane {
    /// From column to column.
    Row = 0,
    /// From row to row.
    Column = 1,
}

impl Plane {
    /// Both planes.
    pub const BOTH: [Plane; 2] = [Plane::Row, Plane::Column];

    /// `row` or `column`.
    pub const fn name(self) -> &'static str {
        match self {
            Plane::Row => "row",
            Plane::Column => "column",
        }
    }

    /// The other plane.
    pub const fn other(self) -> Plane {
        match self {
            Plane::Row => Plane::Column,
            Plane::Column => Plane::Row,
        }
    }

    /// The plane with a number, 0 or 1.
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

/// A machine with its ranks at places of a grid; some places may lack a rank.
pub trait Planes {
    /// Rows of places.
    fn rows(&self) -> u32;

    /// Columns of places.
    fn columns(&self) -> u32;

    /// The rank in a row and a column, where there is one.
    fn rank_at(&self, row: u32, column: u32) -> Option<u32>;

    /// Whether a rank can send and receive in a plane.
    fn works(&self, rank: u32, plane: Plane) -> bool;
}
