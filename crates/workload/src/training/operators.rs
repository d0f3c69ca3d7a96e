//! Operators of a layer: matrix products, convolutions, attention, and passes over values in
//! memory, each with its operations and bytes. A [`Device`](super::device::Device) tells the time
//! of an operator.
//!
//! A layer states its [`Part`]s per sample. [`operators`] computes from them the operators of one
//! rank for a micro-batch. Values have 16 bits; sums of a loss have 32 bits.
//!
//! * The backward pass of a product of m rows by a k x n matrix consists of two products with as
//!   many operations: m x n by n x k, and n x m by m x k.
//! * FlashAttention does not store its scores (Dao et al., arXiv:2205.14135). For a pair of a query
//!   and a key of d values and a value of e values, the forward pass needs 2 (d + e) operations.
//!   The backward pass computes the scores again and needs 2 (3 d + 2 e) operations. A causal mask
//!   halves the pairs.
//! * Attention that stores its scores consists of products, softmax and dropout over all pairs.
//! * On a device with 8-bit products, the products of blocks have 8-bit inputs and 16-bit outputs,
//!   except that of a router; attention, normalizations, the embedding and the output keep 16 bits
//!   (DeepSeek-V3, arXiv:2412.19437, section 3.3.1). The input and the gradient of the output are
//!   converted in passes of their own: once as they are, once transposed. The optimizer's step
//!   converts the weights.
//! * All other operators read and write values in memory, and their operations do not count.

use super::Layer;

/// Bytes of a 16-bit value: a parameter or an activation.
pub const VALUE: u64 = 2;
/// Bytes of a 32-bit value.
const WIDE: u64 = 4;
/// Bytes that the conversion of a value to 8 bits reads and writes: it writes the value twice,
/// because an 8-bit product sums along the rows of both inputs, forward and backward (Transformer
/// Engine, documentation of FP8 on Hopper).
const CONVERTED: u64 = VALUE + 2;

/// Bytes to whose multiples rows must be aligned.
pub(super) const ALIGNED: u64 = 16;

/// Passes of a normalization over its values, forward and backward. The backward pass computes the
/// gradients of the input and of the weights in separate kernels. The number of backward passes is
/// measured: the blocks of six transformers on an H100.
const NORM_PASSES: [u64; 2] = [2, 8];

/// Bytes that a normalization of images moves per value, forward and backward, and bytes that a
/// pooling moves per value of its windows. Measured on an H100: whole networks with PyTorch 2.11.
const IMAGE_NORM_BYTES: [u64; 2] = [13, 12];
const WINDOW_BYTES: [u64; 2] = [5, 9];
/// Bytes of the index of a maximum, which a pooling writes and its backward pass reads.
const INDEX_BYTES: u64 = 8;

/// Bytes that softmax and dropout move per score, forward and backward: softmax reads and writes
/// 2 bytes (backward: reads its output, too), dropout as well, with 1 byte of its mask.
const SCORE_BYTES: [u64; 2] = [9, 11];

/// Bytes per logit of a cross-entropy in 32 bits: the conversion of 16-bit logits (6 forward, 6
/// backward), log-softmax (8 and 12), and in the forward pass the read for the sums over a
/// vocabulary (4) and its result.
const LOSS_BYTES: [u64; 2] = [20, 18];

/// Bytes per logit of a fused cross-entropy, which has no copies in 32 bits: one kernel reads the
/// logits for the sums, and another one replaces them by their gradients (2 + 4); the backward pass
/// multiplies these by the gradient of the loss (4). Source: Transformer Engine,
/// `common/triton/cross_entropy.py`.
const FUSED_LOSS_BYTES: [u64; 2] = [6, 4];

/// Bytes that Adam moves per parameter: it reads the gradient and reads and writes three 32-bit
/// states (4 + 24), and writes the 16-bit weight (2).
const OPTIMIZER_BYTES: u64 = 30;
/// Bytes that Adam writes in addition on a device with 8-bit products: the weight and its
/// transpose.
const NARROW_WEIGHT_BYTES: u64 = 2;

/// Sortings of tokens in a pass through experts: by expert, and back. If ranks divide the experts,
/// each rank sorts the tokens before they travel, and those that it receives by its own experts
/// (Megatron-LM, `MoEAlltoAllTokenDispatcher`).
const SORTINGS: u64 = 2;

/// Passes of Megatron-LM over 32-bit sums of gradients in an iteration. Over all sums of a rank: it
/// sets them to zero, reads them for a norm before they are summed over replicas (`check_grads`),
/// and divides them by the number of replicas (`start_grad_sync`, a read and a write). Over the
/// sums of the parameters that the rank updates: it reads them for the norm of all gradients, and
/// scales them if this norm is too great.
const SUM_PASSES: [u64; 2] = [4, 3];

