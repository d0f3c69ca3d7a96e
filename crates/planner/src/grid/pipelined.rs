//! Broadcasts as pipelines of pieces in which every port is busy in every slot. A reduce is the
//! time reversal of a broadcast.
//!
//! On a grid of n rows and m columns whose transceivers all work, the vector is divided into two
//! parts of K pieces. Let D_p be the number of slots that a piece needs along a line of p ranks.
//! Let the root be in row 0 and column 0. Pieces of the first part travel along row 0 (module
//! `line`) and, D_m slots later, along all columns except column 0. Pieces of the second part
//! travel along column 0 and, D_n slots later, along all rows except row 0. So far, column 0 lacks
//! pieces of the first part, and row 0 lacks pieces of the second part. However, in each slot one
//! rank of a row is free to send to the rank in column 0 (the spare rank of module `line`). This
//! rank sends a piece of the first part that has reached the rest of the row. The piece left the
//! root D_m + D_n slots before. Columns do the same. So every rank receives one piece from each
//! plane in every slot, and K + D_m + D_n slots suffice.
//!
//! On a grid of lightpaths with k ports, the vector is divided into k parts, at most one per
//! dimension of the hypercube of the ranks. In slot t, part i travels along dimension t + i. At the
//! end the first rank repeats the last piece instead of sending new pieces, so K + d - 1 slots
//! suffice for d dimensions (module `line`). With two or more ports, two parts may instead travel
//! around a ring, one part in each direction, over lightpaths that stay up.
//!
//! Let M / B be the time of the vector over all ports of a rank, S the number of slots before the
//! last piece, and c the fixed time per slot. The plan takes T = (K + S) (c + M / (K B)), with its
//! minimum at K = sqrt(S M / (B c)).

mod line;

use crate::building::claim_steps;
use crate::selection::evaluation::{Built, Candidate};
use crate::{Planned, PlannerError, PlanningProblem};
use line::{Line, Shape};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_fabric::families::CircuitMachine::{LightpathGrid, WssGrid};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Policy;

pub(crate) const NAME: &str = "pipelined";

pub(crate) const SHAPE: &str = "shape";

const SHAPES: [(&str, Shape); 2] = [("hypercube", Shape::Hypercube), ("ring", Shape::Ring)];

const NO_HYPERCUBE: &str = "shape=hypercube needs a power of two ranks in a row or a column, on a \
     lightpath_grid in all; shape=ring takes any number";

/// Maximum number of pieces per part, as in the option's range.
const MAX_PIECES: u32 = 1 << 20;

/// Maximum number of transfers of a plan. In a plan with this many transfers, the last piece takes
/// a small fraction of the total time, so shorter pieces would save little.
const MAX_TRANSFERS: u64 = 1 << 18;
/// Maximum number of transfers as in [`MAX_TRANSFERS`], for plans in which more than a 64th of the
/// slots pass before the last rank has its first piece.
const MAX_TRANSFERS_OF_LONG_START: u64 = 1 << 20;

fn is_planned(problem: &PlanningProblem<'_>) -> bool {
    let kind = problem.collective.kind();
    matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce)
}

#[derive(Debug, Clone, Copy)]
enum Routes {
    /// Two parts, which start along a row and along a column.
    Planes { row: Line, column: Line },
    /// Several parts along one line of all ranks, each part one slot ahead of the previous part.
    Parts { line: Line, parts: u32 },
    /// Two parts around a ring, one part in each direction.
    BothWays { line: Line },
}

