//! GPU servers of papers and clusters: one server, or several servers joined by a network.
//!
//! Ranks are GPUs (dies of an MI250), numbered server by server. The other vertices follow:
//! switches within servers, network interfaces (NICs), and switches between servers. All vertices
//! forward messages. Rates are per direction, without protocol overheads:
//!
//! | model | within a server | between servers |
//! |---|---|---|
//! | `dgx_a100` | 8 GPUs, 300 GB/s each to one NVSwitch | NICs of 25 GB/s to two switches |
//! | `dgx_h100` | 8 GPUs, 450 GB/s each to one NVSwitch | NICs of 50 GB/s to one switch |
//! | `dgx1` | 8 V100 in a hybrid cube mesh of 24 NVLinks of 25 GB/s | |
//! | `ndv2` | as `dgx1` | two servers: 12.5 GB/s from GPU 0 of each to GPU 1 of the other |
//! | `dgx2` | 16 V100, 125 GB/s each to one switch | two servers: 12.5 GB/s per GPU pair (below) |
//! | `mi250` | 16 dies, links of 50 GB/s, up to 4 in parallel | 16 GB/s of each die to one switch |
//! | `nvl72` | 72 GPUs, 900 GB/s each to one switch | NICs of 50 GB/s to one switch |
//! | `dgx_b200` | 8 GPUs, 900 GB/s each to one NVSwitch | NICs of 50 GB/s to one switch |
//! | `l40s` | 8 GPUs, 32 GB/s each to one host bridge | |
//!
//! The NIC of GPU b of a `dgx_a100` is connected to InfiniBand switch b mod 2. In two `dgx2`
//! servers, GPUs 1, 3, ... of each server send to GPUs 0, 2, ... of the other server.
//!
//! The NVSwitches of `dgx_h100` and `nvl72` add and multicast (NVLink SHARP), unless the option
//! `in_network` says otherwise. All other switches only forward.
//!
//! Latencies from GPU to GPU, divided evenly among the cables of a route:
//!
//! | model | within a server | between servers |
//! |---|---|---|
//! | `dgx_a100`, `dgx_h100`, `nvl72`, `dgx_b200` | 1.1, 0.8, 1.15, 1.2 us | 2.7 us |
//! | `dgx1`, `ndv2`, `dgx2` | 0.3 us | 2.6 us |
//! | `mi250` | 0.6 us | 2.7 us |
//! | `l40s` | 1 us | |
//!
//! The latencies within the first four servers are measured with NCCL's all_gather of 512 B. Each
//! latency is the time that one more rank adds, from 2 ranks to 8 ranks (GB200: 4 ranks). The
//! times are published by ai-dynamo/aiconfigurator (A100 8.98 and 15.56 us, H100 5.31 and 10.14
//! us, GB200 9.36 and 11.65 us, B200 8.84 and 16.06 us). The latencies of V100 servers are from
//! TACCL's profiles (microsoft/taccl, `topo-ndv2-1MB.json`, `topo-dgx2-1MB.json`). 2.7 and 0.6 us
//! are the constants of NCCL's model for a hop over a network and over NVLink (`hwLat` in
//! `tuning.cc`, ring, LL), and 1 us that for a hop over PCIe. The MI250 uses these constants as
//! well.

mod light;
mod machine;
mod outside;
mod presets;

use std::fmt::Write;

use crate::drawing;
use crate::drawing::{Drawing, Point};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::Options;
use crate::fabric::wiring::IN_NETWORK;
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::family::custom::Custom;
use crate::library::Library;
use crate::network;
use crate::network::{InNetwork, Network, Wiring};
pub use light::ServersOnLight;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Quantity, Time};
use outside::Copies;
pub use outside::{Layout, Outside};

/// Maximum number of servers: the next power of two above the 3,072 servers of Meta's clusters with
/// 24,576 GPUs (Llama Team, arXiv:2407.21783, section 3.3.1).
const MAX_SERVERS: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    DgxA100,
    DgxH100,
    Dgx1,
    Ndv2,
    Dgx2,
    Mi250,
    Nvl72,
    DgxB200,
    L40s,
}

