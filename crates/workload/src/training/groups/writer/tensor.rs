//! Exchanges of tensor-parallel ranks, and the computing beside them.
//!
//! A matrix divided by columns (the first matrix of attention and of the feed-forward part) needs
//! the input of all ranks, and a matrix divided by rows leaves a sum over all ranks. With sequence
//! parallelism, an all_gather precedes the former and a reduce_scatter follows the latter; without,
//! an all_reduce follows the latter. Backward, a layer computes the gradient of its input in the
//! first half of its time, and those of its weights in the second half, by two products of as many
//! operations. Then the exchanges of both kinds of matrices are swapped. With sequence parallelism,
//! a matrix divided by columns gathers its input once more, for the gradients of its weights
//! (Korthikanti et al., arXiv:2205.05198, section 4.2.2).
//!
//! Let t be the time of a product, x that of an exchange, and T the number of ranks. An exchange
//! beside a product takes max(t, x) with it. In pieces, the exchange of a rank's piece is beside
//! the product of another rank's: all but one of T pieces of the product, so that both together
//! take max(t, x + t / T), as with the user buffers of Transformer Engine.
//!
//! | exchange | beside | if |
//! |---|---|---|
//! | forward: all_gather; reduce_scatter or all_reduce | the product, in pieces | overlap of tensor |
//! | backward: all_gather of the output's gradient | the input's gradient, in pieces | overlap of tensor |
//! | backward: all_gather of the input | the input's gradient | overlap |
//! | backward: reduce_scatter or all_reduce | the weights' gradients | overlap of tensor |
//!
//! Other exchanges precede or follow all computing of the layer. (Megatron-LM always runs the
//! reduce_scatter or all_reduce of the backward pass beside the weights' gradients.) A layer of
//! experts exchanges tokens with the ranks of other experts next to its product, so nothing is
//! beside.

use super::super::GroupKind;
use super::super::program::GroupCollective;
use super::super::stages::StageLayer;
use super::RankWriter;
use opticoll_base::units::Time;
use opticoll_plan::collective::CollectiveKind;

/// Exchanges of a layer, with the part of its computing beside each.
#[derive(Default)]
pub(super) struct TensorExchanges {
    /// Collective that starts before the layer.
    pub(super) gather: Option<CollectiveKind>,
    /// First part of the layer's computing, beside this collective.
    pub(super) beside_gather: Time,
    /// Collective that ends after the layer.
    pub(super) sum: Option<CollectiveKind>,
    /// Last part of the layer's computing, beside this collective.
    pub(super) beside_sum: Time,
}

impl RankWriter<'_> {
    /// Returns the exchanges of a layer in a pass that computes for `time`.
    pub(super) fn tensor_exchanges(
        &self,
        layer: &StageLayer,
        time: Time,
        backward: bool,
    ) -> TensorExchanges {
        let practice = self.training.practice;
        let ranks = u64::from(self.training.groups.tensor);
        if ranks == 1 {
            return TensorExchanges::default();
        }
        let sequence = practice.sequence_parallel;
        let dense = layer.experts.is_none();
        let (by_columns, by_rows) = (layer.sums_input, layer.sums_output);
        let (opens, sums, again) = match backward {
            false => (by_columns, by_rows, false),
            true => (by_rows, by_columns, by_columns && dense),
        };
        let overlap = practice.overlap_tensor && dense;
        // Time of the product beside which each exchange can be.
        let (first, last) = match backward {
            false => (time.ps(), time.ps()),
            true => (time.ps() / 2, time.ps() - time.ps() / 2),
        };
        let pieces = |time: u64| time - time / ranks;
        let beside_gather = match () {
            () if !sequence => 0,
            () if opens && overlap => pieces(first),
            () if again && self.training.overlap => first,
            () => 0,
        };
        let beside_sum = match backward {
            _ if !sums || !overlap => 0,
            false => pieces(last),
            true => last,
        };
        TensorExchanges {
            gather: (sequence && (opens || again)).then_some(CollectiveKind::AllGather),
            beside_gather: Time::from_ps(beside_gather),
            sum: sums.then_some(match sequence {
                true => CollectiveKind::ReduceScatter,
                false => CollectiveKind::AllReduce,
            }),
            beside_sum: Time::from_ps(beside_sum),
        }
    }

    /// Returns a collective of the tensor-parallel group over the activations of a micro-batch.
    pub(super) fn among_tensor(&self, kind: CollectiveKind) -> GroupCollective {
        GroupCollective {
            group: GroupKind::Tensor,
            kind: Some(kind),
            ranks: self.training.groups.tensor,
            bytes: match kind {
                CollectiveKind::AllGather => self.share_of_tokens(),
                _ => self.training.activations,
            },
            uneven: None,
        }
    }
}
