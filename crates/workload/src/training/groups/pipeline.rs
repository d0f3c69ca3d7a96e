//! The 1F1B schedule of a pipeline stage: one forward pass and one backward pass in turn.
//!
//! A stage starts with one forward pass for each later stage, then alternates forward and backward
//! passes, and ends with the remaining backward passes (Narayanan et al., PipeDream-Flush, ICML
//! 2021; as in Megatron-LM, arXiv:2104.04473, section 2.2). Let f and b be the times of the forward
//! and backward pass of a micro-batch in a stage, P the number of stages and M the number of
//! micro-batches. All stages finish after (M + P - 1) (f + b). Each stage idles for (P - 1) (f + b)
//! of this time.

/// Forward or backward pass of a micro-batch through a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) micro_batch: u64,
    pub(super) backward: bool,
}

/// Returns the passes of the stage with index `stage`, in order. `stages` is the number of stages.
pub(super) fn one_forward_one_backward(stages: u32, stage: u32, micro_batches: u64) -> Vec<Pass> {
    let ahead = u64::from(stages - 1 - stage).min(micro_batches);
    let forward = |micro_batch| Pass {
        micro_batch,
        backward: false,
    };
    let backward = |micro_batch| Pass {
        micro_batch,
        backward: true,
    };
    let begin = (0..ahead).map(forward);
    let steady = (ahead..micro_batches).flat_map(|next| [forward(next), backward(next - ahead)]);
    let last_passes = (micro_batches - ahead..micro_batches).map(backward);
    begin.chain(steady).chain(last_passes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_never_holds_more_micro_batches_than_stages_from_it_on() {
        for stages in 1..=5 {
            for micro_batches in 1..=7u64 {
                for stage in 0..stages {
                    let (mut held, mut most) = (0u64, 0);
                    let mut next = [0u64; 2];
                    for pass in one_forward_one_backward(stages, stage, micro_batches) {
                        let turn = &mut next[usize::from(pass.backward)];
                        assert_eq!(pass.micro_batch, *turn);
                        *turn += 1;
                        held = if pass.backward { held - 1 } else { held + 1 };
                        most = most.max(held);
                    }
                    assert_eq!(next, [micro_batches; 2]);
                    assert_eq!(most, u64::from(stages - stage).min(micro_batches));
                }
            }
        }
    }
}
