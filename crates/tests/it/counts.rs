//! Bytes are counted exactly: if a link or a rank carries more bytes than 64 bits hold, every
//! simulator returns an error.

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::outcome::Outcome;
use opticoll::simulate::{SimulationError, TimingModel};
use opticoll::units::Bytes;

use crate::electrical::proved;
use crate::rows;

/// 10^18 bytes. 64 bits hold fewer than 19 * 10^18 bytes.
const EXABYTE: u64 = 1_000_000_000_000_000_000;

fn run(plan: &Plan, bytes: u64, settings: &[(&str, &str)]) -> Result<Outcome, SimulationError> {
    let method = TimingModel::from_settings(settings.iter().copied())?;
    simulate::run(plan, Bytes::new(bytes), &method)
}

/// A fabric of 32 ranks, a collective, an algorithm, and a setting of the simulator.
const OVERFLOWING_RUNS: &str = "
crossbar:ranks=32 | broadcast | linear | -
crossbar:ranks=32 | gather | linear | start=step
crossbar:ranks=32 | gather | linear | start=sender
crossbar:ranks=32 | all_gather | ring | -
crossbar:ranks=32 | all_gather | direct | -
fat_tree:arity=8,levels=2 | all_gather | direct | weights=inverse_latency
torus:dims=4x8 | all_gather | direct | background=nearest:rate=1GB/s
electrical_ring:ranks=32 | all_gather | direct | -
wdm_ring:ranks=32,wavelengths=64 | all_gather | direct | -
wdm_ring:ranks=32,wavelengths=64 | all_gather | direct | policy=per_port
wss_grid:rows=4,columns=8 | all_gather | direct | simulator=circuit
wss_grid:rows=4,columns=8 | all_gather | direct | simulator=control
lightpath_grid:ranks=32 | all_gather | ring | -
";

#[test]
fn more_bytes_than_64_bits_hold_are_an_error() {
    for [fabric, kind, algorithm, settings] in rows(OVERFLOWING_RUNS) {
        let settings: Vec<_> = settings.split_once('=').into_iter().collect();
        let kind: CollectiveKind = kind.parse().unwrap();
        let fabric = Fabric::parse(&format!("{fabric},rate=1000000Tb/s")).unwrap();
        let plan = proved(kind, algorithm, &fabric);
        let name = format!("{algorithm} {kind} on {}", fabric.family());
        let error = run(&plan, EXABYTE, &settings).expect_err(&name).to_string();
        assert!(error.contains("byte"), "{name}: {error}");
        // A hundredth of the size is counted: all that is sent is received.
        let outcome =
            run(&plan, EXABYTE / 100, &settings).unwrap_or_else(|error| panic!("{name}: {error}"));
        let sum = |bytes: &[u64]| bytes.iter().copied().map(u128::from).sum::<u128>();
        let expected = match kind {
            CollectiveKind::AllGather => 32 * 31,
            _ => 31,
        };
        let moved = expected * u128::from(EXABYTE / 100);
        assert!(sum(&outcome.ranks.sent) >= moved, "{name}");
        assert_eq!(
            sum(&outcome.ranks.sent),
            sum(&outcome.ranks.received),
            "{name}"
        );
    }
}
