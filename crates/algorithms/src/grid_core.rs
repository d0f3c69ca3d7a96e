//! Halving and doubling on a grid of rows and columns, with one hop per exchange.
//!
//! The *core* consists of 2^i rows and 2^j columns such that every position has a rank that can
//! send and receive in both planes. To determine the core, the row or column with the most gaps is
//! removed until no gap remains. A position in the core has indices p < 2^i and q < 2^j.
//!
//! In an exchange, ranks whose p (within a column) or q (within a row) differs in one bit are
//! partners, so every exchange needs one hop. In its exchanges a rank adds up 1/2, 1/4, ... of its
//! part, first along one dimension and then along the other. Finally it has the sum of 1/(2^i 2^j)
//! of the part. The same partners in reverse order collect the results, so the last exchange of the
//! first half and the first exchange of the second half use the same circuits.
//!
//! Ranks outside the core first send their part to a rank of the core, and receive the result at
//! the end. Ranks in removed columns send to a core column of their row. Then ranks in removed rows
//! send to a core row of their column. The k-th removed row (or column) maps to the k-th row (or
//! column) of the core, modulo the size of the core; on a complete grid this is an XOR with 2^i (or
//! 2^j). If that position is not usable, another position of the same row receives. If the row has
//! no usable position, the data reach the core over other ranks.

use super::grid::RankGrid;
use opticoll_fabric::fabric::Plane;
use opticoll_plan::schedule::{Action, Transfer};

/// Core of a grid: the rows and columns whose ranks exchange. The other ranks hand their data over
/// to ranks of the core.
pub(super) struct GridCore {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
}

/// A range of chunks of the vector. `first` is the index of the first chunk. `per_rank` is the
/// number of chunks for each rank of the core.
#[derive(Clone, Copy)]
pub(super) struct VectorPart {
    pub(super) first: u32,
    pub(super) per_rank: u32,
}

/// Steps of one part of the vector; indexed by phase and then by step. Phases 0 and 1 send data
/// into the core, phases 2 and 3 halve, phases 4 and 5 double, and phases 6 and 7 send results out
/// of the core. A phase uses one plane, except transfers of ranks without a direct hop to the core.
pub(super) type GridPhases = [Vec<Vec<Transfer>>; 8];

/// Pairs of ranks: (rank outside the core, rank to which it sends its data).
type Handovers = Vec<(u32, u32)>;

impl GridCore {
    /// Returns the core of a grid. If no rank can send and receive in both planes, the core is a
    /// single position.
    pub(super) fn of(grid: &RankGrid) -> GridCore {
        let mut rows: Vec<u32> = (0..grid.rows).collect();
        let mut columns: Vec<u32> = (0..grid.columns).collect();
        // The ranks of a collective may occupy only some rows and columns of a machine.
        rows.retain(|&row| (0..grid.columns).any(|column| grid.rank(row, column).is_some()));
        columns.retain(|&column| rows.iter().any(|&row| grid.rank(row, column).is_some()));
        loop {
            // A gap counts twice if the position has no rank, or if its rank can still send in
            // `plane` after the row or column is removed.
            let gap = |row: u32, column: u32, plane: Plane| {
                let absent = grid.rank(row, column).is_none();
                match grid.is_whole(row, column) {
                    true => 0,
                    false => 1 + usize::from(absent || grid.works(row, column, plane)),
                }
            };
            let row_gaps = |row: u32| {
                let gaps = columns.iter().map(|&at| gap(row, at, Plane::Column));
                gaps.sum::<usize>()
            };
            let column_gaps = |column: u32| {
                let gaps = rows.iter().map(|&row| gap(row, column, Plane::Row));
                gaps.sum::<usize>()
            };
            // Among the rows (and columns) with the most gaps, the first is removed. On a tie
            // between a row and a column, a removal that keeps the core's size is preferred.
            let keeps_core_size = |lines: &[u32]| !lines.len().is_power_of_two();
            let worst_row = first_maximum(&rows, row_gaps);
            let worst_column = first_maximum(&columns, column_gaps);
            let (most_row_gaps, most_column_gaps) =
                (row_gaps(worst_row), column_gaps(worst_column));
            if most_row_gaps == 0 {
                break;
            }
            if rows.len() == 1 && columns.len() == 1 {
                return GridCore::single(grid);
            }
            let removes_row = rows.len() > 1
                && (columns.len() == 1
                    || (most_row_gaps, keeps_core_size(&rows))
                        >= (most_column_gaps, keeps_core_size(&columns)));
            if removes_row {
                rows.retain(|&row| row != worst_row);
            } else {
                columns.retain(|&column| column != worst_column);
            }
        }
        rows.truncate(1 << rows.len().ilog2());
        columns.truncate(1 << columns.len().ilog2());
        GridCore { rows, columns }
    }

    /// Returns the core that consists of the position of the first rank.
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

    pub(super) fn size(&self) -> u32 {
        (self.rows.len() * self.columns.len()) as u32
    }

    pub(super) fn transposed(&self) -> GridCore {
        GridCore {
            rows: self.columns.clone(),
            columns: self.rows.clone(),
        }
    }

