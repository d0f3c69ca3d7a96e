//! Transformers from their configuration.
//!
//! A matrix of a x b applied to s tokens does a b s multiplications with addition, 2 operations each; the
//! scores of attention and their sum of values d s^2 each, counted for all pairs of tokens (a causal mask
//! needs half of them, and few implementations save it). Backward takes twice as many. Embeddings are looked
//! up and compute nothing. Where the output matrix is that of the embedding, its gradient is complete only
//! with the embedding's, at the very end.
//!
//! Of s tokens of width h the backward pass needs, in bytes, with 2 bytes a value and 1 a dropped value's mask
//! (Korthikanti et al., arXiv:2205.05198, section 4.1): each normalization's input 2 s h; the input of query, key
//! and value 2 s h; queries, keys and values 6 s h; softmax, its mask and its output 5 a s^2 for a heads; the
//! projection's input and mask 3 s h; the first feed-forward matrix' input 2 s h and its output 2 s f, which is
//! the activation's input; the second matrix' input 2 s f and a mask s h. With f = 4 h that is
//! s h (34 + 5 a s / h), their equations 1 and 2. Heads that share keys and values save their part, and a gate's
//! output is kept as well. Embeddings and heads above the blocks are not counted.

use super::{Layer, Tensor};

/// What the families have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransformerShape {
    /// Blocks.
    pub layers: u64,
    /// Values per token, d.
    pub width: u64,
    /// Values inside the feed-forward part.
    pub feed_forward: u64,
    /// Values of keys, and of values, per token: d unless heads share them.
    pub key_value: u64,
    /// Heads of attention, a.
    pub heads: u64,
    /// Words.
    pub vocabulary: u64,
    /// Positions that have an embedding.
    pub context: u64,
    /// Tokens of a sample, s.
    pub sequence: u64,
}

/// Layers as they are appended, for samples of so many tokens.
struct TokenLayers {
    layers: Vec<Layer>,
    sequence: u64,
}

impl TokenLayers {
    fn push(&mut self, name: &str, tensors: &[(&str, u64)], products_per_token: u64) {
        let forward = 2 * products_per_token * self.sequence;
        let tensor = |(part, parameters): &(&str, u64)| Tensor {
            name: format!("{name}.{part}"),
            parameters: *parameters,
        };
        self.layers.push(Layer {
            name: name.into(),
            tensors: tensors.iter().map(tensor).collect(),
            forward,
            backward: 2 * forward,
            activations: 0,
        });
    }

    /// Adds bytes that each token of the last layer leaves for the backward pass.
    fn leave(&mut self, bytes_per_token: u64) {
        if let Some(layer) = self.layers.last_mut() {
            layer.activations += bytes_per_token * self.sequence;
        }
    }

    /// A matrix with biases.
    fn linear(&mut self, name: &str, from: u64, to: u64) {
        self.push(name, &[("weight", from * to), ("bias", to)], from * to);
    }

    /// A matrix without.
    fn matrix(&mut self, name: &str, from: u64, to: u64) {
        self.push(name, &[("weight", from * to)], from * to);
    }

    /// A normalization by mean and variance.
    fn norm(&mut self, name: &str, width: u64) {
        self.push(name, &[("weight", width), ("bias", width)], 0);
    }

    /// Scores and weighted values.
    fn attention(&mut self, name: &str, shape: TransformerShape) {
        self.push(name, &[], 2 * self.sequence * shape.width);
        self.leave(2 * shape.width + 4 * shape.key_value + 5 * shape.heads * self.sequence);
    }
}

fn network(shape: TransformerShape) -> TokenLayers {
    TokenLayers {
        layers: Vec::new(),
        sequence: shape.sequence,
    }
}

