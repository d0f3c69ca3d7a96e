//! Links between vertices, and the choice among several routes, against each family's definition.

use std::collections::{BTreeMap, BTreeSet};

use opticoll::fabric::{Fabric, Groups};
use opticoll::families::CircuitMachine;
use opticoll::family::dragonfly::Dragonfly;
use opticoll::network::Network;
use opticoll::units::Length;

use super::{route, walked};

/// A fat tree by digit vectors: level and digits, digit 0 first.
struct Digits<'a> {
    down: &'a [u32],
    up: &'a [u32],
    links: &'a [u32],
}

impl Digits<'_> {
    fn radix(&self, level: usize, digit: usize) -> u32 {
        if digit < level {
            self.up[digit]
        } else {
            self.down[digit]
        }
    }

    /// Lists all vertices in the order of their numbers: level by level, digit 0 fastest.
    fn vertices(&self) -> Vec<(usize, Vec<u32>)> {
        let mut vertices = Vec::new();
        for level in 0..=self.down.len() {
            let mut numbers = vec![Vec::new()];
            for digit in 0..self.down.len() {
                let radix = self.radix(level, digit);
                let longer = |value| {
                    let with = move |number: &Vec<u32>| [number.clone(), vec![value]].concat();
                    numbers.iter().map(with).collect::<Vec<_>>()
                };
                numbers = (0..radix).flat_map(longer).collect();
            }
            vertices.extend(numbers.into_iter().map(|number| (level, number)));
        }
        vertices
    }

    /// Vertices from one rank to another by D-mod-k, with the parallel cable of each hop.
    fn route(
        &self,
        from: &[u32],
        to: &[u32],
        source: u32,
        rank: u32,
    ) -> Vec<(usize, Vec<u32>, u32)> {
        let (mut level, mut digits, mut hops) = (0, from.to_vec(), Vec::new());
        loop {
            let below: u32 = self.up[..level].iter().product();
            let choice = (rank / below) % (self.up[level] * self.links[level]);
            digits[level] = choice % self.up[level];
            hops.push((level + 1, digits.clone(), choice / self.up[level]));
            level += 1;
            if digits[level..] == to[level..] {
                break;
            }
        }
        while level > 0 {
            level -= 1;
            digits[level] = to[level];
            hops.push((level, digits.clone(), source % self.links[level]));
        }
        hops
    }
}

#[test]
fn fat_trees_are_joined_and_routed_by_digits() {
    for (down, up, links) in [
        (&[4, 4][..], &[1, 2][..], &[1, 1][..]),
        (&[3, 2, 2], &[1, 2, 3], &[1, 2, 1]),
        (&[2, 3], &[2, 2], &[3, 2]),
        (&[2, 2, 2, 2], &[1, 2, 1, 3], &[2, 1, 2, 1]),
        (&[6], &[1], &[2]),
    ] {
        let digits = Digits { down, up, links };
        let by_x = |numbers: &[u32]| {
            let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
            words.join("x")
        };
        let (down_x, up_x, links_x) = (by_x(down), by_x(up), by_x(links));
        let spelling = format!("fat_tree:down={down_x},up={up_x},links={links_x}");
        let fabric = Fabric::parse(&spelling).unwrap();
        let network = fabric.network().unwrap();
        let vertices = digits.vertices();
        let mut expected = BTreeMap::new();
        for (one, (level, low)) in vertices.iter().enumerate() {
            for (other, (above, high)) in vertices.iter().enumerate() {
                let differing = (0..down.len()).filter(|digit| low[*digit] != high[*digit]);
                if *above == level + 1 && differing.into_iter().all(|digit| digit == *level) {
                    expected.insert((one as u32, other as u32), links[*level]);
                    expected.insert((other as u32, one as u32), links[*level]);
                }
            }
        }
        let mut found = BTreeMap::new();
        for link in 0..network.links().len() as u32 {
            *found.entry(network.ends(link).unwrap()).or_insert(0) += 1;
        }
        assert_eq!(found, expected, "{spelling}");
        for source in 0..network.ranks() {
            for rank in (0..network.ranks()).filter(|rank| *rank != source) {
                let ends = (&vertices[source as usize].1, &vertices[rank as usize].1);
                let hops = digits.route(ends.0, ends.1, source, rank);
                let walk = walked(network, source, rank);
                let reached = hops
                    .iter()
                    .map(|(level, number, _)| (*level, number.clone()));
                let walk_digits = walk[1..]
                    .iter()
                    .map(|vertex| vertices[*vertex as usize].clone());
                assert!(
                    reached.eq(walk_digits),
                    "{spelling}: {source} to {rank}: {walk:?}"
                );
                for (link, (.., cable)) in route(network, source, rank).iter().zip(&hops) {
                    let name = network.link_name(*link);
                    let named = name
                        .split_once("(cable ")
                        .map_or("0", |(_, rest)| &rest[..1]);
                    assert_eq!(named, cable.to_string(), "{spelling}: {name}");
                }
            }
        }
    }
}