/// Division of the values of a [`Part::Values`] among tensor-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Each rank has all values; with sequence parallelism, a part of the tokens.
    Tokens,
    /// Each rank has some of the values of each token.
    Values,
}

/// Division of a matrix among tensor-parallel ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Each rank has the whole matrix.
    Whole,
    /// Each rank has some columns, and computes some values of the output.
    Columns,
    /// Each rank has some rows, and computes a summand of the output.
    Rows,
}

/// Input of a product on a device with 8-bit products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// The input keeps 16 bits.
    Never,
    /// The input is converted to 8 bits.
    Converted,
    /// Another product has converted the same input to 8 bits.
    Shared,
}

/// Part of the computation of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Product of each row of a sample by a `from` x `to` matrix.
    Matrix {
        /// Rows per sample or, in a layer of experts, per assignment of a token.
        rows: u64,
        /// Values of a row.
        from: u64,
        /// Values of a row of the output.
        to: u64,
        /// Division of the matrix.
        cut: Cut,
        /// Matrices among which the rows are divided: 1, or the experts of the model.
        matrices: u64,
        /// True if the gradients of a bias are summed in a kernel of its own.
        bias: bool,
        /// Input on a device with 8-bit products.
        narrow: Narrow,
    },
    /// Attention of all tokens of a sample.
    Attention {
        /// Tokens per sample.
        tokens: u64,
        /// Heads of queries.
        heads: u64,
        /// Values of a head in the queries and in the keys.
        head: u64,
        /// Values of a head in the values and in the output.
        value: u64,
        /// Values of a token in the keys and in the values of all heads.
        key_value: u64,
        /// True if a token attends to earlier tokens only.
        causal: bool,
    },
    /// Convolution of images.
    Convolution {
        /// Input channels.
        from: u64,
        /// Output channels.
        to: u64,
        /// Values of a window in one channel.
        window: u64,
        /// Pixels of the input.
        input: u64,
        /// Pixels of the output.
        output: u64,
        /// True if the backward pass computes gradients of the input.
        input_gradient: bool,
    },
    /// Passes over values in memory.
    Values {
        /// Name of the operator.
        name: &'static str,
        /// Bytes per sample (per assignment), forward and backward.
        bytes: [u64; 2],
        /// Kernels, forward and backward.
        kernels: [u32; 2],
        /// Division among tensor-parallel ranks.
        among: Among,
    },
    /// Sorting of tokens by expert, and back.
    Sorting {
        /// Values of a token.
        values: u64,
    },
    /// Cross-entropy.
    Loss {
        /// Logits of a sample.
        logits: u64,
    },
    /// Conversion of 32-bit weights to 16 bits, and of 16-bit gradients to 32 bits.
    Conversion {
        /// Number of weights.
        weights: u64,
    },
}

/// Work of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Product of an m x k matrix by a k x n matrix, or products of `matrices` such matrices whose
    /// rows together are m.
    Product {
        /// Rows of the first matrix.
        m: u64,
        /// Columns of the second matrix.
        n: u64,
        /// Length of the sums.
        k: u64,
        /// Number of products.
        matrices: u64,
        /// Number of kernels.
        kernels: u32,
        /// True if both inputs have 8 bits.
        narrow: bool,
        /// True if the output is added to 32-bit values in memory, as a gradient of weights is.
        summed: bool,
    },
    /// Convolution, forward or for one of its gradients.
    Convolution {
        /// Channels of the input and the output.
        channels: [u64; 2],
        /// Multiply-add pairs.
        pairs: u64,
        /// Values that are read and written.
        values: u64,
    },
    /// Attention, forward or backward.
    Attention {
        /// Pairs of a query and a key in a head.
        pairs: u64,
        /// Values of a head in the queries and in the keys.
        head: u64,
        /// Values of a head in the values and in the output.
        value: u64,
        /// Keys of a query.
        keys: u64,
        /// Values that are read and written.
        values: u64,
        /// True if this is the backward pass.
        backward: bool,
    },
    /// Passes over values in memory.
    Values {
        /// Bytes that are read and written.
        bytes: u64,
        /// Kernels.
        kernels: u32,
    },
}

impl Part {
    /// Returns the values per sample of queries, those of keys and values together, and those of
    /// the output, if the part is attention.
    pub fn attended(&self) -> Option<[u64; 3]> {
        match *self {
            Part::Attention {
                tokens,
                heads,
                head,
                value,
                key_value,
                ..
            } => Some([heads * head, key_value, heads * value].map(|values| tokens * values)),
            _ => None,
        }
    }
}

