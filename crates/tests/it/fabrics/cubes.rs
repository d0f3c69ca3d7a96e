//! Tori of cubes: the links that switches and cubes make, twisted slices, and failed cubes.

use std::collections::BTreeSet;

use opticoll::fabric::Switches;
use opticoll::families::after_failures;
use opticoll::network::translations::Translations;

use super::*;

fn switches(fabric: &Fabric) -> &dyn Switches {
    fabric.switches().unwrap()
}

/// Ports of each switch for all cubes, as published for 4,096 and 9,216 chips; two for each cube.
#[test]
fn a_cube_needs_two_ports_of_each_switch() {
    for (spec, count, cubes, ports) in [
        ("ocs_torus:dims=4x4x4", 48, 1, 2),
        ("ocs_torus:dims=4x4x8,spares=1", 48, 2, 6),
        ("ocs_torus:dims=16x16x16,ports=136", 48, 64, 128),
        ("ocs_torus:dims=16x16x36,ports=300", 48, 144, 288),
        ("ocs_torus:dims=16x16x16,spares=4,ports=136", 48, 64, 136),
        ("ocs_torus:dims=2x2x2,cube=2", 12, 1, 2),
    ] {
        let fabric = Fabric::parse(spec).unwrap();
        let switches = switches(&fabric);
        assert_eq!(
            (switches.count(), switches.ports()),
            (count, ports),
            "{spec}"
        );
        for switch in [0, count / 2, count - 1] {
            let joined = switches.joined(switch);
            assert_eq!(joined.len(), cubes, "a circuit from each cube to the next");
            let used: BTreeSet<u32> = joined
                .iter()
                .flat_map(|(one, other)| [*one, *other])
                .collect();
            assert_eq!(used.len(), 2 * joined.len(), "a port in one circuit");
        }
    }
    let within = Fabric::parse("ocs_torus:dims=2x4x4").unwrap();
    assert!(within.switches().is_none());
}

/// Cables within cubes, and circuits between fibres at the same place of opposite faces, are all
/// the links there are.
#[test]
fn links_are_those_of_cubes_and_circuits() {
    for (spec, sides, side) in [
        ("ocs_torus:dims=4x4x8", [4, 4, 8], 4),
        ("ocs_torus:dims=4x4x8,twisted", [4, 4, 8], 4),
        ("ocs_torus:dims=8x4x8,twisted", [8, 4, 8], 4),
        ("ocs_torus:dims=8x8x4", [8, 8, 4], 4),
        ("ocs_torus:dims=4x8x4,cube=2,twisted", [4, 8, 4], 2),
        ("ocs_torus:dims=2x4x4,cube=2,twisted", [2, 4, 4], 2),
        ("ocs_torus:dims=2x2x6,cube=2", [2, 2, 6], 2),
    ] {
        let fabric = Fabric::parse(spec).unwrap();
        let places = sides.map(|along| along / side);
        let rank = |cube: u32, at: [u32; 3]| {
            let place = [
                cube % places[0],
                cube / places[0] % places[1],
                cube / places[0] / places[1],
            ];
            let [x, y, z] = [0, 1, 2].map(|axis| place[axis] * side + at[axis]);
            (z * sides[1] + y) * sides[0] + x
        };
        let mut cables: Vec<(u32, u32)> = Vec::new();
        for cube in 0..places.iter().product() {
            for number in 0..side * side * side {
                let at = [number % side, number / side % side, number / side / side];
                for axis in (0..3).filter(|axis| at[*axis] + 1 < side) {
                    let mut next = at;
                    next[axis] += 1;
                    cables.push((rank(cube, at), rank(cube, next)));
                }
            }
        }
        let switches = switches(&fabric);
        for switch in 0..switches.count() {
            let name = switches.switch_name(switch);
            let (axis, place) = name
                .strip_prefix("switch ")
                .unwrap()
                .split_once(' ')
                .unwrap();
            let axis = "xyz".find(axis).unwrap();
            let (low, high) = place.split_once('.').unwrap();
            let place: Vec<u32> = [low, high].map(|one| one.parse().unwrap()).into();
            for (from, to) in switches.joined(switch) {
                assert!(switches.port_name(switch, from).contains('+'));
                assert!(switches.port_name(switch, to).contains('-'));
                let face = |own: u32| {
                    let mut at = place.clone();
                    at.insert(axis, own);
                    <[u32; 3]>::try_from(at).unwrap()
                };
                cables.push((rank(from / 2, face(side - 1)), rank(to / 2, face(0))));
            }
        }
        let network = fabric.network().unwrap();
        let mut links: Vec<(u32, u32)> = (0..network.links().len() as u32)
            .map(|link| network.ends(link).unwrap())
            .collect();
        let mut both: Vec<(u32, u32)> = cables
            .iter()
            .flat_map(|&(one, other)| [(one, other), (other, one)])
            .collect();
        links.sort_unstable();
        both.sort_unstable();
        assert_eq!(links, both, "{spec}");
    }
}

/// Routes of a slice that is not twisted are those of the torus.
#[test]
fn straight_slices_are_tori() {
    let slice = Fabric::parse("ocs_torus:dims=4x8x4").unwrap();
    let torus = Fabric::parse("torus:dims=4x8x4").unwrap();
    let walk = |fabric: &Fabric, from, to| walked(fabric.network().unwrap(), from, to);
    for from in [0, 1, 77, 127] {
        for to in (0..128).filter(|to| *to != from) {
            assert_eq!(walk(&slice, from, to), walk(&torus, from, to));
        }
    }
}

