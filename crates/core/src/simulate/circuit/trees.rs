//! Which transfers are one light tree.
//!
//! Where ranks can take a share of passing light, the copies of the same chunks that leave a rank in
//! one slot on one channel of one direction are a single lightpath. It is up until its farthest drop
//! has everything, takes one transmitter, and a receiver at each drop. The farthest *leads*.

use rustc_hash::FxHashMap;

use super::messages::{Slots, hop};
use crate::fabric::circuits::{Circuits, Message, Sharing};
use crate::interrupt;
use crate::plan::Plan;
use crate::schedule::Action;
use crate::units::Bytes;

/// The light trees of a plan; every other transfer leads itself alone.
#[derive(Default)]
pub(super) struct Trees {
    /// The leader of each transfer; empty where ranks cannot share light.
    leader: Vec<u32>,
    riders: FxHashMap<u32, Vec<u32>>,
}

impl Trees {
    /// Finds them slot by slot.
    pub(super) fn of(plan: &Plan, circuits: &dyn Circuits, slots: &Slots) -> Trees {
        let mut trees = Trees::default();
        if circuits.sharing() != Sharing::Tree {
            return trees;
        }
        trees.leader = (0..plan.len() as u32).collect();
        let length = |transfer: u32| {
            let message = Message::new(hop(plan, transfer).0, transfer, Bytes::new(0));
            let mut measured = [message];
            // Times that do not fit are refused where messages are sent.
            let lines = circuits.measure(&mut measured).map(|()| &measured[0].lines);
            lines.map_or(0, |lines| {
                lines.iter().map(|range| range.len()).sum::<usize>()
            })
        };
        let light = |transfer: u32| {
            let moved = plan.schedule.transfer(transfer as usize);
            let light = plan.light[transfer as usize];
            (light, moved.source, moved.chunk, moved.count)
        };
        for slot in 0..plan.slots() {
            interrupt::check();
            let copies = slots.of_slot(slot).iter().copied();
            let mut copies: Vec<u32> = copies
                .filter(|&transfer| {
                    plan.schedule.transfer(transfer as usize).action == Action::Copy
                })
                .collect();
            copies.sort_by_cached_key(|&transfer| (light(transfer), length(transfer), transfer));
            for together in copies.chunk_by(|&one, &other| light(one) == light(other)) {
                interrupt::check();
                let [riders @ .., leader] = together else {
                    continue;
                };
                for &rider in riders {
                    trees.leader[rider as usize] = *leader;
                }
                if !riders.is_empty() {
                    trees.riders.insert(*leader, riders.to_vec());
                }
            }
        }
        trees
    }

    /// The transfer with whose light a transfer goes.
    pub(super) fn leader(&self, transfer: u32) -> u32 {
        match self.leader.get(transfer as usize) {
            Some(&leader) => leader,
            None => transfer,
        }
    }

    /// Whether a transfer goes with its own light.
    pub(super) fn leads(&self, transfer: u32) -> bool {
        self.leader(transfer) == transfer
    }

    /// The others that go with a leader's light.
    pub(super) fn riders(&self, leader: u32) -> &[u32] {
        self.riders.get(&leader).map_or(&[], Vec::as_slice)
    }
}