    /// Returns the phases of an all_reduce of `part`, with halving along the rows before halving
    /// along the columns. If `nearest_first`, partners at distance 1 exchange first, otherwise the
    /// most distant partners.
    pub(super) fn all_reduce(
        &self,
        grid: &RankGrid,
        part: VectorPart,
        nearest_first: bool,
    ) -> GridPhases {
        let (row_handovers, column_handovers) = self.hand_over(grid);
        let count = part.per_rank * self.size();
        let handed = |pairs: &[(u32, u32)], action: Action| {
            let transfers = pairs.iter().map(|&(waiting, partner)| {
                let (source, destination) = match action.adds() {
                    true => (waiting, partner),
                    false => (partner, waiting),
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
        let along_rows = exchange.halve(bits(self.columns.len(), nearest_first), 1);
        let height = self.columns.len();
        let along_columns = exchange.halve(bits(self.rows.len(), nearest_first), height);
        let back_columns = exchange.double(bits(self.rows.len(), !nearest_first), height);
        let back_rows = exchange.double(bits(self.columns.len(), !nearest_first), 1);
        [
            handed(&row_handovers, Action::Reduce),
            handed(&column_handovers, Action::Reduce),
            along_rows,
            along_columns,
            back_columns,
            back_rows,
            handed(&column_handovers, Action::Copy),
            handed(&row_handovers, Action::Copy),
        ]
    }

    /// Returns the handovers along rows, and the handovers along columns.
    fn hand_over(&self, grid: &RankGrid) -> (Handovers, Handovers) {
        let outside = |lines: &[u32], count: u32| -> Vec<u32> {
            (0..count).filter(|line| !lines.contains(line)).collect()
        };
        let other_columns = outside(&self.columns, grid.columns);
        let other_rows = outside(&self.rows, grid.rows);
        let nth = |lines: &[u32], place: usize| lines[place % lines.len()];
        let (mut row_handovers, mut column_handovers) = (Vec::new(), Vec::new());
        for row in 0..grid.rows {
            let home_row = match other_rows.iter().position(|&other| other == row) {
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
                    Some(partner) => row_handovers.push((rank, partner)),
                    None => {
                        let partner = grid.rank(home_row, nth(&self.columns, place));
                        column_handovers.extend(partner.map(|partner| (rank, partner)));
                    }
                }
            }
            if home_row != row {
                for &column in &self.columns {
                    if let (Some(rank), Some(partner)) =
                        (grid.rank(row, column), grid.rank(home_row, column))
                    {
                        column_handovers.push((rank, partner));
                    }
                }
            }
        }
        (row_handovers, column_handovers)
    }
}

/// Returns the line (a row or a column) with the largest `measure`. On a tie, returns the first
/// such line.
fn first_maximum(lines: &[u32], measure: impl Fn(u32) -> usize) -> u32 {
    let first = lines.iter().rev().max_by_key(|&&line| measure(line));
    first.copied().unwrap_or(0)
}

/// Returns the powers of two below `size`, ascending if `ascending`, otherwise descending.
fn bits(size: usize, ascending: bool) -> Vec<usize> {
    let mut bits: Vec<usize> = (0..size.ilog2()).map(|bit| 1 << bit).collect();
    if !ascending {
        bits.reverse();
    }
    bits
}

struct Exchange {
    /// Ranks of the core, row by row. The *index* of a rank is its position in this list.
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
            kept: part.per_rank * core.size(),
        }
    }

    /// Returns the transfers of a step in which the ranks with indices i and i XOR `distance` are
    /// partners. With `Action::Reduce`, a rank sends the chunks for which its partner keeps the
    /// sum. With `Action::Copy`, a rank sends its results.
    fn step(&self, distance: usize, action: Action) -> Vec<Transfer> {
        let indices = 0..self.ranks.len();
        let transfers = indices.map(|index| Transfer {
            chunk: match action.adds() {
                true => self.first[index ^ distance],
                false => self.first[index],
            },
            count: self.kept,
            source: self.ranks[index],
            destination: self.ranks[index ^ distance],
            action,
        });
        transfers.collect()
    }

    /// Returns the steps of halving along one dimension: partners send each other half of their
    /// current chunks. Neighbours along this dimension have indices that differ by `unit`.
    fn halve(&mut self, distances: Vec<usize>, unit: usize) -> Vec<Vec<Transfer>> {
        let mut steps = Vec::new();
        for distance in distances.into_iter().map(|distance| distance * unit) {
            self.kept /= 2;
            for (index, first) in self.first.iter_mut().enumerate() {
                *first += if index & distance > 0 { self.kept } else { 0 };
            }
            steps.push(self.step(distance, Action::Reduce));
        }
        steps
    }

    /// Returns the steps of doubling along one dimension: partners send each other all their
    /// results. Neighbours along this dimension have indices that differ by `unit`.
    fn double(&mut self, distances: Vec<usize>, unit: usize) -> Vec<Vec<Transfer>> {
        let mut steps = Vec::new();
        for distance in distances.into_iter().map(|distance| distance * unit) {
            steps.push(self.step(distance, Action::Copy));
            for (index, first) in self.first.iter_mut().enumerate() {
                *first -= if index & distance > 0 { self.kept } else { 0 };
            }
            self.kept *= 2;
        }
        steps
    }
}
