//! Placement of the exchange of all pairs: one lightpath from every rank to every other.

use std::collections::BTreeSet;

use crate::place;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};

/// NSFNET with 22 cables.
const NSFNET: &str = "wdm_graph:ranks=14,links=0-1+0-2+0-7+1-2+1-3+2-5+3-4+3-10+4-5+4-6+5-9+5-13+\
    6-7+6-9+7-8+8-9+8-11+8-12+10-11+10-12+11-13+12-13";

/// Returns the placement of all pairs in one step.
fn all_pairs(fabric: &str, wavelengths: u32, assignment: &str) -> Plan {
    let fabric = Fabric::parse(&format!("{fabric},wavelengths={wavelengths}")).unwrap();
    let ranks = fabric.ranks();
    let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    for source in 0..ranks {
        for destination in (0..ranks).filter(|&destination| destination != source) {
            schedule.push(Transfer {
                chunk: source,
                count: 1,
                source,
                destination,
                action: Action::Copy,
            });
        }
    }
    place(schedule, &fabric, assignment, "direct".into()).unwrap()
}

/// Checks by the definition that every route leads from the source to the destination, and that no
/// two lightpaths of a slot share a channel of a link. Returns the number of slots.
#[track_caller]
fn slots_without_collisions(plan: &Plan) -> u32 {
    let graph: &WdmGraph = plan.fabric.downcast().unwrap();
    let mut used = BTreeSet::new();
    for transfer in 0..plan.len() {
        let (source, destination) = plan.schedule.ends(transfer);
        let mut vertex = source;
        for &link in plan.routes.of(transfer).unwrap() {
            let (from, to) = graph.fibre_links().ends(link).unwrap();
            assert_eq!(from, vertex);
            vertex = to;
            let channel = (plan.slot[transfer], link, plan.light[transfer]);
            assert!(used.insert(channel), "{channel:?} is used twice");
        }
        assert_eq!(vertex, destination);
    }
    plan.slots()
}

#[test]
fn all_pairs_need_the_least_numbers_of_wavelengths_that_are_known() {
    let cases = [
        // Lines: floor(N^2 / 4) (Liang and Shen 2006).
        ("wdm_mesh:dims=4", 4),
        ("wdm_mesh:dims=9", 20),
        ("wdm_mesh:dims=16", 64),
        // Rings: ceil(floor(N^2 / 4) / 2), the bound by loads.
        ("wdm_torus:dims=9", 10),
        ("wdm_torus:dims=16", 32),
        // Hypercubes: 2^(d - 1), tori of an even side k: k^3 / 8 (Beauquier 1999).
        ("wdm_torus:dims=2x2x2", 4),
        ("wdm_torus:dims=2x2x2x2", 8),
        ("wdm_torus:dims=4x4", 8),
        ("wdm_torus:dims=6x6", 27),
        ("wdm_torus:dims=8x8", 64),
        ("wdm_torus:dims=12x12", 216),
        // Bounds by loads: the sum of all distances divided by the number of links; on 4 x 8 ranks
        // 32 * 8 * 2 * 2 links of dimension 2, of which each direction has 32.
        ("wdm_torus:dims=5x5", 15),
        ("wdm_torus:dims=4x8", 32),
        ("wdm_torus:dims=4x4x4", 32),
        // A cut through the middle: 8 * 8 pairs over 4 cables.
        ("wdm_mesh:dims=4x4", 16),
        // Six shortest paths for each pair, solved to the optimum.
        (NSFNET, 12),
    ];
    for (fabric, wavelengths) in cases {
        let plan = all_pairs(fabric, wavelengths, "auto");
        let case = format!("{fabric} with {wavelengths}");
        assert_eq!(slots_without_collisions(&plan), 1, "{case}");
        let first_fit = all_pairs(fabric, wavelengths, "first_fit");
        assert!(slots_without_collisions(&first_fit) <= 2, "{fabric}");
    }
}
