//! Traces: readers, checks, replays, and the cost of lightpaths.

mod bursts;
mod fabrics;
mod goal;
mod kept;
mod malformed;
mod on_demand;
mod real;
mod semantics;
mod setup;
mod time_independent;

use opticoll::families::Medium;
use opticoll::simulate::live::Live;
use opticoll::workload::csv;
use opticoll::workload::error::TraceError;
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::network::TransportModel;
use opticoll::workload::program::Program;
use opticoll::workload::replay::{EndCosts, ReplaySettings, Replayed, replay};

/// Returns the transport that carries the messages of this number of ranks.
fn transport(network: &str, ranks: u32) -> TransportModel {
    let medium = Medium::parse_for(network, ranks).unwrap();
    TransportModel::new(medium, None::<[(&str, &str); 0]>).unwrap()
}

fn run(program: &Program, model: &mut impl Live) -> Replayed {
    run_between(EndCosts::default(), program, model)
}

fn run_between(ends: EndCosts, program: &Program, model: &mut impl Live) -> Replayed {
    let settings = ReplaySettings {
        timeline: true,
        ends,
        ..ReplaySettings::default()
    };
    replay(program, model, settings).unwrap()
}

/// Reads the program of an event table of `ranks` ranks whose rows are
/// `rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns`. The first row is line 3.
fn program_of(ranks: u32, rows: &str) -> Result<Program, TraceError> {
    let header = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns";
    let text = format!("# app=test ranks={ranks}\n{header}\n{rows}");
    expand(&csv::read(&text)?, &Algorithms::default())
}
