//! A broadcast in pieces that follow one another, every port busy in every slot; a reduce is the same backwards.
//!
//! On a grid of n rows and m columns with both transceivers at work, the vector is cut into two parts of K pieces. Let the root be in
//! row 0 and column 0. The pieces of the first part go along row 0 (`line`) and, D_m slots later, from there along all
//! columns but column 0; those of the second part along column 0 and, D_n slots later, along all rows but row 0. What is missing then
//! are pieces of the first part in column 0 and of the second part in row 0. In each slot one rank of a row would send to the one in
//! column 0 by its row what that has: it sends a piece of the first part instead, which is everywhere in its row after
//! D_m + D_n slots; so with columns. Every rank thus receives a piece by each plane in every slot, and K + D_m + D_n slots are enough.
//!
//! On a grid of lightpaths with k ports the vector is cut into as many parts, at most one for each dimension of the hypercube of
//! the ranks; in slot t part i goes along dimension t + i. At the end the first rank sends the last piece again and again, as if it were the
//! next ones, so that K + d - 1 slots are enough for d dimensions (`line`). With two ports or more two parts may go around a ring instead, one each way,
//! over lightpaths that stay up.
//!
//! With M / B the time of the vector at all ports of a rank, S slots before the last piece and c for each slot,
//! T = (K + S) (c + M / (K B)), which is least at K = sqrt(S M / (B c)).

mod line;

use crate::selection::evaluation::{Built, Candidate};
use crate::{Planned, PlannerError, PlanningProblem};
use line::{Line, Shape};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::Spec;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_fabric::families::CircuitMachine::{LightPathGrid, WssGrid};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};
use opticoll_simulate::Policy;

/// The planner's name.
pub(crate) const NAME: &str = "pipelined";

/// The option that names the shape of a line.
pub(crate) const SHAPE: &str = "shape";

const SHAPES: [(&str, Shape); 2] = [("hypercube", Shape::Hypercube), ("ring", Shape::Ring)];

const NO_HYPERCUBE: &str = "shape=hypercube needs a power of two ranks in a row or a column, on a light_path_grid in all; shape=ring \
     takes any number";

const MOST_PIECES: u32 = 1 << 20;

/// More transfers are not worth their making: the last piece is then a small part of all.
const MOST_TRANSFERS: u64 = 1 << 18;
/// The same as long as the slots before the last rank has its first piece are more than a 64th of all.
const MOST_FOR_REST: u64 = 1 << 20;

fn is_planned(problem: &PlanningProblem<'_>) -> bool {
    let kind = problem.collective.kind();
    matches!(kind, CollectiveKind::Broadcast | CollectiveKind::Reduce)
}

/// Where pieces go.
#[derive(Debug, Clone, Copy)]
enum Course {
    /// Along a row and a column, at once.
    Planes { row: Line, column: Line },
    /// So many parts along one line of all ranks, each a slot ahead of the one before.
    Parts { line: Line, parts: u32 },
    /// Two parts around a ring, one each way.
    BothWays { line: Line },
}

impl Course {
    fn of(problem: &PlanningProblem<'_>, shape: Shape) -> Result<Course, AlgorithmError> {
        let ranks = problem.collective.ranks();
        let root = problem.collective.root();
        let refused = |reason: &str| AlgorithmError::Refused {
            name: NAME,
            ranks,
            reason: reason.into(),
        };
        if !is_planned(problem) {
            return Err(refused("on a grid it plans a broadcast or a reduce"));
        }
        let grid = match problem.fabric.circuit_machine() {
            Some(LightPathGrid(grid)) => grid,
            Some(WssGrid(grid)) => {
                let rule = "every place of the grid must have a rank whose two transceivers work";
                let (at_row, at_column) = grid.place(root);
                let row = Line::new(shape, grid.columns, at_column);
                let column = Line::new(shape, grid.rows, at_row);
                let has_shape = |line: Line| line.ranks > 1 && line.shape == shape;
                return match (grid.is_whole(), has_shape(row) || has_shape(column)) {
                    (true, true) => Ok(Course::Planes { row, column }),
                    (true, false) => Err(refused(NO_HYPERCUBE)),
                    (false, _) => Err(refused(rule)),
                };
            }
            _ => {
                let reason = "it plans on a wdm_ring, a wss_grid or a light_path_grid";
                return Err(refused(reason));
            }
        };
        let line = Line::new(shape, ranks, root);
        if line.shape != shape {
            return Err(refused(NO_HYPERCUBE));
        }
        match shape {
            Shape::Hypercube => Ok(Course::Parts {
                line,
                parts: grid.ports.min(ranks.ilog2()),
            }),
            Shape::Ring if grid.ports > 1 => Ok(Course::BothWays { line }),
            Shape::Ring => Err(refused(
                "with one port a rank cannot send to the next and receive from the one before at once: give a power \
                 of two ranks and shape=hypercube, or two ports",
            )),
        }
    }