#[test]
fn d_mod_k_spreads_destinations_evenly_over_the_ways_up() {
    // Of 64 ranks each leaf serves 8; the other 56 destinations divide among its ways up.
    for (spelling, ways) in [
        ("fat_tree:down=8x8,up=1x4", 4),
        ("fat_tree:down=8x8,up=1x8", 8),
        ("fat_tree:down=8x8,up=1x2,links=1x4", 8),
    ] {
        let fabric = Fabric::parse(spelling).unwrap();
        let network = fabric.network().unwrap();
        for source in 0..64 {
            let mut destinations: BTreeMap<u32, u32> = BTreeMap::new();
            for rank in (0..64).filter(|rank| rank / 8 != source / 8) {
                *destinations
                    .entry(route(network, source, rank)[1])
                    .or_default() += 1;
            }
            let even = vec![56 / ways; ways as usize];
            let found: Vec<u32> = destinations.into_values().collect();
            assert_eq!(found, even, "{spelling}: from {source}");
        }
    }
}

/// 65,536 ranks on 2,048 leaves, 1,024 and 256 switches above: too many to compare each with each.
#[test]
fn a_fat_tree_of_65536_ranks_is_built_in_time_linear_in_its_links() {
    let fabric = Fabric::parse("fat_tree:down=32x32x64,up=1x16x16").unwrap();
    let network = fabric.network().unwrap();
    assert_eq!(network.ranks(), 65_536);
    assert_eq!(
        network.links().len(),
        2 * (65_536 + 2_048 * 16 + 1_024 * 16)
    );
    assert_eq!(walked(network, 0, 65_535).len(), 7);
}

fn dragonfly(options: &str) -> Dragonfly {
    let fabric = Fabric::parse(&format!("dragonfly:{options}")).unwrap();
    fabric.downcast::<Dragonfly>().unwrap().clone()
}

#[test]
fn every_two_groups_are_joined_once_and_every_global_port_is_used_once() {
    for (terminals, routers, ports) in [(2, 4, 2), (1, 1, 3), (3, 5, 1), (1, 6, 3), (2, 2, 2)] {
        let groups = routers * ports + 1;
        let network = dragonfly(&format!(
            "terminals_per_router={terminals},routers_per_group={routers},\
             global_per_router={ports}"
        ));
        let ranks = terminals * routers * groups;
        let mut joined = BTreeMap::new();
        for link in 0..network.links().len() as u32 {
            let (one, other) = network.ends(link).unwrap();
            if one < ranks || other < ranks {
                continue;
            }
            let place = |vertex: u32| ((vertex - ranks) / routers, (vertex - ranks) % routers);
            let ((group, router), (peer, landing)) = (place(one), place(other));
            if group != peer {
                assert_eq!(joined.insert((group, peer), (router, landing)), None);
            }
        }
        assert_eq!(joined.len() as u32, groups * (groups - 1));
        // Channel i of router r of group G leads to group r + i a, or to the last one for its own.
        for group in 0..groups {
            let mut reached = BTreeSet::new();
            for router in 0..routers {
                for port in 0..ports {
                    let named = router + port * routers;
                    let peer = if named == group { groups - 1 } else { named };
                    assert_eq!(network.gateway(group, peer), (router, port));
                    assert_eq!(joined[&(group, peer)].0, router);
                    assert_eq!(joined[&(peer, group)].1, router);
                    reached.insert(peer);
                }
            }
            assert_eq!(reached.len() as u32, groups - 1);
        }
    }
}

