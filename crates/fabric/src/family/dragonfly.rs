//! Dragonflies: groups of routers with links between all routers of a group and between all groups.
//!
//! Each of g groups has a routers. Each router has p ranks (terminals) and h global ports. Rank t
//! is at router t div p, and router t div p is in group t div (a * p). There is one global cable
//! between every two groups. The arrangement determines which router of group G has the cable to
//! group T:
//!
//! * `absolute`: router x mod a, at its global port x div a. Here x = T, or x = G if T is the last
//!   group. With g = a * h + 1 groups, every port is used exactly once.
//! * `simgrid`: router T. Routers have one global port, and g is at most a. This is SimGrid's
//!   dragonfly with one chassis per group.
//!
//! A minimal route has a local hop to the router with the cable to the destination's group, the
//! global cable, and a local hop to the destination's router. Hops from a router to itself are
//! omitted. A Valiant route between groups first goes minimally to an intermediate group. A hash of
//! seed, source and destination draws this group from all groups except the source's group. If the
//! drawn group is the destination's group, the route is minimal.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric;
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::wiring;
use crate::fabric::wiring::{MAX_RANKS, Wire, pair_number};
use crate::fabric::{Fabric, FabricError, FamilyRecord, Groups};
use crate::network::{Link, Network, Wiring};
use opticoll_base::hash::hash;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec};

opticoll_base::named_enum! {
    /// Rule that selects the router and the port of each global cable.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Arrangement {
        /// The number of the other group selects the router and the port (module header).
        Absolute = "absolute",
        /// Router T of a group has the cable to group T.
        SimGrid = "simgrid",
    }
}

/// Routing between groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Routing {
    /// Routes over the direct cable to the destination's group.
    Minimal,
    /// Routes through an intermediate group that a hash draws.
    Valiant {
        /// Seed of the hash.
        seed: u64,
    },
}

/// Dragonfly with one cable between every two groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dragonfly {
    groups: u32,
    routers_per_group: u32,
    terminals_per_router: u32,
    global_per_router: u32,
    arrangement: Arrangement,
    routing: Routing,
    wire: Wire,
    terminal: Link,
    local: Link,
    global: Link,
    wiring: Arc<Wiring>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "dragonfly",
    summary: "Groups of routers, with links between all routers of a group and between all groups",
    citation: "Kim et al., Technology-Driven, Highly-Scalable Dragonfly Topology, 2008; absolute \
               arrangement as in Hastings et al., Comparing global link arrangements for Dragonfly \
               networks, 2015",
    example: "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,\
        rate=12.5GB/s",
    options: || options::list(&RECORD, declared),
    build: |spec| {
        options::read(spec, &RECORD, declared)?
            .built()
            .map(Fabric::new)
    },
    presets: &[],
};

const ARRANGEMENT: OptionRecord = OptionRecord::new(
    "arrangement",
    "absolute: port i of router r has the cable to group r + i a, or to the last group if that is \
     its own group; simgrid: router T has the cable to group T",
);

const ROUTING: &[OptionRecord] = &[
    OptionRecord::new(
        "routing",
        "minimal, or valiant: through an intermediate group drawn by a hash",
    )
    .range("minimal, valiant")
    .default("minimal"),
    OptionRecord::new("seed", "seed of the groups that valiant draws")
        .range("0 to 18446744073709551615")
        .default("0"),
];

