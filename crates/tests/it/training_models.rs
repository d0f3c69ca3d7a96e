//! Transformers with latent attention, shared experts and heads of their own width, against
//! published totals and counts by hand.

use opticoll::workload::training::device::{self, DEVICES};
use opticoll::workload::training::operators::{Operator, Part, Portion, Work, operators};
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
    // and keys of 96 and values of 64 for each head; the input of the projection; the
    // feed-forward part of Llama 2.
    let latents = 2 * 2 * (256 + 128);
    let attention = 2 * heads * (96 + 96 + 64) + 2 * heads * 64;
    let feed_forward = 2 * width + 2 * width + 3 * 2 * inside;
    let block = 2 * width + 2 * width + latents + attention + feed_forward;
    let forecast = memory::forecast(&model, 3);
    assert_eq!(forecast.activations, 3 * 2 * tokens * block);
    // Context-parallel ranks exchange queries, keys with values, and the output.
    let mut parts = model.layers.iter().flat_map(|layer| &layer.parts);
    let attended = parts.find_map(Part::attended);
    let per_token = [96, 96 + 64, 64].map(|values| 16 * 512 * values);
    assert_eq!(attended, Some(per_token));
}

/// Returns the operators of all layers of a model for 1 sample.
fn all_operators(model: &Model, narrow: bool) -> Vec<(String, Operator)> {
    let portion = Portion {
        narrow,
        ..Portion::whole(1, model.assignments())
    };
    let layers = model.layers.iter();
    layers
        .flat_map(|layer| {
            let operators = operators(layer, portion);
            operators
                .into_iter()
                .map(|operator| (layer.name.clone(), operator))
        })
        .collect()
}

fn narrow_product(work: &Work) -> bool {
    matches!(work, Work::Product { narrow: true, .. })
}

#[test]
fn products_of_blocks_have_8_bit_inputs_except_those_of_a_router() {
    // DeepSeek-V3, section 3.3.1: the embedding, the output, the router, normalizations and
    // attention keep their precision.
    let model = model("deepseek_v3");
    for (layer, operator) in all_operators(&model, true) {
        let wide = layer == "output" || layer.ends_with("router") || operator.name != "product";
        let works = operator.forward.iter().chain(&operator.backward);
        assert_eq!(works.clone().any(narrow_product), !wide, "{layer}");
        let products = works.filter(|work| matches!(work, Work::Product { .. }));
        assert!(products.clone().all(|work| narrow_product(work) != wide));
    }
    assert!(
        all_operators(&model, false)
            .iter()
            .all(|(_, operator)| !operator.forward.iter().any(narrow_product))
    );
}

#[test]
fn an_8_bit_product_reads_half_the_bytes_and_converts_its_inputs() {
    let model = model("llama:layers=1,width=256,feed_forward=1024,sequence=512");
    let operators = all_operators(&model, true);
    let of = |name: &str| {
        let found = operators.iter().find(|(layer, _)| layer == name);
        found.map(|(_, operator)| operator.clone()).unwrap()
    };
    let bytes = |works: &[Work]| works.iter().map(Work::bytes).sum::<u128>();
    let (tokens, width, inside) = (512, 256, 1024);
    // A product reads two inputs of 1 byte, and writes 2 bytes. A conversion reads 2 bytes and
    // writes 1 byte twice.
    let product = |m: u128, n: u128, k: u128| m * k + k * n + 2 * m * n;
    let gate = of("block0.gate");
    let forward = product(tokens, inside, width) + 4 * tokens * width;
    assert_eq!(bytes(&gate.forward), forward);
    let gradients = product(tokens, width, inside) + product(inside, width, tokens);
    assert_eq!(bytes(&gate.backward), gradients + 4 * tokens * inside);
    // The gate has converted the input of `expand`.
    let expand = of("block0.expand");
    assert_eq!(bytes(&expand.forward), product(tokens, inside, width));
    assert_eq!(bytes(&expand.backward), gradients + 4 * tokens * inside);
}

