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
//! output is kept as well. Embeddings and heads above the blocks are not counted. Ranks that divide a block keep s b h 10 of
//! this each, the inputs of normalizations and matrices and two masks, and divide the rest, s b h (24 + 5 a s / h):
//! equation 2.

use super::{Division, Layer, LayerSplit, Tensor};

/// What the families have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerShape {
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
    /// Experts of a block; 0 where all tokens go through one feed-forward part.
    pub experts: u64,
    /// Experts that a token goes through, k.
    pub top_k: u64,
}

/// How tensor-parallel ranks divide a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatrixSplit {
    /// Not at all.
    Whole,
    /// By columns, with its bias: each rank has a part of the output. The first of those with the same input.
    Columns,
    /// The same, behind the first of those with the same input.
    MoreColumns,
    /// By rows: each rank has a summand of the output, to which the whole bias is added.
    Rows,
}

/// Layers as they are appended, for samples of so many tokens.
struct TokenLayers {
    layers: Vec<Layer>,
    sequence: u64,
    block: Option<u32>,
}

impl TokenLayers {
    /// A layer that no ranks divide.
    fn push(&mut self, name: &str, tensors: &[(&str, u64)], products_per_token: u64) {
        let forward = 2 * products_per_token * self.sequence;
        let tensor = |(part, parameters): &(&str, u64)| Tensor {
            name: format!("{name}.{part}"),
            parameters: *parameters,
            division: Division::Whole,
        };
        self.layers.push(Layer {
            name: name.into(),
            tensors: tensors.iter().map(tensor).collect(),
            forward,
            backward: 2 * forward,
            activations: 0,
            split: LayerSplit {
                block: self.block,
                ..LayerSplit::default()
            },
        });
    }

    /// Says how ranks divide the layer pushed last, and its tensors of these numbers.
    fn split(&mut self, by: MatrixSplit, divided: impl IntoIterator<Item = usize>) {
        let Some(layer) = self.layers.last_mut() else {
            return;
        };
        layer.split.divided = by != MatrixSplit::Whole;
        layer.split.sums_output = by == MatrixSplit::Rows;
        layer.split.sums_input = by == MatrixSplit::Columns;
        for tensor in divided {
            layer.tensors[tensor].division = Division::Tensor;
        }
    }

    /// Adds bytes that each token of the last layer leaves for the backward pass: whole at each of the ranks that divide
    /// the layer, and divided among them.
    fn leave(&mut self, whole_per_token: u64, divided_per_token: u64) {
        if let Some(layer) = self.layers.last_mut() {
            let divided = divided_per_token * self.sequence;
            layer.activations += whole_per_token * self.sequence + divided;
            layer.split.divided_activations += divided;
        }
    }

    /// A matrix with biases.
    fn linear(&mut self, name: &str, from: u64, to: u64, by: MatrixSplit) {
        self.push(name, &[("weight", from * to), ("bias", to)], from * to);
        match by {
            MatrixSplit::Whole => {}
            MatrixSplit::Rows => self.split(by, [0]),
            MatrixSplit::Columns | MatrixSplit::MoreColumns => self.split(by, [0, 1]),
        }
    }

    /// A matrix without.
    fn matrix(&mut self, name: &str, from: u64, to: u64, by: MatrixSplit) {
        self.push(name, &[("weight", from * to)], from * to);
        if by != MatrixSplit::Whole {
            self.split(by, [0]);
        }
    }

    /// The table of words, whose rows ranks divide: each adds what it has of a token.
    fn embedding(&mut self, tensors: &[(&str, u64)]) {
        self.push("embedding", tensors, 0);
        self.split(MatrixSplit::Rows, [0]);
    }

    /// A normalization by mean and variance.
    fn norm(&mut self, name: &str, width: u64) {
        self.push(name, &[("weight", width), ("bias", width)], 0);
    }

    /// Scores and weighted values.
    fn attention(&mut self, name: &str, shape: TransformerShape) {
        self.push(name, &[], 2 * self.sequence * shape.width);
        self.split(MatrixSplit::MoreColumns, []);
        let scores = 5 * shape.heads * self.sequence;
        self.leave(0, 2 * shape.width + 4 * shape.key_value + scores);
    }

    /// The two matrices of a feed-forward part.
    fn feed_forward(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let (width, inside) = (shape.width, shape.feed_forward);
        self.linear(&name("expand"), width, inside, MatrixSplit::Columns);
        self.leave(2 * width, 2 * inside);
        self.linear(&name("contract"), inside, width, MatrixSplit::Rows);
        self.leave(width, 2 * inside);
    }

    /// The attention of Llama 2 with the normalization before it.
    fn gated_attention(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let width = shape.width;
        self.push(&name("norm1"), &[("weight", width)], 0);
        self.leave(2 * width, 0);
        self.matrix(&name("query"), width, width, MatrixSplit::Columns);
        self.leave(2 * width, 0);
        for part in ["key", "value"] {
            self.matrix(
                &name(part),
                width,
                shape.key_value,
                MatrixSplit::MoreColumns,
            );
        }
        self.attention(&name("attention"), shape);
        self.matrix(&name("projection"), width, width, MatrixSplit::Rows);
        self.leave(width, 2 * width);
    }
}

