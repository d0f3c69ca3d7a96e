//! Routing on a dragonfly.
//!
//! A *minimal* route leads to the router that has the cable to the destination's group, over this
//! cable, and then to the destination's router. Hops from a router to itself are omitted. A
//! *non-minimal* (Valiant) route leads minimally to an intermediate group, drawn among the groups
//! other than the source's, and then minimally to the destination. Routes within a group are always
//! minimal. *Adaptive* routing (UGAL-L) selects a minimal or a non-minimal route at the first
//! router. It compares the numbers of chunks that occupy, or wait for, the buffers of the next
//! link; if the numbers are equal, it selects the minimal route. *Progressive* routing draws and
//! compares again at the second router, if this router is in the source's group and the route is
//! still minimal.
//!
//! **Channels.** Let L be a local hop and G a global hop. Every route is a part of
//!
//! ```text
//! L0 G0 L1 G1 L2          minimal, non-minimal, adaptive
//! L0 L1 G0 L2 G1 L3       progressive: a second local hop may leave the second router
//! ```
//!
//! where the digit is the index of the channel. The channel of a global hop is the number of
//! global hops before it. The channel of a local hop in the source's group is the number of local
//! hops before it. After the first and after the second global hop, local hops use the next two
//! channels. Order all channels of the dragonfly by their position in the line above, after the
//! links from terminals and before the links to terminals. Every chunk follows this order, so a
//! chunk that occupies the highest full buffer can always advance, and there is no deadlock (Dally
//! and Seitz, Deadlock-Free Message Routing in Multiprocessor Interconnection Networks, 1987).

use super::arena::NONE;
use super::channel::{Chunk, VirtualChannels};
use super::routes::Routes;
use super::{PacketError, PacketRouting};
use opticoll_base::hash::hash;
use opticoll_fabric::fabric::Groups;

/// Routing tables of a dragonfly.
#[derive(Clone)]
pub(super) struct DragonflyRoutes {
    routing: PacketRouting,
    seed: u64,
    groups: u32,
    routers_per_group: u32,
    /// Router of each terminal, indexed by terminal.
    router_of: Vec<u32>,
    /// Pairs (group of the router, position of the router in this group), indexed by router.
    position_of: Vec<(u32, u32)>,
    /// Link to each terminal, indexed by terminal.
    down: Vec<u32>,
    /// Link between two routers of a group, `[router * routers_per_group + position of the other
    /// router]`.
    local: Vec<u32>,
    /// Link from one group to another, `[group * groups + other group]`.
    global: Vec<u32>,
    /// Router at which the link from one group to another starts, `[group * groups + other group]`.
    gateway: Vec<u32>,
    /// Number of virtual channels of a link. Higher channel numbers are mapped to the last channel.
    channels: u32,
}

impl DragonflyRoutes {
    /// Builds the tables. `most` is the maximum number of channels. If the routing needs more, the
    /// higher channels are mapped to the last channel, and deadlocks are possible.
    pub(super) fn new(
        dragonfly: &dyn Groups,
        routing: PacketRouting,
        seed: u64,
        most: Option<u32>,
    ) -> Result<DragonflyRoutes, PacketError> {
        let (groups, routers_per_group) = (dragonfly.groups(), dragonfly.routers_per_group());
        let ranks = dragonfly.ranks();
        let needed = match routing {
            PacketRouting::Progressive => 4,
            _ => 3,
        };
        let mut routes = DragonflyRoutes {
            routing,
            seed,
            groups,
            routers_per_group,
            router_of: (0..ranks)
                .map(|rank| rank / dragonfly.terminals_per_router())
                .collect(),
            position_of: (0..groups * routers_per_group)
                .map(|router| (router / routers_per_group, router % routers_per_group))
                .collect(),
            down: vec![NONE; ranks as usize],
            local: vec![NONE; (groups * routers_per_group * routers_per_group) as usize],
            global: vec![NONE; (groups * groups) as usize],
            gateway: vec![NONE; (groups * groups) as usize],
            channels: most.unwrap_or(needed).min(needed),
        };
        for group in 0..groups {
            for peer in (0..groups).filter(|peer| *peer != group) {
                routes.gateway[(group * groups + peer) as usize] =
                    group * routers_per_group + dragonfly.gateway(group, peer).0;
            }
        }
        for link in 0..dragonfly.links().len() as u32 {
            let (from, to) = dragonfly.ends(link).ok_or(PacketError::Ends { link })?;
            let table = if to < ranks {
                &mut routes.down[to as usize]
            } else if from < ranks {
                continue;
            } else {
                let (from, to) = (from - ranks, to - ranks);
                let (group, peer) = (from / routers_per_group, to / routers_per_group);
                if group == peer {
                    &mut routes.local[(from * routers_per_group + to % routers_per_group) as usize]
                } else {
                    &mut routes.global[(group * groups + peer) as usize]
                }
            };
            *table = link;
        }
        Ok(routes)
    }

    /// Returns the router of a terminal.
    pub(super) fn router_of(&self, terminal: u32) -> u32 {
        self.router_of[terminal as usize]
    }

    /// Returns whether a link between two routers leads to another group.
    pub(super) fn is_global(&self, from: u32, to: u32) -> bool {
        self.group(from) != self.group(to)
    }