const MODELS: &[(&str, Model)] = &[
    ("dgx_a100", Model::DgxA100),
    ("dgx_h100", Model::DgxH100),
    ("dgx1", Model::Dgx1),
    ("ndv2", Model::Ndv2),
    ("dgx2", Model::Dgx2),
    ("mi250", Model::Mi250),
    ("nvl72", Model::Nvl72),
    ("dgx_b200", Model::DgxB200),
    ("l40s", Model::L40s),
];

/// Pairs of GPUs of a DGX-1 that NVLinks join, and the rate of each pair. The first list has the
/// pairs with two NVLinks, the second list the pairs with one NVLink.
const DGX1: [(&[(u32, u32)], &str); 2] = [
    (
        &[
            (0, 1),
            (0, 4),
            (1, 3),
            (2, 3),
            (2, 6),
            (4, 5),
            (5, 7),
            (6, 7),
        ],
        "50GB/s",
    ),
    (
        &[
            (0, 2),
            (0, 3),
            (1, 2),
            (1, 5),
            (3, 7),
            (4, 6),
            (4, 7),
            (5, 6),
        ],
        "25GB/s",
    ),
];

/// Links between the dies of eight MI250, as (die, die, number of parallel links).
const MI250: [(u32, u32, u32); 28] = [
    (0, 1, 4),
    (0, 4, 2),
    (0, 8, 1),
    (1, 5, 1),
    (1, 9, 1),
    (1, 10, 1),
    (2, 3, 4),
    (2, 6, 1),
    (2, 9, 1),
    (2, 10, 1),
    (3, 7, 2),
    (3, 11, 1),
    (4, 5, 4),
    (4, 6, 1),
    (5, 6, 1),
    (5, 7, 1),
    (6, 7, 4),
    (8, 9, 4),
    (8, 12, 2),
    (9, 13, 1),
    (10, 11, 4),
    (10, 14, 1),
    (11, 15, 2),
    (12, 13, 4),
    (12, 14, 1),
    (13, 14, 1),
    (13, 15, 1),
    (14, 15, 4),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Latencies {
    within: Time,
    between: Time,
}

/// Values of the options.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Declared {
    model: Model,
    boxes: u32,
    latencies: Latencies,
    /// Work of the switches within servers.
    in_network: InNetwork,
    library: Option<Library>,
    outside: Option<Outside>,
}

/// Servers of one model, and the network between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuServers {
    declared: Declared,
    /// Links within servers, and between them unless there is an outside.
    graph: Custom,
    /// Links within and between servers, if the outside has links.
    copies: Option<Copies>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "gpu_servers",
    summary: "GPU servers, one or several joined by a network: DGX A100, H100, DGX-1, NDv2, \
        DGX-2, MI250, NVL72, DGX B200, L40S",
    citation: "ForestColl, arXiv 2402.06787; TE-CCL, SIGCOMM 2024; SCCL, PPoPP 2021; NVIDIA's \
        data sheets",
    example: "gpu_servers:model=dgx_h100,boxes=2",
    options: || options::list(&RECORD, declared),
    build: |spec| {
        let servers = GpuServers::parse(spec)?;
        Ok(match ServersOnLight::new(&servers) {
            Some(on_light) => Fabric::new(on_light),
            None => Fabric::new(servers),
        })
    },
    presets: presets::PRESETS,
};

const LATENCY: OptionRecord = OptionRecord::new("latency", "delay of a cable within a server")
    .unit(Time::UNIT)
    .range(Time::RANGE)
    .default("the model's latency; 400ns for dgx_h100")
    .source(LATENCY_SOURCE);

const NETWORK_LATENCY: OptionRecord =
    OptionRecord::new("network_latency", "delay of a cable between servers")
        .unit(Time::UNIT)
        .range(Time::RANGE)
        .default("latency if it is given, otherwise the model's latency; 675ns for dgx_h100")
        .source(LATENCY_SOURCE);

