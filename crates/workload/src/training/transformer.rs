//! Layers of transformers, computed from the shape of a transformer.
//!
//! An a x b matrix applied to s tokens needs a b s multiply-add pairs, which count as 2 operations
//! each. For tokens of width h, the scores of attention and the sum of values need h s^2 pairs
//! each, counted for all pairs of tokens. (A causal mask needs half of them, but few
//! implementations make use of this.) The backward pass needs twice these numbers. Embeddings are
//! looked up and need no operations. If the output matrix is also the embedding, its gradient is
//! complete only when the gradient of the embedding is complete, at the very end.
//!
//! For s tokens of width h, the forward pass stores the following bytes for the backward pass, with
//! 2 bytes per value and 1 byte per entry of a dropout mask (Korthikanti et al., arXiv:2205.05198,
//! section 4.1): the input of each normalization 2 s h; the input of query, key and value 2 s h;
//! queries, keys and values 6 s h; softmax, its mask and its output 5 a s^2 for a heads; the input
//! and mask of the projection 3 s h; the input of the first feed-forward matrix 2 s h and its
//! output, which is the input of the activation, 2 s f; the input of the second matrix 2 s f and a
//! mask s h. With f = 4 h, the sum is s h (34 + 5 a s / h), equations 1 and 2 of that paper. Heads
//! that share keys and values save a part of these bytes, and the output of a gate is stored as
//! well. Models without dropout store no masks. Embeddings and the layers after the last block are
//! not counted among the activations. If several ranks divide a
//! block, each rank stores 10 s b h of these bytes for b samples (the inputs of normalizations and
//! matrices, and two masks). The ranks divide the remaining s b h (24 + 5 a s / h) bytes among
//! themselves (equation 2).

use super::operators::{self, Among, Cut, Narrow, Part};
use super::{Division, Layer, LayerSplit, Tensor, Working};

/// Shape of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerShape {
    /// Number of blocks.
    pub layers: u64,
    /// Number of values per token, h.
    pub width: u64,
    /// Number of values per token inside the feed-forward part, or inside an expert, f.
    pub feed_forward: u64,
    /// Number of values per token in the queries of all heads.
    pub queries: u64,
    /// Number of values per token in the keys; `queries` unless heads share them.
    pub key_value: u64,
    /// Number of heads of attention, a.
    pub heads: u64,
    /// Number of words in the vocabulary.
    pub vocabulary: u64,
    /// Number of positions that have an embedding.
    pub context: u64,
    /// Number of tokens per sample, s.
    pub sequence: u64,
    /// Number of experts per block; 0 if all tokens pass through one feed-forward part.
    pub experts: u64,
    /// Number of experts that the router chooses for a token, k.
    pub top_k: u64,
    /// Number of further experts, through which all tokens pass.
    pub shared: u64,
    /// Number of first blocks that have a feed-forward part in place of experts.
    pub dense: u64,
    /// Number of values per token inside the feed-forward part of these blocks.
    pub dense_feed_forward: u64,
    /// True if the queries and the keys of each head are normalized.
    pub head_norms: bool,
    /// Shape of the latent vectors; `None` if queries, keys and values are computed from the token.
    pub latent: Option<LatentShape>,
}

/// Shape of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): a token has a
/// short vector from which the keys and values of all heads are computed, and a key for rotary
/// positions that all heads share. The last part of each head of queries is rotary, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatentShape {
    /// Number of values of the vector from which queries are computed; 0 if there is none.
    pub query: u64,
    /// Number of values of the vector from which keys and values are computed.
    pub key_value: u64,
    /// Number of values of a head that are rotary.
    pub rotary: u64,
}

impl TransformerShape {
    /// Returns the number of values of a head in the queries and in the keys.
    pub fn head(&self) -> u64 {
        (self.queries / self.heads).max(1)
    }

