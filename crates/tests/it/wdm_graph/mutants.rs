//! Mutants of valid plans: each mutation breaks one rule by construction, and the verifier names
//! this rule.

use itertools::iproduct;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::{Fabric, Light};
use opticoll::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};
use opticoll::placement::place_by_default;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;
use opticoll::verify::verify;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::{change_light, proved_plan};

const GRAPHS: [&str; 7] = [
    "wdm_torus:dims=3x3,wavelengths=3,transmitters=5",
    "wdm_mesh:dims=3x3,wavelengths=2,fibres=2,dead=1.1,receivers=5",
    "wdm_mesh:dims=5,wavelengths=3,reach=4",
    "wdm_torus:dims=4x2,wavelengths=2,converters=full",
    "wdm_mesh:dims=2x4,wavelengths=2,converters=1,reach=5",
    "wdm_torus:dims=3x3,wavelengths=2,multicast=drop_and_continue,transmitters=2,receivers=2",
    "wdm_graph:ranks=4,switches=2,links=0-4+1-4+2-5+3-5+4-5,wavelengths=2",
];

/// Returns the index of another lightpath of the same slot that shares a link with `transfer`, or
/// `None`. Transfers on the same route or of the same chunks are left out, because they may share
/// light.
fn neighbour(plan: &Plan, transfer: usize) -> Option<usize> {
    let route = plan.routes.of(transfer)?;
    let sent = |one: usize| {
        let sent = plan.schedule.transfer(one);
        (sent.source, sent.chunk)
    };
    let alone = |one: usize| {
        let twins = (0..plan.len()).filter(|&other| {
            plan.slot[other] == plan.slot[one] && plan.light[other] == plan.light[one]
        });
        twins.filter(|&other| sent(other) == sent(one)).count() == 1
    };
    (0..plan.len()).find(|&other| {
        plan.slot[other] == plan.slot[transfer]
            && sent(other) != sent(transfer)
            && alone(transfer)
            && alone(other)
            && plan.routes.number(other) != plan.routes.number(transfer)
            && GraphLight::from(plan.light[other]).wavelength != CONVERTED
            && plan
                .routes
                .of(other)
                .is_some_and(|links| links.iter().any(|link| route.contains(link)))
    })
}

/// Breaks a rule for a random transfer, and returns the name of the rule. Returns `None` if the
/// mutation does not apply to the transfer.
fn mutate(plan: &mut Plan, mutation: usize, random: &mut Pcg64Mcg) -> Option<&'static str> {
    let graph = plan.fabric.clone();
    let graph = graph.downcast::<WdmGraph>().unwrap();
    let transfer = random.random_range(0..plan.len());
    let mut route = plan.routes.of(transfer).unwrap().to_vec();
    let light = GraphLight::from(plan.light[transfer]);
    let ends = |link: u32| graph.fibre_links().ends(link).unwrap();
    match mutation {
        0 => {
            let other = neighbour(plan, transfer)?;
            plan.light[transfer] = plan.light[other];
            Some("collision")
        }
        1 => {
            change_light(&mut plan.light[transfer], |light: &mut GraphLight| {
                light.wavelength = graph.wavelengths as u16;
            });
            Some("wavelength_range")
        }
        2 => {
            change_light(&mut plan.light[transfer], |light: &mut GraphLight| {
                light.fibre = graph.fibres as u8;
            });
            Some("fibre_range")
        }
        3 if !graph.converters => {
            plan.light[transfer] = Light::from(GraphLight {
                wavelength: CONVERTED,
                ..light
            });
            Some("conversion")
        }
        4 => {
            let dead = graph.dead.first()?;
            plan.light[transfer] = Light::from(GraphLight {
                fibre: dead.fibre as u8,
                wavelength: dead.wavelength as u16,
            });
            Some("dead_wavelength")
        }
        5 => {
            // The route without its last link does not reach the destination.
            route.pop();
            plan.routes.assign(transfer, &route);
            Some("route")
        }
        6 => {
            route.remove(0);
            plan.routes.assign(transfer, &route);
            Some("route")
        }
        7 => {
            // A detour to a neighbour and back visits a vertex twice.
            let place = random.random_range(0..route.len());
            let (from, to) = ends(route[place]);
            let links = 0..graph.fibre_links().links().len() as u32;
            let back = links.clone().find(|&link| ends(link) == (to, from))?;
            let there = route[place];
            route.splice(place..place, [there, back]);
            plan.routes.assign(transfer, &route);
            Some("route")
        }
        8 => {
            let (place, other) = (0, route.len() - 1);
            route.swap(place, other);
            plan.routes.assign(transfer, &route);
            (place != other).then_some("route")
        }
        9 => {
            route.push(graph.fibre_links().links().len() as u32);
            plan.routes.assign(transfer, &route);
            Some("route")
        }
        10 => {
            let mut slots = 0..plan.slots();
            let own = plan
                .step_slots
                .iter()
                .find(|own| own.contains(&plan.slot[transfer]))?;
            let other = slots.find(|slot| !own.contains(slot))?;
            plan.slot[transfer] = other;
            Some("step_order")
        }
        11 => {
            let later = plan.slots();
            plan.slot[transfer] = later;
            Some("slot_range")
        }
        12 => {
            // The same plan, where light reaches one link less than this route has.
            let reach = route.len() - 1;
            let spec = plan.fabric.spec().without("reach").with("reach", reach);
            plan.fabric = Fabric::parse(&spec.to_string()).ok()?;
            Some("reach")
        }
        _ => None,
    }
}