#[test]
fn minimal_routes_cross_one_global_cable_and_valiant_ones_pass_the_drawn_group() {
    let shape = "terminals_per_router=2,routers_per_group=4,global_per_router=2";
    let minimal = dragonfly(shape);
    let group = |vertex: u32| {
        if vertex < 72 {
            vertex / 8
        } else {
            (vertex - 72) / 4
        }
    };
    let groups_of = |network: &Dragonfly, source, destination| {
        let mut groups: Vec<u32> = walked(network, source, destination)
            .into_iter()
            .map(group)
            .collect();
        groups.dedup();
        groups
    };
    let mut drawn = BTreeMap::new();
    for seed in [0, 1] {
        let valiant = dragonfly(&format!("{shape},routing=valiant,seed={seed}"));
        for source in 0..72 {
            for destination in (0..72).filter(|rank| *rank != source) {
                let mut straight = vec![group(source), group(destination)];
                straight.dedup();
                assert_eq!(groups_of(&minimal, source, destination), straight);
                assert!(
                    walked(&minimal, source, destination).len() <= 6,
                    "three router hops"
                );
                assert_eq!(minimal.intermediate(source, destination), None);
                let mut expected = straight.clone();
                if let Some(between) = valiant.intermediate(source, destination) {
                    assert_eq!(straight.len(), 2, "traffic inside a group goes straight");
                    expected.insert(1, between);
                    *drawn.entry((seed, group(source), between)).or_insert(0) += 1;
                }
                assert_eq!(groups_of(&valiant, source, destination), expected);
            }
        }
    }
    // Per seed, each group sends 8 x 64 pairs; a draw hits the destination's own group, and then is
    // none, once in eight times: 56 are expected for each other group, with a deviation of about 7.
    assert_eq!(drawn.len(), 2 * 9 * 8);
    assert!(
        drawn.values().all(|count| (20..=92).contains(count)),
        "{drawn:?}"
    );
    let by_seed = |wanted| {
        let of = drawn.iter().filter(move |((seed, ..), _)| *seed == wanted);
        of.map(|(_, count)| *count).collect::<Vec<i32>>()
    };
    assert_ne!(by_seed(0), by_seed(1), "another seed draws other groups");
}

/// Coordinate 0 varies fastest, dimensions are travelled in order, ties go upwards.
#[test]
fn grids_are_travelled_dimension_by_dimension() {
    for (spelling, source, destination, walk) in [
        ("torus:dims=4x3", 0, 6, vec![0, 1, 2, 6]),
        ("torus:dims=4x3", 6, 0, vec![6, 7, 4, 0]),
        ("torus:dims=4x3", 0, 11, vec![0, 3, 11]),
        ("torus:dims=2x2", 3, 0, vec![3, 2, 0]),
        ("mesh:dims=4x3", 0, 11, vec![0, 1, 2, 3, 7, 11]),
        ("mesh:dims=4x3", 11, 0, vec![11, 10, 9, 8, 4, 0]),
        ("ladder:rungs=5", 0, 9, vec![0, 1, 2, 3, 4, 9]),
        ("ladder:rungs=5", 7, 0, vec![7, 6, 5, 0]),
        ("electrical_ring:ranks=6", 5, 2, vec![5, 0, 1, 2]),
        ("electrical_ring:ranks=6", 2, 5, vec![2, 3, 4, 5]),
        ("electrical_ring:ranks=6", 1, 5, vec![1, 0, 5]),
        ("line:ranks=6", 4, 1, vec![4, 3, 2, 1]),
        // One bit after another, the lowest first.
        ("hypercube:ranks=8", 0b001, 0b110, vec![1, 0, 2, 6]),
        // Up to the root of the smallest tree with both ranks, then down.
        ("tree:ranks=15", 11, 10, vec![11, 5, 2, 0, 1, 4, 10]),
        ("tree:ranks=15", 7, 9, vec![7, 3, 1, 4, 9]),
        ("tree:ranks=13,arity=3", 12, 1, vec![12, 3, 0, 1]),
        // Routers are vertices 12 and up; rank r is at router r div 2.
        (
            "mesh:dims=3x2,terminals=2",
            0,
            11,
            vec![0, 12, 13, 14, 17, 11],
        ),
        ("mesh:dims=3x2,terminals=2", 4, 5, vec![4, 14, 5]),
    ] {
        let fabric = Fabric::parse(spelling).unwrap();
        assert_eq!(
            walked(fabric.network().unwrap(), source, destination),
            walk,
            "{spelling}"
        );
    }
}

