//! Runs one case of flows as `validation/simgrid_peer.cpp` does under SimGrid, and prints the same
//! lines.
//!
//! `cargo run --release --example fluid_peer FABRIC CASE [inverse_latency]`, where the case is a
//! file of lines `chain SOURCE START_PS`, each followed by its flows, one after another, as `flow
//! DESTINATION BYTES`; or `pattern ring|shift|doubling|pairwise RANKS BLOCK`, steps under the start
//! rule rendezvous. The first line printed has the seconds of the processor for building the fabric
//! and for running, and the peak of memory in MB where the system says it.

use std::error::Error;
use std::time::Instant;

use opticoll::fabric::Fabric;
use opticoll::network::Network;
use opticoll::simulate::fluid::{
    Flow, FlowOptions, Flows, StartRule, StepFlow, Steps, Weights, simulate_flows, simulate_steps,
};
use opticoll::simulate::outcome::FluidOutcome;
use opticoll::units::{Bytes, Time, UnitError};

/// Steps in which every rank sends one message and receives one.
struct Pattern {
    name: String,
    ranks: u32,
    block: u64,
}

impl Steps for Pattern {
    fn steps(&self) -> usize {
        match self.name.as_str() {
            "doubling" => self.ranks.ilog2() as usize,
            _ => self.ranks as usize - 1,
        }
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let step = step as u32;
        flows.extend((0..self.ranks).map(|source| {
            let (destination, bytes) = match self.name.as_str() {
                "shift" => ((source + step + 1) % self.ranks, self.block),
                "pairwise" => (source ^ (step + 1), self.block),
                "doubling" => (source ^ (1 << step), self.block << step),
                _ => ((source + 1) % self.ranks, self.block),
            };
            StepFlow {
                source,
                destination,
                bytes,
            }
        }));
        Ok(())
    }
}

enum Case {
    Chains(Flows),
    Pattern(Pattern),
}

fn read(text: &str) -> Result<Case, Box<dyn Error>> {
    let mut flows = Flows::default();
    let (mut source, mut release, mut first) = (0, Time::ZERO, true);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["chain", from, start] => {
                (source, release) = (from.parse()?, Time::from_ps(start.parse()?));
                first = true;
            }
            ["flow", to, bytes] => {
                let mut flow = Flow::new(source, to.parse()?, Bytes::new(bytes.parse()?));
                let after: &[u32] = if first {
                    flow.release = release;
                    &[]
                } else {
                    &[flows.len() as u32 - 1]
                };
                flows.push(flow, after);
                first = false;
            }
            ["pattern", name, ranks, block] => {
                return Ok(Case::Pattern(Pattern {
                    name: name.to_owned(),
                    ranks: ranks.parse()?,
                    block: block.parse()?,
                }));
            }
            _ => return Err(format!("not understood: {line}").into()),
        }
    }
    Ok(Case::Chains(flows))
}

fn run(
    network: &dyn Network,
    case: &Case,
    weights: Weights,
) -> Result<FluidOutcome, Box<dyn Error>> {
    let options = FlowOptions {
        weights,
        record_flows: matches!(case, Case::Chains(_)),
        ..FlowOptions::default()
    };
    Ok(match case {
        Case::Chains(flows) => simulate_flows(network, flows, &options)?,
        Case::Pattern(steps) => simulate_steps(network, steps, StartRule::Rendezvous, &options)?,
    })
}

/// A clock of the processor's time if the system reports that time, and of the wall time otherwise.
struct Clock(Instant);

impl Clock {
    fn seconds(&self) -> f64 {
        // Nanoseconds that this thread ran, those that it waited, how often.
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ran = told
            .split_whitespace()
            .next()
            .and_then(|word| word.parse::<f64>().ok());
        ran.map_or_else(|| self.0.elapsed().as_secs_f64(), |ran| ran * 1e-9)
    }
}

/// Returns the peak of resident memory in MB, where the system reports it.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (fabric, case, weights) = match &words[..] {
        [fabric, case] => (fabric, case, Weights::Equal),
        [fabric, case, weights] if weights == "inverse_latency" => {
            (fabric, case, Weights::InverseLatency)
        }
        _ => return Err("usage: fluid_peer FABRIC CASE [inverse_latency]".into()),
    };
    let case = read(&std::fs::read_to_string(case)?)?;
    let clock = Clock(Instant::now());
    let begun = clock.seconds();
    let fabric = Fabric::parse(fabric)?;
    let network = fabric.network().ok_or("the fabric has no links")?;
    let between = clock.seconds();
    let outcome = run(network, &case, weights)?;
    let (built, ran) = (between - begun, clock.seconds() - between);
    println!("used {built:.6} {ran:.6} {:.1}", peak_mb());
    let ends = match case {
        Case::Chains(_) => &outcome.flows.end,
        Case::Pattern(_) => &outcome.ranks.finish,
    };
    for end in ends {
        println!("{:.12}", end.seconds());
    }
    println!("end {:.12}", outcome.time.seconds());
    Ok(())
}
