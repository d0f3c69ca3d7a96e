//! Attention of the tokens of a sample that C ranks divide (context parallelism).
//!
//! Each rank has one part from the beginning and one from the end of a sample, so that all ranks
//! have the same work under a causal mask (Llama 3, arXiv:2407.21783, section 3.3.2).
//!
//! * ring: Attention is computed in C blocks, each with the keys and values of one rank. Beside a
//!   block, the keys and values of the next block arrive. Forward, they are passed on C - 1 times.
//!   Backward, their gradients follow them one block later, so there are C messages: keys and
//!   values, C - 2 times both, and gradients, as in Transformer Engine. If t is the time of
//!   attention and x the time of a message, the forward pass takes (C - 1) max(t / C, x) + t / C.
//! * all_to_all: Forward, one all_to_all each of queries, keys and values before attention, and
//!   one of the output afterwards. Backward, one of the output's gradients before, and three
//!   afterwards.

use super::super::super::TrainingError;
use super::super::super::practice::ContextExchange;
use super::super::GroupKind;
use super::super::program::GroupCollective;
use super::RankWriter;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;

impl RankWriter<'_> {
    /// Writes attention that takes `time`. `queries`, `pairs` and `output` are the bytes of
    /// queries, of keys and values together, and of the output, on the rank.
    pub(super) fn attention(
        &mut self,
        [queries, pairs, output]: [u64; 3],
        time: Time,
        backward: bool,
        computing: &mut Time,
        gathered: &mut Option<u32>,
    ) -> Result<(), TrainingError> {
        let ranks = self.training.groups.context;
        let exchange = |kind, ranks, bytes| GroupCollective {
            group: GroupKind::Context,
            kind,
            ranks,
            bytes,
            uneven: None,
        };
        self.compute(computing, gathered);
        match self.training.practice.context_exchange {
            ContextExchange::AllToAll => {
                let all_to_all =
                    |bytes: u64| exchange(Some(CollectiveKind::AllToAll), ranks, bytes);
                let half = pairs.div_ceil(2);
                let [mut before, mut after] = [vec![queries, half, half], vec![output]];
                if backward {
                    std::mem::swap(&mut before, &mut after);
                }
                for bytes in before {
                    self.blocking(all_to_all(bytes))?;
                }
                *computing = time;
                self.compute(computing, gathered);
                for bytes in after {
                    self.blocking(all_to_all(bytes))?;
                }
            }
            ContextExchange::Ring => {
                let until = |block: u32| time.ps() as u128 * u128::from(block) / u128::from(ranks);
                for block in 0..ranks {
                    let gradients = u64::from(backward && block > 0);
                    let bytes = pairs * (u64::from(block + 1 < ranks) + gradients);
                    let message = match bytes {
                        0 => None,
                        _ => Some(self.start(exchange(None, 2, bytes), None)?),
                    };
                    *computing = Time::from_ps((until(block + 1) - until(block)) as u64);
                    self.compute(computing, gathered);
                    if let Some(message) = message {
                        self.wait(message);
                    }
                }
            }
        }
        Ok(())
    }
}