    /// The parts that follow their own courses, and the slots that a piece of any takes beyond its own.
    fn parts(self) -> (u32, u32) {
        match self {
            Course::Planes { row, column } if row.ranks.min(column.ranks) < 2 => {
                (1, row.depth().max(column.depth()).saturating_sub(1))
            }
            Course::Planes { row, column } => (2, row.depth() + column.depth()),
            Course::Parts { line, parts } => (parts, line.ranks.ilog2().max(1) - 1),
            Course::BothWays { line } => (2, line.depth() - 1),
        }
    }

    /// Calls `send` for all hops of a slot with the part and the piece, which may not exist.
    fn slot(self, slot: u32, send: &mut impl FnMut(u32, i64, u32, u32)) {
        let at = i64::from(slot);
        match self {
            Course::Planes { row, column } => planes(row, column, slot, send),
            Course::Parts { line, parts } => {
                for part in 0..parts {
                    for hop in line.hops(slot + part) {
                        send(part, at - i64::from(hop.lag), hop.from, hop.to);
                    }
                }
            }
            Course::BothWays { line } => {
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

/// The hops of a slot on a grid.
fn planes(row: Line, column: Line, slot: u32, send: &mut impl FnMut(u32, i64, u32, u32)) {
    let at = i64::from(slot);
    let all = i64::from(row.depth() + column.depth());
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
            let home = rank(at_row, row.root);
            send(0, at - all, rank(at_row, row.spare(slot)), home);
        }
    }
    if column.ranks > 1 {
        let own = u32::from(!is_line);
        for hop in column.hops(slot) {
            let piece = at - i64::from(hop.lag);
            send(own, piece, rank(hop.from, row.root), rank(hop.to, row.root));
            let later = piece - i64::from(row.depth());
            for at_column in others(row) {
                send(0, later, rank(hop.from, at_column), rank(hop.to, at_column));
            }
        }
        for at_column in others(row) {
            let home = rank(column.root, at_column);
            send(1, at - all, rank(column.spare(slot), at_column), home);
        }
    }
}

pub(crate) fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let shapes = match spec.option(SHAPE) {
        Some(_) => vec![opticoll_algorithms::choice(spec, SHAPE, &SHAPES)?],
        None => SHAPES.map(|(_, shape)| shape).to_vec(),
    };
    let given = spec.count("pieces", 1, MOST_PIECES)?;
    let mut best: Option<(u64, Course, Shape, u32)> = None;
    let mut refused = None;
    for shape in shapes {
        let course = match Course::of(problem, shape) {
            Ok(course) => course,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        let (pieces, time) = fewest(problem, course, given)?;
        if best.as_ref().is_none_or(|(least, ..)| time < *least) {
            best = Some((time, course, shape, pieces));
        }
    }
    match (best, refused) {
        (Some((_, course, shape, pieces)), _) => Ok(placed(problem, course, shape, pieces)?.into()),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(PlannerError::NotFound { pieces: 1 }),
    }
}

/// A plan of each shape.
pub(crate) fn candidates<'a>(
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = problem.collective.ranks();
    if ranks < 2 || !is_planned(problem) {
        return Ok(Vec::new());
    }
    let mut candidates = Vec::new();
    for (_, shape) in SHAPES {
        let Ok(course) = Course::of(problem, shape) else {
            continue;
        };
        let (pieces, time) = fewest(problem, course, None)?;
        let (parts, after) = course.parts();
        let transfers = u64::from(parts) * u64::from(pieces) * u64::from(ranks - 1);
        if transfers > problem.most_transfers {
            continue;
        }
        // Leaves have all pieces of a reduce at the start, and ask for their circuits ahead of others: where changed circuits are charged, a hypercube is
        // expected to take twice the time.
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
            slots: u64::from(pieces) + u64::from(after),
            least: Time::ZERO,
            estimate: Time::from_ps(time),
            transfers: problem.work(transfers),
            make: Box::new(move |_| {
                let plan = placed(&problem, course, shape, pieces)?;
                Ok(Built::from(plan))
            }),
        });
    }
    Ok(candidates)
}

fn named(shape: Shape, pieces: u32) -> Spec {
    let shape = SHAPES.iter().find(|(_, one)| *one == shape);
    Spec::new(NAME)
        .with("pieces", pieces)
        .with(SHAPE, shape.map_or("", |(name, _)| name))
}

