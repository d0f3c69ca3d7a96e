//! Practices of computing and storing layers: recomputation, sequence parallelism, kernels of
//! attention and the loss, interleaved stages, context parallelism, and the width of gradients that
//! are summed up.

opticoll_base::named_enum! {
    /// Part of the forward pass that the backward pass computes again instead of storing its values
    /// (Korthikanti et al., arXiv:2205.05198, section 5).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Recompute {
        /// No part.
        Nothing = "none",
        /// The scores of attention. Attention that does not store its scores has nothing to save.
        Selective = "selective",
        /// Every block. Only the input of a block is stored.
        Full = "full",
    }
}

opticoll_base::named_enum! {
    /// Exchange by which ranks that divide the tokens of a sample compute its attention.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ContextExchange {
        /// Keys and values pass around the ranks, beside the computation of attention (Liu et al.,
        /// Ring Attention, arXiv:2310.01889).
        Ring = "ring",
        /// Before attention, each rank exchanges its tokens of all heads for all tokens of some
        /// heads; afterwards back (Jacobs et al., DeepSpeed-Ulysses, arXiv:2309.14509).
        AllToAll = "all_to_all",
    }
}

/// Practice of computing and storing layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Practice {
    /// Part of the forward pass that the backward pass computes again.
    pub recompute: Recompute,
    /// True if tensor-parallel ranks divide the tokens where they do not divide a matrix: a
    /// reduce_scatter and an all_gather replace each all_reduce.
    pub sequence_parallel: bool,
    /// True if attention does not store its scores (FlashAttention).
    pub flash: bool,
    /// v: number of model chunks of each stage of the pipeline. With more than one, stages are
    /// interleaved (Narayanan et al., arXiv:2104.04473, section 2.2).
    pub chunks: u32,
    /// True if the loss has no 32-bit copies of the logits, and a fused kernel computes it.
    pub fused_loss: bool,
    /// True if gradients are summed up and stored in 32 bits.
    pub wide_gradients: bool,
    /// Exchange of context parallelism.
    pub context_exchange: ContextExchange,
    /// True if tokens travel to experts in 8 bits, as do the gradients of their outputs. Outputs,
    /// and gradients of tokens, travel back in 16 bits (DeepSeek-V3, section 3.3.3).
    pub narrow_dispatch: bool,
    /// Number of copies of experts in a layer, besides one of each expert.
    pub expert_copies: u64,
    /// True if exchanges of tensor-parallel ranks run beside the products next to them.
    pub overlap_tensor: bool,
    /// True if exchanges with experts run beside the computing of another micro-batch.
    pub overlap_experts: bool,
    /// Number of units whose sharded parameters are gathered ahead of the unit that runs. `None`
    /// stands for 1 if parameters are sharded, and for a gathering after the optimizer's step if
    /// only its state or gradients are sharded.
    pub prefetch: Option<u32>,
}

impl Practice {
    /// No recomputation, no sequence parallelism, FlashAttention, one chunk per stage, a loss in 32
    /// bits, gradients of 16 bits, a ring among context-parallel ranks, and one copy of each
    /// expert. As by default in Megatron-LM, exchanges of tensor- and expert-parallel ranks are not
    /// overlapped.
    pub const USUAL: Practice = Practice {
        recompute: Recompute::Nothing,
        sequence_parallel: false,
        flash: true,
        chunks: 1,
        fused_loss: false,
        wide_gradients: false,
        context_exchange: ContextExchange::Ring,
        narrow_dispatch: false,
        expert_copies: 0,
        overlap_tensor: false,
        overlap_experts: false,
        prefetch: None,
    };

    /// Returns whether the scores of attention are stored.
    pub fn stores_scores(&self) -> bool {
        !self.flash && self.recompute == Recompute::Nothing
    }

    /// Returns the number of `tensor` ranks that divide tokens between the matrices.
    pub fn sequence_ranks(&self, tensor: u32) -> u64 {
        u64::from(if self.sequence_parallel { tensor } else { 1 })
    }
}