    /// Returns the number of values of a head in the values.
    pub fn value_head(&self) -> u64 {
        self.head() - self.latent.map_or(0, |latent| latent.rotary)
    }

    /// Returns the number of values per token in the values of all heads.
    pub fn values(&self) -> u64 {
        match self.latent {
            Some(_) => self.heads * self.value_head(),
            None => self.key_value,
        }
    }

    /// Returns the number of values per token in the output of all heads.
    pub fn outputs(&self) -> u64 {
        match self.latent {
            Some(_) => self.values(),
            None => self.queries,
        }
    }

    /// Returns the number of blocks with experts.
    pub fn expert_layers(&self) -> u64 {
        match self.experts {
            0 => 0,
            _ => self.layers - self.dense,
        }
    }
}

/// Division of a matrix among tensor-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatrixSplit {
    /// The matrix is not divided.
    Whole,
    /// Each rank stores some columns of the matrix and their biases, and computes a part of the
    /// output. The matrix is the first of the matrices with the same input.
    Columns,
    /// Each rank stores some columns of the matrix and their biases, and computes a part of the
    /// output. Another matrix with the same input comes before the matrix.
    MoreColumns,
    /// Each rank stores some rows of the matrix. From these rows, a rank computes a vector of the
    /// same length as the output. The output is the sum of these vectors and of the undivided
    /// biases.
    Rows,
}

impl MatrixSplit {
    fn cut(self) -> Cut {
        match self {
            MatrixSplit::Whole => Cut::Whole,
            MatrixSplit::Columns | MatrixSplit::MoreColumns => Cut::Columns,
            MatrixSplit::Rows => Cut::Rows,
        }
    }
}

/// Layers under construction, for samples of `sequence` tokens.
struct TokenLayers {
    layers: Vec<Layer>,
    sequence: u64,
    block: Option<u32>,
}

