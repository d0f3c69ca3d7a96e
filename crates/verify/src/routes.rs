//! Check of the routes that a plan names. Each route leads from the source to the destination of
//! its transfer over links of the fabric. Each link starts at the vertex at which the previous link
//! ends. A half-duplex link may be used in either direction. A route of light visits no vertex
//! twice.

use super::form::Admitted;
use super::report::{Fault, Report, transfer_violation};
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::Plan;
use rustc_hash::FxHashMap;

/// Reports routes that are no paths. Light on such a route, or without a route on a graph of
/// fibres, does not exist.
pub(super) fn check(plan: &Plan, admitted: &mut Admitted, report: &mut Report) {
    let fibres = plan
        .fabric
        .circuits()
        .and_then(|circuits| circuits.fibre_links());
    if plan.routes.is_empty() && fibres.is_none() {
        return;
    }
    let Some(network) = plan.fabric.network().or(fibres) else {
        report.add(ViolationKind::Route, || {
            let family = plan.fabric.family();
            let sentence =
                format!("the plan names routes, but its fabric {family} has no links for them");
            Violation::new(ViolationKind::Route, sentence)
        });
        return;
    };
    let is_light = plan.fabric.has_light();
    let packet = plan.fabric.light().and_then(|kind| kind.packet());
    // Last transfer whose light visited each vertex.
    let mut visited: FxHashMap<u32, usize> = FxHashMap::default();
    let mut wrong = Vec::new();
    for transfer in admitted.transfers() {
        interrupt::check();
        let ends = plan.schedule.ends(transfer);
        let is_new = |vertex: u32| !is_light || visited.insert(vertex, transfer) != Some(transfer);
        let unnamed = || (ViolationKind::Route, "names no links for its light".into());
        let is_packet = is_light && Some(plan.light[transfer]) == packet;
        let fault = match plan.routes.of(transfer) {
            Some(_) if is_packet => {
                let problem = "names links of light, but uses a packet network";
                Some((ViolationKind::Route, problem.into()))
            }
            None if is_packet => None,
            Some(links) => route_fault(network, ends, links, is_new),
            None => fibres.map(|_| unnamed()),
        };
        if let Some((kind, problem)) = fault {
            let slot = plan.slot[transfer];
            report.add(kind, || {
                transfer_violation(plan, kind, slot, transfer, &problem)
            });
            wrong.push(transfer);
        }
    }
    if is_light {
        admitted.darken(&wrong);
    }
}

/// Returns the first fault of the route `links`, and the rule that it breaks. `may_visit` returns
/// whether the route may visit a vertex, and is called for each vertex in order.
fn route_fault(
    network: &dyn Network,
    (source, destination): (u32, u32),
    links: &[u32],
    mut may_visit: impl FnMut(u32) -> bool,
) -> Option<Fault> {
    let wrong = |problem| Some((ViolationKind::Route, problem));
    let mut at = source;
    may_visit(source);
    for (index, &link) in links.iter().enumerate() {
        if link as usize >= network.links().len() {
            return wrong(format!("goes over link {link}, which does not exist"));
        }
        let Some((from, to)) = network.ends(link) else {
            return wrong(format!("goes over link {link}, whose ends are not known"));
        };
        let name = |link: u32| format!("link {link} ({})", network.link_name(link));
        if from == at {
            at = to;
        } else if to == at && network.leads_both_ways(link) {
            at = from;
        } else {
            let location = match index {
                0 => "where it starts".to_owned(),
                _ => format!("where {} ends", name(links[index - 1])),
            };
            let (link, vertex) = (name(link), network.vertex_name(at));
            return wrong(format!(
                "goes over {link}, which does not leave {vertex}, {location}"
            ));
        }
        if !may_visit(at) {
            let vertex = network.vertex_name(at);
            return wrong(format!("has a route that visits {vertex} twice"));
        }
    }
    if at != destination {
        let [vertex, end] = [at, destination].map(|vertex| network.vertex_name(vertex));
        return wrong(format!("has a route that ends at {vertex}, not at {end}"));
    }
    None
}