/// Declares the options. Returns the machine without its cables.
fn declared(options: &mut Options<'_, Dragonfly>) -> Result<Dragonfly, FabricError> {
    let missing = options.missing("global_per_router");
    // The defaults and limits depend on the arrangement.
    let simgrid = |spec: &Spec| spec.option(ARRANGEMENT.name) == Some(Arrangement::SimGrid.name());
    declare! { options of Dragonfly;
        terminals_per_router "terminals_per_router" count(MAX_RANKS, Required)
            "ranks on each router, p";
        routers_per_group "routers_per_group" count(MAX_RANKS, Required)
            "routers in each group, a";
        global_per_router "global_per_router" option(
            |spec| match simgrid(spec) {
                false => spec.count("global_per_router", 1, MAX_RANKS)?.ok_or(missing),
                true => Ok(spec.count("global_per_router", 1, 1)?.unwrap_or(1)),
            },
            |ports| Some(ports.to_string()))
            "global ports of each router, h"
            range "1 to 1048576; 1 if the arrangement is simgrid" default REQUIRED;
        groups "groups" option(
            |spec| {
                let ports = u64::from(routers_per_group) * u64::from(global_per_router);
                let most = match simgrid(spec) {
                    false => u32::try_from(ports + 1).unwrap_or(u32::MAX),
                    true => routers_per_group,
                };
                Ok(spec.count("groups", 1, most)?.unwrap_or(most))
            },
            |groups| Some(groups.to_string()))
            "number of groups, g"
            range "1 to a h + 1; 1 to a if the arrangement is simgrid" default "the most";
    }
    let default = Silent(Arrangement::Absolute);
    let arrangement = options.word(ARRANGEMENT, &Arrangement::WORDS, default, |own| {
        own.arrangement
    })?;
    let print = |spec: Spec, routing: &Routing| match routing {
        Routing::Valiant { seed } => spec.with("routing", "valiant").with("seed", seed),
        Routing::Minimal => spec,
    };
    let routing = options.several(ROUTING.iter().copied(), routing, print, |dragonfly| {
        dragonfly.routing
    })?;
    let link = wiring::rate_and_latency(options, |dragonfly| dragonfly.wire.link)?;
    let rate = "rate of cables to ranks";
    let terminal = (
        OptionRecord::new("terminal_rate", rate),
        OptionRecord::new("terminal_latency", "delay of cables to ranks"),
    );
    let local = (
        OptionRecord::new("local_rate", "rate of cables within a group"),
        OptionRecord::new("local_latency", "delay of cables within a group"),
    );
    let global = (
        OptionRecord::new("global_rate", "rate of cables between groups"),
        OptionRecord::new("global_latency", "delay of cables between groups"),
    );
    let terminal = wiring::class(options, terminal, link, |dragonfly| dragonfly.terminal)?;
    let local = wiring::class(options, local, link, |dragonfly| dragonfly.local)?;
    let global = wiring::class(options, global, link, |dragonfly| dragonfly.global)?;
    let wire = Wire::declared(options, link, |dragonfly| dragonfly.wire)?;
    let shared = |link: Link| Link {
        sharing: wire.link.sharing,
        ..link
    };
    Ok(Dragonfly {
        groups,
        routers_per_group,
        terminals_per_router,
        global_per_router,
        arrangement,
        routing,
        wire,
        terminal: shared(terminal),
        local: shared(local),
        global: shared(global),
        wiring: Arc::new(Wiring::new(wire.duplex)),
    })
}

impl Dragonfly {
    /// Checks the size of the machine and adds its cables.
    fn built(mut self) -> Result<Dragonfly, FabricError> {
        self.check_size()?;
        self.wiring = Arc::new(self.wired());
        Ok(self)
    }

    fn group(&self, rank: u32) -> u32 {
        rank / self.terminals_per_router / self.routers_per_group
    }

    fn routers(&self) -> u32 {
        self.groups * self.routers_per_group
    }

    fn local_cables_per_group(&self) -> u32 {
        self.routers_per_group * (self.routers_per_group - 1) / 2
    }

    fn check_size(&self) -> Result<(), FabricError> {
        let [groups, routers, terminals] = [
            self.groups,
            self.routers_per_group,
            self.terminals_per_router,
        ]
        .map(u128::from);
        let ranks = groups * routers * terminals;
        let local = groups * (routers * (routers - 1) / 2);
        let global = groups * (groups - 1) / 2;
        wiring::check_size(&RECORD, ranks, ranks + local + global)
    }

    /// Builds the cables in this order: cables to ranks, local cables by group and pair of routers,
    /// global cables by pair of groups.
    fn wired(&self) -> Wiring {
        let mut wiring = Wiring::new(self.wire.duplex);
        let router = |group, router| self.ranks() + group * self.routers_per_group + router;
        for rank in 0..self.ranks() {
            interrupt::check();
            let router = self.ranks() + rank / self.terminals_per_router;
            wiring.add(rank, router, self.terminal);
        }
        for group in 0..self.groups {
            interrupt::check();
            for (low, high) in wiring::pairs(self.routers_per_group) {
                wiring.add(router(group, low), router(group, high), self.local);
            }
        }
        for (low, high) in wiring::pairs(self.groups) {
            let ends = (self.gateway(low, high).0, self.gateway(high, low).0);
            wiring.add(router(low, ends.0), router(high, ends.1), self.global);
        }
        wiring
    }