#[test]
fn every_mutant_breaks_the_rule_of_its_mutation() {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut tried = std::collections::BTreeMap::new();
    let kinds = [
        CollectiveKind::AllGather,
        CollectiveKind::AllToAll,
        CollectiveKind::Broadcast,
        CollectiveKind::ReduceScatter,
    ];
    for (graph, kind) in iproduct!(GRAPHS, kinds) {
        let fabric = Fabric::parse(graph).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let size = Bytes::new(1 << 16);
        let planned = proved_plan("direct", &fabric, collective, size, &TimingModel::default());
        let plan = planned.plan;
        for (mutation, _) in iproduct!(0..13, 0..10) {
            let mut mutant = plan.clone();
            let Some(rule) = mutate(&mut mutant, mutation, &mut random) else {
                continue;
            };
            let violations = verify(&mutant);
            let mut broken = violations.iter().map(|violation| violation.kind.name());
            assert!(
                broken.any(|kind| kind == rule),
                "{rule}: {kind} on {graph} {mutation}"
            );
            *tried.entry(mutation).or_insert(0) += 1;
        }
    }
    assert_eq!(tried.len(), 13, "{tried:?}");
}

/// Ports: a limit below the greatest number of lightpaths that a rank sends (or receives) in a slot
/// of a valid plan makes the plan invalid.
#[test]
fn a_plan_needs_as_many_ports_as_its_ranks_use_at_once() {
    for (option, is_sender) in [("transmitters", true), ("receivers", false)] {
        for graph in [
            "wdm_torus:dims=3x3,wavelengths=4",
            "wdm_mesh:dims=6,wavelengths=6",
        ] {
            let fabric = Fabric::parse(graph).unwrap();
            let collective = Collective::new(CollectiveKind::AllToAll, fabric.ranks()).unwrap();
            let mut schedule = Schedule::new(collective);
            let ranks = fabric.ranks();
            let pairs = iproduct!(0..ranks, 0..ranks).filter(|(source, to)| source != to);
            for (source, destination) in pairs {
                let chunk = source * ranks + destination;
                schedule.push(Transfer::copy(chunk, source, destination));
            }
            let plan = place_by_default(schedule, &fabric, "one step".into()).unwrap();
            assert_eq!(verify(&plan), [], "{graph}");
            let mut uses = std::collections::BTreeMap::new();
            for transfer in 0..plan.len() {
                let (source, destination) = plan.schedule.ends(transfer);
                let rank = if is_sender { source } else { destination };
                *uses.entry((plan.slot[transfer], rank)).or_insert(0) += 1;
            }
            let most = *uses.values().max().unwrap();
            assert!(most > 1, "{graph}");
            for limit in [most, most - 1] {
                let over = uses.values().filter(|&&used| used > limit).count();
                let mut limited = plan.clone();
                limited.fabric = Fabric::parse(&format!("{graph},{option}={limit}")).unwrap();
                let ports = verify(&limited);
                assert!(
                    ports
                        .iter()
                        .all(|violation| violation.kind.name() == "ports")
                );
                assert_eq!(ports.len(), over, "{graph},{option}={limit}");
            }
        }
    }
}
