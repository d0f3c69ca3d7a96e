//! Graph of fibres as a machine. Its links are the directed links of the graph.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::machine::{Converters, Machine, Resources, Route};
use crate::light_routes::ShortestRoutes;
use opticoll_base::graph::UNREACHED;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Transmission;
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};

pub(super) struct GraphMachine<'a> {
    graph: &'a WdmGraph,
    vertices: u32,
    shortest: ShortestRoutes,
    /// Distances to each destination that a message has had.
    distances: FxHashMap<u32, Vec<u32>>,
    /// Routes of each pair of ranks that a message has had.
    routes: FxHashMap<(u32, u32), Rc<[Route]>>,
}

impl<'a> GraphMachine<'a> {
    pub(super) fn new(graph: &'a WdmGraph) -> GraphMachine<'a> {
        let network = graph.fibre_links();
        let ends = network.wiring().ends();
        let vertices = ends.map(|(from, to, _)| from.max(to) + 1).max();
        let vertices = vertices.unwrap_or(0).max(network.ranks());
        GraphMachine {
            graph,
            vertices,
            shortest: ShortestRoutes::new(network, vertices),
            distances: FxHashMap::default(),
            routes: FxHashMap::default(),
        }
    }
}

impl Machine for GraphMachine<'_> {
    fn resources(&self) -> Resources {
        let graph = self.graph;
        Resources {
            ranks: graph.fibre_links().ranks(),
            links: graph.fibre_links().links().len() as u32,
            channels: graph.channels(),
            transmitters: graph.transmitters,
            receivers: graph.receivers,
            converters: match (graph.converters, graph.converters_per_vertex) {
                (false, _) => Converters::None,
                (true, None) => Converters::Full,
                (true, Some(count)) => Converters::PerVertex {
                    count,
                    vertices: self.vertices,
                },
            },
            reconfiguration: graph.reconfiguration,
        }
    }

    /// Returns the graph's route and the other shortest routes, if they are within reach.
    fn routes(&mut self, source: u32, destination: u32) -> Rc<[Route]> {
        let known = self.routes.entry((source, destination));
        let routes = known.or_insert_with(|| {
            let distance = self.distances.entry(destination);
            let distance = distance.or_insert_with(|| self.shortest.distances_to(destination));
            if distance[source as usize] == UNREACHED {
                return Rc::new([]);
            }
            let network = self.graph.fibre_links();
            let routes = self
                .shortest
                .between(network, (source, destination), distance);
            let reach = self.graph.reach.map_or(usize::MAX, |reach| reach as usize);
            let routes = routes.into_iter().filter(|route| route.len() <= reach);
            routes.map(Route::from).collect()
        });
        routes.clone()
    }

    fn time(
        &self,
        _ends: (u32, u32),
        route: &[u32],
        channels: &[u32],
        bytes: Bytes,
    ) -> Result<Time, UnitError> {
        let graph = self.graph;
        let light = |(fibre, wavelength)| GraphLight { fibre, wavelength };
        // With full converters, the lightpath may use any fibre.
        let rate = match channels.is_empty() {
            true => {
                let fibres = (0..graph.fibres).map(|fibre| light((fibre as u8, CONVERTED)));
                fibres.map(|light| graph.rate_of(route, light)).min()
            }
            false => {
                let lights = channels
                    .iter()
                    .map(|&channel| light(graph.channel(channel)));
                lights.map(|light| graph.rate_of(route, light)).min()
            }
        };
        let transmission = Transmission {
            rate: rate.unwrap_or(graph.transmission.rate),
            ..graph.transmission
        };
        graph.delay_of(route)?.plus(transmission.time(bytes)?)
    }

    fn ends(&self, link: u32) -> [u32; 2] {
        let ends = self.graph.fibre_links().ends(link);
        ends.map_or([0; 2], <[u32; 2]>::from)
    }

    /// Returns all links: light between any two ranks may pass any vertex.
    fn spanned_links(&self, _span: (u32, u32)) -> Vec<u32> {
        (0..self.resources().links).collect()
    }
}