impl Routes {
    fn of(problem: &PlanningProblem<'_>, shape: Shape) -> Result<Routes, AlgorithmError> {
        let ranks = problem.collective.ranks();
        let root = problem.collective.root();
        let refused = |reason: &str| AlgorithmError::refused(NAME, ranks, reason);
        if !is_planned(problem) {
            return Err(refused("on a grid it plans a broadcast or a reduce only"));
        }
        let grid = match problem.fabric.circuit_machine() {
            Some(LightpathGrid(grid)) => grid,
            Some(WssGrid(grid)) => {
                let rule = "every place of the grid must have a rank whose two transceivers work";
                let (at_row, at_column) = grid.place(root);
                let row = Line::new(shape, grid.columns, at_column);
                let column = Line::new(shape, grid.rows, at_row);
                let has_shape = |line: Line| line.ranks > 1 && line.shape == shape;
                return match (grid.is_whole(), has_shape(row) || has_shape(column)) {
                    (true, true) => Ok(Routes::Planes { row, column }),
                    (true, false) => Err(refused(NO_HYPERCUBE)),
                    (false, _) => Err(refused(rule)),
                };
            }
            _ => {
                let reason = "it plans on a wdm_ring, a wss_grid or a lightpath_grid";
                return Err(refused(reason));
            }
        };
        let line = Line::new(shape, ranks, root);
        if line.shape != shape {
            return Err(refused(NO_HYPERCUBE));
        }
        match shape {
            Shape::Hypercube => Ok(Routes::Parts {
                line,
                parts: grid.ports.min(ranks.ilog2()),
            }),
            Shape::Ring if grid.ports > 1 => Ok(Routes::BothWays { line }),
            Shape::Ring => Err(refused(
                "with one port a rank cannot send to the next rank and receive from the previous \
                 rank at the same time: give a power of two ranks and shape=hypercube, or two \
                 ports",
            )),
        }
    }

    /// Returns the number of parts, and the number of slots of a plan in addition to one slot per
    /// piece.
    fn parts(self) -> (u32, u32) {
        match self {
            Routes::Planes { row, column } if row.ranks.min(column.ranks) < 2 => {
                (1, row.depth().max(column.depth()).saturating_sub(1))
            }
            Routes::Planes { row, column } => (2, row.depth() + column.depth()),
            Routes::Parts { line, parts } => (parts, line.ranks.ilog2().max(1) - 1),
            Routes::BothWays { line } => (2, line.depth() - 1),
        }
    }

    /// Calls `send(part, piece, sender, receiver)` for every hop in slot `slot`. Some pieces do not
    /// exist (negative or too large numbers); callers must skip them.
    fn slot(self, slot: u32, send: &mut impl FnMut(u32, i64, u32, u32)) {
        let at = i64::from(slot);
        match self {
            Routes::Planes { row, column } => planes(row, column, slot, send),
            Routes::Parts { line, parts } => {
                for part in 0..parts {
                    for hop in line.hops(slot + part) {
                        send(part, at - i64::from(hop.lag), hop.from, hop.to);
                    }
                }
            }
            Routes::BothWays { line } => {
                let back = |place: u32| (2 * line.root + line.ranks - place) % line.ranks;
                for hop in line.hops(slot) {
                    let piece = at - i64::from(hop.lag);
                    send(0, piece, hop.from, hop.to);
                    send(1, piece, back(hop.from), back(hop.to));
                }
            }
        }
    }
}

/// Calls `send(part, piece, sender, receiver)` for every hop in slot `slot` on a grid of switches.
fn planes(row: Line, column: Line, slot: u32, send: &mut impl FnMut(u32, i64, u32, u32)) {
    let at = i64::from(slot);
    let full_depth = i64::from(row.depth() + column.depth());
    let rank = |at_row: u32, at_column: u32| at_row * row.ranks + at_column;
    let others = |line: Line| (0..line.ranks).filter(move |place| *place != line.root);
    let is_line = row.ranks.min(column.ranks) < 2;
    if row.ranks > 1 {
        for hop in row.hops(slot) {
            let piece = at - i64::from(hop.lag);
            send(
                0,
                piece,
                rank(column.root, hop.from),
                rank(column.root, hop.to),
            );
            let later = piece - i64::from(column.depth());
            for at_row in others(column) {
                send(1, later, rank(at_row, hop.from), rank(at_row, hop.to));
            }
        }
        for at_row in others(column) {
            let receiver = rank(at_row, row.root);
            send(0, at - full_depth, rank(at_row, row.spare(slot)), receiver);
        }
    }
    if column.ranks > 1 {
        let second_part = u32::from(!is_line);
        for hop in column.hops(slot) {
            let piece = at - i64::from(hop.lag);
            send(
                second_part,
                piece,
                rank(hop.from, row.root),
                rank(hop.to, row.root),
            );
            let later = piece - i64::from(row.depth());
            for at_column in others(row) {
                send(0, later, rank(hop.from, at_column), rank(hop.to, at_column));
            }
        }
        for at_column in others(row) {
            let receiver = rank(column.root, at_column);
            send(
                1,
                at - full_depth,
                rank(column.spare(slot), at_column),
                receiver,
            );
        }
    }
}

