//! Decompositions over circuit switches.

use super::*;
use opticoll::simulate::Policy;

/// The time of the decomposition, and what the bound of plans without relays says.
fn against_the_bound(fabric: &str, demand: DemandMatrix, size: u64, policy: Policy) -> (f64, f64) {
    let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
    let collective = demanding(demand);
    let method = Method::from(policy);
    let plan = proved("decomposition", &fabric, collective, size, &method);
    let time = time(&plan, size, &method);
    let bounds = time_bounds(&fabric, &collective, Bytes::new(size), &method).unwrap();
    let direct = bounds
        .iter()
        .find(|one| one.bound.name == "direct")
        .unwrap();
    (time.seconds(), direct.bound.time.seconds())
}

#[test]
fn gaps() {
    for planes in [1, 2, 4] {
        for demand in ["random", "zipf:exponent=1.2", "one_hot"] {
            let demand_matrix = generated(demand, 128);
            let matrix = demand_matrix.matrix();
            let mean = matrix.iter().sum::<u64>() as f64 / 128.0 / demand_matrix.largest() as f64;
            let size = 1u64 << 30;
            // 800 Gb/s: 10 ps a byte.
            for percent in [0.1, 1.0, 10.0] {
                let change = (mean * size as f64 * 10.0 * percent / 100.0 / 1000.0) as u64;
                for policy in [Policy::AllStop, Policy::Planes, Policy::PerPort] {
                    let fabric = format!(
                        "ranks=128,ports={planes},planes={planes},rate=800Gb/s,startup=0s,latency=0s,reconfiguration={change}ns"
                    );
                    let start = std::time::Instant::now();
                    let (time, bound) =
                        against_the_bound(&fabric, demand_matrix.clone(), size, policy);
                    println!(
                        "{demand} {planes} {percent} {} gap {:.2} % in {:?}",
                        policy.name(),
                        100.0 * (time / bound - 1.0),
                        start.elapsed()
                    );
                }
            }
        }
    }
}
