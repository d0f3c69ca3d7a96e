//! Trace of an iteration for all ranks, and the collectives of the iteration.

use std::collections::BTreeMap;

use super::super::TrainingError;
use super::program::{Carrier, GroupCollective, GroupedTrace, GroupedTraining};
use super::writer::{Communicators, MessageUses, RankWriter};
use super::{Groups, RankPlace};
use crate::trace::Trace;
use opticoll_base::units::{Time, gcd};

impl GroupedTraining {
    /// Writes the trace of an iteration.
    ///
    /// # Errors
    /// Fails if the time of a collective is missing.
    pub fn trace(&self, carrier: Carrier<'_>) -> Result<GroupedTrace, TrainingError> {
        let groups = match carrier {
            Carrier::Replay => self.groups,
            Carrier::Times(..) => {
                let even = (0..self.loads.exchanges()).all(|number| self.loads.is_even(number));
                let expert = if even { 1 } else { self.groups.expert };
                // Ranks of a context-parallel group differ if they have different experts.
                let context = gcd(self.groups.context.into(), expert.into()) as u32;
                Groups {
                    tensor: 1,
                    context,
                    expert,
                    data: expert / context,
                    ..self.groups
                }
            }
        };
        let mut written = GroupedTrace {
            trace: Trace::new(groups.ranks()),
            roles: Vec::new(),
            sent_after: BTreeMap::new(),
            groups,
            setups: Vec::new(),
        };
        let mut communicators = Communicators::default();
        for number in 0..self.loads.exchanges() {
            if !self.loads.is_even(number) {
                for (source, back) in self.exchanges() {
                    let sizes = (0..self.groups.expert as usize).map(|target| {
                        let pair = if back {
                            (target, source)
                        } else {
                            (source, target)
                        };
                        self.loads.between(number, pair.0, pair.1) * self.exchanged(back)
                    });
                    communicators
                        .sizes
                        .insert((number, back, source), written.trace.various.len() as u32);
                    written.trace.various.push(sizes.collect());
                }
            }
        }
        let mut messages = MessageUses::new();
        for rank in 0..groups.ranks() {
            let mut writer = RankWriter::new(self, groups, rank, carrier, &mut communicators);
            writer.iteration()?;
            writer.close(&mut written, rank, &mut messages);
        }
        if let Carrier::Times(_, Some(shared)) = carrier {
            written.set_up_messages(&messages, shared.setup)?;
        }
        written.trace.communicators.extend(communicators.members);
        Ok(written)
    }

    fn exchanges(&self) -> impl Iterator<Item = (usize, bool)> + use<> {
        (0..self.groups.expert as usize).flat_map(|source| [(source, false), (source, true)])
    }

    /// Returns the collectives of an iteration, and how often each collective occurs on one rank of
    /// every stage, summed over the stages.
    pub fn collectives(&self) -> Result<BTreeMap<GroupCollective, u64>, TrainingError> {
        let mut counts = BTreeMap::new();
        for stage in 0..self.groups.pipeline {
            let place = RankPlace {
                tensor: 0,
                context: 0,
                data: 0,
                stage,
            };
            let mut communicators = Communicators::default();
            let rank = self.groups.rank(place);
            let mut writer =
                RankWriter::new(self, self.groups, rank, Carrier::Replay, &mut communicators);
            writer.iteration()?;
            for (collective, count) in writer.counts {
                *counts.entry(collective).or_default() += count;
            }
        }
        Ok(counts)
    }
}

impl GroupedTrace {
    /// Adds the time `setup` to each message between stages whose circuit is not up at the sender
    /// or at the receiver.
    fn set_up_messages(
        &mut self,
        messages: &MessageUses,
        setup: Time,
    ) -> Result<(), TrainingError> {
        for (&(sender, _, _), ends) in messages {
            let event = ends.iter().find_map(|end| end.event);
            if let (Some(event), true) = (event, ends.iter().any(|end| end.sets_up)) {
                let event = &mut self.trace.ranks[sender as usize][event as usize];
                event.compute = Time::from_ps(event.compute).plus(setup)?.ps();
                self.setups[sender as usize] += 1;
            }
        }
        Ok(())
    }
}