/// The number of pieces that takes the least time, and that time in picoseconds, as the simulator `circuit` has it.
fn fewest(
    problem: &PlanningProblem<'_>,
    course: Course,
    given: Option<u32>,
) -> Result<(u32, u64), PlannerError> {
    let (parts, after) = course.parts();
    let SlotPrice { per_slot, once } = slot_price(problem, course)?;
    let Some(circuits) = problem.fabric.circuits() else {
        return Ok((1, 0));
    };
    let size = problem.size.get();
    let sending = |pieces: u32| {
        let bytes = Bytes::new(size.div_ceil(u64::from(parts) * u64::from(pieces)));
        u64::try_from(circuits.transmission().ps(bytes)).unwrap_or(u64::MAX)
    };
    let time = |pieces: u32| {
        let slots = u64::from(pieces) + u64::from(after);
        let all = slots.saturating_mul(per_slot.saturating_add(sending(pieces)));
        all.saturating_add(once)
    };
    let each = u64::from(parts) * u64::from(problem.collective.ranks() - 1);
    let enough = u64::from(after)
        .saturating_mul(64)
        .min(MOST_FOR_REST / each);
    let room = (MOST_TRANSFERS / each).max(enough);
    let room = room.min(size / u64::from(parts)).max(1);
    let best = (f64::from(after) * sending(1) as f64 / per_slot.max(1) as f64).sqrt();
    let best = (best as u64).clamp(1, room);
    // Pieces are whole bytes: as few as have no more bytes, or a byte more or less, waste the least.
    let bytes = |pieces: u64| size.div_ceil(u64::from(parts) * pieces).max(1);
    let of_bytes = |bytes: u64| size.div_ceil(u64::from(parts) * bytes);
    let near = bytes(best).saturating_sub(1).max(1)..=bytes(best) + 1;
    let tried = near.map(of_bytes).chain([best, best + 1]);
    let tried = tried.map(|pieces| pieces.clamp(1, room) as u32);
    let least = tried.min_by_key(|&pieces| (time(pieces), pieces));
    let pieces = given.or(least).unwrap_or(1);
    Ok((pieces, time(pieces)))
}

/// What slots take beside their bytes, in picoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct SlotPrice {
    per_slot: u64,
    once: u64,
}

/// A ring of lightpaths stays up. Where circuits are asked for when there is something to send, those that the first piece takes are set
/// up one after the other.
fn slot_price(problem: &PlanningProblem<'_>, course: Course) -> Result<SlotPrice, PlannerError> {
    let (fabric, policy) = (problem.fabric, problem.policy());
    let Some(circuits) = fabric.circuits() else {
        return Ok(SlotPrice::default());
    };
    let change = circuits.change()?;
    let goes_around = |line: Line| line.shape == Shape::Ring;
    let stays_up = match course {
        Course::Planes { row, column } => goes_around(row) && goes_around(column),
        Course::Parts { .. } => false,
        Course::BothWays { .. } => true,
    };
    let set_up = change.set_up.plus(change.release)?;
    let (per_slot, once) = match circuits.charge(policy.name()) {
        Ok(Charge::Never) => (Time::ZERO, Time::ZERO),
        Ok(Charge::ChangedCircuit) if stays_up => {
            let (_, after) = course.parts();
            (Time::ZERO, set_up.times(u64::from(after) + 1)?)
        }
        Ok(Charge::Groups { each_slot: false }) if stays_up => (Time::ZERO, Time::ZERO),
        _ => (set_up, Time::ZERO),
    };
    Ok(SlotPrice {
        per_slot: per_slot.plus(circuits.delay()?)?.ps(),
        once: once.ps(),
    })
}

/// The plan in so many pieces.
///
/// # Errors
/// More transfers than are allowed.
fn placed(
    problem: &PlanningProblem<'_>,
    course: Course,
    shape: Shape,
    pieces: u32,
) -> Result<opticoll_plan::plan::Plan, PlannerError> {
    let collective = problem.collective;
    let ranks = collective.ranks();
    let (parts, after) = course.parts();
    problem.fits(u64::from(parts) * u64::from(pieces) * u64::from(ranks - 1))?;
    let whole = Collective::new(CollectiveKind::Broadcast, ranks)?
        .with_root(collective.root())?
        .with_pieces(parts * pieces)?;
    let mut schedule = Schedule::new(whole);
    let last = i64::from(pieces) - 1;
    // Where the last piece stands for those after it, by part and rank: whether it is there.
    let mut has_last = vec![false; (parts * ranks) as usize];
    let goes_on = matches!(course, Course::Parts { .. });
    for slot in 0..pieces + after {
        interrupt::check();
        schedule.begin_step();
        course.slot(slot, &mut |part, piece, from, to| {
            let piece = if goes_on { piece.min(last) } else { piece };
            if !(0..=last).contains(&piece) {
                return;
            }
            let is_there = piece == last
                && std::mem::replace(&mut has_last[(part * ranks + to) as usize], true);
            if !is_there {
                let chunk = part * pieces + piece as u32;
                schedule.push(Transfer::copy(chunk, from, to));
            }
        });
    }
    schedule.claims = Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
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
