//! Fabrics in partial use: broken links and vertices, and ranks that only forward.

use opticoll::families::after_failures;

use super::*;

fn network_of(spec: &str) -> Fabric {
    let fabric = Fabric::parse(spec).unwrap();
    assert_eq!(
        Fabric::parse(&fabric.to_string()).unwrap(),
        fabric,
        "{spec}"
    );
    fabric
}

/// Returns the links of a route as pairs of names, and checks that the route leads from one rank to
/// the other.
fn route(fabric: &Fabric, from: u32, to: u32) -> Vec<String> {
    let network = fabric.network().unwrap();
    let mut links = Vec::new();
    network.route(from, to, &mut links);
    let mut at = from;
    for link in &links {
        let (one, other) = network.ends(*link).unwrap();
        assert!(at == one || (at == other && network.leads_both_ways(*link)));
        at = if at == one { other } else { one };
    }
    assert_eq!(at, to);
    links.iter().map(|link| network.link_name(*link)).collect()
}

#[test]
fn what_is_broken_is_gone_and_the_rest_is_as_it_was() {
    let whole = network_of("torus:dims=4x4");
    let part = network_of("torus:dims=4x4,without=0>1+5+2-3");
    // 64 links, less one, those of rank 5 (four cables) and one cable.
    assert_eq!(part.network().unwrap().links().len(), 64 - 1 - 8 - 2);
    assert_eq!(part.ranks(), 15);
    let named = network_of("torus:dims=4x4,without=link rank 0 -> rank 1+rank 5+rank 2 <-> rank 3");
    assert_eq!(named, part);
    for from in 0..15 {
        for to in (0..15).filter(|to| *to != from) {
            let before = route(&whole, part.node(from), part.node(to));
            let broken = before.iter().any(|link| {
                let gone = ["rank 0 -> rank 1", "rank 2 -> rank 3", "rank 3 -> rank 2"];
                gone.contains(&link.as_str()) || link.split(" -> ").any(|end| end == "rank 5")
            });
            let now = route(&part, from, to);
            if broken {
                assert!(now.len() >= before.len());
            } else {
                assert_eq!(
                    now.len(),
                    before.len(),
                    "{from} to {to}: it keeps its route"
                );
            }
        }
    }
    let network = part.network().unwrap();
    assert_eq!(network.vertex_name(4), "rank 4");
    assert_eq!(network.vertex_name(5), "rank 5 (node 6)");
}

#[test]
fn ranks_that_take_no_part_forward() {
    let part = network_of("electrical_ring:ranks=8,members=0+3-4+7");
    assert_eq!(part.ranks(), 4);
    assert_eq!([0, 1, 2, 3].map(|rank| part.node(rank)), [0, 3, 4, 7]);
    // From 0 to 3 past 1 and 2, which are vertices 4 and 5 now.
    let links = route(&part, 0, 1);
    assert_eq!(links.len(), 3);
    assert_eq!(links[0], "rank 0 -> node 1");
    assert_eq!(part.network().unwrap().links().len(), 16);
    // With the way over 1 cut, over 7, 6, 5 and 4.
    let cut = network_of("electrical_ring:ranks=8,without=0>1,members=0+3-4+7");
    assert_eq!(route(&cut, 0, 1).len(), 5);
    assert_eq!(route(&cut, 1, 0).len(), 3);
}

#[test]
fn one_of_several_cables_can_break() {
    let graph = "custom:ranks=3,links=0-1+0-1+1-2,rate=8Gb/s";
    let part = network_of(&format!("{graph},without=0-1#1"));
    assert_eq!(part.network().unwrap().links().len(), 4);
    let part = network_of(&format!("{graph},without=rank 0 -> rank 1 (cable 0)"));
    assert_eq!(part.network().unwrap().links().len(), 5);
    // A half-duplex cable is one link, however it is written.
    let graph = "custom:ranks=3,links=0~1+1~2+2~0,rate=8Gb/s";
    for item in ["0-1", "0>1", "1>0", "rank 1 <-> rank 0"] {
        let part = network_of(&format!("{graph},without={item}"));
        assert_eq!(part.network().unwrap().links().len(), 2, "{item}");
        assert_eq!(
            route(&part, 0, 1),
            ["rank 2 <-> rank 0", "rank 1 <-> rank 2"]
        );
    }
}

#[test]
fn failures_add_up() {
    let torus = Fabric::parse("torus:dims=4x4,without=0>1").unwrap();
    let after_both = after_failures(&torus, "without=rank 5").unwrap();
    assert!(after_both.to_string().ends_with("without=0>1+5"));
    let ring = Fabric::parse("wdm_ring:ranks=8,wavelengths=2,broken=3-4cw").unwrap();
    let ring = after_failures(&ring, "broken=5-6cw").unwrap();
    assert!(ring.to_string().contains("broken=3-4cw+5-6cw"));
    let refused = after_failures(&torus, "rate=1Gb/s")
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("no option `rate`") && refused.contains("without"),
        "{refused}"
    );
}
