//! Rules of a graph of fibres. Each lightpath names its links, crosses at most as many links as
//! light reaches, and is on a fibre and a wavelength that exist and work. In a slot, no channel of
//! a link carries two lightpaths, no fibre carries more lightpaths than wavelengths, no vertex uses
//! more converters than it has, and no rank uses more transmitters or receivers than it has.
//! (`routes` checks that the links of a route are a path from the source to the destination. Light
//! on another route occupies no link.)
//!
//! `lightpaths` finds the transfers that share a lightpath: transfers with the same route and the
//! same light, and the transfers of a light tree.

mod lightpaths;
mod loss;

use rustc_hash::FxHashMap;

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Fault, Report, counted, each, pair_violation, transfer_violation, up_to};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use lightpaths::{Lightpath, SlotLightpaths};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};
use opticoll_plan::plan::Plan;

/// Returns the rules of a family of graphs.
pub(super) const fn rules(family: &'static str) -> Rules {
    Rules {
        family,
        wrong_light: |fabric| match fabric.downcast() {
            Some(graph) => each(|light| wrong_light(graph, light)),
            None => each(|_| Vec::new()),
        },
        check,
        bytes_per_transfer: 256,
    }
}

/// Returns the faults of a fibre or wavelength that does not exist, or of an impossible conversion.
fn wrong_light(graph: &WdmGraph, light: Light) -> Vec<Fault> {
    let GraphLight { fibre, wavelength } = GraphLight::from(light);
    let mut faults = Vec::new();
    if u32::from(fibre) >= graph.fibres {
        let problem = format!(
            "is on fibre {fibre}, but fibres are {}",
            up_to(graph.fibres)
        );
        faults.push((ViolationKind::FibreRange, problem));
    }
    if wavelength == CONVERTED {
        if !graph.converters {
            let problem = "changes its wavelength, but the fabric has no converters".into();
            faults.push((ViolationKind::Conversion, problem));
        }
    } else if u32::from(wavelength) >= graph.wavelengths {
        let wavelengths = up_to(graph.wavelengths);
        let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
        faults.push((ViolationKind::WavelengthRange, problem));
    }
    faults
}

fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(graph) = plan.fabric.downcast::<WdmGraph>() else {
        return report.unchecked(plan.fabric.family());
    };
    for transfer in admitted.transfers().filter(|&one| admitted.is_lit(one)) {
        interrupt::check();
        check_light(plan, graph, transfer, report);
    }
    let mut slots = SlotLightpaths::new(plan, graph.multicast);
    let mut channels = Channels::new(plan, graph);
    for slot in order.slots(plan) {
        interrupt::check();
        let transfers = slot.map(|position| order.at(position));
        let lightpaths = slots.of(transfers, |transfer| admitted.is_lit(transfer));
        channels.check(&lightpaths, admitted, report);
        let lit = lightpaths.iter();
        let lit = lit.filter(|lightpath| admitted.is_lit(lightpath.transfers[0]));
        lit.for_each(|lightpath| loss::check(plan, graph, lightpath, report));
        ports(plan, graph, &lightpaths, report);
    }
}

/// Reports a transfer on a dead wavelength, or beyond the reach of light.
fn check_light(plan: &Plan, graph: &WdmGraph, transfer: usize, report: &mut Report) {
    let mut fault = |kind: ViolationKind, wavelength: Option<u16>, problem: &str| {
        report.add(kind, || Violation {
            wavelength,
            ..transfer_violation(plan, kind, plan.slot[transfer], transfer, problem)
        });
    };
    let GraphLight { fibre, wavelength } = GraphLight::from(plan.light[transfer]);
    let is_dead = graph
        .dead
        .iter()
        .any(|dead| dead.fibre == u32::from(fibre) && dead.wavelength == u32::from(wavelength));
    if is_dead {
        let problem = format!("is on wavelength {wavelength} of fibre {fibre}, which is dead");
        fault(ViolationKind::DeadWavelength, Some(wavelength), &problem);
    }
    let links = plan.routes.of(transfer).map_or(0, <[u32]>::len);
    if let Some(reach) = graph.reach.filter(|&reach| links > reach as usize) {
        let links = counted(links as u64, "link");
        let problem = format!("spans {links}, but the reach of light is {reach}");
        fault(ViolationKind::Reach, None, &problem);
    }
}

