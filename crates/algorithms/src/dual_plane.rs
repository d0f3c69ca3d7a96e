//! Dual-plane halving and doubling: both planes of a grid exchange at the same time.
//!
//! An exchange of halving and doubling on a grid uses one of a rank's two transceivers, while the
//! other transceiver is idle. Dual-plane halving and doubling splits the vector of M bytes into two
//! parts. The part of x M bytes is exchanged first along the rows and then along the columns. The
//! part of (1 - x) M bytes is exchanged first along the columns and then along the rows. With 2^j
//! columns, 2^i rows and bandwidth B (bytes per second), the two phases of halving take the
//! following time, in units of M / B:
//!
//! max(x (1 - 2^-j), (1 - x)(1 - 2^-i)) + max(x 2^-j (1 - 2^-i), (1 - x) 2^-i (1 - 2^-j)).
//!
//! The two phases of doubling take the same time. For i = j the optimal x is 1/2. The bandwidth
//! term is then (1 - 1/N) M / B in total, half of the term of a single plane. Otherwise x is the
//! optimal fraction with a denominator of at most 16. In every phase the two parts use different
//! planes, so a step of both parts takes one slot.

use super::grid::RankGrid;
use super::grid_core::{GridCore, GridPhases, VectorPart};
use super::{Algorithm, AlgorithmError, Request};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Halving and doubling of two parts of the vector side by side, one along rows first, \
        one along columns first",
    citation: "opticoll; halving and doubling after Rabenseifner, ICCS 2004",
    ..Algorithm::new(
        "dual_plane_halving_doubling",
        "Dual-plane halving-doubling",
        CollectiveKind::AllReduce,
        build,
    )
}];

/// Maximum denominator of x, the fraction of the vector that is exchanged first along the rows.
const MAX_DENOMINATOR: u32 = 16;

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let grid = RankGrid::of(request.fabric);
    let core = GridCore::of(&grid);
    let (row_share, column_share) = shares(core.rows.len() as u64, core.columns.len() as u64);
    let rows_first = VectorPart {
        first: 0,
        per_rank: row_share,
    };
    let columns_first = VectorPart {
        first: row_share * core.size(),
        per_rank: column_share,
    };
    let pieces = (row_share + column_share) * core.size();
    let mut parts = Vec::new();
    if row_share > 0 {
        parts.push(core.all_reduce(&grid, rows_first, false));
    }
    if column_share > 0 {
        let (turned, core) = (grid.transposed(), core.transposed());
        parts.push(core.all_reduce(&turned, columns_first, false));
    }
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    append(&mut schedule, &parts);
    Ok(schedule)
}

/// Builds halving and doubling of the whole vector on a grid; only one plane is used at a time. If
/// `nearest_first`, the exchanges start along the rows, with distance 1. Otherwise they start along
/// the columns, with the largest distance.
pub(super) fn single(
    request: &Request<'_>,
    nearest_first: bool,
) -> Result<Schedule, AlgorithmError> {
    let grid = RankGrid::of(request.fabric);
    let core = GridCore::of(&grid);
    let pieces = core.size();
    let whole = VectorPart {
        first: 0,
        per_rank: 1,
    };
    let phases = if nearest_first {
        core.all_reduce(&grid, whole, nearest_first)
    } else {
        let (turned, core) = (grid.transposed(), core.transposed());
        core.all_reduce(&turned, whole, nearest_first)
    };
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    append(&mut schedule, &[phases]);
    Ok(schedule)
}

/// Appends the steps of all parts, phase by phase. A step contains the transfers of all parts.
fn append(schedule: &mut Schedule, parts: &[GridPhases]) {
    for phase in 0..8 {
        let steps = parts.iter().map(|part| part[phase].len()).max();
        for step in 0..steps.unwrap_or(0) {
            schedule.begin_step();
            let transfers = parts.iter().filter_map(|part| part[phase].get(step));
            transfers
                .flatten()
                .for_each(|transfer: &Transfer| schedule.push(*transfer));
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
}

/// Returns the shares a and b of the two parts with the shortest time. The part with share a is
/// exchanged first along the rows and has a / (a + b) of the vector. On a tie, the shares with the
/// smallest sum win.
fn shares(rows: u64, columns: u64) -> (u32, u32) {
    // Time of the two phases of halving, multiplied by rows * columns * (sum of the shares).
    let time = |rows_first: u64, columns_first: u64| {
        (rows_first * (columns - 1) * rows).max(columns_first * (rows - 1) * columns)
            + (columns_first * (columns - 1)).max(rows_first * (rows - 1))
    };
    let mut best_shares = (1, 0);
    for sum in 1..=u64::from(MAX_DENOMINATOR) {
        for rows_first in (0..=sum).rev() {
            let candidate = (rows_first, sum - rows_first);
            let is_shorter = time(candidate.0, candidate.1) * (best_shares.0 + best_shares.1)
                < time(best_shares.0, best_shares.1) * sum;
            if is_shorter {
                best_shares = candidate;
            }
        }
    }
    (best_shares.0 as u32, best_shares.1 as u32)
}
