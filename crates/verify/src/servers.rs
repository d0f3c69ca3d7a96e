//! Rules of servers joined by light.
//!
//! A packet network joins the GPUs of each server, and no two servers. Light leads only between
//! ranks of one copy of the outside fabric: with rails, between GPUs with the same number, where
//! server s is rank s of the copy. The light of each copy obeys the rules of the outside fabric.

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Report, WrongLight, each, renumbered, transfer_violation};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::gpu_servers::{Layout, Outside, ServersOnLight};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::{NamedRoutes, Plan, Relay, Repetition};
use opticoll_plan::schedule::{Schedule, Transfer};

pub(super) const RULES: Rules = Rules {
    family: "gpu_servers",
    wrong_light,
    check,
    bytes_per_transfer: 260,
};

fn rules_of(outside: &Outside) -> Option<&'static Rules> {
    let family = outside.fabric.family();
    super::RULES.iter().find(|rules| rules.family == family)
}

fn packet(fabric: &Fabric) -> Option<Light> {
    fabric.light().and_then(|kind| kind.packet())
}

fn wrong_light(fabric: &Fabric) -> WrongLight<'_> {
    let servers = fabric.downcast::<ServersOnLight>();
    let outside = servers.map(ServersOnLight::outside);
    match outside.and_then(|outside| Some((rules_of(outside)?, outside))) {
        None => each(|_| Vec::new()),
        Some((rules, outside)) => {
            let wrong = (rules.wrong_light)(&outside.fabric);
            let packet = packet(fabric);
            Box::new(move |lights| {
                let mut faults = wrong(lights);
                faults.retain(|(index, _)| Some(lights[*index]) != packet);
                faults
            })
        }
    }
}

/// Returns the copy that a rank is on, and the rank's number on this copy. Computed here, because
/// the verifier calls only methods that return stored values.
fn place(outside: &Outside, rank: u32) -> (u32, u32) {
    match outside.layout {
        Layout::Rails => (rank % outside.per_box, rank / outside.per_box),
        Layout::Flat => (0, rank),
    }
}

/// Light of one copy as a plan of the outside fabric.
struct CopyPlan {
    plan: Plan,
    /// Index in the whole plan of each transfer.
    transfers: Vec<usize>,
}

fn check(plan: &Plan, admitted: &Admitted, _: &AdmittedOrder, report: &mut Report) {
    let Some(servers) = plan.fabric.downcast::<ServersOnLight>() else {
        return report.unchecked(plan.fabric.family());
    };
    let outside = servers.outside();
    // Only the number of chunks matters here, so any collective with these chunks serves.
    let collective = Collective::new(CollectiveKind::Broadcast, outside.fabric.ranks());
    let chunks = plan.schedule.collective.chunks();
    let collective = collective.and_then(|collective| collective.with_pieces(chunks));
    let (Some(rules), Some(packet), Ok(collective)) =
        (rules_of(outside), packet(&plan.fabric), collective)
    else {
        return report.unchecked(plan.fabric.family());
    };
    let copies = match outside.layout {
        Layout::Rails => outside.per_box,
        Layout::Flat => 1,
    };
    let links = plan
        .fabric
        .routed_links()
        .map_or(0, |network| network.links().len());
    let links_per_copy = (links / copies as usize) as u32;
    let mut own_plans: Vec<CopyPlan> = (0..copies)
        .map(|_| CopyPlan {
            plan: Plan {
                fabric: outside.fabric.clone(),
                schedule: Schedule::new(collective),
                algorithm: String::new(),
                size: None,
                light: Vec::new(),
                slot: Vec::new(),
                step_slots: plan.step_slots.clone(),
                relays: Vec::new(),
                routes: NamedRoutes::default(),
                repetition: Repetition::NONE,
            },
            transfers: Vec::new(),
        })
        .collect();
    for step in 0..plan.schedule.steps() {
        own_plans
            .iter_mut()
            .for_each(|own| own.plan.schedule.begin_step());
        for transfer in admitted.transfers_in_step(plan, step) {
            interrupt::check();
            if !admitted.is_lit(transfer) {
                continue;
            }
            let (light, slot) = (plan.light[transfer], plan.slot[transfer]);
            let moved = plan.schedule.transfer(transfer);
            let relays = plan.relays_of(transfer);
            let mut add = |problem: &str| {
                let kind = ViolationKind::Path;
                report.add(kind, || {
                    transfer_violation(plan, kind, slot, transfer, problem)
                });
            };
            if light == packet || relays.iter().any(|relay| relay.light == packet) {
                let ends = [moved.source, moved.destination].map(|rank| rank / outside.per_box);
                if light != packet || !relays.is_empty() {
                    add("uses light and the packet network, but a transfer uses one of them");
                } else if ends[0] != ends[1] {
                    add("uses the packet network of a server, but leads to another server");
                }
                continue;
            }
            let ((copy, source), (other, destination)) = (
                place(outside, moved.source),
                place(outside, moved.destination),
            );
            let stays = relays
                .iter()
                .all(|relay| place(outside, relay.rank).0 == copy);
            let ranks = plan.fabric.ranks();
            if relays.iter().any(|relay| relay.rank >= ranks) {
                add("is relayed by a rank that does not exist");
                continue;
            }
            if copy != other || !stays {
                add("leads from one rail to another, but no light joins two rails");
                continue;
            }
            let own = &mut own_plans[copy as usize];
            let number = own.plan.schedule.len();
            own.plan.push(opticoll_plan::plan::Lightpath {
                slot,
                light,
                transfer: Transfer {
                    source,
                    destination,
                    ..moved
                },
            });
            own.plan.relays.extend(relays.iter().map(|relay| Relay {
                transfer: number as u32,
                rank: place(outside, relay.rank).1,
                ..*relay
            }));
            if let Some(route) = plan.routes.of(transfer) {
                // The route is on this copy: it leads from a rank of the copy over its links.
                let route: Vec<u32> = route.iter().map(|link| link % links_per_copy).collect();
                own.plan.routes.assign(number, &route);
            }
            own.transfers.push(transfer);
        }
    }
    for (copy, own) in own_plans.iter().enumerate() {
        let mut own_report = Report::default();
        let all = Admitted::all(own.plan.len());
        let order = AdmittedOrder::new(&own.plan, &all);
        (rules.check)(&own.plan, &all, &order, &mut own_report);
        for violation in own_report.finish() {
            let number = |transfer: usize| own.transfers[transfer].to_string();
            let sentence = renumbered(&violation.sentence, number, u64::from, |rank| rank);
            let sentence = match outside.layout {
                Layout::Rails => format!("rail {copy}, where ranks are servers: {sentence}"),
                Layout::Flat => sentence,
            };
            let transfers = violation
                .transfers
                .iter()
                .map(|transfer| own.transfers[*transfer]);
            report.add(violation.kind, || Violation {
                transfers: transfers.collect(),
                rank: violation.rank.map(|rank| match outside.layout {
                    Layout::Rails => rank * outside.per_box + copy as u32,
                    Layout::Flat => rank,
                }),
                sentence,
                ..violation.clone()
            });
        }
    }
}
