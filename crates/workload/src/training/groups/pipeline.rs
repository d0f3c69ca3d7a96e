//! Schedules of a pipeline stage: one forward pass and one backward pass in turn (1F1B), with one
//! or several chunks of the model per stage.
//!
//! A stage starts with some forward passes, then alternates forward and backward passes, and ends
//! with the remaining backward passes (Narayanan et al., PipeDream-Flush, ICML 2021; as in
//! Megatron-LM, arXiv:2104.04473, section 2.2). Let f and b be the times of the forward and
//! backward pass of a micro-batch in a stage, P the number of stages, M the number of micro-batches
//! and v the number of chunks per stage. The first stage starts with P - 1 forward passes. All
//! stages finish after (M + P - 1) (f + b); each stage idles for (P - 1) (f + b) of this time.
//!
//! With v chunks, the stages are **interleaved**: chunk c of stage p computes part c P + p of the
//! model. Passes take f / v and b / v, and P micro-batches in turn pass through chunk 0, then
//! through chunk 1, and so on. A stage starts with 2 (P - 1 - p) + (v - 1) P forward passes, and
//! idles for (P - 1) (f + b) / v.
//!
//! Each forward pass after that may run beside the next backward pass, so that one computes while
//! the other exchanges tokens with experts (DeepSeek-V3, arXiv:2412.19437, section 3.2.1, and the
//! batch-level overlap of Megatron-LM). Neither may then wait for the other, so a stage starts with
//! 2 (P - 1 - p) + (v - 1) P + 1 forward passes, for any v.

/// Forward or backward pass of a micro-batch through a chunk of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) micro_batch: u64,
    pub(super) chunk: u32,
    pub(super) backward: bool,
}

/// Returns the number of passes that go forward before the first backward pass, without the forward
/// pass right before it.
fn ahead(stages: u32, stage: u32, micro_batches: u64, chunks: u32, beside: bool) -> u64 {
    let later = u64::from(stages - 1 - stage);
    let passes = match (chunks, beside) {
        (1, false) => later,
        _ => 2 * later + u64::from(chunks - 1) * u64::from(stages) + u64::from(beside),
    };
    passes.min(micro_batches * u64::from(chunks))
}

/// Returns the largest number of passes through chunks of the stage with index `stage` whose
/// activations are stored at the same time. `beside` is true if forward and backward passes run
/// beside each other.
pub fn held(stages: u32, stage: u32, micro_batches: u64, chunks: u32, beside: bool) -> u64 {
    let all = micro_batches * u64::from(chunks);
    (ahead(stages, stage, micro_batches, chunks, beside) + 1).min(all)
}

/// Returns the passes of the stage with index `stage`, in order. `stages` is the number of stages,
/// and divides the number of micro-batches if there are several chunks. If `beside`, the passes of
/// an entry run beside each other; otherwise each entry is one pass.
pub(super) fn one_forward_one_backward(
    stages: u32,
    stage: u32,
    micro_batches: u64,
    chunks: u32,
    beside: bool,
) -> Vec<Vec<Pass>> {
    let all = micro_batches * u64::from(chunks);
    let ahead = ahead(stages, stage, micro_batches, chunks, beside);
    let turn = match chunks {
        1 => micro_batches.max(1),
        _ => u64::from(stages),
    };
    let place = |number: u64| {
        let (round, within) = (
            number / (turn * u64::from(chunks)),
            number % (turn * u64::from(chunks)),
        );
        (round * turn + within % turn, (within / turn) as u32)
    };
    let forward = |number| {
        let (micro_batch, chunk) = place(number);
        Pass {
            micro_batch,
            chunk,
            backward: false,
        }
    };
    let backward = |number| {
        let (micro_batch, chunk) = place(number);
        Pass {
            micro_batch,
            chunk: chunks - 1 - chunk,
            backward: true,
        }
    };
    let begin = (0..ahead).map(|number| vec![forward(number)]);
    let steady = (ahead..all).flat_map(|next| {
        let (forward, backward) = (forward(next), backward(next - ahead));
        match beside {
            true => vec![vec![forward, backward]],
            false => vec![vec![forward], vec![backward]],
        }
    });
    let last_passes = (all - ahead..all).map(|number| vec![backward(number)]);
    begin.chain(steady).chain(last_passes).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_stage_never_holds_more_micro_batches_than_stages_from_it_on() {
        for stages in 1..=5 {
            for micro_batches in 1..=7u64 {
                for stage in 0..stages {
                    let (mut held, mut most) = (0u64, 0);
                    let mut next = [0u64; 2];
                    let passes = one_forward_one_backward(stages, stage, micro_batches, 1, false);
                    for pass in passes.concat() {
                        let turn = &mut next[usize::from(pass.backward)];
                        assert_eq!(pass.micro_batch, *turn);
                        *turn += 1;
                        held = if pass.backward { held - 1 } else { held + 1 };
                        most = most.max(held);
                    }
                    assert_eq!(next, [micro_batches; 2]);
                    assert_eq!(most, u64::from(stages - stage).min(micro_batches));
                    assert_eq!(most, super::held(stages, stage, micro_batches, 1, false));
                }
            }
        }
    }

    #[test]
    fn interleaved_chunks_pass_every_micro_batch_once_forward_and_then_back() {
        for (stages, chunks, beside) in [
            (2, 2, false),
            (4, 2, false),
            (4, 3, false),
            (8, 4, false),
            (1, 1, true),
            (4, 1, true),
            (4, 3, true),
        ] {
            for rounds in 1..=3 {
                let micro_batches = u64::from(stages) * rounds;
                for stage in 0..stages {
                    let passes =
                        one_forward_one_backward(stages, stage, micro_batches, chunks, beside);
                    let mut open = BTreeSet::new();
                    let (mut seen, mut most) = (BTreeSet::new(), 0);
                    for pass in passes.concat() {
                        let key = (pass.micro_batch, pass.chunk);
                        match pass.backward {
                            false => assert!(open.insert(key) && seen.insert(key)),
                            true => assert!(open.remove(&key)),
                        }
                        most = most.max(open.len() as u64);
                    }
                    assert_eq!(seen.len() as u64, micro_batches * u64::from(chunks));
                    assert!(open.is_empty());
                    let held = super::held(stages, stage, micro_batches, chunks, beside);
                    assert_eq!(most, held);
                }
                // Korthikanti et al., section 4.2.3: the first stage holds 1 + (p - 1) / (p v)
                // times the activations of p micro-batches.
                let (p, v) = (u64::from(stages), u64::from(chunks));
                if rounds > 1 && !beside {
                    let held = super::held(stages, 0, micro_batches, chunks, false);
                    assert_eq!(held, p * v + p - 1);
                }
            }
        }
    }
}
