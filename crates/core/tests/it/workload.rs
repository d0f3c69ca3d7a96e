//! Traces: readers, checks, replays, and the cost of light paths.

mod bursts;
mod fabrics;
mod goal;
mod kept;
mod light_paths;
mod malformed;
mod on_demand;
mod real;
mod semantics;
mod set_up;
mod time_independent;

use opticoll::workload::cost::CostModel;
use opticoll::workload::csv;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::Program;
use opticoll::workload::replay::{Replayed, Settings, replay};

fn run(program: &Program, model: &mut impl CostModel) -> Replayed {
    let settings = Settings {
        timeline: true,
        ..Settings::default()
    };
    replay(program, model, settings).unwrap()
}

/// The program of an event table of `ranks` ranks whose rows are `rank,call,peer,send_bytes,recv_bytes,tag,
/// comm,req,compute_ns`. The first row is line 3.
fn program_of(ranks: u32, rows: &str) -> Result<Program, TraceError> {
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    let text = format!("# app=test ranks={ranks}\n{header}\n{rows}");
    expand(&csv::read(&text)?, &Algorithms::default())
}
