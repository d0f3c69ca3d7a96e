//! Events of a layer with experts: tokens are sent to the experts, the experts compute, and the
//! tokens return.
//!
//! With N chunks, the network first sends all chunks to the experts, one after another, and then
//! returns each chunk once the experts have computed it. So the experts compute chunk c while the
//! network sends chunk c + 1. If a chunk takes the network d there and m back, and the experts e,
//! then the layer takes max(N d + N m, d + N e + m, d + e + N m, N d + e + m). Each term is a lower
//! bound for every order of the exchanges, so no other order is faster.

use super::super::super::TrainingError;
use super::super::GroupKind;
use super::super::program::GroupCollective;
use super::RankWriter;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;

impl RankWriter<'_> {
    /// Writes a layer with experts, whose tokens are exchanged as exchange `number` of the loads.
    /// The experts compute for `time` in equal chunks, after the event `gathered`, which is reset.
    /// In a backward pass, the gradients of the tokens are exchanged.
    pub(super) fn experts(
        &mut self,
        number: usize,
        time: Time,
        gathered: &mut Option<u32>,
    ) -> Result<(), TrainingError> {
        let chunks = self.training.loads.chunks;
        if self.training.groups.expert == 1 {
            let mut computing = time;
            self.compute(&mut computing, gathered);
            return Ok(());
        }
        let mut network = None;
        let mut arrivals = Vec::new();
        for _ in 0..chunks {
            let exchange = self.start(self.dispatched(number, false), network)?;
            network = Some(exchange.last());
            arrivals.push(exchange);
        }
        let until = |chunk: u64| u128::from(time.ps()) * u128::from(chunk) / u128::from(chunks);
        let mut last = None;
        for (chunk, arrival) in (0..).zip(arrivals) {
            self.wait(arrival);
            let mut computing = Time::from_ps((until(chunk + 1) - until(chunk)) as u64);
            self.compute(&mut computing, gathered);
            let exchange = self.start(self.dispatched(number, true), network)?;
            network = Some(exchange.last());
            last = Some(exchange);
        }
        if let Some(exchange) = last {
            self.wait(exchange);
        }
        Ok(())
    }

    /// Returns the exchange of a chunk's tokens with the experts of a layer. Tokens are sent to the
    /// experts or, if `back`, return from the experts.
    fn dispatched(&self, number: usize, back: bool) -> GroupCollective {
        let ranks = self.training.groups.expert;
        let loads = &self.training.loads;
        let is_even = loads.is_even(number);
        let pair_bytes = loads.between(number, 0, 0) * self.training.exchanged(back);
        GroupCollective {
            group: GroupKind::Expert,
            kind: Some(CollectiveKind::AllToAll),
            ranks,
            bytes: if is_even {
                pair_bytes * u64::from(ranks)
            } else {
                0
            },
            uneven: (!is_even).then_some((number, back)),
        }
    }
}
