//! Pipelines of pieces over circuits that stay up: on rings ([`crate::ring::pipelined`]), and on
//! grids of switches or of lightpaths ([`crate::grid::pipelined`]).

use crate::grid::pipelined::{self as on_grids, NAME, SHAPE};
use crate::ring::{pipelined, recipe};
use crate::selection::evaluation::Candidate;
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, ring_of};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::families::CircuitMachine::{LightPathGrid, WdmRing, WssGrid};
use opticoll_plan::collective::CollectiveKind;

/// Declaration of the planner of pipelines.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "pieces",
            "chunks that the share of a channel is cut into, on a grid the share of each way; \
             of a scatter or gather, each block",
        )
        .range("1 to 65536, on a grid 1 to 1048576")
        .default("the number that takes the least time"),
        OptionRecord::new(
            SHAPE,
            "how pieces go along a line of ranks of a grid; lines of other lengths than powers of \
             two are rings",
        )
        .range("hypercube, ring")
        .default("the faster one"),
    ],
    by_size: true,
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
        "Pieces that follow one another both ways around a ring, along rows and columns at once, \
         or along a hypercube",
        "opticoll; chains as in MPI libraries; along a line Johnsson and Ho, IEEE Transactions on \
         Computers 1989",
        Scope::Any(
            |fabric| {
                let machine = fabric.circuit_machine();
                matches!(machine, Some(WdmRing(_) | WssGrid(_) | LightPathGrid(_)))
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