const LATENCY_SOURCE: &str = "DGX A100, DGX H100 and NVL72 within a server: measured, NCCL's \
    all_gather of 512 B, ai-dynamo/aiconfigurator; V100: profiles of TACCL; others: NCCL, hwLat \
    of tuning.cc";

const OUTSIDE: OptionRecord = OptionRecord::new(
    "outside",
    "fabric that joins the servers, with / in place of : and commas",
)
.range("wdm_ring/wavelengths=8/rate=50GB/s, ocs_torus/dims=4x4x4, circuit_switch/rate=50GB/s")
.default("the model's network");

const LAYOUT: OptionRecord = OptionRecord::new(
    "layout",
    "copies of the outside: rails (one for each GPU of a server, which joins the GPUs of the same \
     number) or flat (one, which joins all GPUs)",
)
.range("rails, flat")
.default("rails");

fn declared(options: &mut Options<'_, GpuServers>) -> Result<Declared, FabricError> {
    let model = OptionRecord::new("model", "model of the servers");
    let model = options.word(model, MODELS, Required, |servers| servers.declared.model)?;
    let boxes = OptionRecord::new("boxes", "number of servers")
        .range("1 to the maximum of the model's source");
    let max_servers = model.max_servers();
    let boxes = options.count(boxes, max_servers, Printed(1), |servers| {
        servers.declared.boxes
    })?;
    let per_box = model.ranks();
    let outside = options.several(
        [OUTSIDE, LAYOUT],
        |spec| Outside::read(spec, [boxes, per_box]),
        |spec, outside: &Option<Outside>| match outside {
            Some(outside) => outside.print(spec),
            None => spec,
        },
        |servers| servers.declared.outside.clone(),
    )?;
    let read = |spec: &Spec| {
        let (defaults, given) = (model.latencies(), spec.value("latency")?);
        let stated = spec.value("network_latency")?;
        if stated.is_some() && outside.is_some() {
            let problem = "the outside has latencies of its own: state them there";
            return Err(spec.refuse("network_latency", problem).into());
        }
        let between = stated.or(given);
        let within = given.unwrap_or(defaults.within);
        Ok(Latencies {
            within,
            // If there is one server, or an outside, the model's network has no cables.
            between: if boxes > 1 && outside.is_none() {
                between.unwrap_or(defaults.between)
            } else {
                within
            },
        })
    };
    let print = |spec: Spec, latencies: &Latencies| {
        let spec = spec.with("latency", latencies.within);
        match latencies.between == latencies.within {
            true => spec,
            false => spec.with("network_latency", latencies.between),
        }
    };
    let records = [LATENCY, NETWORK_LATENCY];
    let latencies = options.several(records, read, print, |servers| servers.declared.latencies)?;
    let is_lit = outside
        .as_ref()
        .is_some_and(|outside| outside.fabric.has_light());
    let record = IN_NETWORK.default(
        "none with light between servers; else reduce+multicast from dgx_h100 on, none before",
    );
    let default = Silent(match is_lit {
        true => InNetwork::None,
        false => model.switch_work(),
    });
    let in_network = options.word(record, &InNetwork::WORDS, default, |servers| {
        servers.declared.in_network
    })?;
    if in_network != InNetwork::None && model.switch_rate().is_none() {
        let problem = "the servers of this model have no switch";
        return Err(options.refuse(IN_NETWORK.name, problem));
    }
    let measured = model.library().filter(|_| !is_lit);
    let library = options.several(
        Library::options(),
        |spec| Ok(Library::read(spec, measured)?),
        |spec, library| Library::print(library, measured, spec),
        |servers| servers.declared.library,
    )?;
    if is_lit && (in_network != InNetwork::None || library.is_some()) {
        let option = if library.is_some() {
            "library"
        } else {
            IN_NETWORK.name
        };
        let problem = "servers joined by light only forward, and calls have no costs: leave it out \
                       or write none";
        return Err(options.refuse(option, problem));
    }
    if outside.is_some() && model.switch_rate().is_none() {
        return Err(options.refuse("outside", "the servers of this model have no switch"));
    }
    Ok(Declared {
        model,
        boxes,
        latencies,
        in_network,
        library,
        outside,
    })
}