    /// Returns the index of the link from element `from` to element `to`. Every two of the `count`
    /// elements are joined by one cable; `first_cable` is the index of the first of these cables.
    /// Returns `None` if the elements are equal.
    fn link_between(&self, first_cable: u32, count: u32, from: u32, to: u32) -> Option<u32> {
        match from.cmp(&to) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Less => Some(
                self.wiring
                    .forth(first_cable + pair_number(from, to, count)),
            ),
            std::cmp::Ordering::Greater => {
                Some(self.wiring.back(first_cable + pair_number(to, from, count)))
            }
        }
    }

    fn local_hop(&self, group: u32, from: u32, to: u32) -> Option<u32> {
        let first = self.ranks() + group * self.local_cables_per_group();
        self.link_between(first, self.routers_per_group, from, to)
    }

    /// Appends the minimal route from `router` of `group` to the group `peer`. Returns the router
    /// of `peer` at which the route ends.
    fn append_route_to_group(
        &self,
        group: u32,
        router: u32,
        peer: u32,
        links: &mut Vec<u32>,
    ) -> u32 {
        links.extend(self.local_hop(group, router, self.gateway(group, peer).0));
        let first = self.ranks() + self.groups * self.local_cables_per_group();
        links.extend(self.link_between(first, self.groups, group, peer));
        self.gateway(peer, group).0
    }
}

fn routing(spec: &Spec) -> Result<Routing, FabricError> {
    let valiant = match spec.option("routing") {
        None | Some("minimal") => false,
        Some("valiant") => true,
        Some(_) => {
            let problem = "must be `minimal` or `valiant`";
            return Err(spec.refuse("routing", problem).into());
        }
    };
    let seed = match spec.option("seed") {
        None => 0,
        Some(_) if !valiant => {
            return Err(spec.refuse("seed", "goes with routing=valiant").into());
        }
        Some(seed) => seed.parse().map_err(|_| {
            spec.refuse(
                "seed",
                "must be a whole number from 0 to 18446744073709551615",
            )
        })?,
    };
    Ok(match valiant {
        true => Routing::Valiant { seed },
        false => Routing::Minimal,
    })
}

impl fabric::Machine for Dragonfly {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }
}

impl Groups for Dragonfly {
    fn groups(&self) -> u32 {
        self.groups
    }

    fn routers_per_group(&self) -> u32 {
        self.routers_per_group
    }

    fn terminals_per_router(&self) -> u32 {
        self.terminals_per_router
    }

    fn gateway(&self, group: u32, peer: u32) -> (u32, u32) {
        match self.arrangement {
            Arrangement::SimGrid => (peer, 0),
            Arrangement::Absolute => {
                let channel = if peer == self.groups - 1 { group } else { peer };
                (
                    channel % self.routers_per_group,
                    channel / self.routers_per_group,
                )
            }
        }
    }

    fn intermediate(&self, source: u32, destination: u32) -> Option<u32> {
        let Routing::Valiant { seed } = self.routing else {
            return None;
        };
        let (from, to) = (self.group(source), self.group(destination));
        if from == to {
            return None;
        }
        let pair = (u64::from(source) << 32) | u64::from(destination);
        let drawn = u128::from(hash(seed ^ hash(pair)));
        // The other groups have equal numbers of hash values, up to a difference of one.
        let drawn = ((drawn * u128::from(self.groups - 1)) >> 64) as u32;
        let group = drawn + u32::from(drawn >= from);
        (group != to).then_some(group)
    }
}

impl Network for Dragonfly {
    fn ranks(&self) -> u32 {
        self.routers() * self.terminals_per_router
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn group_size(&self) -> Option<u32> {
        Some(self.ranks_per_group())
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let place = |rank: u32| {
            let router = rank / self.terminals_per_router;
            (
                router / self.routers_per_group,
                router % self.routers_per_group,
            )
        };
        let ((mut group, mut router), (last_group, last_router)) =
            (place(source), place(destination));
        links.push(self.wiring.forth(source));
        if let Some(detour) = self.intermediate(source, destination) {
            router = self.append_route_to_group(group, router, detour, links);
            group = detour;
        }
        if group != last_group {
            router = self.append_route_to_group(group, router, last_group, links);
        }
        links.extend(self.local_hop(last_group, router, last_router));
        links.push(self.wiring.back(destination));
    }

    fn vertex_name(&self, vertex: u32) -> String {
        if vertex < self.ranks() {
            return format!("rank {vertex}");
        }
        let router = vertex - self.ranks();
        let (group, router) = (
            router / self.routers_per_group,
            router % self.routers_per_group,
        );
        format!("group {group} router {router}")
    }

    fn drawing(&self) -> Drawing {
        let (groups, routers) = (self.groups(), self.routers_per_group());
        Drawing::new(drawing::groups(
            groups,
            routers,
            self.terminals_per_router(),
        ))
    }
}