    /// Returns whether some route has no link. This is the case with half-duplex cables, whose
    /// single link leads in one direction.
    pub(super) fn lacks_links(&self) -> bool {
        let pairs =
            |count: u32| (0..count).flat_map(move |from| (0..count).map(move |to| (from, to)));
        let global = pairs(self.groups).zip(&self.global);
        let mut missing = global.filter(|((from, to), link)| from != to && **link == NONE);
        self.down.contains(&NONE) || missing.next().is_some()
    }

    fn group(&self, router: u32) -> u32 {
        self.position_of[router as usize].0
    }

    /// Returns the next link from `router` of `group` to group `peer`, and whether this link is
    /// global.
    fn towards(&self, router: u32, group: u32, peer: u32) -> (u32, bool) {
        let entry = (group * self.groups + peer) as usize;
        let gateway = self.gateway[entry];
        if gateway == router {
            (self.global[entry], true)
        } else {
            (self.local_link(router, gateway), false)
        }
    }

    fn local_link(&self, router: u32, other: u32) -> u32 {
        let place = self.position_of[other as usize].1;
        self.local[(router * self.routers_per_group + place) as usize]
    }

    /// Draws a group other than `group` for a chunk that has passed `routers` routers. Each of
    /// these groups is drawn with the same probability, up to rounding by 2^-64.
    fn draw_group(&self, chunk: &Chunk, routers: u16, group: u32) -> u32 {
        let draw = u128::from(hash(self.seed ^ hash(chunk.draw + u64::from(routers))));
        let other = ((draw * u128::from(self.groups - 1)) >> 64) as u32;
        other + u32::from(other >= group)
    }

    /// Returns whether a chunk in the source's group that has passed `passed` routers may be sent
    /// on a detour through another group.
    fn may_detour(&self, chunk: &Chunk, passed: u16) -> bool {
        match self.routing {
            PacketRouting::Minimal => false,
            PacketRouting::NonMinimal | PacketRouting::Adaptive => passed == 0,
            PacketRouting::Progressive => !chunk.detoured,
        }
    }

    /// Decides, at a router of the source's group, whether a chunk makes a detour through another
    /// group. `peer` is the group of the destination.
    fn decide(
        &self,
        chunk: &mut Chunk,
        router: u32,
        peer: u32,
        channels: &mut VirtualChannels,
        now: u64,
    ) {
        if !self.may_detour(chunk, chunk.routers - 1) {
            return;
        }
        let group = self.group(router);
        let intermediate = self.draw_group(chunk, chunk.routers, group);
        if self.routing != PacketRouting::NonMinimal {
            let (straight, _) = self.towards(router, group, peer);
            let (around, _) = self.towards(router, group, intermediate);
            if channels.load(straight, now) <= channels.load(around, now) {
                return;
            }
        }
        chunk.detour = intermediate;
        chunk.detoured = true;
    }
}

impl Routes for DragonflyRoutes {
    #[inline]
    fn next(
        &self,
        chunk: &mut Chunk,
        router: u32,
        channels: &mut VirtualChannels,
        now: u64,
    ) -> (u32, u32) {
        chunk.routers += 1;
        let last_router = self.router_of[chunk.destination as usize];
        if router == last_router {
            return (self.down[chunk.destination as usize], 0);
        }
        let (group, last_group) = (self.group(router), self.group(last_router));
        if group != last_group && chunk.global_hops == 0 {
            self.decide(chunk, router, last_group, channels, now);
        }
        if chunk.detour == group {
            chunk.detour = NONE;
        }
        let target = if chunk.detour == NONE {
            last_group
        } else {
            chunk.detour
        };
        let (link, global) = if target == group {
            (self.local_link(router, last_router), false)
        } else {
            self.towards(router, group, target)
        };
        let channel = if global {
            chunk.global_hops += 1;
            u32::from(chunk.global_hops) - 1
        } else if chunk.global_hops == 0 {
            chunk.local_hops += 1;
            u32::from(chunk.local_hops) - 1
        } else {
            let in_first_group = 1 + u32::from(self.routing == PacketRouting::Progressive);
            in_first_group + u32::from(chunk.global_hops) - 1
        };
        (link, channel.min(self.channels - 1))
    }

    #[inline]
    fn predicted_link(&self, chunk: &Chunk) -> u32 {
        let last_router = self.router_of[chunk.destination as usize];
        if chunk.router == last_router {
            return self.down[chunk.destination as usize];
        }
        let (group, last_group) = (self.group(chunk.router), self.group(last_router));
        let target = if chunk.detour == NONE || chunk.detour == group {
            last_group
        } else {
            chunk.detour
        };
        if target == group {
            self.local_link(chunk.router, last_router)
        } else {
            self.towards(chunk.router, group, target).0
        }
    }

    #[inline]
    fn compares(&self, chunk: &Chunk) -> Option<[u32; 2]> {
        if matches!(
            self.routing,
            PacketRouting::Minimal | PacketRouting::NonMinimal
        ) {
            return None;
        }
        let last_router = self.router_of[chunk.destination as usize];
        let (group, last_group) = (self.group(chunk.router), self.group(last_router));
        let compares =
            group != last_group && chunk.global_hops == 0 && self.may_detour(chunk, chunk.routers);
        compares.then(|| {
            let intermediate = self.draw_group(chunk, chunk.routers + 1, group);
            [last_group, intermediate].map(|peer| self.towards(chunk.router, group, peer).0)
        })
    }

    fn channels(&self) -> u32 {
        self.channels
    }
}