impl Work {
    /// Returns the floating-point operations; a multiply-add pair counts as two.
    pub fn operations(&self) -> u128 {
        let product = |factors: &[u64]| factors.iter().map(|&factor| u128::from(factor)).product();
        match *self {
            Work::Product { m, n, k, .. } => product(&[2, m, n, k]),
            Work::Convolution { pairs, .. } => product(&[2, pairs]),
            Work::Attention {
                pairs,
                head,
                value,
                backward,
                ..
            } => match backward {
                false => product(&[2, pairs, head + value]),
                true => product(&[2, pairs, 3 * head + 2 * value]),
            },
            Work::Values { .. } => 0,
        }
    }

    /// Returns the bytes that are read from memory and written to memory.
    pub fn bytes(&self) -> u128 {
        let area = |a: u64, b: u64| u128::from(a) * u128::from(b);
        match *self {
            Work::Product {
                m,
                n,
                k,
                matrices,
                narrow,
                summed,
                ..
            } => {
                let inputs = area(m, k) + area(n, k) * u128::from(matrices);
                u128::from(width(narrow)) * inputs + u128::from(output(summed)) * area(m, n)
            }
            Work::Convolution { values, .. } | Work::Attention { values, .. } => {
                area(VALUE, values)
            }
            Work::Values { bytes, .. } => bytes.into(),
        }
    }

    /// Returns the number of kernels.
    pub fn kernels(&self) -> u32 {
        match *self {
            Work::Values { kernels, .. } | Work::Product { kernels, .. } => kernels,
            _ => 1,
        }
    }
}

/// Returns the bytes of a value that a product reads.
pub(super) fn width(narrow: bool) -> u64 {
    if narrow { 1 } else { VALUE }
}

/// Returns the bytes of an output value that a product moves: it writes the value or, if `summed`,
/// reads and writes the 32-bit sum to which it adds the value.
pub(super) fn output(summed: bool) -> u64 {
    if summed { 2 * WIDE } else { VALUE }
}

/// Operator of a layer on one rank: its name, and its work in both passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Name, such as `attention`.
    pub name: &'static str,
    /// Work of the forward pass.
    pub forward: Vec<Work>,
    /// Work of the backward pass.
    pub backward: Vec<Work>,
    /// True if selective recomputation computes the operator again before its backward pass.
    pub recomputed: bool,
}

/// Portion of a layer that one rank computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// Samples of a micro-batch.
    pub samples: u64,
    /// Ranks that divide each matrix.
    pub tensor: u64,
    /// Ranks that divide the tokens between the matrices: 1, or `tensor`.
    pub sequence: u64,
    /// Ranks that divide the tokens of each sample. All have the same part of attention's work.
    pub context: u64,
    /// Blocks of keys and values for which attention is computed one after another: 1, or
    /// `context`.
    pub blocks: u64,
    /// True if attention does not store its scores.
    pub flash: bool,
    /// True if the loss has no 32-bit copies of the logits.
    pub fused_loss: bool,
    /// Ranks that divide the experts.
    pub expert: u64,
    /// Copies of experts on these ranks, besides one of each expert.
    pub expert_copies: u64,
    /// Assignments of tokens to the experts of this rank.
    pub assigned: u64,
    /// True if blocks have 8-bit products (`precision=fp8`).
    pub narrow: bool,
    /// True if the gradients of weights are added to 32-bit sums.
    pub wide_gradients: bool,
}

impl Portion {
    /// Returns the portion of a device that computes everything for `samples` samples, which have
    /// `assignments` assignments of tokens to experts each.
    pub fn whole(samples: u64, assignments: u64) -> Portion {
        Portion {
            samples,
            tensor: 1,
            sequence: 1,
            context: 1,
            blocks: 1,
            flash: true,
            fused_loss: false,
            expert: 1,
            expert_copies: 0,
            assigned: samples.saturating_mul(assignments),
            narrow: false,
            wide_gradients: false,
        }
    }
}

/// Returns a normalization of `values` values per sample.
pub(super) fn norm(values: u64, among: Among) -> Part {
    Part::Values {
        name: "norm",
        bytes: NORM_PASSES.map(|passes| passes * VALUE * values),
        kernels: [1, 2],
        among,
    }
}

