//! Chooses plans for `N,w,size,policy` given and prints time beside the bound.
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::{planner, verify};
use std::time::Instant;
fn main() {
    for pair in std::env::args().skip(1) {
        let parts: Vec<&str> = pair.split(',').collect();
        let fabric = Fabric::parse(&format!(
            "wdm_ring:ranks={},wavelengths={}",
            parts[0], parts[1]
        ))
        .unwrap();
        let c = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        let t = Instant::now();
        let aim = planner::Aim {
            size: parts[2].parse().unwrap(),
            policy: parts[3].parse().unwrap(),
            most_transfers: parts.get(4).map_or(20_000_000, |p| p.parse().unwrap()),
        };
        let choice = planner::auto(&fabric, c, aim).unwrap();
        let tp = t.elapsed();
        let v = verify::verify(&choice.plan);
        println!(
            "{pair}: {:?} {:?} ({:?})",
            choice.reasons,
            v.first().map(|v| v.sentence.clone()),
            tp
        );
        if parts.len() > 5 {
            for c in &choice.candidates {
                println!("   {c:?}");
            }
        }
    }
}