#[test]
fn an_8_bit_product_takes_its_share_of_its_own_peak() {
    let work = Work::Product {
        m: 8192,
        n: 8192,
        k: 8192,
        matrices: 1,
        kernels: 1,
        narrow: true,
        summed: false,
    };
    let exact = "fp8_products=0.5,fp8_depth=8192,launch=0.000001";
    for record in DEVICES.iter().filter(|device| device.narrow_peak > 0) {
        let spec = format!("{}:precision=fp8,{exact}", record.name);
        let device = device::with_operators(&spec).unwrap();
        // Half of the peak, and twice the time at sums as long as the depth.
        let expected = 2.0 * 8192_f64.powi(3) * 2.0 / (0.5 * record.narrow_peak as f64);
        assert!((device.seconds(&work) / expected - 1.0).abs() < 1e-6);
        // Dense peaks of 8-bit floats are twice those of 16-bit floats, rounded to TFLOP/s.
        let twice = record.narrow_peak as f64 / record.peak as f64;
        assert!((twice - 2.0).abs() < 0.002, "{}", record.name);
    }
    let refused = [
        ("a100:precision=fp8", "h100, h800, h200, b200 have"),
        ("h100:precision=fp16", "bf16 or fp8"),
        ("h100:precision=fp8,efficiency=0.4", "leave one of both out"),
    ];
    for (text, words) in refused {
        let problem = device::parse(text).unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
}

#[test]
fn products_that_were_measured_in_8_bits_take_the_published_time() {
    // First README of DeepGEMM, February 2025, H800: rows, columns, length of sums, groups,
    // TFLOP/s. The two constants of 8-bit products were fitted to these rows.
    let rows = [
        (4096, 24_576, 1536, 1, 990.0),
        (4096, 32_768, 512, 1, 590.0),
        (4096, 7168, 16_384, 1, 1358.0),
        (4096, 4096, 7168, 1, 1304.0),
        (4096, 7168, 2048, 1, 1025.0),
        (4 * 8192, 4096, 7168, 4, 1297.0),
        (4 * 8192, 7168, 2048, 4, 1099.0),
        (8 * 4096, 4096, 7168, 8, 1288.0),
        (8 * 4096, 7168, 2048, 8, 1093.0),
    ];
    let device = device::with_operators("h800:precision=fp8").unwrap();
    for (m, n, k, matrices, measured) in rows {
        let work = Work::Product {
            m,
            n,
            k,
            matrices,
            kernels: 1,
            narrow: true,
            summed: false,
        };
        let rate = work.operations() as f64 / device.seconds(&work) / 1e12;
        assert!((rate / measured - 1.0).abs() < 0.045, "{m} {n} {k}: {rate}");
    }
}

#[test]
fn experts_sum_gradients_over_their_own_rows() {
    let model = model(
        "moe:layers=1,width=256,feed_forward=512,experts=8,top_k=2,heads=2,sequence=1024,\
         vocabulary=512",
    );
    let layer = model.layers.iter().find(|layer| layer.split.experts);
    let portion = Portion {
        expert: 2,
        assigned: 2048,
        ..Portion::whole(1, model.assignments())
    };
    let found = operators(layer.unwrap(), portion);
    let gate = found.iter().find(|one| one.name == "product").unwrap();
    // 4 of the 8 experts have 512 rows each: a gradient of 512 x 256 values for each expert.
    let gradients = gate.backward[1];
    assert_eq!(gradients.operations(), 4 * (2 * 512 * 512 * 256));
    // Read once: 2,048 rows of the input and of the gradient of the output; written: 4 gradients.
    let values = 2048 * (256 + 512) + 4 * 512 * 256;
    assert_eq!(gradients.bytes(), 2 * values);
    // Each expert on the rank is a kernel, except with 8-bit products.
    assert_eq!(gradients.kernels(), 4);
    let with = |portion| operators(layer.unwrap(), portion);
    let narrow = Portion {
        narrow: true,
        ..portion
    };
    assert_eq!(with(narrow)[1].backward[1].kernels(), 1);
    // A sum of gradients in 32 bits is read and written.
    let summed = Portion {
        wide_gradients: true,
        ..portion
    };
    let [inputs, sums] = [2 * 2048 * (256 + 512), 8 * 4 * 512 * 256];
    assert_eq!(with(summed)[1].backward[1].bytes(), inputs + sums);
    // Rows of 256 values are sorted before the experts and back; ranks that divide the experts sort
    // them by rank, too. Each sorting reads and writes 16-bit values.
    for (expert, sortings) in [(1, 2), (2, 4)] {
        let sorting = &with(Portion { expert, ..portion })[0];
        assert_eq!(sorting.name, "sorting");
        assert_eq!(sorting.forward[0].bytes(), sortings * 2 * 2 * 2048 * 256);
    }
}

#[test]
fn a_product_that_adds_to_32_bit_sums_moves_4_times_the_bytes_of_its_output() {
    let product = |summed| Work::Product {
        m: 4096,
        n: 4096,
        k: 4096,
        matrices: 1,
        kernels: 1,
        narrow: false,
        summed,
    };
    let device = device::with_operators("h100:depth=1024,launch=0.000001").unwrap();
    let [once, summed] = [false, true].map(|summed| device.seconds(&product(summed)));
    // 1 + depth / k with a depth of 1,024, and of 4 times as many.
    assert!((summed / once - (1.0 + 1.0) / (1.0 + 0.25)).abs() < 1e-6);
}