impl Model {
    /// Returns the maximum number of servers in the source of the model.
    fn max_servers(self) -> u32 {
        match self {
            Model::DgxA100 | Model::DgxH100 | Model::DgxB200 => MAX_SERVERS,
            Model::Mi250 | Model::Nvl72 => MAX_SERVERS,
            Model::Ndv2 | Model::Dgx2 => 2,
            Model::Dgx1 | Model::L40s => 1,
        }
    }

    fn ranks(self) -> u32 {
        match self {
            Model::DgxA100 | Model::DgxH100 | Model::DgxB200 => 8,
            Model::Dgx1 | Model::Ndv2 | Model::L40s => 8,
            Model::Dgx2 | Model::Mi250 => 16,
            Model::Nvl72 => 72,
        }
    }

    /// Returns the rate between each GPU and its server's switch, or `None` without a switch.
    fn switch_rate(self) -> Option<&'static str> {
        match self {
            Model::DgxA100 => Some("300GB/s"),
            Model::DgxH100 => Some("450GB/s"),
            Model::Dgx2 => Some("125GB/s"),
            Model::Nvl72 | Model::DgxB200 => Some("900GB/s"),
            Model::L40s => Some("32GB/s"),
            Model::Dgx1 | Model::Ndv2 | Model::Mi250 => None,
        }
    }

    /// Returns the work that the switches within servers do by default: NVSwitches have NVLink
    /// SHARP from the third generation on (NVIDIA H100 Tensor Core GPU Architecture, section
    /// "NVLink Switch System").
    fn switch_work(self) -> InNetwork {
        match self {
            Model::DgxH100 | Model::DgxB200 | Model::Nvl72 => InNetwork::Both,
            _ => InNetwork::None,
        }
    }

    /// Returns the name of the record of a library that was fitted to times of this model.
    fn library(self) -> Option<&'static str> {
        match self {
            Model::DgxA100 => Some("a100_sxm"),
            Model::DgxH100 => Some("h100_sxm"),
            Model::DgxB200 => Some("b200_sxm"),
            Model::Nvl72 => Some("gb200"),
            Model::L40s => Some("l40s"),
            Model::Dgx1 | Model::Ndv2 | Model::Dgx2 | Model::Mi250 => None,
        }
    }

    /// Returns the delays of cables. The delay of a cable is the latency from GPU to GPU divided by
    /// the number of cables on the route.
    fn latencies(self) -> Latencies {
        let (within, between) = match self {
            Model::DgxA100 => (1100 / 2, 2700 / 4),
            Model::DgxH100 => (800 / 2, 2700 / 4),
            Model::Nvl72 => (1150 / 2, 2700 / 4),
            Model::DgxB200 => (1200 / 2, 2700 / 4),
            Model::L40s => (1000 / 2, 1000 / 2),
            Model::Dgx1 | Model::Ndv2 => (300, 2600),
            Model::Dgx2 => (300 / 2, 2600),
            Model::Mi250 => (600, 2700 / 2),
        };
        let nanoseconds = |count: u64| Time::from_ps(1000 * count);
        Latencies {
            within: nanoseconds(within),
            between: nanoseconds(between),
        }
    }

    /// Returns the rate from each GPU to the network between servers, the number of switches of
    /// this network, and true if each GPU has a separate NIC. Returns `None` if no network joins
    /// the servers.
    fn network(self) -> Option<(&'static str, u32, bool)> {
        match self {
            Model::DgxA100 => Some(("25GB/s", 2, true)),
            Model::DgxH100 | Model::Nvl72 | Model::DgxB200 => Some(("50GB/s", 1, true)),
            Model::Mi250 => Some(("16GB/s", 1, false)),
            Model::Dgx1 | Model::Ndv2 | Model::Dgx2 | Model::L40s => None,
        }
    }
}