/// Light on the links of a slot. Each slot uses the memory of the previous one.
struct Channels<'a> {
    plan: &'a Plan,
    graph: &'a WdmGraph,
    /// First lightpath on each channel of a link, as an index into the lightpaths of the slot.
    first: FxHashMap<(u32, Light), u32>,
    /// Further lightpaths on a channel of a link.
    others: FxHashMap<(u32, Light), Vec<u32>>,
    /// Transfers of the lightpaths on each fibre of a link, and whether some of the lightpaths are
    /// converted.
    on_fibre: FxHashMap<(u32, u8), (Vec<usize>, bool)>,
    /// Transfers of the converted lightpaths that pass each vertex.
    converted: FxHashMap<u32, Vec<usize>>,
}

impl<'a> Channels<'a> {
    fn new(plan: &'a Plan, graph: &'a WdmGraph) -> Channels<'a> {
        Channels {
            plan,
            graph,
            first: FxHashMap::default(),
            others: FxHashMap::default(),
            on_fibre: FxHashMap::default(),
            converted: FxHashMap::default(),
        }
    }

    /// Checks the lightpaths of a slot. Transfers whose light does not exist occupy no links.
    fn check(&mut self, lightpaths: &[Lightpath<'_>], admitted: &Admitted, report: &mut Report) {
        self.first.clear();
        self.others.clear();
        self.on_fibre.clear();
        self.converted.clear();
        for (index, lightpath) in lightpaths.iter().enumerate() {
            interrupt::check();
            if !admitted.is_lit(lightpath.transfers[0]) {
                continue;
            }
            let links = match lightpath.is_tree {
                true => self.tree_links(lightpath.transfers, report),
                false => self.passed(lightpath.transfers[0]).collect(),
            };
            let light = self.plan.light[lightpath.transfers[0]];
            if self.graph.converters {
                self.count(lightpath, &links);
            }
            if GraphLight::from(light).wavelength != CONVERTED {
                self.occupy(lightpaths, index, &links, report);
            }
        }
        self.overloads(report);
        self.conversions(report);
    }

    /// Returns the links of the route of `transfer`, each with `transfer`.
    fn passed(&self, transfer: usize) -> impl Iterator<Item = (u32, usize)> {
        let links = self.plan.routes.of(transfer).unwrap_or_default();
        links.iter().map(move |&link| (link, transfer))
    }

    /// Returns the links of a light tree, each with the first transfer that crosses it. Reports
    /// transfers that share a link, but not all links before it.
    fn tree_links(&self, transfers: &[usize], report: &mut Report) -> Vec<(u32, usize)> {
        // Link before each link of the tree, and the first transfer that crosses the link.
        let mut before: FxHashMap<u32, (Option<u32>, usize)> = FxHashMap::default();
        let mut links = Vec::new();
        for &transfer in transfers {
            interrupt::check();
            let mut previous = None;
            for (link, _) in self.passed(transfer) {
                match before.get(&link) {
                    None => {
                        before.insert(link, (previous, transfer));
                        links.push((link, transfer));
                    }
                    Some(&(other, first)) if other != previous => {
                        let problem = "are a light tree, but their light reaches it from two links";
                        self.collision([first, transfer], link, problem, report);
                        break;
                    }
                    Some(_) => {}
                }
                previous = Some(link);
            }
        }
        links
    }

    /// Counts a lightpath on its fibre of each link, and at each vertex at which it is converted.
    fn count(&mut self, lightpath: &Lightpath<'_>, links: &[(u32, usize)]) {
        let GraphLight { fibre, wavelength } =
            GraphLight::from(self.plan.light[lightpath.transfers[0]]);
        let is_converted = wavelength == CONVERTED;
        let source = self.plan.schedule.ends(lightpath.transfers[0]).0;
        for &(link, transfer) in links {
            let (transfers, converts) = self.on_fibre.entry((link, fibre)).or_default();
            transfers.push(transfer);
            *converts |= is_converted;
            if is_converted
                && self.graph.converters_per_vertex.is_some()
                && let Some(vertex) = self.start(transfer, link)
                && vertex != source
            {
                self.converted.entry(vertex).or_default().push(transfer);
            }
        }
    }

    /// Returns the vertex at which the light of `transfer` enters `link`.
    fn start(&self, transfer: usize, link: u32) -> Option<u32> {
        let network = self.graph.fibre_links();
        if !network.leads_both_ways(link) {
            return network.ends(link).map(|(from, _)| from);
        }
        let mut vertex = self.plan.schedule.ends(transfer).0;
        for (before, _) in self.passed(transfer).take_while(|&(one, _)| one != link) {
            let (from, to) = network.ends(before)?;
            vertex = if from == vertex { to } else { from };
        }
        Some(vertex)
    }

    /// Occupies the channel of a lightpath on its links, and reports each other lightpath with
    /// which it shares a link.
    fn occupy(
        &mut self,
        lightpaths: &[Lightpath<'_>],
        index: usize,
        links: &[(u32, usize)],
        report: &mut Report,
    ) {
        let light = self.plan.light[lightpaths[index].transfers[0]];
        let mut met: Vec<u32> = Vec::new();
        for &(link, transfer) in links {
            let first = *self.first.entry((link, light)).or_insert(index as u32);
            if first == index as u32 {
                continue;
            }
            let others = self.others.entry((link, light)).or_default();
            let earlier: Vec<u32> = [first].into_iter().chain(others.iter().copied()).collect();
            others.push(index as u32);
            if report.is_full(ViolationKind::Collision) {
                // Comparing all pairs of many lightpaths would take the square of their number.
                return report.count(ViolationKind::Collision, 1);
            }
            for other in earlier {
                interrupt::check();
                if met.contains(&other) {
                    continue;
                }
                met.push(other);
                let first = lightpaths[other as usize].transfer_on(self.plan, link);
                self.collision([first, transfer], link, "share", report);
            }
        }
    }

    fn collision(&self, transfers: [usize; 2], link: u32, problem: &str, report: &mut Report) {
        let kind = ViolationKind::Collision;
        let GraphLight { fibre, wavelength } = GraphLight::from(self.plan.light[transfers[0]]);
        let slot = self.plan.slot[transfers[0]];
        report.add(kind, || {
            let name = self.graph.fibre_links().link_name(link);
            let problem = match wavelength {
                CONVERTED => format!("{problem} on fibre {fibre} of {name}"),
                _ => format!("{problem} wavelength {wavelength} on fibre {fibre} of {name}"),
            };
            Violation {
                wavelength: Some(wavelength).filter(|&wavelength| wavelength != CONVERTED),
                ..pair_violation(self.plan, kind, slot, transfers, &problem)
            }
        });
    }

    /// Reports fibres with converted light and more lightpaths than wavelengths. Converters assign
    /// the wavelengths of each link anew, so that only the number of lightpaths counts.
    fn overloads(&self, report: &mut Report) {
        let mut overloaded = Vec::new();
        for (&(link, fibre), (transfers, converts)) in &self.on_fibre {
            interrupt::check();
            let dead = self.graph.dead.iter();
            let dead = dead.filter(|channel| channel.fibre == u32::from(fibre));
            let wavelengths = self.graph.wavelengths - dead.count() as u32;
            if *converts && transfers.len() > wavelengths as usize {
                overloaded.push((link, fibre, wavelengths));
            }
        }
        overloaded.sort_unstable();
        for (link, fibre, wavelengths) in overloaded {
            let transfers = &self.on_fibre[&(link, fibre)].0;
            let problem = format!(
                "cross fibre {fibre} of {}, which has {}",
                self.graph.fibre_links().link_name(link),
                counted(wavelengths.into(), "wavelength"),
            );
            self.too_many(ViolationKind::Overload, transfers, &problem, report);
        }
    }

    /// Reports vertices that convert more lightpaths than they have converters.
    fn conversions(&self, report: &mut Report) {
        let Some(limit) = self.graph.converters_per_vertex else {
            return;
        };
        let mut vertices: Vec<u32> = self.converted.keys().copied().collect();
        vertices.retain(|vertex| self.converted[vertex].len() > limit as usize);
        vertices.sort_unstable();
        for vertex in vertices {
            let problem = format!(
                "use converters of {}, which has {}",
                self.graph.fibre_links().vertex_name(vertex),
                counted(limit.into(), "converter"),
            );
            let transfers = &self.converted[&vertex];
            self.too_many(ViolationKind::Conversion, transfers, &problem, report);
        }
    }

    fn too_many(
        &self,
        kind: ViolationKind,
        transfers: &[usize],
        problem: &str,
        report: &mut Report,
    ) {
        report.add(kind, || {
            let slot = self.plan.slot[transfers[0]];
            let sentence = format!("slot {slot}: {} lightpaths {problem}", transfers.len());
            Violation {
                transfers: transfers.to_vec(),
                slot: Some(slot),
                ..Violation::new(kind, sentence)
            }
        });
    }
}

/// Reports ranks with too few transmitters or receivers for the lightpaths of a slot.
fn ports(plan: &Plan, graph: &WdmGraph, lightpaths: &[Lightpath<'_>], report: &mut Report) {
    let of_rank = |transfer: usize, is_sender: bool| match plan.schedule.ends(transfer) {
        (source, _) if is_sender => source,
        (_, destination) => destination,
    };
    for (limit, is_sender) in [(graph.transmitters, true), (graph.receivers, false)] {
        let Some(limit) = limit else { continue };
        // Pairs of a rank and a transfer that needs a port of the rank.
        let mut needs: Vec<(u32, usize)> = Vec::new();
        for lightpath in lightpaths {
            interrupt::check();
            let need = |transfer: usize| (of_rank(transfer, is_sender), transfer);
            if is_sender || !lightpath.is_tree {
                needs.push(need(lightpath.transfers[0]));
                continue;
            }
            // A tree needs one receiver at each destination.
            let mut drops: Vec<_> = lightpath.transfers.iter().map(|&one| need(one)).collect();
            drops.sort_unstable();
            drops.dedup_by_key(|(rank, _)| *rank);
            needs.append(&mut drops);
        }
        needs.sort_unstable();
        for uses in needs.chunk_by(|one, other| one.0 == other.0) {
            if uses.len() > limit as usize {
                too_few_ports(plan, uses, limit, is_sender, report);
            }
        }
    }
}

fn too_few_ports(
    plan: &Plan,
    uses: &[(u32, usize)],
    limit: u32,
    is_sender: bool,
    report: &mut Report,
) {
    let kind = ViolationKind::Ports;
    let (verb, port) = match is_sender {
        true => ("sends", "transmitter"),
        false => ("receives", "receiver"),
    };
    report.add(kind, || {
        let (rank, first) = uses[0];
        let slot = plan.slot[first];
        let sentence = format!(
            "slot {slot}: rank {rank} {verb} {} lightpaths at the same time, but has {}",
            uses.len(),
            counted(limit.into(), port)
        );
        Violation {
            transfers: uses.iter().map(|&(_, transfer)| transfer).collect(),
            slot: Some(slot),
            rank: Some(rank),
            ..Violation::new(kind, sentence)
        }
    });
}