pub(crate) fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let shapes = match spec.option(SHAPE) {
        Some(_) => vec![opticoll_algorithms::choice(spec, SHAPE, &SHAPES)?],
        None => SHAPES.map(|(_, shape)| shape).to_vec(),
    };
    let requested = spec.count("pieces", 1, MAX_PIECES)?;
    let mut fastest: Option<(u64, Routes, Shape, u32)> = None;
    let mut refused = None;
    for shape in shapes {
        let routes = match Routes::of(problem, shape) {
            Ok(routes) => routes,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        let (pieces, time) = best_pieces(problem, routes, requested)?;
        if fastest.as_ref().is_none_or(|(least, ..)| time < *least) {
            fastest = Some((time, routes, shape, pieces));
        }
    }
    match (fastest, refused) {
        (Some((_, routes, shape, pieces)), _) => Ok(build(problem, routes, shape, pieces)?.into()),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(PlannerError::NotFound { pieces: 1 }),
    }
}

/// Returns one candidate per shape.
pub(crate) fn candidates<'a>(
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = problem.collective.ranks();
    if ranks < 2 || !is_planned(problem) {
        return Ok(Vec::new());
    }
    let mut candidates = Vec::new();
    for (_, shape) in SHAPES {
        let Ok(routes) = Routes::of(problem, shape) else {
            continue;
        };
        let (pieces, time) = best_pieces(problem, routes, None)?;
        let (parts, start_slots) = routes.parts();
        let transfers = u64::from(parts) * u64::from(pieces) * u64::from(ranks - 1);
        if transfers > problem.max_transfers {
            continue;
        }
        // In a reduce, leaf ranks have all pieces at the start and request their circuits ahead of
        // other ranks. If changes of circuits are charged, a hypercube is therefore expected to
        // take twice the time.
        let runs_ahead = problem.collective.kind() == CollectiveKind::Reduce
            && problem.policy() == Policy::TwoTier
            && shape == Shape::Hypercube;
        let time = if runs_ahead {
            time.saturating_mul(2)
        } else {
            time
        };
        let problem = *problem;
        candidates.push(Candidate {
            name: named(shape, pieces).to_string(),
            slots: u64::from(pieces) + u64::from(start_slots),
            lower_bound: Time::ZERO,
            estimate: Time::from_ps(time),
            transfers: problem.work(transfers),
            build: Box::new(move |_| {
                let plan = build(&problem, routes, shape, pieces)?;
                Ok(Built::from(plan))
            }),
        });
    }
    Ok(candidates)
}

fn named(shape: Shape, pieces: u32) -> Spec {
    let shape = SHAPES.iter().find(|(_, known)| *known == shape);
    Spec::new(NAME)
        .with("pieces", pieces)
        .with(SHAPE, shape.map_or("", |(name, _)| name))
}

/// Returns the number of pieces, `requested` or the fastest, and the time of the plan in
/// picoseconds, computed as the simulator `circuit` does.
fn best_pieces(
    problem: &PlanningProblem<'_>,
    routes: Routes,
    requested: Option<u32>,
) -> Result<(u32, u64), PlannerError> {
    let (parts, start_slots) = routes.parts();
    let SlotCost { per_slot, once } = slot_cost(problem, routes)?;
    let Some(circuits) = problem.fabric.circuits() else {
        return Ok((1, 0));
    };
    let size = problem.size.get();
    let sending = |pieces: u32| {
        let bytes = Bytes::new(size.div_ceil(u64::from(parts) * u64::from(pieces)));
        u64::try_from(circuits.transmission().ps(bytes)).unwrap_or(u64::MAX)
    };
    let time = |pieces: u32| {
        let slots = u64::from(pieces) + u64::from(start_slots);
        let all_slots = slots.saturating_mul(per_slot.saturating_add(sending(pieces)));
        all_slots.saturating_add(once)
    };
    let each = u64::from(parts) * u64::from(problem.collective.ranks() - 1);
    let max_pieces_of_start = u64::from(start_slots)
        .saturating_mul(64)
        .min(MAX_TRANSFERS_OF_LONG_START / each);
    let max_pieces = (MAX_TRANSFERS / each).max(max_pieces_of_start);
    let max_pieces = max_pieces.min(size / u64::from(parts)).max(1);
    let optimum = (f64::from(start_slots) * sending(1) as f64 / per_slot.max(1) as f64).sqrt();
    let optimum = (optimum as u64).clamp(1, max_pieces);
    // Pieces consist of whole bytes. The fewest pieces with the same number of bytes, or with one
    // byte more or less, waste the fewest bytes.
    let bytes = |pieces: u64| size.div_ceil(u64::from(parts) * pieces).max(1);
    let pieces_of = |bytes: u64| size.div_ceil(u64::from(parts) * bytes);
    let near = bytes(optimum).saturating_sub(1).max(1)..=bytes(optimum) + 1;
    let candidates = near.map(pieces_of).chain([optimum, optimum + 1]);
    let candidates = candidates.map(|pieces| pieces.clamp(1, max_pieces) as u32);
    let least = candidates.min_by_key(|&pieces| (time(pieces), pieces));
    let pieces = requested.or(least).unwrap_or(1);
    Ok((pieces, time(pieces)))
}