impl TokenLayers {
    /// Appends an undivided layer with this number of multiply-add pairs per token.
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
            scores: 0,
            working: Working::default(),
            parts: Vec::new(),
            split: LayerSplit {
                block: self.block,
                ..LayerSplit::default()
            },
        });
    }

    /// Adds a part to the computation of the last layer.
    fn part(&mut self, part: Part) {
        if let Some(layer) = self.layers.last_mut() {
            layer.parts.push(part);
        }
    }

    /// Adds a product of all tokens by a matrix to the last layer.
    fn product(&mut self, from: u64, to: u64, by: MatrixSplit, bias: bool) {
        self.part(Part::Matrix {
            rows: self.sequence,
            from,
            to,
            cut: by.cut(),
            matrices: 1,
            bias,
            narrow: match (self.block, by) {
                (None, _) => Narrow::Never,
                (_, MatrixSplit::MoreColumns) => Narrow::Shared,
                _ => Narrow::Converted,
            },
        });
    }

    /// Sets the input of the last layer's product on a device with 8-bit products.
    fn set_narrow(&mut self, input: Narrow) {
        let part = self
            .layers
            .last_mut()
            .and_then(|layer| layer.parts.last_mut());
        if let Some(Part::Matrix { narrow, .. }) = part {
            *narrow = input;
        }
    }

    /// Adds kernels that pass over `width` values of each token to the last layer.
    fn passes(&mut self, name: &'static str, width: u64, passes: [u64; 2], among: Among) {
        self.part(operators::passes(
            name,
            self.sequence * width,
            passes,
            among,
        ));
    }

    /// Adds the sum of a branch and its input to the last layer.
    fn residual(&mut self, width: u64) {
        self.passes("residual", width, [3, 3], Among::Tokens);
    }

    /// Sets the division of the last layer; `divided` contains the indices of divided tensors.
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

    /// Adds bytes that the last layer stores for the backward pass. Each rank that divides the
    /// layer stores `whole_per_token` bytes per token. The ranks divide `divided_per_token` bytes
    /// per token among themselves.
    fn store(&mut self, whole_per_token: u64, divided_per_token: u64) {
        if let Some(layer) = self.layers.last_mut() {
            let divided = divided_per_token * self.sequence;
            layer.activations += whole_per_token * self.sequence + divided;
            layer.split.divided_activations += divided;
        }
    }

    /// Adds the memory of gradients to the last layer of a feed-forward part of width `width`.
    /// Before the backward pass frees the `inside` values per token that the first matrices have
    /// computed, it needs their gradients, and the gradient of the output of the block; with
    /// sequence parallelism, also the latter of all tokens.
    fn feed_forward_gradients(&mut self, width: u64, inside: u64) {
        let sequence = self.sequence;
        if let Some(layer) = self.layers.last_mut() {
            layer.working = Working {
                tokens: 2 * width * sequence,
                values: 2 * inside * sequence,
                gathered: 2 * width * sequence,
                logits: 0,
            };
        }
    }

    /// Appends a `from` x `to` matrix with `to` biases.
    fn linear(&mut self, name: &str, from: u64, to: u64, by: MatrixSplit) {
        self.push(name, &[("weight", from * to), ("bias", to)], from * to);
        self.product(from, to, by, true);
        match by {
            MatrixSplit::Whole => {}
            MatrixSplit::Rows => self.split(by, [0]),
            MatrixSplit::Columns | MatrixSplit::MoreColumns => self.split(by, [0, 1]),
        }
    }

    /// Appends a `from` x `to` matrix without biases.
    fn matrix(&mut self, name: &str, from: u64, to: u64, by: MatrixSplit) {
        self.push(name, &[("weight", from * to)], from * to);
        self.product(from, to, by, false);
        if by != MatrixSplit::Whole {
            self.split(by, [0]);
        }
    }

    /// Appends the embedding table. Ranks divide the rows of the table, and sum the vectors that
    /// they find for a token.
    fn embedding(&mut self, width: u64, tensors: &[(&str, u64)]) {
        self.push("embedding", tensors, 0);
        self.passes("embedding", width, [2, 3], Among::Tokens);
        self.split(MatrixSplit::Rows, [0]);
    }

    /// Appends a normalization by mean and variance.
    fn norm(&mut self, name: &str, width: u64) {
        self.push(name, &[("weight", width), ("bias", width)], 0);
        self.part(operators::norm(self.sequence * width, Among::Tokens));
    }

    /// Appends a normalization by the root mean square.
    fn root_mean_square(&mut self, name: &str, width: u64) {
        self.push(name, &[("weight", width)], 0);
        self.part(operators::norm(self.sequence * width, Among::Tokens));
    }

    /// Appends the scores of attention and the weighted sum of values.
    fn attention(&mut self, name: &str, shape: TransformerShape, causal: bool) {
        let key_value = shape.key_value + shape.values();
        self.push(name, &[], self.sequence * (shape.queries + shape.outputs()));
        self.part(Part::Attention {
            tokens: self.sequence,
            heads: shape.heads,
            head: shape.head(),
            value: shape.value_head(),
            key_value,
            causal,
        });
        self.split(MatrixSplit::MoreColumns, []);
        self.store(0, 2 * (shape.queries + key_value));
        if let Some(layer) = self.layers.last_mut() {
            layer.scores = 5 * shape.heads * self.sequence * self.sequence;
        }
    }

    /// Adds the product by the output matrix, and the loss, to the last layer.
    fn output(&mut self, width: u64, vocabulary: u64) {
        self.product(width, vocabulary, MatrixSplit::Columns, false);
        self.loss(width, vocabulary);
    }

    /// Adds the loss to the last layer. Its memory includes the inputs of the last normalization
    /// and of the output matrix, and the gradient of the latter. With sequence parallelism, a rank
    /// also needs the latter two of all tokens.
    fn loss(&mut self, width: u64, vocabulary: u64) {
        self.part(operators::loss(self.sequence, vocabulary));
        let sequence = self.sequence;
        if let Some(layer) = self.layers.last_mut() {
            layer.working = Working {
                tokens: 6 * width * sequence,
                values: 0,
                gathered: 4 * width * sequence,
                logits: vocabulary * sequence,
            };
        }
    }

    /// Appends the two matrices of a feed-forward part.
    fn feed_forward(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let (width, inside) = (shape.width, shape.feed_forward);
        self.linear(&name("expand"), width, inside, MatrixSplit::Columns);
        self.passes("activation", inside, [2, 3], Among::Values);
        self.store(2 * width, 2 * inside);
        self.linear(&name("contract"), inside, width, MatrixSplit::Rows);
        self.residual(width);
        self.store(width, 2 * inside);
        self.feed_forward_gradients(width, inside);
    }

    /// Appends a gated feed-forward part (Touvron et al. 2023).
    fn gated_feed_forward(&mut self, name: impl Fn(&str) -> String, width: u64, inside: u64) {
        self.matrix(&name("gate"), width, inside, MatrixSplit::Columns);
        self.store(2 * width, 2 * inside);
        self.matrix(&name("expand"), width, inside, MatrixSplit::MoreColumns);
        // The backward pass sums the gradients of the input of both matrices.
        self.passes("gradients", width, [0, 3], Among::Tokens);
        self.passes("activation", inside, GATED_PASSES, Among::Values);
        self.store(0, 2 * inside);
        self.matrix(&name("contract"), inside, width, MatrixSplit::Rows);
        self.residual(width);
        self.store(0, 2 * inside);
        self.feed_forward_gradients(width, 2 * inside);
    }

    /// Appends a router, the experts through which all tokens pass, and the experts that the router
    /// chooses for each token (Jiang et al. 2024, section 2; DeepSeek-V2, section 2.2).
    fn experts(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let (width, experts, inside) = (shape.width, shape.experts, shape.feed_forward);
        self.matrix(&name("router"), width, experts, MatrixSplit::Whole);
        self.set_narrow(Narrow::Never);
        self.store(2 * width, 0);
        if shape.shared > 0 {
            let name = |part: &str| name(&format!("shared_{part}"));
            self.gated_feed_forward(name, width, shape.shared * inside);
        }
        let matrix = width * inside;
        // The matrices of all experts form one tensor, as in grouped matrix products.
        let tensors = ["gate", "expand", "contract"].map(|part| (part, experts * matrix));
        self.push(&name("experts"), &tensors, 3 * matrix * shape.top_k);
        // Parts of experts are stated per assignment of a token. Tokens are sorted by expert before
        // the experts, and back.
        let part = |from, to, cut, narrow| Part::Matrix {
            rows: 1,
            from,
            to,
            cut,
            matrices: experts,
            bias: false,
            narrow,
        };
        self.part(Part::Sorting { values: width });
        self.part(part(width, inside, Cut::Columns, Narrow::Converted));
        self.part(part(width, inside, Cut::Columns, Narrow::Shared));
        self.part(operators::passes(
            "activation",
            inside,
            GATED_PASSES,
            Among::Values,
        ));
        self.part(part(inside, width, Cut::Rows, Narrow::Converted));
        // Stored values: the input and the output of each chosen expert (the router's weights
        // multiply the output); between them the gate, the gated values, and their product.
        let [whole, divided] = [4 * width, 6 * inside].map(|bytes| bytes * shape.top_k);
        self.store(whole, divided);
        self.feed_forward_gradients(shape.top_k * width, 2 * shape.top_k * inside);
        if let Some(layer) = self.layers.last_mut() {
            layer.split.divided = true;
            layer.split.sums_output = true;
            layer.split.sums_input = true;
            layer.split.experts = true;
            for tensor in &mut layer.tensors {
                tensor.division = Division::Expert;
            }
        }
    }

    /// Appends the products that compute queries, keys and values from a token. One product
    /// computes all three.
    fn query_key_value(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let (width, queries, key_value) = (shape.width, shape.queries, shape.key_value);
        let weights = width * queries;
        self.push(&name("query"), &[("weight", weights)], weights);
        self.product(width, queries + 2 * key_value, MatrixSplit::Columns, false);
        self.split(MatrixSplit::Columns, [0]);
        self.store(2 * width, 0);
        for part in ["key", "value"] {
            let weights = width * key_value;
            self.push(&name(part), &[("weight", weights)], weights);
            self.split(MatrixSplit::MoreColumns, [0]);
        }
        if shape.head_norms {
            let head = shape.head();
            self.push(&name("head_norms"), &[("query", head), ("key", head)], 0);
            let values = queries + key_value;
            self.part(operators::norm(self.sequence * values, Among::Values));
            self.split(MatrixSplit::MoreColumns, []);
            self.store(0, 2 * values);
        }
    }

    /// Appends the products that compute latent vectors from a token, and queries, keys and values
    /// from these vectors. All tensor-parallel ranks compute the latent vectors. The sum of the
    /// gradients over these ranks counts as long as the token, which exceeds the latent vectors.
    fn latent_query_key_value(
        &mut self,
        name: impl Fn(&str) -> String,
        shape: TransformerShape,
        latent: LatentShape,
    ) {
        let LatentShape { query, rotary, .. } = latent;
        let width = shape.width;
        if query == 0 {
            let by = MatrixSplit::Columns;
            self.matrix(&name("query"), width, shape.queries, by);
        } else {
            self.matrix(&name("query_down"), width, query, MatrixSplit::Whole);
            if let Some(layer) = self.layers.last_mut() {
                layer.split.sums_input = true;
            }
        }
        self.store(2 * width, 0);
        let up = |this: &mut Self, part: &str, rank: u64, to: u64| {
            this.root_mean_square(&name(&format!("{part}_norm")), rank);
            this.store(2 * rank, 0);
            let by = MatrixSplit::Columns;
            this.matrix(&name(&format!("{part}_up")), rank, to, by);
            if let Some(layer) = this.layers.last_mut() {
                layer.split.sums_input = false;
            }
            this.store(2 * rank, 0);
        };
        if query > 0 {
            up(self, "query", query, shape.queries);
        }
        let (rank, by) = (latent.key_value, MatrixSplit::Whole);
        self.matrix(&name("key_value_down"), width, rank + rotary, by);
        self.set_narrow(Narrow::Shared);
        // All heads share the rotary part of the keys.
        let keys = shape.key_value - shape.heads * rotary;
        up(self, "key_value", rank, keys + shape.values());
    }

    /// Appends attention with the preceding normalization.
    fn gated_attention(&mut self, name: impl Fn(&str) -> String, shape: TransformerShape) {
        let (width, outputs) = (shape.width, shape.outputs());
        self.root_mean_square(&name("norm1"), width);
        self.store(2 * width, 0);
        match shape.latent {
            None => self.query_key_value(&name, shape),
            Some(latent) => self.latent_query_key_value(&name, shape, latent),
        }
        self.attention(&name("attention"), shape, true);
        let values = shape.queries + shape.key_value;
        self.passes("rotary", values, [2, 2], Among::Values);
        self.matrix(&name("projection"), outputs, width, MatrixSplit::Rows);
        self.residual(width);
        self.store(0, 2 * outputs);
    }
}