/// Returns kernels that pass over `values` values per sample, forward and backward.
pub(super) fn passes(name: &'static str, values: u64, passes: [u64; 2], among: Among) -> Part {
    Part::Values {
        name,
        bytes: passes.map(|passes| passes * VALUE * values),
        kernels: passes.map(|passes| passes.div_ceil(3) as u32),
        among,
    }
}

/// Returns the loss of `tokens` tokens over `vocabulary` words.
pub(super) fn loss(tokens: u64, vocabulary: u64) -> Part {
    Part::Loss {
        logits: tokens * vocabulary,
    }
}

/// Returns the normalization of an image of `values` values.
pub(super) fn image_norm(values: u64) -> Part {
    Part::Values {
        name: "norm",
        bytes: IMAGE_NORM_BYTES.map(|bytes| bytes * values),
        kernels: [2, 2],
        among: Among::Tokens,
    }
}

/// Returns a maximum pooling with `outputs` values from windows of `window` values.
pub(super) fn pooling(outputs: u64, window: u64) -> Part {
    Part::Values {
        name: "pooling",
        bytes: WINDOW_BYTES.map(|bytes| outputs * (bytes * window + INDEX_BYTES)),
        kernels: [1, 2],
        among: Among::Tokens,
    }
}

/// Returns the work of the optimizer's step over `parameters` parameters.
/// `narrow` is true if blocks have 8-bit products.
pub fn optimizer(parameters: u64, narrow: bool) -> Work {
    let bytes = OPTIMIZER_BYTES + if narrow { NARROW_WEIGHT_BYTES } else { 0 };
    Work::Values {
        bytes: bytes.saturating_mul(parameters),
        kernels: 1,
    }
}

/// Returns the work on 32-bit sums of gradients in an iteration. A rank has `stored` of these sums,
/// of which its optimizer updates `updated` parameters.
pub fn gradient_sums(stored: u64, updated: u64) -> Work {
    let [of_stored, of_updated] = SUM_PASSES.map(|passes| passes * WIDE);
    let stored = stored.saturating_mul(of_stored);
    Work::Values {
        bytes: stored.saturating_add(updated.saturating_mul(of_updated)),
        kernels: 1,
    }
}

/// Returns the operators of a layer for the portion of one rank.
pub fn operators(layer: &Layer, portion: Portion) -> Vec<Operator> {
    layer
        .parts
        .iter()
        .map(|part| operator(part, layer.split.experts, portion))
        .collect()
}

