//! Burst-switched networks. Losses are those of theory (Erlang, Engset, the reduced-load fixed
//! point, the queue with constant service) or of an independent simulation of the 2 x 5 ladder;
//! decisions are those of a slow simulator that keeps every reservation ever made.
//!
//! Statistical tests run with fixed seeds. They accept twice the half width of the interval of 95
//! %: of 10 000 seeds of a right simulator about one would fail.

mod collective;
mod rows;
mod settings;
mod slow;
mod theory;

use opticoll::families::Medium;
use opticoll::simulate::burst;
use opticoll::simulate::burst::{BurstNetwork, BurstOutcome, BurstSettings, BurstWork};

/// Returns the specification of the paper's ladder with this number of wavelengths.
fn ladder(wavelengths: u32) -> String {
    format!("wdm_ladder:rungs=5,hosts=10,wavelengths={wavelengths},rate=10Gb/s")
}

/// Returns the specification of two nodes with a fibre in each direction.
fn link(hosts: u32, wavelengths: u32) -> String {
    format!("wdm_graph:ranks=2,links=0-1,hosts={hosts},wavelengths={wavelengths},rate=10Gb/s")
}

/// Reads settings such as `source=poisson offered_load=20`.
fn settings(text: &str) -> BurstSettings {
    let words = text.split_whitespace();
    let pairs = words.map(|word| word.split_once('=').unwrap());
    BurstSettings::from_texts(pairs).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run(network: &str, text: &str) -> BurstOutcome {
    run_with(network, &settings(text))
}

fn run_with(network: &str, settings: &BurstSettings) -> BurstOutcome {
    let network = BurstNetwork::of(&Medium::parse(network).unwrap()).unwrap();
    burst::simulate(&network, &BurstWork::Random, settings, 2, |_| true).unwrap()
}