fn network(shape: TransformerShape) -> TokenLayers {
    TokenLayers {
        layers: Vec::new(),
        sequence: shape.sequence,
        block: None,
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
    network.embedding(&embeddings);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.norm(&name("norm1"), width);
        network.leave(2 * width, 0);
        network.linear(
            &name("query_key_value"),
            width,
            3 * width,
            MatrixSplit::Columns,
        );
        network.leave(2 * width, 0);
        network.attention(&name("attention"), shape);
        network.linear(&name("projection"), width, width, MatrixSplit::Rows);
        network.leave(width, 2 * width);
        network.norm(&name("norm2"), width);
        network.leave(2 * width, 0);
        network.feed_forward(name, shape);
    }
    network.block = None;
    network.norm("norm", width);
    network.push("output", &[], shape.vocabulary * width);
    network.split(MatrixSplit::Columns, []);
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
    network.embedding(&embeddings);
    network.norm("embedding.norm", width);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.linear(&name("query"), width, width, MatrixSplit::Columns);
        // One input for the three of them.
        network.leave(2 * width, 0);
        for part in ["key", "value"] {
            network.linear(&name(part), width, width, MatrixSplit::MoreColumns);
        }
        network.attention(&name("attention"), shape);
        network.linear(&name("projection"), width, width, MatrixSplit::Rows);
        network.leave(width, 2 * width);
        network.norm(&name("norm1"), width);
        network.leave(2 * width, 0);
        network.feed_forward(name, shape);
        network.norm(&name("norm2"), width);
        network.leave(2 * width, 0);
    }
    network.block = None;
    // Pooling and next sentence look at one token of the sample: too little to count.
    let pooling = [("weight", width * width), ("bias", width)];
    network.push("pooling", &pooling, 0);
    network.push("next_sentence", &[("weight", 2 * width), ("bias", 2)], 0);
    network.linear("masked.transform", width, width, MatrixSplit::Whole);
    network.norm("masked.norm", width);
    let bias = [("bias", shape.vocabulary)];
    network.push("masked.output", &bias, shape.vocabulary * width);
    network.split(MatrixSplit::Columns, [0]);
    network.layers
}

/// Llama 2: no biases, gated feed-forward, heads that may share keys and values, an output of its own
/// (Touvron et al. 2023).
pub(super) fn llama(shape: TransformerShape) -> Vec<Layer> {
    gated(shape, |network, name| {
        let (width, inside) = (shape.width, shape.feed_forward);
        network.matrix(&name("gate"), width, inside, MatrixSplit::Columns);
        network.leave(2 * width, 2 * inside);
        network.matrix(&name("expand"), width, inside, MatrixSplit::MoreColumns);
        network.leave(0, 2 * inside);
        network.matrix(&name("contract"), inside, width, MatrixSplit::Rows);
        network.leave(width, 2 * inside);
    })
}

/// Mixtral: as Llama 2, with experts in place of the feed-forward part, of which a router chooses some for each token
/// (Jiang et al. 2024, section 2).
pub(super) fn mixture(shape: TransformerShape) -> Vec<Layer> {
    gated(shape, |network, name| {
        let (width, experts) = (shape.width, shape.experts);
        network.matrix(&name("router"), width, experts, MatrixSplit::Whole);
        network.leave(2 * width, 0);
        let one = width * shape.feed_forward;
        // The matrices of all experts stand in one tensor, as grouped products of matrices take them.
        let tensors = ["gate", "expand", "contract"].map(|part| (part, experts * one));
        network.push(&name("experts"), &tensors, 3 * one * shape.top_k);
        // The input of each expert chosen and its output, which the router's weights multiply; between them the
        // gate, what it gates, and their product.
        let [whole, divided] = [4 * width, 6 * shape.feed_forward].map(|one| one * shape.top_k);
        network.leave(whole, divided);
        if let Some(layer) = network.layers.last_mut() {
            layer.split.divided = true;
            layer.split.sums_output = true;
            layer.split.sums_input = true;
            layer.split.experts = true;
            for tensor in &mut layer.tensors {
                tensor.division = Division::Expert;
            }
        }
    })
}

/// Blocks of normalizations, attention and what stands behind the attention.
fn gated(
    shape: TransformerShape,
    feed_forward: impl Fn(&mut TokenLayers, &dyn Fn(&str) -> String),
) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    network.embedding(&[("token", shape.vocabulary * width)]);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.gated_attention(name, shape);
        network.push(&name("norm2"), &[("weight", width)], 0);
        network.leave(2 * width, 0);
        feed_forward(&mut network, &name);
    }
    network.block = None;
    network.push("norm", &[("weight", width)], 0);
    network.matrix("output", width, shape.vocabulary, MatrixSplit::Columns);
    network.layers
}