/// Returns the operator of a part.
fn operator(part: &Part, experts: bool, portion: Portion) -> Operator {
    let Portion {
        samples,
        tensor,
        expert,
        expert_copies,
        ..
    } = portion;
    let (name, forward, backward) = match *part {
        Part::Matrix {
            rows,
            from,
            to,
            cut,
            matrices,
            bias,
            narrow: input,
        } => {
            let (k, n) = match cut {
                Cut::Whole => (from, to),
                Cut::Columns => (from, to.div_ceil(tensor)),
                Cut::Rows => (from.div_ceil(tensor), to),
            };
            let narrow = portion.narrow && input != Narrow::Never;
            let aligned = ALIGNED / width(narrow);
            let mut m = rows_on_rank(rows, experts, portion);
            if experts {
                // Assumption: the kernels of experts pad the number of tokens to a multiple of the
                // alignment, because a framework may choose how it stores these tokens.
                m = m.next_multiple_of(aligned);
            }
            let copies = if experts { expert_copies } else { 0 };
            let matrices = (matrices + copies).div_ceil(expert);
            let product = |m, n, k, summed| Work::Product {
                m,
                n,
                k,
                matrices,
                // Transformer Engine launches the product of each expert
                // (`nvte_multi_stream_cublas_gemm`); DeepGEMM has one kernel for the 8-bit products
                // of all experts.
                kernels: if narrow {
                    1
                } else {
                    u32::try_from(matrices).unwrap_or(u32::MAX)
                },
                narrow,
                summed,
            };
            let conversion = |values: u64| Work::Values {
                bytes: m.saturating_mul(CONVERTED * values),
                kernels: 1,
            };
            let mut forward = vec![product(m, n, k, false)];
            // The gradients of several matrices are sums over the rows of each.
            let each = match matrices {
                1 => m,
                _ => m.div_ceil(matrices).next_multiple_of(aligned),
            };
            let rows = n.saturating_mul(matrices);
            let gradients = product(rows, k, each, portion.wide_gradients);
            let mut backward = vec![product(m, k, n, false), gradients];
            if narrow {
                backward.push(conversion(n));
                if input == Narrow::Converted {
                    forward.push(conversion(k));
                }
            }
            if bias {
                backward.push(Work::Values {
                    bytes: m.saturating_mul(VALUE * n),
                    kernels: 1,
                });
            }
            ("product", forward, backward)
        }
        Part::Attention {
            tokens,
            heads,
            head,
            value,
            key_value,
            causal,
        } => {
            let heads = heads.div_ceil(tensor);
            if !portion.flash {
                let rows = samples.saturating_mul(heads * tokens);
                let matrices = samples.saturating_mul(heads);
                return scored_attention(rows, tokens, [head, value], matrices);
            }
            let pairs = heads * tokens * tokens / if causal { 2 } else { 1 };
            let Portion {
                context, blocks, ..
            } = portion;
            let pairs = pairs.saturating_mul(samples).div_ceil(context * blocks);
            let values = tokens * (heads * (head + value) + key_value.div_ceil(tensor));
            let values = values.saturating_mul(samples).div_ceil(context);
            let work = |backward| Work::Attention {
                pairs,
                head,
                value,
                keys: tokens.div_ceil(blocks),
                values: values.saturating_mul(if backward { 2 } else { 1 }),
                backward,
            };
            let works = |backward| vec![work(backward); blocks as usize];
            ("attention", works(false), works(true))
        }
        Part::Convolution {
            from,
            to,
            window,
            input,
            output,
            input_gradient,
        } => {
            let work = Work::Convolution {
                channels: [from, to],
                pairs: samples.saturating_mul(output * to * from * window),
                values: samples
                    .saturating_mul(input * from + output * to)
                    .saturating_add(from * to * window),
            };
            let gradients = 1 + usize::from(input_gradient);
            ("convolution", vec![work], vec![work; gradients])
        }
        Part::Values {
            name,
            bytes,
            kernels,
            among,
        } => {
            let ranks = match among {
                Among::Tokens => portion.sequence,
                Among::Values => tensor,
            };
            let work = |pass: usize| Work::Values {
                bytes: rows_on_rank(bytes[pass], experts, portion).div_ceil(ranks),
                kernels: kernels[pass],
            };
            (name, vec![work(0)], vec![work(1)])
        }
        Part::Sorting { values } => {
            // Each sorting reads and writes the tokens.
            let sortings = SORTINGS << u32::from(expert > 1);
            let bytes = rows_on_rank(2 * sortings * VALUE * values, experts, portion);
            let work = Work::Values {
                bytes: bytes.div_ceil(portion.sequence),
                kernels: sortings as u32,
            };
            ("sorting", vec![work], vec![work])
        }
        Part::Loss { logits } => {
            let (bytes, kernels) = match portion.fused_loss {
                true => (FUSED_LOSS_BYTES, [2, 1]),
                false => (LOSS_BYTES, [3, 2]),
            };
            let logits = samples.saturating_mul(logits).div_ceil(tensor);
            let work = |pass: usize| Work::Values {
                bytes: logits.saturating_mul(bytes[pass]),
                kernels: kernels[pass],
            };
            ("loss", vec![work(0)], vec![work(1)])
        }
        Part::Conversion { weights } => {
            let work = Work::Values {
                bytes: 3 * VALUE * weights,
                kernels: 1,
            };
            ("conversion", vec![work], vec![work])
        }
    };
    Operator {
        name,
        forward,
        backward,
        recomputed: false,
    }
}

/// Returns attention that stores its scores: `rows` queries of all heads, each with `keys` keys. A
/// query and a key have `head` values, a value has `value` values.
fn scored_attention(rows: u64, keys: u64, [head, value]: [u64; 2], matrices: u64) -> Operator {
    let product = |n, k| Work::Product {
        m: rows,
        n,
        k,
        matrices,
        kernels: 1,
        narrow: false,
        summed: false,
    };
    let scores = |pass: usize| Work::Values {
        bytes: rows.saturating_mul(SCORE_BYTES[pass] * keys),
        kernels: 2,
    };
    // The gradients of scores and values, then those of queries and keys.
    let (of_scores, of_values) = (product(keys, value), product(value, keys));
    let of_queries = product(head, keys);
    Operator {
        name: "attention",
        forward: vec![product(keys, head), scores(0), of_values],
        backward: vec![of_scores, of_values, scores(1), of_queries, of_queries],
        recomputed: true,
    }
}

/// Returns the number of rows (or bytes) of a rank. `each` is their number per sample or, in a
/// layer of experts, per assignment of a token.
fn rows_on_rank(each: u64, experts: bool, portion: Portion) -> u64 {
    match experts {
        true => each.saturating_mul(portion.assigned),
        false => each
            .saturating_mul(portion.samples)
            .div_ceil(portion.context),
    }
}
