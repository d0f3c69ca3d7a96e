//! Deadlocks: the chain of nodes that wait for each other.

use super::engine::{NodePhase, ReplayEngine};
use crate::error::{Place, TraceError};
use crate::program::{FOLLOWS, NONE, NodeKind};
use opticoll_base::interrupt;
use opticoll_simulate::live::Live;

impl<C: Live + ?Sized> ReplayEngine<'_, C> {
    /// Returns the node for which a started node waits: the other end of a message, or a member
    /// that has not entered a collective.
    fn other_end(&self, node: u32) -> u32 {
        let operation = &self.program.nodes[node as usize];
        if operation.kind != NodeKind::Collective {
            return operation.partner;
        }
        let members = &self.program.joint_collectives[operation.amount as usize].members;
        let mut members = members.iter().map(|&(member, _)| member);
        let absent = |member: &u32| self.phase[*member as usize] == NodePhase::Idle;
        members.find(absent).unwrap_or(node)
    }

    /// Returns the error with a chain of nodes that wait for each other.
    pub(super) fn deadlock(&self) -> TraceError {
        let mut awaited = vec![NONE; self.program.len()];
        for node in 0..self.program.len() as u32 {
            interrupt::check();
            if self.phase[node as usize] == NodePhase::Ended {
                continue;
            }
            let starts = &self.program.dependent_starts;
            let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
            let begun = self.waits[node as usize] == 0;
            for &dependent in &self.program.dependents[range] {
                if !(begun && dependent & FOLLOWS != 0) {
                    awaited[(dependent & !FOLLOWS) as usize] = node;
                }
            }
        }
        let mut node = (0..self.program.len() as u32)
            .find(|&node| self.phase[node as usize] != NodePhase::Ended)
            .expect("some node has not ended");
        let mut seen = vec![false; self.program.len()];
        let mut waiting: Vec<Place> = Vec::new();
        while !seen[node as usize] {
            seen[node as usize] = true;
            let place = self.program.place(node);
            if waiting.last() != Some(&place) {
                waiting.push(place);
            }
            node = match self.waits[node as usize] {
                // The node has started and waits for its partner or for a member.
                0 => self.other_end(node),
                _ => awaited[node as usize],
            };
        }
        TraceError::Deadlock {
            stuck: self.program.len() - self.ended,
            waiting,
        }
    }
}