impl GpuServers {
    /// Builds the machine of a specification such as `gpu_servers:model=dgx_a100,boxes=2`.
    pub fn parse(spec: &Spec) -> Result<GpuServers, FabricError> {
        let declared = options::read(spec, &RECORD, declared)?;
        let (model, boxes) = (declared.model, declared.boxes);
        let (latencies, outside) = (declared.latencies, declared.outside.as_ref());
        let ranks = model.ranks() * boxes;
        let mut cables = String::new();
        let mut add = |from: u32, letter: char, to: u32, rate: &str| {
            let joined = if cables.is_empty() { "" } else { "+" };
            let _ = write!(cables, "{joined}{from}{letter}{to}@{rate}");
        };
        let mut vertices = ranks;
        if let Some(rate) = model.switch_rate() {
            (0..ranks).for_each(|rank| add(rank, '-', ranks + rank / model.ranks(), rate));
            vertices += boxes;
        }
        for first in (0..boxes).map(|server| server * model.ranks()) {
            match model {
                Model::Dgx1 | Model::Ndv2 => {
                    for (pairs, rate) in DGX1 {
                        for (from, to) in pairs {
                            add(first + from, '-', first + to, rate);
                        }
                    }
                }
                Model::Mi250 => {
                    for (from, to, links) in MI250 {
                        add(
                            first + from,
                            '-',
                            first + to,
                            &format!("{}GB/s", 50 * links),
                        );
                    }
                }
                _ => {}
            }
        }
        if boxes > 1 && outside.is_none() {
            let rate_and_delay = |rate: &str| format!("{rate}@{}", latencies.between);
            if let Some((rate, switches, nics)) = model.network() {
                let rate = &rate_and_delay(rate);
                let first = vertices + if nics { ranks } else { 0 };
                for rank in 0..ranks {
                    let switch = first + rank % model.ranks() % switches;
                    if nics {
                        add(rank, '-', vertices + rank, rate);
                        add(vertices + rank, '-', switch, rate);
                    } else {
                        add(rank, '-', switch, rate);
                    }
                }
                vertices = first + switches;
            }
            let (apart, pairs) = (model.ranks(), model.ranks() / 2);
            let rate = &rate_and_delay("12.5GB/s");
            match model {
                Model::Ndv2 => {
                    add(0, '>', apart + 1, rate);
                    add(apart, '>', 1, rate);
                }
                Model::Dgx2 => {
                    for even in (0..pairs).map(|pair| 2 * pair) {
                        add(even + 1, '>', apart + even, rate);
                        add(apart + even + 1, '>', even, rate);
                    }
                }
                _ => {}
            }
        }
        let graph = Spec::new("custom")
            .with("ranks", ranks)
            .with("switches", vertices - ranks)
            .with("links", cables)
            .with("latency", latencies.within);
        let graph = Custom::parse(&graph)?;
        let network = outside.and_then(|outside| outside.fabric.network());
        let copies = network.zip(outside);
        let copies = copies
            .map(|(network, outside)| Copies::new(outside, network, graph.wiring(), vertices));
        Ok(GpuServers {
            declared,
            graph,
            copies,
        })
    }
}

impl GpuServers {
    /// Returns the fabric between the servers, and its copies; `None` for the model's network.
    pub fn outside(&self) -> Option<&Outside> {
        self.declared.outside.as_ref()
    }

    /// Returns the delay of a message within a server that has a switch.
    pub fn inside_latency(&self) -> Time {
        Time::from_ps(2 * self.declared.latencies.within.ps())
    }

    /// Returns the route over `links` of a copy of the outside, from GPU `source` to GPU
    /// `destination` of this copy: with the cables between GPUs and NICs. Returns `None` if the
    /// outside has no links.
    pub fn route_outside(
        &self,
        [source, destination]: [u32; 2],
        links: &[u32],
    ) -> Option<Vec<u32>> {
        let (outside, network, copies) = self.copies_outside()?;
        Some(copies.route_over(outside, network, [source, destination], links))
    }

    fn copies_outside(&self) -> Option<(&Outside, &dyn Network, &Copies)> {
        let outside = self.declared.outside.as_ref()?;
        Some((outside, outside.fabric.network()?, self.copies.as_ref()?))
    }
}