fn network(shape: TransformerShape) -> TokenLayers {
    TokenLayers {
        layers: Vec::new(),
        sequence: shape.sequence,
        block: None,
    }
}

/// Returns the layers of GPT-2 or GPT-3: learned positions, normalization before each part, and an
/// output matrix that is also the embedding (Radford et al. 2019; Brown et al. 2020).
pub(super) fn gpt(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    let embeddings = [
        ("token", shape.vocabulary * width),
        ("position", shape.context * width),
    ];
    network.embedding(width, &embeddings);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.norm(&name("norm1"), width);
        network.store(2 * width, 0);
        network.linear(
            &name("query_key_value"),
            width,
            3 * width,
            MatrixSplit::Columns,
        );
        network.store(2 * width, 0);
        network.attention(&name("attention"), shape, true);
        network.linear(&name("projection"), width, width, MatrixSplit::Rows);
        network.residual(width);
        network.store(width, 2 * width);
        network.norm(&name("norm2"), width);
        network.store(2 * width, 0);
        network.feed_forward(name, shape);
    }
    network.block = None;
    network.norm("norm", width);
    network.push("output", &[], shape.vocabulary * width);
    network.output(width, shape.vocabulary);
    network.split(MatrixSplit::Columns, []);
    network.layers
}

/// Returns the layers of BERT with its heads for pre-training: segments, normalization after each
/// part, pooling, masked words with an output matrix that is also the embedding, and next sentence
/// (Devlin et al. 2019).
pub(super) fn bert(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    let embeddings = [
        ("token", shape.vocabulary * width),
        ("position", shape.context * width),
        ("segment", 2 * width),
    ];
    network.embedding(width, &embeddings);
    network.norm("embedding.norm", width);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.linear(&name("query"), width, width, MatrixSplit::Columns);
        // Query, key and value share this input.
        network.store(2 * width, 0);
        for part in ["key", "value"] {
            network.linear(&name(part), width, width, MatrixSplit::MoreColumns);
        }
        network.attention(&name("attention"), shape, false);
        network.linear(&name("projection"), width, width, MatrixSplit::Rows);
        network.residual(width);
        network.store(width, 2 * width);
        network.norm(&name("norm1"), width);
        network.store(2 * width, 0);
        network.feed_forward(name, shape);
        network.norm(&name("norm2"), width);
        network.store(2 * width, 0);
    }
    network.block = None;
    // Pooling and next sentence use one token of the sample, so their operations are not counted.
    let pooling = [("weight", width * width), ("bias", width)];
    network.push("pooling", &pooling, 0);
    network.push("next_sentence", &[("weight", 2 * width), ("bias", 2)], 0);
    network.linear("masked.transform", width, width, MatrixSplit::Whole);
    network.passes("activation", width, [2, 3], Among::Tokens);
    network.norm("masked.norm", width);
    let bias = [("bias", shape.vocabulary)];
    network.push("masked.output", &bias, shape.vocabulary * width);
    network.output(width, shape.vocabulary);
    network.split(MatrixSplit::Columns, [0]);
    network.layers
}

