//! Pipelined plans over static circuits: on rings ([`crate::ring::pipelined`]), and on grids of
//! switches or of lightpaths ([`crate::grid::pipelined`]).

use crate::grid::pipelined::{self as on_grids, NAME, SHAPE};
use crate::ring::{pipelined, recipe};
use crate::selection::evaluation::Candidate;
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, ring_of};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::families::CircuitMachine::{LightpathGrid, WdmRing, WssGrid};
use opticoll_plan::collective::CollectiveKind;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "pieces",
            "number of chunks into which the part of the data on each channel (on a grid, in \
            each direction) is cut; for a scatter or gather, number of chunks of each block",
        )
        .range("1 to 65536, on a grid 1 to 1048576")
        .default("the number with the shortest time"),
        OptionRecord::new(
            SHAPE,
            "route of pieces along a row or column of a grid; a row or column is always a \
            ring if its length is not a power of two",
        )
        .range("hypercube, ring")
        .default("the faster one"),
    ],
    depends_on_size: true,
    ..Planner::new(
        NAME,
        "Pipelined",
        &[
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllReduce,
        ],
        "Pieces sent one after the other in both directions around a ring, along rows and columns \
         at the same time, or along a hypercube",
        "opticoll; chains as in MPI libraries; along a line Johnsson and Ho, IEEE Transactions on \
         Computers 1989",
        Scope::Any(
            |fabric| {
                let machine = fabric.circuit_machine();
                matches!(machine, Some(WdmRing(_) | WssGrid(_) | LightpathGrid(_)))
            },
            plan,
            candidates,
        ),
    )
};

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    match ring_of(problem.fabric) {
        Some(_) if spec.option(SHAPE).is_some() => {
            Err(spec.refuse(SHAPE, "is for grids alone").into())
        }
        Some(ring) => recipe::plan::<pipelined::RingPipeline>(spec, problem, ring),
        None => on_grids::plan(spec, problem),
    }
}

fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    match ring_of(problem.fabric) {
        Some(ring) => pipelined::candidates(problem, ring),
        None => on_grids::candidates(problem),
    }
}
