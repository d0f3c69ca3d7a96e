//! The grid of ranks as algorithms see it: positions in rows and columns. A position may have no
//! rank.

use opticoll_fabric::fabric::{Fabric, Plane, Planes};

/// Grid of positions, each with or without a rank.
pub(super) struct RankGrid {
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// Rank at each position, or `None`; indexed by row times `columns` plus column.
    rank: Vec<Option<u32>>,
    /// Two flags for each position: the rank can send and receive in the row plane, and in the
    /// column plane; indexed like `rank`.
    works: Vec<[bool; 2]>,
}

impl RankGrid {
    /// Returns the grid of a fabric. If the fabric is not a grid, the ranks form a full grid that
    /// is as close to a square as possible, with at least as many columns as rows.
    pub(super) fn of(fabric: &Fabric) -> RankGrid {
        if let Some(grid) = fabric.planes() {
            return RankGrid::from_planes(grid);
        }
        let ranks = fabric.ranks();
        let rows = (1..=ranks.isqrt()).rev().find(|rows| ranks % rows == 0);
        let rows = rows.unwrap_or(1);
        RankGrid {
            rows,
            columns: ranks / rows,
            rank: (0..ranks).map(Some).collect(),
            works: vec![[true; 2]; ranks as usize],
        }
    }

    fn from_planes(grid: &dyn Planes) -> RankGrid {
        let places = (0..grid.rows()).flat_map(|row| (0..grid.columns()).map(move |at| (row, at)));
        let rank: Vec<Option<u32>> = places.map(|(row, at)| grid.rank_at(row, at)).collect();
        let works = rank.iter().map(|rank| match rank {
            Some(rank) => Plane::BOTH.map(|plane| grid.works(*rank, plane)),
            None => [false; 2],
        });
        RankGrid {
            rows: grid.rows(),
            columns: grid.columns(),
            works: works.collect(),
            rank,
        }
    }

    fn index(&self, row: u32, column: u32) -> usize {
        (row * self.columns + column) as usize
    }

    /// Returns the rank at a position, or `None` if the position has no rank.
    pub(super) fn rank(&self, row: u32, column: u32) -> Option<u32> {
        self.rank[self.index(row, column)]
    }

    /// Returns whether the position has a rank that can send and receive in `plane`.
    pub(super) fn works(&self, row: u32, column: u32, plane: Plane) -> bool {
        self.works[self.index(row, column)][plane as usize]
    }

    /// Returns whether the position has a rank that can send and receive in both planes.
    pub(super) fn is_whole(&self, row: u32, column: u32) -> bool {
        self.works[self.index(row, column)] == [true; 2]
    }

    pub(super) fn transposed(&self) -> RankGrid {
        let places = || (0..self.columns).flat_map(|at| (0..self.rows).map(move |row| (row, at)));
        let works = places().map(|(row, at)| self.works[self.index(row, at)]);
        RankGrid {
            rows: self.columns,
            columns: self.rows,
            rank: places().map(|(row, at)| self.rank(row, at)).collect(),
            works: works.map(|[row, column]| [column, row]).collect(),
        }
    }

    /// Returns a cycle through all ranks in which every hop stays in a row or in a column. Returns
    /// `None` unless every position has a rank that can send and receive in both planes.
    ///
    /// The cycle visits row after row. Within a row it starts at the entry column, visits all other
    /// columns, and ends at the entry column of the next row. Entry columns of consecutive rows
    /// must therefore differ, including the last and the first row. Such entry columns exist if
    /// there are at least three columns or an even number of rows; otherwise the cycle visits
    /// column after column.
    pub(super) fn ring(&self) -> Option<Vec<u32>> {
        let places = (0..self.rows).flat_map(|row| (0..self.columns).map(move |at| (row, at)));
        if !places.clone().all(|(row, at)| self.is_whole(row, at)) {
            return None;
        }
        if self.rows == 1 || self.columns == 1 {
            return places.map(|(row, at)| self.rank(row, at)).collect();
        }
        if self.columns < 3 && self.rows % 2 == 1 {
            return self.transposed().ring();
        }
        let mut order = Vec::new();
        for row in 0..self.rows {
            let entry = self.entry(row);
            let exit = self.entry((row + 1) % self.rows);
            let between = (0..self.columns).filter(|&column| column != entry && column != exit);
            let columns = std::iter::once(entry).chain(between).chain([exit]);
            order.extend(columns.map(|column| self.rank(row, column)));
        }
        order.into_iter().collect()
    }

    /// Returns the column in which the cycle enters a row: 0 and 1 in turn. If the number of rows
    /// is odd, the cycle enters the last row in column 2.
    fn entry(&self, row: u32) -> u32 {
        if row + 1 == self.rows && self.rows % 2 == 1 {
            2
        } else {
            row % 2
        }
    }
}