/// Passes over the inner values of a gated feed-forward part: the activation and the product with
/// the gate are kernels of their own.
const GATED_PASSES: [u64; 2] = [5, 8];

/// Returns the layers of Llama 2: no biases, a gated feed-forward part, heads that may share keys
/// and values, and a separate output matrix (Touvron et al. 2023). Experts and latent attention
/// replace parts of these layers if `shape` states them.
pub(super) fn gated(shape: TransformerShape) -> Vec<Layer> {
    let width = shape.width;
    let mut network = network(shape);
    network.embedding(width, &[("token", shape.vocabulary * width)]);
    for block in 0..shape.layers {
        network.block = Some(block as u32);
        let name = |part: &str| format!("block{block}.{part}");
        network.gated_attention(name, shape);
        network.root_mean_square(&name("norm2"), width);
        network.store(2 * width, 0);
        match shape.experts {
            0 => network.gated_feed_forward(name, width, shape.feed_forward),
            _ if block < shape.dense => {
                network.gated_feed_forward(name, width, shape.dense_feed_forward);
            }
            _ => network.experts(name, shape),
        }
    }
    network.block = None;
    network.root_mean_square("norm", width);
    network.matrix("output", width, shape.vocabulary, MatrixSplit::Columns);
    network.loss(width, shape.vocabulary);
    network.layers
}
