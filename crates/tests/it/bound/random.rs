//! Random plans on small rings, whole and broken, in random pieces and sizes: no plan is below its
//! bounds.

use crate::reconfiguration_cost;
use opticoll::bounds::wdm_ring;
use opticoll::bounds::wdm_ring::time;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::Bytes;
use opticoll::verify::verify;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn ring(random: &mut Pcg64Mcg) -> String {
    let ranks = random.random_range(2..12u32);
    let mut ring = format!(
        "wdm_ring:ranks={ranks},wavelengths={},fibres={}",
        random.random_range(1..5),
        random.random_range(1..3)
    );
    if random.random_range(0..2) == 0 {
        ring += &format!(",ports={}", random.random_range(1..8));
    }
    if random.random_range(0..2) == 0 {
        let broken = |random: &mut Pcg64Mcg| {
            let rank = random.random_range(0..ranks);
            let way = ["cw", "ccw", ""][random.random_range(0..3usize)];
            let (from, to) = (rank, (rank + 1) % ranks);
            match way {
                "ccw" => format!("{to}-{from}{way}"),
                _ => format!("{from}-{to}{way}"),
            }
        };
        let first = broken(random);
        ring += &format!(",broken={first}");
        if first.ends_with('w') && random.random_range(0..2) == 0 {
            ring += &format!("+{}", broken(random));
        }
    }
    if random.random_range(0..4) == 0 {
        ring += &format!(",reach={}", random.random_range(1..6));
    }
    ring
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_on_any_ring_is_below_its_bounds(seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        // A rank that is cut off is refused.
        let Ok(fabric) = Fabric::parse(&ring(&mut random)) else {
            return Ok(());
        };
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let named = crate::general_algorithms().map(|record| (record.collective, record.name));
        let planned = planner::PLANNERS.iter();
        let planned = planned.flat_map(|record| {
            record.collectives.iter().map(|kind| (*kind, record.name))
        });
        let names: Vec<(CollectiveKind, &str)> = named.chain(planned).collect();
        for _ in 0..4 {
            let (kind, name) = names[random.random_range(0..names.len())];
            let collective = Collective::new(kind, ring.ranks).unwrap();
            let root = random.random_range(0..ring.ranks);
            let collective = collective.with_root(root).unwrap_or(collective);
            let spec = match name {
                "relay_tree" => format!("{name}:pieces={}", random.random_range(1..6)),
                _ => name.to_owned(),
            };
            let size = Bytes::new([0, 1, 1000, 100_000, 3_000_000][random.random_range(0..5usize)]);
            let policy = Policy::ALL[random.random_range(0..4usize)];
            let (named, method) = (spec.parse().unwrap(), TimingModel::from(policy));
            let planned = planner::plan(&named, &fabric, collective, size, &method);
            // Not every algorithm is for every ring.
            let Ok(planned) = planned else { continue };
            let plan = planned.plan.into_expanded();
            prop_assert!(verify(&plan).is_empty(), "{kind} by {name} on {fabric}");
            let collective = plan.schedule.collective;
            let least = match plan.has_one_chunk_per_lightpath() {
                true => wdm_ring::best(ring, &collective),
                false => wdm_ring::slots_for_any_load(ring, &collective),
            };
            prop_assert!(
                u64::from(plan.slots()) >= least.steps,
                "{kind} by {spec}, {collective:?}, on {fabric}: {} slots are below {least:?}",
                plan.slots()
            );
            for policy in Policy::ALL {
                let charge = reconfiguration_cost(ring, policy);
                let least = time::best(ring, &collective, size, charge).unwrap();
                let time = simulate::simulate(&plan, size, policy, "circuit").unwrap().time;
                prop_assert!(
                    time >= least.time,
                    "{kind} by {spec}, {size}, on {fabric}, {policy:?}: {time} is below {least:?}"
                );
            }
        }
    }
}
