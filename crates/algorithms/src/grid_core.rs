//! Halving and doubling on a grid of rows and columns, one hop for every exchange.
//!
//! The *core* is a set of 2^i rows and 2^j columns with a rank at every crossing that light reaches in
//! both planes: of the rows and columns that have ranks, those with most gaps are left out until no gap
//! is left. Indices within the core are (p, q), p < 2^i, q < 2^j. Exchanges flip one bit of p, in a
//! column, or of q, in a row: one hop either way. A rank that reduces 1/2, 1/4, ... of its part along one dimension and then along the
//! other keeps 1/(2^i 2^j) of it at last; the same partners in reverse order collect the results, so that
//! the last exchange of the first half and the first of the second have the same circuits.
//!
//! Ranks outside the core hand their part to it first and get the result at the end: those in other
//! columns to a core column of their row, then those in other rows to a core row of their column. The
//! k-th left out goes to the k-th of the core, modulo its size; on a whole grid that is an XOR with 2^j
//! (or 2^i). Where that place is no good, another of the row is taken; where none is, the rank goes to
//! the core over other ranks.

use super::grid::RankGrid;
use opticoll_fabric::fabric::Plane;
use opticoll_plan::schedule::{Action, Transfer};

/// The rows and columns that exchange.
pub(super) struct GridCore {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
}

/// Chunks of the vector: the first, and how many for each rank of the core.
#[derive(Clone, Copy)]
pub(super) struct VectorPart {
    pub(super) first: u32,
    pub(super) each: u32,
}

/// The steps of one part, in phases: two of handing over, two of halving, two of doubling, two of
/// handing back. In each phase light goes in one plane, but for ranks that need relays.
pub(super) type GridPhases = [Vec<Vec<Transfer>>; 8];

/// Ranks that hand over, each with the one that it hands over to.
type Handovers = Vec<(u32, u32)>;

impl GridCore {
    /// The core of a grid. With no rank that light reaches in both planes, a single place.
    pub(super) fn of(grid: &RankGrid) -> GridCore {
        let mut rows: Vec<u32> = (0..grid.rows).collect();
        let mut columns: Vec<u32> = (0..grid.columns).collect();
        // A task may be on few rows and columns of a machine.
        rows.retain(|&row| (0..grid.columns).any(|column| grid.rank(row, column).is_some()));
        columns.retain(|&column| rows.iter().any(|&row| grid.rank(row, column).is_some()));
        loop {
            // A rank that light reaches in one plane only is left out with the others that then hand
            // over in that plane.
            let gap = |row: u32, column: u32, plane: Plane| {
                let absent = grid.rank(row, column).is_none();
                match grid.is_whole(row, column) {
                    true => 0,
                    false => 1 + usize::from(absent || grid.works(row, column, plane)),
                }
            };
            let of_row = |row: u32| {
                let gaps = columns.iter().map(|&at| gap(row, at, Plane::Column));
                gaps.sum::<usize>()
            };
            let of_column = |column: u32| {
                let gaps = rows.iter().map(|&row| gap(row, column, Plane::Row));
                gaps.sum::<usize>()
            };
            // The first of those with most gaps; leaving it out should not halve the core.
            let cheap = |lines: &[u32]| !lines.len().is_power_of_two();
            let worst_row = first_most(&rows, of_row);
            let worst_column = first_most(&columns, of_column);
            let (row_gaps, column_gaps) = (of_row(worst_row), of_column(worst_column));
            if row_gaps == 0 {
                break;
            }
            if rows.len() == 1 && columns.len() == 1 {
                return GridCore::single(grid);
            }
            let by_row = rows.len() > 1
                && (columns.len() == 1
                    || (row_gaps, cheap(&rows)) >= (column_gaps, cheap(&columns)));
            if by_row {
                rows.retain(|&row| row != worst_row);
            } else {
                columns.retain(|&column| column != worst_column);
            }
        }
        rows.truncate(1 << rows.len().ilog2());
        columns.truncate(1 << columns.len().ilog2());
        GridCore { rows, columns }
    }

    /// The place of the first rank.
    fn single(grid: &RankGrid) -> GridCore {
        let mut places = (0..grid.rows).flat_map(|row| (0..grid.columns).map(move |at| (row, at)));
        let (row, column) = places
            .find(|&(row, column)| grid.rank(row, column).is_some())
            .unwrap_or((0, 0));
        GridCore {
            rows: vec![row],
            columns: vec![column],
        }
    }

    /// The number of ranks that exchange.
    pub(super) fn size(&self) -> u32 {
        (self.rows.len() * self.columns.len()) as u32
    }

    /// The same with rows and columns exchanged.
    pub(super) fn transposed(&self) -> GridCore {
        GridCore {
            rows: self.columns.clone(),
            columns: self.rows.clone(),
        }
    }