/// 2 x 5 nodes of ten computers: 13 pairs of fibres, and 2.33 hops between different nodes on
/// average.
#[test]
fn the_ladder_is_that_of_the_burst_switching_grid() {
    let fabric = Fabric::parse("ladder:rungs=5,terminals=10").unwrap();
    let network = fabric.network().unwrap();
    let (mut hops, mut pairs) = (0, 0);
    for source in 0..100 {
        for destination in (0..100).filter(|rank| rank / 10 != source / 10) {
            hops += route(network, source, destination).len() - 2;
            pairs += 1;
        }
    }
    assert_eq!(3 * hops, 7 * pairs);
}

#[test]
fn custom_routes_break_ties_as_stated() {
    // Ranks 0 to 3; switches 4 to 7: 0 and 1 at 4, 2 and 3 at 5, spines 6 and 7, given 7 first.
    let links = "links=0-4+1-4+2-5+3-5+4-7+4-6+5-6+5-7+4-6";
    for (ties, destination, walk, cables) in [
        // Three links lead nearer, to 7, 6 and 6 again: numbers 2 mod 3 and 3 mod 3.
        ("spread", 2, vec![0, 4, 6, 5, 2], vec![0, 16, 13, 5]),
        ("spread", 3, vec![0, 4, 7, 5, 3], vec![0, 8, 15, 7]),
        ("first", 2, vec![0, 4, 7, 5, 2], vec![0, 8, 15, 5]),
        ("first", 3, vec![0, 4, 7, 5, 3], vec![0, 8, 15, 7]),
    ] {
        let spelling = format!("custom:ranks=4,switches=4,{links},ties={ties}");
        let fabric = Fabric::parse(&spelling).unwrap();
        let network = fabric.network().unwrap();
        assert_eq!(walked(network, 0, destination), walk, "{ties}");
        assert_eq!(route(network, 0, destination), cables, "{ties}");
    }
}

#[test]
fn dimensions_of_a_grid_may_differ_in_rate_and_latency() {
    let text = "mesh:dims=3x2,rate=50GB/sx75GB/s,latency=500nsx1us";
    let mesh = Fabric::parse(text).unwrap();
    assert_eq!(
        mesh.to_string(),
        "mesh:dims=3x2,rate=400Gb/sx600Gb/s,latency=500nsx1us"
    );
    assert_eq!(Fabric::parse(&mesh.to_string()).unwrap(), mesh);
    let network = mesh.network().unwrap();
    for (link, own) in (0..).zip(network.links()) {
        let (one, other) = network.ends(link).unwrap();
        let along = one.abs_diff(other) == 1;
        assert_eq!(
            own.rate.bits_per_second(),
            if along {
                400_000_000_000
            } else {
                600_000_000_000
            }
        );
        assert_eq!(own.latency.ps(), if along { 500_000 } else { 1_000_000 });
    }
    let alike = Fabric::parse("torus:dims=3x3,rate=1Gb/sx1Gb/s").unwrap();
    assert!(alike.to_string().contains("rate=1Gb/s,"));
    let refused = Fabric::parse("torus:dims=3x3x3,rate=1Gb/sx2Gb/s")
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("has 2 values for 3 dimensions: give one, or one for each dimension"),
        "{refused}"
    );
}

