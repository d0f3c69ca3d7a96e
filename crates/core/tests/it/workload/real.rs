//! Real runs of the NAS benchmarks against what their traces say of themselves, and against times that
//! an independent simulator gives for the same messages.

use std::time::Instant;

use opticoll::units::{Rate, Time};
use opticoll::workload::cost::{CostModel, Hockney, LogGp, Zero};
use opticoll::workload::expand::{Algorithms, expand};
use opticoll::workload::program::{Call, Program};
use opticoll::workload::replay::{Replayed, Settings, replay};
use opticoll::workload::{csv, trace::Trace};

use super::table;

fn program(application: &str) -> (Trace, Program) {
    let trace = csv::read(&table(application)).unwrap();
    let program = expand(&trace, &Algorithms::default()).unwrap();
    (trace, program)
}

fn run(program: &Program, model: &mut impl CostModel) -> Replayed {
    replay(program, model, Settings::default()).unwrap()
}

/// Application, rows, makespan on a network of zero cost in ns (computed by LogGOPSim from the same
/// messages with L = o = g = G = 0).
const RUNS: &[(&str, usize, u64)] = &[
    ("ep", 112, 234_096_151),
    ("ft", 336, 145_621_157),
    ("mg", 34_720, 109_920_604),
    ("is", 637, 70_222_527),
    ("cg", 141_376, 115_317_535),
];

#[test]
fn a_free_network_takes_as_long_as_an_independent_simulator_says() {
    for &(application, rows, expected) in RUNS {
        let text = table(application);
        let begin = Instant::now();
        let trace = csv::read(&text).unwrap();
        let read = begin.elapsed();
        let program = expand(&trace, &Algorithms::default()).unwrap();
        let expanded = begin.elapsed() - read;
        let replayed = run(&program, &mut Zero);
        println!(
            "{application}: read {read:?}, expand {expanded:?}, replay {:?}, {} nodes, {} events",
            begin.elapsed() - read - expanded,
            program.len(),
            replayed.events
        );
        assert_eq!(trace.events(), rows, "{application}");
        assert_eq!(
            replayed.time,
            Time::from_ps(expected * 1000),
            "{application}"
        );
    }
}
