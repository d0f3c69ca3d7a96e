//! Memory by practice, against the figures of Korthikanti et al. and against what Megatron-LM and
//! Transformer Engine store.

use super::*;

const GIB: f64 = (1u64 << 30) as f64;

/// Models of Korthikanti et al., arXiv:2205.05198: layers, width, heads, stages, chunks, samples.
const KORTHIKANTI: [[u64; 6]; 4] = [
    [48, 6144, 64, 1, 1, 4],
    [96, 12_288, 96, 8, 3, 1],
    [105, 20_480, 128, 35, 3, 1],
    [128, 25_600, 160, 64, 1, 1],
];

/// Returns the model and a request with tensor parallelism 8 and stored scores.
fn korthikanti(shape: [u64; 6]) -> (Model, GroupedMemory<'static>) {
    let [layers, width, heads, stages, chunks, samples] = shape;
    let asked = GroupedMemory {
        groups: groups(8, stages as u32, 1, 1),
        sharding: Sharding::Nothing,
        samples,
        micro_batches: 1000,
        practice: Practice {
            flash: false,
            chunks: chunks as u32,
            wide_gradients: true,
            ..Practice::USUAL
        },
        loads: None,
    };
    let name = format!("gpt:layers={layers},width={width},heads={heads},vocabulary=8");
    (model(&name), asked)
}

#[test]
fn weights_and_optimizer_are_those_of_figure_1() {
    // GiB of parameters and optimizer.
    let printed = [45.56, 45.56, 31.64, 32.96];
    for (shape, gibibytes) in KORTHIKANTI.into_iter().zip(printed) {
        let (model, asked) = korthikanti(shape);
        let [layers, width, _, stages, ..] = shape;
        // 18 bytes for each of the 12 l h^2 parameters of matrices. On a rank of the first stage,
        // also: biases (3 h + 4 h) / 8 + 2 h and two normalizations 4 h of each layer, a row of the
        // table of words, and 2,048 positions; if it is the last stage, a normalization.
        let matrices = 12 * layers * width * width / (8 * stages);
        let vectors = layers / stages * (7 * width / 8 + 6 * width);
        let ends = (1 + 2048) * width + 2 * width * u64::from(stages == 1);
        let states = asked.forecast(&model).states();
        assert_eq!(states, 18 * u128::from(matrices + vectors + ends));
        let found = 18.0 * matrices as f64 / GIB;
        assert!((found - gibibytes).abs() < 0.006, "{width}: {found}");
    }
}

#[test]
fn activations_by_practice_are_those_of_figures_1_and_7() {
    // Figure 1: GiB without recomputation and sequence parallelism. Figure 7: per cent of these
    // with sequence parallelism, with selective recomputation, with both, and with full
    // recomputation, for which it counts inputs of blocks only.
    let printed = [
        (59.25, [66.84, 49.42, 16.18, 7.64]),
        (66.84, [62.04, 56.53, 18.49, 8.71]),
        (114.02, [58.31, 62.04, 20.27, 9.42]),
        (131.25, [58.31, 62.04, 20.27, 9.42]),
    ];
    for (shape, (gibibytes, percentages)) in KORTHIKANTI.into_iter().zip(printed) {
        let (model, mut asked) = korthikanti(shape);
        let mut activations = |recompute, sequence_parallel| {
            asked.practice.recompute = recompute;
            asked.practice.sequence_parallel = sequence_parallel;
            asked.forecast(&model).activations as f64
        };
        let whole = activations(Recompute::Nothing, false);
        assert!((whole / GIB - gibibytes).abs() < 0.006, "{}", whole / GIB);
        let [_, width, _, _, _, samples] = shape;
        // Here, full recomputation also counts the block that is computed again.
        let block = (2048 * samples * width * (10 + 24 / 8)) as f64;
        let found = [
            activations(Recompute::Nothing, true),
            activations(Recompute::Selective, false),
            activations(Recompute::Selective, true),
            activations(Recompute::Full, false) - block,
        ];
        for (found, percentage) in found.into_iter().zip(percentages) {
            let found = 100.0 * found / whole;
            assert!(
                (found - percentage).abs() < 0.15,
                "{width}: {found} {percentage}"
            );
        }
    }
}

/// Llama 3 70B with a few layers, as in SimuMax's runs: tokens, width, values of keys, values inside
/// the feed-forward part, words, layers.
const LLAMA: [u128; 6] = [4096, 8192, 1024, 28_672, 128_256, 12];

fn llama(tensor: u32, pipeline: u32, fused_loss: bool) -> memory::Memory {
    let [s, h, kv, f, words, layers] = LLAMA;
    let model = model(&format!(
        "llama:layers={layers},width={h},heads=64,key_value={kv},feed_forward={f},\
         vocabulary={words},sequence={s}"
    ));
    let asked = GroupedMemory {
        groups: groups(tensor, pipeline, 1, 8 / tensor / pipeline),
        sharding: Sharding::Optimizer,
        samples: 1,
        micro_batches: 4,
        practice: Practice {
            sequence_parallel: tensor > 1,
            fused_loss,
            wide_gradients: true,
            ..Practice::USUAL
        },
        loads: None,
    };
    asked.forecast(&model)
}

#[test]
fn activations_without_dropout_are_what_transformer_engine_saves() {
    // Values per token of a block with 2 bytes each: both normalizations and the products after
    // them save their inputs (4 h), attention its queries, keys and values and its output
    // (2 h + 2 kv), the activation its input (2 f), and the last product its input (f).
    let [s, h, kv, f, _, layers] = LLAMA;
    let block = 2 * s * (6 * h + 2 * kv + 3 * f);
    for tensor in [1, 2, 4, 8] {
        let found = llama(tensor, 1, true).activations;
        assert_eq!(found, layers * block / u128::from(tensor));
    }
    // The first of two stages stores two micro-batches of half of the blocks.
    assert_eq!(llama(1, 2, true).activations, layers * block);
}

#[test]
fn working_memory_is_what_megatron_allocates() {
    let [s, h, kv, f, words, _] = LLAMA;
    // `get_dummy_wgrad` of Transformer Engine: the products of a block, and the output matrix.
    let block = 2 * (h * (h + 2 * kv) + h * h + 3 * h * f);
    let output = 2 * h * words;
    let tokens = 2 * s * h;
    for (fused, logit) in [(true, 2), (false, 6)] {
        // At the loss: logits, the inputs of the last normalization and product, the gradient of
        // the latter.
        let loss = s * logit * words + 3 * tokens;
        assert_eq!(llama(1, 1, fused).working, block + output + loss);
        for tensor in [2u32, 4, 8] {
            // With sequence parallelism, the output matrix gathers its input, and its gradient is
            // whole before the reduce_scatter (`core/tensor_parallel/layers.py`).
            let expected = (block + output + loss) / u128::from(tensor) + 2 * tokens;
            assert_eq!(llama(tensor, 1, fused).working, expected);
        }
    }
    // In the first of two stages: the gradient of the 2 f values that the activation reads, the
    // gradient of the block's output, and the last message.
    let expected = block + 2 * s * 2 * f + 2 * tokens;
    assert_eq!(llama(1, 2, true).working, expected);
}
