//! Transformers with latent attention, shared experts and heads of their own width, against
//! published totals and counts by hand.

use opticoll::workload::training::operators::{Portion, Work, operators};
use opticoll::workload::training::{Model, memory, models};

fn model(spec: &str) -> Model {
    models::parse(spec).unwrap()
}

/// Returns the parameters through which a token passes, without the embedding.
fn active(model: &Model) -> u64 {
    let shape = model.transformer.unwrap();
    let expert = 3 * shape.width * shape.feed_forward;
    let unused = (shape.experts - shape.top_k) * expert * shape.expert_layers();
    model.parameters() - unused - shape.vocabulary * shape.width
}

#[test]
fn models_have_the_published_parameters() {
    // Billions of parameters with the printed precision, and of parameters through which a token
    // passes. DeepSeek-V2: the evaluation requests of the Open CN LLM Leaderboard, and
    // arXiv:2405.04434 (21B). DeepSeek-V3: README_WEIGHTS.md of the checkpoint, without the head
    // for several tokens; 36.6B contain the output but not the embedding. Qwen3: model cards, in
    // which the activated parameters of the mixtures contain the embedding (0.3 and 0.6 billion).
    // Dense models activate all parameters but the embedding.
    let published = [
        ("deepseek_v2", 235.741, 0.0005, 21.0, 0.5),
        ("deepseek_v3", 671.0, 0.5, 36.6, 0.05),
        ("qwen3_8b", 8.2, 0.05, 8.2 - 0.622, 0.05),
        ("qwen3_32b", 32.8, 0.05, 32.8 - 0.778, 0.05),
        ("qwen3_30b_a3b", 30.5, 0.05, 3.3 - 0.311, 0.1),
        ("qwen3_235b_a22b", 235.0, 0.5, 22.0 - 0.622, 0.5),
    ];
    for (name, total, within, used, used_within) in published {
        let model = model(name);
        let billions = model.parameters() as f64 / 1e9;
        assert!((billions - total).abs() <= within, "{name}: {billions}");
        let billions = active(&model) as f64 / 1e9;
        assert!((billions - used).abs() <= used_within, "{name}: {billions}");
    }
}

#[test]
fn options_give_every_shape() {
    let same = [
        (
            "moe:layers=61,width=7168,experts=256,top_k=8,shared=1,dense=3,feed_forward=2048,\
             dense_feed_forward=18432,heads=128,head=128,latent=512,latent_query=1536,\
             vocabulary=129280",
            "deepseek_v3",
        ),
        (
            "moe:layers=48,width=2048,experts=128,top_k=8,feed_forward=768,heads=32,head=128,\
             head_norms=1,key_value=512,vocabulary=151936",
            "qwen3_30b_a3b",
        ),
        (
            "llama:layers=64,width=5120,feed_forward=25600,heads=64,head=128,head_norms=1,\
             key_value=1024,vocabulary=151936",
            "qwen3_32b",
        ),
    ];
    for (shape, name) in same {
        let [one, other] = [shape, name].map(model);
        assert_eq!(one.parameters(), other.parameters(), "{name}");
        assert_eq!(one.operations(), other.operations(), "{name}");
        assert_eq!(one.layers, other.layers, "{name}");
    }
    let refused = [
        ("llama:layers=1,width=64,rotary=8", "give latent="),
        (
            "llama:layers=1,width=64,latent=8,key_value=8",
            "leave it out",
        ),
        (
            "llama:layers=1,width=64,heads=4096,head=4096",
            "above 262144",
        ),
        ("moe:layers=2,width=64,experts=2,dense=3", "0 to 2"),
        ("llama:layers=1,width=64,head_norms=2", "0 to 1"),
    ];
    for (text, words) in refused {
        let problem = models::parse(text).unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn a_token_passes_through_each_matrix_once() {
    for name in ["deepseek_v3", "deepseek_v2", "qwen3_30b_a3b", "qwen3_8b"] {
        let model = model(name);
        let shape = model.transformer.unwrap();
        // Values of normalizations are no matrices.
        let latent = shape
            .latent
            .map_or(0, |latent| latent.query + latent.key_value);
        let heads = if shape.head_norms { 2 * 128 } else { 0 };
        let norms = shape.layers * (2 * shape.width + latent + heads) + shape.width;
        let matrices = 2 * 4096 * u128::from(active(&model) - norms);
        // Scores and weighted sums over all pairs of tokens: arXiv:2405.04434, equations 16 and 17.
        let pairs = u128::from(4096 * 4096 * shape.heads * shape.layers);
        let head = if shape.latent.is_some() { 192 } else { 128 };
        let (forward, backward) = model.operations();
        assert_eq!(forward, matrices + 2 * pairs * (head + 128), "{name}");
        assert_eq!(backward, 2 * forward, "{name}");
    }
}

#[test]
fn operators_of_latent_attention_multiply_keys_and_values_of_other_widths() {
    let model = model("deepseek_v3");
    let layer = model
        .layers
        .iter()
        .find(|layer| layer.name == "block0.attention");
    let pairs = 128 * 4096 * 4096 / 2;
    for (flash, causal) in [(true, 1), (false, 2)] {
        let portion = Portion {
            flash,
            ..Portion::whole(1, model.assignments())
        };
        let operators = operators(layer.unwrap(), portion);
        let sum = |works: &[Work]| works.iter().map(Work::operations).sum::<u128>();
        // Scores of keys with 192 values, sums of values with 128.
        assert_eq!(sum(&operators[0].forward), causal * 2 * pairs * (192 + 128));
        // Gradients of scores, values, queries and keys; FlashAttention computes scores again.
        let again = if flash { 192 } else { 0 };
        let gradients = 128 + 128 + 192 + 192 + again;
        assert_eq!(sum(&operators[0].backward), causal * 2 * pairs * gradients);
    }
}

#[test]
fn latent_vectors_are_stored() {
    let (width, inside, heads, tokens) = (1024u128, 3072u128, 16u128, 512u128);
    let model = model(
        "llama:layers=2,width=1024,feed_forward=3072,heads=16,head=64,rotary=32,latent=128,\
         latent_query=256,sequence=512",
    );
    // Bytes per token, in the order of the layers: inputs of the normalization and of the first
    // products; of each latent vector, the inputs of its normalization and of its product; queries
    // and keys of 96 and values of 64 for each head; the input and the mask of the projection; the
    // feed-forward part of Llama 2.
    let latents = 2 * 2 * (256 + 128);
    let attention = 2 * heads * (96 + 96 + 64) + 2 * heads * 64 + width;
    let feed_forward = 2 * width + 2 * width + 3 * 2 * inside + width;
    let block = 2 * width + 2 * width + latents + attention + feed_forward;
    let forecast = memory::forecast(&model, 3);
    assert_eq!(forecast.activations, 3 * 2 * tokens * block);
}