/// Neighbours of a hypercube differ in one bit, and one link leads to each neighbour.
#[test]
fn hypercubes_have_one_link_to_each_neighbour() {
    for spelling in ["hypercube:ranks=16", "wdm_hypercube:ranks=16,wavelengths=2"] {
        let fabric = Fabric::parse(spelling).unwrap();
        let network = match fabric.circuit_machine() {
            Some(CircuitMachine::WdmGraph(graph)) => graph.fibre_links(),
            _ => fabric.network().unwrap(),
        };
        let links = 0..network.links().len() as u32;
        let mut ends: Vec<(u32, u32)> = links.map(|link| network.ends(link).unwrap()).collect();
        ends.sort_unstable();
        let pairs = (0..16).flat_map(|from| (0..16).map(move |to| (from, to)));
        let differ = pairs.filter(|(from, to): &(u32, u32)| (from ^ to).count_ones() == 1);
        assert_eq!(ends, differ.collect::<Vec<_>>(), "{spelling}");
    }
}

/// Light takes 1.468 / 299,792,458 s for a metre of fibre.
#[test]
fn lengths_are_propagation_delays() {
    let spelling = "wdm_graph:ranks=4,links=0-1@100km+1-2@80km@1us+2-3,wavelengths=2,latency=3us";
    let fabric = Fabric::parse(spelling).unwrap();
    let Some(CircuitMachine::WdmGraph(graph)) = fabric.circuit_machine() else {
        panic!("{fabric} is no graph of fibres");
    };
    let network = graph.fibre_links();
    let latency = |link: usize| network.links()[link].latency.ps();
    let exact = 1.468 / 299_792_458.0 * 1e12 * 100_000.0;
    assert!((latency(0) as f64 - exact).abs() / exact < 1e-4);
    assert_eq!((latency(2), latency(4)), (1_000_000, 3_000_000));
    let metres = |link| network.length(link).map(Length::metres);
    assert_eq!([0, 3, 5].map(metres), [Some(100_000), Some(80_000), None]);
    assert!(
        fabric
            .to_string()
            .contains("links=0-1@100km+1-2@80km@1us+2-3,")
    );
    assert_eq!(Fabric::parse(&fabric.to_string()).unwrap(), fabric);
}

/// Three cities with equal differences of longitude at the equator, one to the north.
#[test]
fn pictures_of_located_graphs_are_maps() {
    let spelling = "custom:ranks=4,links=0-1+1-2+1-3,positions=0/10+0/20+0/30+10/20";
    let fabric = Fabric::parse(spelling).unwrap();
    let places = fabric.network().unwrap().drawing().places;
    let apart = |one: usize, other: usize| {
        let [from, to] = [places[one], places[other]];
        (to[0] - from[0]).hypot(to[1] - from[1])
    };
    assert!((apart(0, 1) - apart(1, 2)).abs() < 1e-9);
    assert!(places[0][0] < places[1][0] && places[3][1] > places[1][1]);
    // A degree of longitude at the mean latitude of 2.5 degrees is shorter than one of latitude.
    let shorter = apart(0, 1) / apart(1, 3);
    assert!(
        (shorter - 2.5_f64.to_radians().cos()).abs() < 1e-9,
        "{shorter}"
    );
    assert_eq!(Fabric::parse(&fabric.to_string()).unwrap(), fabric);
    let unknown = Fabric::parse("custom:ranks=2,links=0-1,positions=unknown+1.5/-2").unwrap();
    assert!(unknown.to_string().contains("positions=unknown+1.5/-2,"));
}