    /// The all_reduce of a part: along the rows first, and at distance 1 first if `near`, else half-way
    /// around first.
    pub(super) fn all_reduce(&self, grid: &RankGrid, part: VectorPart, near: bool) -> GridPhases {
        let (aside, home) = self.hand_over(grid);
        let count = part.each * self.size();
        let handed = |pairs: &[(u32, u32)], action| {
            let transfers = pairs.iter().map(|&(waiting, partner)| {
                let (source, destination) = match action {
                    Action::Reduce => (waiting, partner),
                    Action::Copy => (partner, waiting),
                };
                Transfer {
                    chunk: part.first,
                    count,
                    source,
                    destination,
                    action,
                }
            });
            let step: Vec<Transfer> = transfers.collect();
            if step.is_empty() { vec![] } else { vec![step] }
        };
        let mut exchange = Exchange::new(self, grid, part);
        let along_rows = exchange.halve(bits(self.columns.len(), near), 1);
        let height = self.columns.len();
        let along_columns = exchange.halve(bits(self.rows.len(), near), height);
        let back_columns = exchange.double(bits(self.rows.len(), !near), height);
        let back_rows = exchange.double(bits(self.columns.len(), !near), 1);
        [
            handed(&aside, Action::Reduce),
            handed(&home, Action::Reduce),
            along_rows,
            along_columns,
            back_columns,
            back_rows,
            handed(&home, Action::Copy),
            handed(&aside, Action::Copy),
        ]
    }

    /// Who hands over to whom: first along rows, then along columns.
    fn hand_over(&self, grid: &RankGrid) -> (Handovers, Handovers) {
        let outside = |lines: &[u32], all: u32| -> Vec<u32> {
            (0..all).filter(|line| !lines.contains(line)).collect()
        };
        let other_columns = outside(&self.columns, grid.columns);
        let other_rows = outside(&self.rows, grid.rows);
        let nth = |lines: &[u32], place: usize| lines[place % lines.len()];
        let (mut aside, mut home) = (Vec::new(), Vec::new());
        for row in 0..grid.rows {
            let home_row = match other_rows.iter().position(|&one| one == row) {
                Some(place) => nth(&self.rows, place),
                None => row,
            };
            for (place, &column) in other_columns.iter().enumerate() {
                let Some(rank) = grid.rank(row, column) else {
                    continue;
                };
                let in_row = (place..place + self.columns.len())
                    .map(|place| nth(&self.columns, place))
                    .find(|&at| grid.works(row, at, Plane::Row));
                let target = in_row.filter(|_| grid.works(row, column, Plane::Row));
                match target.and_then(|at| grid.rank(row, at)) {
                    Some(partner) => aside.push((rank, partner)),
                    None => {
                        let partner = grid.rank(home_row, nth(&self.columns, place));
                        home.extend(partner.map(|partner| (rank, partner)));
                    }
                }
            }
            if home_row != row {
                for &column in &self.columns {
                    if let (Some(rank), Some(partner)) =
                        (grid.rank(row, column), grid.rank(home_row, column))
                    {
                        home.push((rank, partner));
                    }
                }
            }
        }
        (aside, home)
    }
}

/// The first line with most of something.
fn first_most(lines: &[u32], of: impl Fn(u32) -> usize) -> u32 {
    let most = lines.iter().rev().max_by_key(|&&line| of(line));
    most.copied().unwrap_or(0)
}

/// The distances below a power of two: 1, 2, 4, ... if `near`, else downwards.
fn bits(size: usize, near: bool) -> Vec<usize> {
    let mut bits: Vec<usize> = (0..size.ilog2()).map(|bit| 1 << bit).collect();
    if !near {
        bits.reverse();
    }
    bits
}

/// What every rank of the core still works on.
struct Exchange {
    /// By row and column of the core.
    ranks: Vec<u32>,
    first: Vec<u32>,
    kept: u32,
}

impl Exchange {
    fn new(core: &GridCore, grid: &RankGrid, part: VectorPart) -> Exchange {
        let places = core.rows.iter().flat_map(|&row| {
            let columns = core.columns.iter();
            columns.filter_map(move |&column| grid.rank(row, column))
        });
        Exchange {
            ranks: places.collect(),
            first: vec![part.first; core.size() as usize],
            kept: part.each * core.size(),
        }
    }

    /// Each index sends `count` chunks, from `chunk_of(index)` on, to the one at a distance.
    fn step(
        &self,
        distance: usize,
        action: Action,
        chunk_of: impl Fn(usize) -> u32,
    ) -> Vec<Transfer> {
        let indices = 0..self.ranks.len();
        let transfers = indices.map(|index| Transfer {
            chunk: chunk_of(index),
            count: self.kept,
            source: self.ranks[index],
            destination: self.ranks[index ^ distance],
            action,
        });
        transfers.collect()
    }

    /// Exchanges halves at distances of so many indices each.
    fn halve(&mut self, distances: Vec<usize>, unit: usize) -> Vec<Vec<Transfer>> {
        let mut steps = Vec::new();
        for distance in distances.into_iter().map(|distance| distance * unit) {
            self.kept /= 2;
            for (index, first) in self.first.iter_mut().enumerate() {
                *first += if index & distance > 0 { self.kept } else { 0 };
            }
            // What is sent is what the partner keeps.
            let first = &self.first;
            steps.push(self.step(distance, Action::Reduce, |index| first[index ^ distance]));
        }
        steps
    }

    /// Exchanges what is kept, twice as much each time.
    fn double(&mut self, distances: Vec<usize>, unit: usize) -> Vec<Vec<Transfer>> {
        let mut steps = Vec::new();
        for distance in distances.into_iter().map(|distance| distance * unit) {
            let first = &self.first;
            steps.push(self.step(distance, Action::Copy, |index| first[index]));
            for (index, first) in self.first.iter_mut().enumerate() {
                *first -= if index & distance > 0 { self.kept } else { 0 };
            }
            self.kept *= 2;
        }
        steps
    }
}