/// Times in addition to the transmission time, in picoseconds: for each slot, and once for the
/// plan.
#[derive(Debug, Clone, Copy, Default)]
struct SlotCost {
    per_slot: u64,
    once: u64,
}

/// Returns the costs of slots. Lightpaths of a ring stay up. If a circuit is set up when data are
/// ready, the circuits of the first piece are set up one after another.
fn slot_cost(problem: &PlanningProblem<'_>, routes: Routes) -> Result<SlotCost, PlannerError> {
    let (fabric, policy) = (problem.fabric, problem.policy());
    let Some(circuits) = fabric.circuits() else {
        return Ok(SlotCost::default());
    };
    let change = circuits.change()?;
    let goes_around = |line: Line| line.shape == Shape::Ring;
    let stays_up = match routes {
        Routes::Planes { row, column } => goes_around(row) && goes_around(column),
        Routes::Parts { .. } => false,
        Routes::BothWays { .. } => true,
    };
    let setup = change.setup.plus(change.teardown)?;
    let (per_slot, once) = match circuits.charge(policy.name()) {
        Ok(ReconfigurationCharge::Never) => (Time::ZERO, Time::ZERO),
        Ok(ReconfigurationCharge::ChangedCircuit) if stays_up => {
            let (_, start_slots) = routes.parts();
            (Time::ZERO, setup.times(u64::from(start_slots) + 1)?)
        }
        Ok(ReconfigurationCharge::Groups { each_slot: false }) if stays_up => {
            (Time::ZERO, Time::ZERO)
        }
        _ => (setup, Time::ZERO),
    };
    Ok(SlotCost {
        per_slot: per_slot.plus(circuits.delay()?)?.ps(),
        once: once.ps(),
    })
}

fn build(
    problem: &PlanningProblem<'_>,
    routes: Routes,
    shape: Shape,
    pieces: u32,
) -> Result<opticoll_plan::plan::Plan, PlannerError> {
    let collective = problem.collective;
    let ranks = collective.ranks();
    let (parts, start_slots) = routes.parts();
    problem.fits(u64::from(parts) * u64::from(pieces) * u64::from(ranks - 1))?;
    let whole = Collective::new(CollectiveKind::Broadcast, ranks)?
        .with_root(collective.root())?
        .with_pieces(parts * pieces)?;
    let mut schedule = Schedule::new(whole);
    let last = i64::from(pieces) - 1;
    // True if a rank has the last piece of a part, which is also sent instead of later pieces;
    // indexed by part and then by rank.
    let mut has_last = vec![false; (parts * ranks) as usize];
    let repeats_last = matches!(routes, Routes::Parts { .. });
    for slot in 0..pieces + start_slots {
        interrupt::check();
        schedule.begin_step();
        routes.slot(slot, &mut |part, piece, from, to| {
            let piece = if repeats_last { piece.min(last) } else { piece };
            if !(0..=last).contains(&piece) {
                return;
            }
            let has_piece = piece == last
                && std::mem::replace(&mut has_last[(part * ranks + to) as usize], true);
            if !has_piece {
                let chunk = part * pieces + piece as u32;
                schedule.push(Transfer::copy(chunk, from, to));
            }
        });
    }
    schedule.claims = claim_steps(&schedule);
    if collective.kind() == CollectiveKind::Reduce {
        schedule = schedule.reversed(collective.with_pieces(parts * pieces)?);
    }
    let name = named(shape, pieces).to_string();
    Ok(opticoll_placement::place_by_default(
        schedule,
        problem.fabric,
        name,
    )?)
}
