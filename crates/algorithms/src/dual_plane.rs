//! Halving and doubling in both planes of a grid at once.
//!
//! Each exchange of halving and doubling on a grid takes one of the two transceivers of a rank; the
//! other idles. Here the vector M is split in two: of one part, x M, the rows exchange first and then
//! the columns, of the other the columns first. With 2^j columns and 2^i rows, and time counted in M / B,
//! the two phases of halving take
//!
//! max(x (1 - 2^-j), (1 - x)(1 - 2^-i)) + max(x 2^-j (1 - 2^-i), (1 - x) 2^-i (1 - 2^-j)),
//!
//! those of doubling as long again. For i = j the best x is 1/2 and the bandwidth term is half that of
//! one plane, (1 - 1/N) M / B in all; otherwise x is the best fraction with a denominator up to 16. In every
//! phase the two parts use different planes, so that a step of both takes one slot.

use super::grid::RankGrid;
use super::grid_core::{GridCore, GridPhases, VectorPart};
use super::{Algorithm, AlgorithmError, Request};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// The records of this file.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Halving and doubling of two parts of the vector side by side, one along rows first, one along columns first",
    citation: "opticoll; halving and doubling after Rabenseifner, ICCS 2004",
    ..Algorithm::new(
        "dual_plane_halving_doubling",
        "Dual-plane halving-doubling",
        CollectiveKind::AllReduce,
        build,
    )
}];

/// The largest denominator of the share of a part.
const MOST_SHARES: u32 = 16;

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let grid = RankGrid::of(request.fabric);
    let core = GridCore::of(&grid);
    let (row_share, column_share) = shares(core.rows.len() as u64, core.columns.len() as u64);
    let by_rows = VectorPart {
        first: 0,
        each: row_share,
    };
    let by_columns = VectorPart {
        first: row_share * core.size(),
        each: column_share,
    };
    let pieces = (row_share + column_share) * core.size();
    let mut parts = Vec::new();
    if row_share > 0 {
        parts.push(core.all_reduce(&grid, by_rows, false));
    }
    if column_share > 0 {
        let (turned, core) = (grid.transposed(), core.transposed());
        parts.push(core.all_reduce(&turned, by_columns, false));
    }
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    append(&mut schedule, &parts);
    Ok(schedule)
}

/// Halving and doubling of the whole vector on a grid: along the rows first if `near`, with distances
/// that grow; else along the columns first, with distances that shrink.
pub(super) fn single(request: &Request<'_>, near: bool) -> Result<Schedule, AlgorithmError> {
    let grid = RankGrid::of(request.fabric);
    let core = GridCore::of(&grid);
    let pieces = core.size();
    let whole = VectorPart { first: 0, each: 1 };
    let phases = if near {
        core.all_reduce(&grid, whole, near)
    } else {
        let (turned, core) = (grid.transposed(), core.transposed());
        core.all_reduce(&turned, whole, near)
    };
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    append(&mut schedule, &[phases]);
    Ok(schedule)
}

/// Adds the steps of all parts, phase by phase, side by side.
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

/// The shares of the part whose rows come first and of the other: the least time, then the least sum.
fn shares(rows: u64, columns: u64) -> (u32, u32) {
    // The time of the two phases of halving, times rows * columns * the sum of the shares.
    let time = |by_rows: u64, by_columns: u64| {
        (by_rows * (columns - 1) * rows).max(by_columns * (rows - 1) * columns)
            + (by_columns * (columns - 1)).max(by_rows * (rows - 1))
    };
    let mut best = (1, 0);
    for sum in 1..=u64::from(MOST_SHARES) {
        for by_rows in (0..=sum).rev() {
            let found = (by_rows, sum - by_rows);
            let shorter = time(found.0, found.1) * (best.0 + best.1) < time(best.0, best.1) * sum;
            if shorter {
                best = found;
            }
        }
    }
    (best.0 as u32, best.1 as u32)
}
