//! The bandwidth between the halves of a fabric, by maximum flow, against theory.

use std::collections::VecDeque;

use opticoll::fabric::Fabric;
use opticoll::network::Network;

/// Returns the maximum flow (Gb/s) from the ranks below `half` to the other ranks, by shortest
/// augmenting paths (Edmonds and Karp). The last two vertices are the source and the sink.
fn greatest_flow(network: &dyn Network, half: u32) -> u64 {
    let links = 0..network.links().len() as u32;
    let ends: Vec<(u32, u32)> = links.map(|link| network.ends(link).unwrap()).collect();
    let vertices = ends.iter().map(|(one, other)| one.max(other) + 1).max();
    let (begin, end) = (vertices.unwrap() as usize, vertices.unwrap() as usize + 1);
    let mut capacity = vec![vec![0u64; end + 1]; end + 1];
    for (link, &(from, to)) in network.links().iter().zip(&ends) {
        capacity[from as usize][to as usize] += link.rate.bits_per_second() / 1_000_000_000;
    }
    for rank in 0..network.ranks() {
        let (from, to) = match rank < half {
            true => (begin, rank as usize),
            false => (rank as usize, end),
        };
        capacity[from][to] = u64::MAX / 2;
    }
    let mut flow = 0;
    loop {
        let mut before = vec![usize::MAX; end + 1];
        let mut waiting = VecDeque::from([begin]);
        while let Some(vertex) = waiting.pop_front() {
            for next in 0..=end {
                if capacity[vertex][next] > 0 && before[next] == usize::MAX && next != begin {
                    before[next] = vertex;
                    waiting.push_back(next);
                }
            }
        }
        if before[end] == usize::MAX {
            return flow;
        }
        let way = |mut vertex: usize| {
            let mut way = Vec::new();
            while vertex != begin {
                way.push((before[vertex], vertex));
                vertex = before[vertex];
            }
            way
        };
        let more = way(end)
            .iter()
            .map(|&(one, other)| capacity[one][other])
            .min()
            .unwrap();
        for (one, other) in way(end) {
            capacity[one][other] -= more;
            capacity[other][one] += more;
        }
        flow += more;
    }
}

#[test]
fn halves_of_a_fabric_exchange_what_theory_says() {
    // Ranks below the second number send to the others; cables have 10 Gb/s unless said.
    for (spelling, half, gigabits) in [
        // N / 2 ranks, each with a cable.
        ("crossbar:ranks=16", 8, 8 * 10),
        // N^2 / 4 pairs.
        ("fully_connected:ranks=8", 4, 16 * 10),
        ("electrical_ring:ranks=9", 4, 2 * 10),
        ("line:ranks=9", 4, 10),
        // The halves of a hypercube differ in the highest bit: N / 2 cables.
        ("hypercube:ranks=16", 8, 8 * 10),
        // A k-ary n-tree is rearrangeably non-blocking: N / 2; tapered by t, N / (2 t).
        ("fat_tree:arity=4,levels=2", 8, 8 * 10),
        ("fat_tree:arity=4,levels=3", 32, 32 * 10),
        ("fat_tree:arity=4,levels=2,taper=2", 8, 4 * 10),
        ("fat_tree:arity=4,levels=3,taper=4", 32, 8 * 10),
        // 4 leaves with 2 ways up each; those of 2 leaves are cut, and are as fast as their level.
        ("fat_tree:down=4x4,up=1x2,rate=10Gb/sx20Gb/s", 8, 4 * 20),
        ("fat_tree:down=4x4,up=1x4,rate=10Gb/sx1Gb/s", 8, 8),
        // A k-ary d-cube of even k: 2 k^(d-1); a mesh: half of that.
        ("torus:dims=4x4", 8, 2 * 4 * 10),
        ("torus:dims=4x4x4", 32, 2 * 16 * 10),
        ("torus:dims=4x6", 12, 2 * 4 * 10),
        ("mesh:dims=4x4", 8, 4 * 10),
        ("mesh:dims=2x2x4", 8, 4 * 10),
        // One cable between every two groups: of g = a h + 1 = 9 groups, 4 and 5.
        (
            "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2",
            32,
            4 * 5 * 10,
        ),
        (
            "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,\
             global_rate=3Gb/s",
            32,
            4 * 5 * 3,
        ),
    ] {
        let joint = if spelling.contains(",rate=") {
            ""
        } else {
            ",rate=10Gb/s"
        };
        let fabric = Fabric::parse(&format!("{spelling}{joint}")).unwrap();
        let network = fabric.network().unwrap();
        assert_eq!(greatest_flow(network, half), gigabits, "{spelling}");
    }
}

/// Two rows of n nodes: both are cut once, wherever the columns are parted.
#[test]
fn a_ladder_is_cut_at_two_cables() {
    let fabric = Fabric::parse("ladder:rungs=8,rate=10Gb/s").unwrap();
    let network = fabric.network().unwrap();
    let column = |vertex: u32| vertex % 8;
    for cut in 1..8 {
        let links = 0..network.links().len() as u32;
        let crosses = |link: &u32| {
            let (from, to) = network.ends(*link).unwrap();
            column(from) < cut && column(to) >= cut
        };
        assert_eq!(links.filter(crosses).count(), 2, "before column {cut}");
    }
    // Row from row, there is a rung at every column.
    assert_eq!(greatest_flow(network, 8), 8 * 10);
}