/// Counts the switches that join other ports than before, and the ports that are newly in use.
fn changes(before: &Fabric, now: &Fabric) -> (usize, usize) {
    let (earlier, later) = (switches(before), switches(now));
    let ports = |switches: &dyn Switches, switch| -> BTreeSet<u32> {
        let joined = switches.joined(switch).into_iter();
        joined.flat_map(|(one, other)| [one, other]).collect()
    };
    let all = 0..later.count();
    let changed = all
        .clone()
        .filter(|one| earlier.joined(*one) != later.joined(*one));
    let fibres = all.map(|one| ports(later, one).difference(&ports(earlier, one)).count());
    (changed.count(), fibres.sum())
}

#[test]
fn a_spare_takes_the_place_of_a_cube_by_its_fibres_alone() {
    let whole = Fabric::parse("ocs_torus:dims=8x8x8,spares=2").unwrap();
    let failed = after_failures(&whole, "without=cube 3").unwrap();
    assert_eq!(failed.to_string(), format!("{whole},without=cube3"));
    assert_eq!(Fabric::parse(&failed.to_string()).unwrap(), failed);
    assert_eq!(changes(&whole, &failed), (48, 96));
    // Ports of other cubes are joined to what they were joined to, or to the spare's same face.
    let swapped = |port: u32| match port / 2 {
        3 => 2 * 8 + port % 2,
        _ => port,
    };
    for switch in 0..48 {
        let expected = switches(&whole).joined(switch).into_iter();
        let expected: Vec<_> = expected
            .map(|(one, other)| (swapped(one), swapped(other)))
            .collect();
        assert_eq!(switches(&failed).joined(switch), expected);
    }
    // To messages nothing has changed.
    let (one, other) = (whole.network().unwrap(), failed.network().unwrap());
    assert_eq!(one.links(), other.links());
    assert_eq!(failed.ranks(), 512);
    // A second cube takes the second spare; so does the first spare, if it fails.
    for second in ["cube 0", "cube 8"] {
        let twice = after_failures(&failed, &format!("without={second}")).unwrap();
        assert_eq!(changes(&failed, &twice), (48, 96));
        assert!(twice.description().contains("0 spares left"));
    }
    // A spare that nothing uses changes no switch.
    let idle = after_failures(&whole, "without=cube 9").unwrap();
    assert_eq!(changes(&whole, &idle), (0, 0));
    // Ranks may be broken besides.
    let part = after_failures(&failed, "without=rank 5").unwrap();
    assert!(part.to_string().ends_with("without=cube3+5"));
    assert_eq!(Fabric::parse(&part.to_string()).unwrap(), part);
    assert_eq!((part.ranks(), changes(&failed, &part)), (511, (0, 0)));
}

/// Coordinates of a rank, moved one step along a side, by the definition.
fn step(sides: &[u32], twisted: bool, at: &[u32], side: usize) -> Vec<u32> {
    let short = *sides.iter().min().unwrap();
    let mut next = at.to_vec();
    next[side] += 1;
    if next[side] == sides[side] {
        next[side] = 0;
        for (along, length) in sides.iter().enumerate() {
            if twisted && sides[side] == short && *length == 2 * short {
                next[along] = (next[along] + short) % length;
            }
        }
    }
    next
}

fn number(sides: &[u32], at: &[u32]) -> u32 {
    let digits = sides.iter().zip(at).rev();
    digits.fold(0, |sum, (side, own)| sum * side + own)
}

fn coordinates(sides: &[u32], rank: u32) -> Vec<u32> {
    let mut rest = rank;
    let of = |side: &u32| {
        let own = rest % side;
        rest /= side;
        own
    };
    sides.iter().map(of).collect()
}

#[test]
fn ranks_are_added_as_steps_one_after_the_other() {
    for (sides, twisted) in [
        (vec![3, 4], false),
        (vec![2, 4], true),
        (vec![4, 4, 8], true),
        (vec![8, 4, 4], true),
        (vec![4, 8, 8], true),
        (vec![4, 4, 8], false),
    ] {
        let group = match twisted {
            true => Translations::twisted(sides.clone()).unwrap(),
            false => Translations::straight(sides.clone()),
        };
        for by in 0..group.ranks() {
            for rank in [0, 1, group.ranks() / 2 + 1, group.ranks() - 1] {
                let mut at = coordinates(&sides, rank);
                for (side, steps) in coordinates(&sides, by).into_iter().enumerate() {
                    (0..steps).for_each(|_| at = step(&sides, twisted, &at, side));
                }
                let there = group.moved(rank, by, false);
                assert_eq!(there, number(&sides, &at), "{sides:?}: {rank} + {by}");
                assert_eq!(
                    group.moved(there, by, true),
                    rank,
                    "{sides:?}: {there} - {by}"
                );
                assert_eq!(there, group.moved(by, rank, false), "{sides:?}");
            }
        }
    }
}

#[test]
fn other_sides_have_no_twist() {
    for sides in [vec![4, 4, 4], vec![4, 4, 16], vec![4, 8, 16], vec![4, 4, 9]] {
        assert_eq!(Translations::twisted(sides), None);
    }
}