/// GPT-2 and GPT-3: learned positions, normalization before each part, output tied to the embedding
/// (Radford et al. 2019; Brown et al. 2020).
pub(super) fn gpt(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    let embeddings = [
        ("token", shape.vocabulary * width),
        ("position", shape.context * width),
    ];
    network.push("embedding", &embeddings, 0);
    for block in 0..shape.layers {
        let name = |part: &str| format!("block{block}.{part}");
        network.norm(&name("norm1"), width);
        network.leave(2 * width);
        network.linear(&name("query_key_value"), width, 3 * width);
        network.leave(2 * width);
        network.attention(&name("attention"), shape);
        network.linear(&name("projection"), width, width);
        network.leave(3 * width);
        network.norm(&name("norm2"), width);
        network.leave(2 * width);
        network.linear(&name("expand"), width, shape.feed_forward);
        network.leave(2 * width + 2 * shape.feed_forward);
        network.linear(&name("contract"), shape.feed_forward, width);
        network.leave(2 * shape.feed_forward + width);
    }
    network.norm("norm", width);
    network.push("output", &[], shape.vocabulary * width);
    network.layers
}

/// BERT with its heads for pre-training: segments, normalization after each part, pooling, masked words
/// tied to the embedding, and next sentence (Devlin et al. 2019).
pub(super) fn bert(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    let embeddings = [
        ("token", shape.vocabulary * width),
        ("position", shape.context * width),
        ("segment", 2 * width),
    ];
    network.push("embedding", &embeddings, 0);
    network.norm("embedding.norm", width);
    for block in 0..shape.layers {
        let name = |part: &str| format!("block{block}.{part}");
        for part in ["query", "key", "value"] {
            network.linear(&name(part), width, width);
        }
        // One input for the three of them.
        network.leave(2 * width);
        network.attention(&name("attention"), shape);
        network.linear(&name("projection"), width, width);
        network.leave(3 * width);
        network.norm(&name("norm1"), width);
        network.leave(2 * width);
        network.linear(&name("expand"), width, shape.feed_forward);
        network.leave(2 * width + 2 * shape.feed_forward);
        network.linear(&name("contract"), shape.feed_forward, width);
        network.leave(2 * shape.feed_forward + width);
        network.norm(&name("norm2"), width);
        network.leave(2 * width);
    }
    // Pooling and next sentence look at one token of the sample: too little to count.
    let pooling = [("weight", width * width), ("bias", width)];
    network.push("pooling", &pooling, 0);
    network.push("next_sentence", &[("weight", 2 * width), ("bias", 2)], 0);
    network.linear("masked.transform", width, width);
    network.norm("masked.norm", width);
    let bias = [("bias", shape.vocabulary)];
    network.push("masked.output", &bias, shape.vocabulary * width);
    network.layers
}

/// Llama 2: no biases, gated feed-forward, heads that may share keys and values, an output of its own
/// (Touvron et al. 2023).
pub(super) fn llama(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    network.push("embedding", &[("token", shape.vocabulary * width)], 0);
    for block in 0..shape.layers {
        let name = |part: &str| format!("block{block}.{part}");
        network.push(&name("norm1"), &[("weight", width)], 0);
        network.leave(2 * width);
        network.matrix(&name("query"), width, width);
        network.leave(2 * width);
        network.matrix(&name("key"), width, shape.key_value);
        network.matrix(&name("value"), width, shape.key_value);
        network.attention(&name("attention"), shape);
        network.matrix(&name("projection"), width, width);
        network.leave(3 * width);
        network.push(&name("norm2"), &[("weight", width)], 0);
        network.leave(2 * width);
        network.matrix(&name("gate"), width, shape.feed_forward);
        network.leave(2 * width + 2 * shape.feed_forward);
        network.matrix(&name("expand"), width, shape.feed_forward);
        network.leave(2 * shape.feed_forward);
        network.matrix(&name("contract"), shape.feed_forward, width);
        network.leave(2 * shape.feed_forward + width);
    }
    network.push("norm", &[("weight", width)], 0);
    network.matrix("output", width, shape.vocabulary);
    network.layers
}
