//! Gathers and scatters: of an all_gather what the root receives.
//!
//! In an all_gather the block of every rank spreads by the same tree, turned to that rank. Of all hops a gather needs, for each block, those on
//! the way to the root. The root so receives in each slot what it receives in the all_gather, and others send no more.

use super::spread::Spread;
use super::torus::Torus;
use opticoll_base::interrupt;
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::{Schedule, Transfer};

/// A hop of a way: its slot and plane, and the place from which it starts.
type WayHop = (usize, usize, u32);

/// The gather by a tree.
pub(super) fn gathered(collective: Collective, torus: Torus, spread: &Spread) -> Schedule {
    let places = torus.places();
    let root = collective.root();
    // By place: the hop that comes to it.
    let mut arrivals: Vec<Option<WayHop>> = vec![None; places as usize];
    for (slot, hops) in spread.slots.iter().enumerate() {
        for (plane, of_plane) in hops.iter().enumerate() {
            for &sender in &of_plane.senders {
                let place = torus.plus(sender, of_plane.shift);
                arrivals[place as usize] = Some((slot, plane, sender));
            }
        }
    }
    // By slot and plane: sender and block.
    let mut sent = vec![[Vec::new(), Vec::new()]; spread.slots.len()];
    for place in 0..places {
        interrupt::check();
        let block = torus.minus(root, place);
        let mut at = place;
        while let Some((slot, plane, sender)) = arrivals[at as usize] {
            sent[slot][plane].push((torus.plus(block, sender), block));
            at = sender;
        }
    }
    let mut schedule = Schedule::new(collective);
    for (hops, sent) in spread.slots.iter().zip(&mut sent) {
        schedule.begin_step();
        for (of_plane, sent) in hops.iter().zip(sent) {
            sent.sort_unstable();
            for run in sent.chunk_by(|one, next| one.0 == next.0 && one.1 + 1 == next.1) {
                let (sender, block) = run[0];
                schedule.push(Transfer {
                    count: run.len() as u32,
                    ..Transfer::copy(block, sender, torus.plus(sender, of_plane.shift))
                });
            }
        }
    }
    super::claim(schedule)
}
