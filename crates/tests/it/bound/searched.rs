//! Bounds on the slots of small rings against an exhaustive search over all plans.

use std::collections::HashSet;

use opticoll::bounds::wdm_ring;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::family::wdm_ring::{Direction, WdmRing};

fn ring(options: &str) -> WdmRing {
    super::ring_from_spec(&format!("wdm_ring:{options}"))
}

/// Returns the directed links of the lightpath between two ranks; `None` if one of them is broken.
fn links(ring: &WdmRing, from: u32, to: u32, direction: Direction) -> Option<Vec<usize>> {
    if !ring.is_whole(from, to, direction) {
        return None;
    }
    let (first, offset) = match direction {
        Direction::Clockwise => (from, 0),
        Direction::CounterClockwise => (to, ring.ranks),
    };
    let places = (0..ring.hops(from, to, direction)).map(|hop| (first + hop) % ring.ranks);
    Some(places.map(|place| (offset + place) as usize).collect())
}

/// The channels, transmitters and receivers that are free in a slot.
#[derive(Clone)]
struct Free {
    links: Vec<u32>,
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Free {
    fn of(ring: &WdmRing) -> Free {
        let ranks = ring.ranks as usize;
        let ports = ring.ports.unwrap_or(u32::MAX);
        Free {
            links: vec![ring.channels(); 2 * ranks],
            sent: vec![ports; ranks],
            received: vec![ports; ranks],
        }
    }

    /// Returns what remains free after one more lightpath. Channels of a link are not told apart,
    /// so the search allows more than the ring does.
    fn with(&self, from: u32, to: u32, links: &[usize]) -> Option<Free> {
        let mut left = self.clone();
        for link in links {
            left.links[*link] = left.links[*link].checked_sub(1)?;
        }
        let (sent, received) = (
            &mut left.sent[from as usize],
            &mut left.received[to as usize],
        );
        *sent = sent.checked_sub(1)?;
        *received = received.checked_sub(1)?;
        Some(left)
    }
}

/// Returns the fewest slots in which a block of the root reaches all ranks.
fn fewest_of_a_broadcast(ring: &WdmRing, root: u32) -> u64 {
    let all = (1u32 << ring.ranks) - 1;
    let mut reached = HashSet::from([1u32 << root]);
    for slots in 0.. {
        if reached.contains(&all) {
            return slots;
        }
        let mut next = HashSet::new();
        for &informed in &reached {
            tell(ring, informed, 0, informed, &Free::of(ring), &mut next);
        }
        reached = next;
    }
    unreachable!("slots do not end")
}

/// Adds to `next` every set of ranks that can be informed after a slot, where the ranks before
/// `rank` have been decided.
fn tell(ring: &WdmRing, informed: u32, rank: u32, told: u32, free: &Free, next: &mut HashSet<u32>) {
    if rank == ring.ranks {
        next.insert(told);
        return;
    }
    tell(ring, informed, rank + 1, told, free, next);
    if informed & (1 << rank) != 0 {
        return;
    }
    for source in (0..ring.ranks).filter(|source| informed & (1 << source) != 0) {
        for direction in Direction::BOTH {
            let path = links(ring, source, rank, direction);
            let left = path.and_then(|path| free.with(source, rank, &path));
            if let Some(left) = left {
                tell(ring, informed, rank + 1, told | (1 << rank), &left, next);
            }
        }
    }
}

/// Returns the options of the mirrored ring: clockwise becomes counter-clockwise and back.
fn backwards(options: &str) -> String {
    let turned = options.replace("ccw", "CW").replace("cw", "ccw");
    turned.replace("CW", "cw")
}

#[test]
fn growth_respects_broken_links_and_no_broadcast_is_below_it() {
    let mut met = 0;
    for options in [
        "ranks=3,wavelengths=1,broken=0-2",
        "ranks=4,wavelengths=1,broken=0-3",
        "ranks=5,wavelengths=1,broken=0-4",
        "ranks=6,wavelengths=1,broken=0-5",
        "ranks=5,wavelengths=2,broken=0-4",
        "ranks=6,wavelengths=2,broken=0-5",
        "ranks=4,wavelengths=1,broken=3-0cw",
        "ranks=5,wavelengths=1,broken=1-2cw",
        "ranks=6,wavelengths=1,broken=1-2cw+4-5cw",
        "ranks=6,wavelengths=1,broken=0-5,ports=1",
        "ranks=5,wavelengths=2,broken=0-4,ports=3",
        "ranks=5,wavelengths=1",
    ] {
        for root in 0..ring(options).ranks {
            let of = |kind| {
                let collective = Collective::new(kind, ring(options).ranks).unwrap();
                collective.with_root(root).unwrap()
            };
            let fewest = fewest_of_a_broadcast(&ring(options), root);
            let least = wdm_ring::best(&ring(options), &of(CollectiveKind::Broadcast)).steps;
            assert!(
                least <= fewest,
                "broadcast from {root} on {options}: {least} > {fewest}"
            );
            met += u32::from(least == fewest);
            // A reduce is a broadcast backwards, in the other directions.
            let back = fewest_of_a_broadcast(&ring(&backwards(options)), root);
            let least = wdm_ring::best(&ring(options), &of(CollectiveKind::Reduce)).steps;
            assert!(
                least <= back,
                "reduce to {root} on {options}: {least} > {back}"
            );
        }
    }
    assert!(met > 40, "of 61 broadcasts the bound is met by {met}");
    // By hand: on a line of three the end tells one, and these two the third.
    let line = ring("ranks=3,wavelengths=1,broken=0-2");
    for (root, steps) in [(0, 2), (1, 1), (2, 2)] {
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            let collective = Collective::new(kind, 3).unwrap();
            let collective = collective.with_root(root).unwrap();
            assert_eq!(
                wdm_ring::best(&line, &collective).steps,
                steps,
                "{kind} {root}"
            );
        }
    }
}