impl Network for GpuServers {
    fn ranks(&self) -> u32 {
        self.graph.ranks()
    }

    fn wiring(&self) -> &Wiring {
        let copies = self.copies.as_ref();
        copies.map_or(self.graph.wiring(), Copies::wiring)
    }

    fn group_size(&self) -> Option<u32> {
        Some(self.declared.model.ranks())
    }

    fn library(&self) -> Option<&Library> {
        self.declared.library.as_ref()
    }

    /// Appends the route with the fewest links. On rails, data for another server first go to the
    /// GPU of the source's server that is on the destination's rail.
    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let Some((outside, network, copies)) = self.copies_outside() else {
            return self.graph.route(source, destination, links);
        };
        if outside.same_box(source, destination) {
            return self.graph.route(source, destination, links);
        }
        let (copy, _) = outside.place(destination);
        let on_rail = match outside.layout {
            Layout::Rails => source / outside.per_box * outside.per_box + copy,
            Layout::Flat => source,
        };
        if on_rail != source {
            self.graph.route(source, on_rail, links);
        }
        copies.route(outside, network, [on_rail, destination], links);
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        let switch = vertex.checked_sub(self.ranks());
        match switch.is_some_and(|switch| switch < self.declared.boxes) {
            true => self.declared.in_network,
            false => InNetwork::None,
        }
    }

    fn vertex_name(&self, vertex: u32) -> String {
        if let Some((outside, network, copies)) = self.copies_outside() {
            if let Some(name) = copies.vertex_name(outside, network, vertex) {
                return name;
            }
        }
        let ranks = self.ranks();
        let Some(mut switch) = vertex.checked_sub(ranks) else {
            return format!("rank {vertex}");
        };
        if self.declared.model.switch_rate().is_some() {
            if switch < self.declared.boxes {
                return format!("switch of box {switch}");
            }
            switch -= self.declared.boxes;
        }
        if self
            .declared
            .model
            .network()
            .is_some_and(|(_, _, nics)| nics)
        {
            if switch < ranks {
                return format!("NIC of rank {switch}");
            }
            switch -= ranks;
        }
        format!("network switch {switch}")
    }

    /// Places servers side by side, the ranks of a server on a circle or, with NICs, in a row below
    /// the NICs; the network is above.
    fn drawing(&self) -> Drawing {
        if self.copies.is_some() {
            return network::drawing(self);
        }
        let each = self.declared.model.ranks();
        let network = self
            .declared
            .model
            .network()
            .filter(|_| self.declared.boxes > 1);
        let in_row = network.is_some_and(|(_, _, nics)| nics);
        let server: Vec<Point> = match in_row {
            true => (0..each).map(|rank| [f64::from(rank), 1.8]).collect(),
            false => drawing::circle(each),
        };
        let top = server.iter().map(|at| at[1]).fold(1.0, f64::max);
        let apart = if in_row {
            f64::from(each) + 0.6
        } else {
            2.0 * top + 1.2
        };
        let x_offset = |server: u32| f64::from(server) * apart;
        let server_at = |number: u32, up: f64| {
            server
                .iter()
                .map(move |[x, y]| [x + x_offset(number), y + up])
        };
        let mut places: Vec<Point> = (0..self.declared.boxes)
            .flat_map(|number| server_at(number, 0.0))
            .collect();
        let middle = if in_row {
            f64::from(each - 1) / 2.0
        } else {
            0.0
        };
        if self.declared.model.switch_rate().is_some() {
            places.extend((0..self.declared.boxes).map(|number| [x_offset(number) + middle, 0.0]));
        }
        if in_row {
            places.extend((0..self.declared.boxes).flat_map(|number| server_at(number, 1.3)));
        }
        if let Some((_, switches, _)) = network {
            let share = |switch: u32| (f64::from(switch) + 0.5) / f64::from(switches);
            let width = x_offset(self.declared.boxes - 1) + 2.0 * middle;
            places.extend((0..switches).map(|switch| [share(switch) * width, top + 3.2]));
        }
        Drawing::new(places)
    }
}