/// A mask, for each chunk and each rank, of the ranks whose contribution has reached that rank.
type Heard = Vec<[u8; 4]>;

/// Returns the fewest slots in which, for each chunk, every rank receives the contributions of all
/// ranks; a contribution may arrive twice.
fn fewest_of_an_all_reduce(ring: &WdmRing, pieces: u32) -> u64 {
    let all = (1u8 << ring.ranks) - 1;
    let start: [u8; 4] = std::array::from_fn(|rank| 1 << rank);
    let mut reached: HashSet<Heard> = HashSet::from([vec![start; pieces as usize]]);
    let ranks = ring.ranks as usize;
    for slots in 0.. {
        let done = |heard: &Heard| {
            heard
                .iter()
                .all(|of| of[..ranks].iter().all(|mask| *mask == all))
        };
        if reached.iter().any(done) {
            return slots;
        }
        let mut next = HashSet::new();
        for heard in &reached {
            hear(ring, heard, 0, heard, &Free::of(ring), &mut next);
        }
        // What is known less of is no better.
        let known = |one: &Heard, other: &Heard| {
            let pairs = one.iter().flatten().zip(other.iter().flatten());
            pairs.into_iter().all(|(one, other)| one & other == *one)
        };
        let mut best: Vec<Heard> = Vec::new();
        for heard in next {
            if !best.iter().any(|other| known(&heard, other)) {
                best.retain(|other| !known(other, &heard));
                best.push(heard);
            }
        }
        reached = best.into_iter().collect();
    }
    unreachable!("slots do not end")
}

/// Adds to `next` every state that can follow a slot. Lightpaths are added in a fixed order of
/// their ends.
fn hear(
    ring: &WdmRing,
    before: &Heard,
    from: usize,
    now: &Heard,
    free: &Free,
    next: &mut HashSet<Heard>,
) {
    let ranks = ring.ranks;
    let paths = (0..ranks * ranks * 2).skip(from);
    let mut more = false;
    for number in paths {
        let (source, rest) = (number / (2 * ranks), number % (2 * ranks));
        let (destination, direction) = (rest / 2, Direction::BOTH[(rest % 2) as usize]);
        if source == destination {
            continue;
        }
        let path = links(ring, source, destination, direction);
        let Some(left) = path.and_then(|path| free.with(source, destination, &path)) else {
            continue;
        };
        for chunk in 0..before.len() {
            let mut then = now.clone();
            then[chunk][destination as usize] |= before[chunk][source as usize];
            if then == *now {
                continue;
            }
            more = true;
            hear(ring, before, number as usize, &then, &left, next);
        }
    }
    if !more {
        next.insert(now.clone());
    }
}

#[test]
fn no_all_reduce_in_pieces_takes_fewer_slots_than_receptions_need() {
    let mut met = 0;
    for (options, most) in [
        ("ranks=2,wavelengths=1", 4),
        ("ranks=3,wavelengths=1", 1),
        ("ranks=3,wavelengths=1,ports=1", 3),
        ("ranks=3,wavelengths=1,broken=0-2", 2),
        ("ranks=4,wavelengths=1,ports=1", 1),
        ("ranks=4,wavelengths=1,broken=0-3", 1),
    ] {
        for pieces in 1..=most {
            let ring = ring(options);
            let collective = Collective::new(CollectiveKind::AllReduce, ring.ranks).unwrap();
            let collective = collective.with_pieces(pieces).unwrap();
            let bound = wdm_ring::best(&ring, &collective);
            let fewest = fewest_of_an_all_reduce(&ring, pieces);
            assert!(
                bound.steps <= fewest,
                "{pieces} pieces on {options}: {bound:?} > {fewest}"
            );
            met += u32::from(bound.steps == fewest);
        }
    }
    assert!(met >= 9, "of 12 the bound is met by {met}");
}
