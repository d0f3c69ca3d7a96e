//! Neural networks by name. Numbers of parameters follow from the shapes of layers. Only the tests
//! contain the published totals.
//!
//! ```
//! use opticoll_workload::training::models;
//! let model = models::parse("resnet50")?;
//! assert_eq!((model.parameters(), model.tensors().count()), (25_557_032, 161));
//! let model = models::parse("gpt:layers=12,width=768,vocabulary=50257,context=1024")?;
//! assert_eq!(model.parameters(), models::parse("gpt2_small")?.parameters());
//! # Ok::<(), opticoll_workload::training::TrainingError>(())
//! ```

use super::transformer::{self, LatentShape, TransformerShape};
use super::{Layer, Model, TrainingError, convolutional};
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec, SpecError};

/// Declaration of a model.
pub struct ModelRecord {
    /// Name in specifications.
    pub name: &'static str,
    /// Label of the model in figures.
    pub label: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Source of the model's shape.
    pub citation: &'static str,
    /// Options with their meaning and default.
    pub options: &'static [OptionRecord],
    form: ModelForm,
}

enum ModelForm {
    /// Convolutional network for images.
    Images(fn() -> Vec<Layer>),
    /// Transformer of fixed shape.
    Tokens(fn(TransformerShape) -> Vec<Layer>, TransformerShape),
    /// Transformer whose options determine the shape. The second field contains the defaults.
    Family(fn(TransformerShape) -> Vec<Layer>, TransformerShape),
}

/// Number of images in ImageNet's training set (Russakovsky et al. 2015, ILSVRC 2012).
const IMAGENET: u64 = 1_281_167;

/// Maximum values of options. These values exceed all known models, but the number of operations of
/// a layer still fits into 64 bits.
const MAX_VALUES: u32 = 1 << 18;
const MAX_WORDS: u32 = 1 << 21;
/// Width of an attention head in GPT-3, Llama 2, Qwen3 and DeepSeek-V2.
const HEAD_WIDTH: u64 = 128;
/// Number of rotary values of a head in DeepSeek-V2 and DeepSeek-V3.
const ROTARY_WIDTH: u64 = 64;
const MAX_LAYERS: u32 = 1 << 12;
const MAX_EXPERTS: u32 = 1 << 12;
const MAX_SEQUENCE: u32 = 1 << 17;

const SEQUENCE: OptionRecord = OptionRecord::new("sequence", "tokens of a sample")
    .range("1 to the context")
    .default("the context");
const BERT_SEQUENCE: OptionRecord = SEQUENCE.range("1 to 512").default("128");
const LLAMA_SEQUENCE: OptionRecord = SEQUENCE.range("1 to 131072").default("4096");
const LLAMA3_SEQUENCE: OptionRecord = LLAMA_SEQUENCE.default("8192");
const LAYERS: OptionRecord = OptionRecord::new("layers", "number of blocks")
    .range("1 to 4096")
    .default(REQUIRED);
const WIDTH: OptionRecord = OptionRecord::new("width", "values of a token between blocks")
    .range("1 to 262144")
    .default(REQUIRED);
const HEADS: OptionRecord = OptionRecord::new("heads", "number of heads of attention")
    .range("1 to 262144")
    .default("width / 128, rounded up");
const FEED_FORWARD: OptionRecord =
    OptionRecord::new("feed_forward", "values inside the feed-forward part")
        .range("1 to 1048576")
        .default("4 x width");

const MIXTRAL_SEQUENCE: OptionRecord = SEQUENCE.range("1 to 32768").default("4096");
const KEY_VALUE: OptionRecord = OptionRecord::new("key_value", "values of the keys of a token")
    .range("1 to 262144")
    .default("the values of its queries");
const HEAD: OptionRecord = OptionRecord::new(
    "head",
    "values of a head of queries and keys, with latent vectors without the rotary part",
)
.range("1 to 262144")
.default("width / heads");
const HEAD_NORMS: OptionRecord = OptionRecord::new(
    "head_norms",
    "1 if queries and keys of each head are normalized",
)
.range("0 or 1")
.default("0");
const LATENT: OptionRecord = OptionRecord::new(
    "latent",
    "values of the latent vector of keys and values, as in DeepSeek-V2",
)
.range("1 to 262144")
.default("none");
const LATENT_QUERY: OptionRecord =
    OptionRecord::new("latent_query", "values of the latent vector of queries")
        .range("1 to 262144")
        .default("none");
const ROTARY: OptionRecord = OptionRecord::new(
    "rotary",
    "values of a head that are rotary, with latent vectors",
)
.range("1 to 262144")
.default("64");
const QWEN3_SEQUENCE: OptionRecord = SEQUENCE.range("1 to 40960").default("4096");
const VOCABULARY: OptionRecord = OptionRecord::new("vocabulary", "number of words")
    .range("1 to 2097152")
    .default("32000");

const GPT_OPTIONS: &[OptionRecord] = &[
    LAYERS,
    WIDTH,
    HEADS,
    FEED_FORWARD,
    OptionRecord::new("vocabulary", "number of words")
        .range("1 to 2097152")
        .default("50257"),
    OptionRecord::new("context", "number of positions")
        .range("1 to 131072")
        .default("2048"),
    SEQUENCE.range("1 to 131072"),
];
const LLAMA_OPTIONS: &[OptionRecord] = &[
    LAYERS,
    WIDTH,
    HEADS,
    HEAD,
    HEAD_NORMS,
    FEED_FORWARD,
    KEY_VALUE,
    LATENT,
    LATENT_QUERY,
    ROTARY,
    VOCABULARY,
    LLAMA_SEQUENCE,
];
const MIXTURE_OPTIONS: &[OptionRecord] = &[
    LAYERS,
    WIDTH,
    OptionRecord::new("experts", "number of experts of a block")
        .range("1 to 4096")
        .default(REQUIRED),
    OptionRecord::new("top_k", "number of experts that a token goes through")
        .range("1 to the experts")
        .default("2, or 1 of one expert"),
    OptionRecord::new(
        "shared",
        "number of further experts that all tokens go through",
    )
    .range("0 to 4096")
    .default("0"),
    OptionRecord::new("dense", "number of first blocks without experts")
        .range("0 to the layers")
        .default("0"),
    OptionRecord::new("dense_feed_forward", "values inside these blocks")
        .range("1 to 1048576")
        .default("4 x width"),
    HEADS,
    HEAD,
    HEAD_NORMS,
    OptionRecord::new("feed_forward", "values inside an expert")
        .range("1 to 1048576")
        .default("4 x width"),
    KEY_VALUE,
    LATENT,
    LATENT_QUERY,
    ROTARY,
    VOCABULARY,
    LLAMA_SEQUENCE,
];

/// Returns the shape of a GPT model whose feed-forward part has 4 times the width.
const fn standard(
    layers: u64,
    width: u64,
    heads: u64,
    vocabulary: u64,
    context: u64,
) -> TransformerShape {
    TransformerShape {
        layers,
        width,
        heads,
        feed_forward: 4 * width,
        queries: width,
        key_value: width,
        vocabulary,
        context,
        sequence: context,
        experts: 0,
        top_k: 0,
        shared: 0,
        dense: 0,
        dense_feed_forward: 0,
        head_norms: false,
        latent: None,
    }
}

const fn bert_shape(layers: u64, width: u64) -> TransformerShape {
    let standard = standard(layers, width, width / 64, 30_522, 512);
    TransformerShape {
        sequence: 128,
        ..standard
    }
}

const fn llama_shape(
    layers: u64,
    width: u64,
    feed_forward: u64,
    key_value: u64,
) -> TransformerShape {
    let standard = standard(layers, width, width / 128, 32_000, 4096);
    TransformerShape {
        feed_forward,
        key_value,
        context: MAX_SEQUENCE as u64,
        ..standard
    }
}

const fn llama3_shape(layers: u64, width: u64, feed_forward: u64) -> TransformerShape {
    TransformerShape {
        vocabulary: 128_256,
        sequence: 8192,
        ..llama_shape(layers, width, feed_forward, 1024)
    }
}

const fn mixtral_shape(
    layers: u64,
    width: u64,
    feed_forward: u64,
    vocabulary: u64,
    context: u64,
) -> TransformerShape {
    TransformerShape {
        vocabulary,
        context,
        sequence: 4096,
        experts: 8,
        top_k: 2,
        ..llama_shape(layers, width, feed_forward, 1024)
    }
}

/// Returns the shape of a Qwen3 model with heads of 128 values.
const fn qwen3_shape(
    layers: u64,
    width: u64,
    heads: u64,
    feed_forward: u64,
    key_value: u64,
) -> TransformerShape {
    TransformerShape {
        heads,
        queries: heads * HEAD_WIDTH,
        head_norms: true,
        vocabulary: 151_936,
        context: 40_960,
        ..llama_shape(layers, width, feed_forward, key_value)
    }
}

const fn qwen3_mixture_shape(
    layers: u64,
    width: u64,
    heads: u64,
    feed_forward: u64,
) -> TransformerShape {
    TransformerShape {
        experts: 128,
        top_k: 8,
        ..qwen3_shape(layers, width, heads, feed_forward, 4 * HEAD_WIDTH)
    }
}

/// Returns the shape of a DeepSeek model whose 128 heads of 128 values have 64 rotary values more.
const fn deepseek_shape(layers: u64, width: u64, feed_forward: u64) -> TransformerShape {
    TransformerShape {
        heads: 128,
        queries: 128 * (HEAD_WIDTH + ROTARY_WIDTH),
        latent: Some(LatentShape {
            query: 1536,
            key_value: 512,
            rotary: ROTARY_WIDTH,
        }),
        ..llama_shape(
            layers,
            width,
            feed_forward,
            128 * (HEAD_WIDTH + ROTARY_WIDTH),
        )
    }
}

const DEEPSEEK_V2_SHAPE: TransformerShape = TransformerShape {
    experts: 160,
    top_k: 6,
    shared: 2,
    dense: 1,
    dense_feed_forward: 12_288,
    vocabulary: 102_400,
    ..deepseek_shape(60, 5120, 1536)
};

const DEEPSEEK_V3_SHAPE: TransformerShape = TransformerShape {
    experts: 256,
    top_k: 8,
    shared: 1,
    dense: 3,
    dense_feed_forward: 18_432,
    vocabulary: 129_280,
    ..deepseek_shape(61, 7168, 2048)
};

/// Builds the list of records: `name, label, options, form; summary, citation;`.
macro_rules! models {
    ($($name:literal, $label:literal, $options:expr, $form:expr;
        $summary:literal, $citation:expr;)+) => {
        &[$(ModelRecord {
            name: $name,
            label: $label,
            summary: $summary,
            citation: $citation,
            options: $options,
            form: $form,
        },)+]
    };
}

const GPT2: &str = "Radford et al., Language Models are Unsupervised Multitask Learners, 2019";
const GPT3: &str = "Brown et al., Language Models are Few-Shot Learners, NeurIPS 2020, Table 2.1";
const BERT: &str = "Devlin et al., BERT, NAACL 2019, section 3";
const LLAMA2: &str = "Touvron et al., Llama 2, arXiv:2307.09288";

const LLAMA3: &str = "Llama Team, The Llama 3 Herd of Models, arXiv:2407.21783, Table 3";

const MIXTRAL: &str = "Jiang et al., Mixtral of Experts, arXiv:2401.04088, Table 1";
const QWEN3: &str = "Qwen Team, Qwen3 Technical Report, arXiv:2505.09388, Tables 1 and 2";

const MIXTRAL_8X22B: &str = "Mistral AI, config.json of Mixtral-8x22B-v0.1, April 2024";

/// All models.
pub const MODELS: &[ModelRecord] = models! {
    "alexnet", "AlexNet", &[], ModelForm::Images(convolutional::alexnet);
        "5 convolutions and 3 matrices for images of 224 x 224 pixels",
        "Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014";
    "vgg16", "VGG16", &[], ModelForm::Images(|| convolutional::vgg([2, 2, 3, 3, 3]));
        "13 convolutions and 3 matrices for images of 224 x 224 pixels",
        "Simonyan and Zisserman, Very Deep Convolutional Networks, ICLR 2015, configuration D";
    "vgg19", "VGG19", &[], ModelForm::Images(|| convolutional::vgg([2, 2, 4, 4, 4]));
        "16 convolutions and 3 matrices for images of 224 x 224 pixels",
        "Simonyan and Zisserman, Very Deep Convolutional Networks, ICLR 2015, configuration E";
    "resnet50", "ResNet50", &[], ModelForm::Images(|| convolutional::resnet([3, 4, 6, 3]));
        "53 convolutions and a matrix for images of 224 x 224 pixels, version 1.5",
        "He et al., Deep Residual Learning for Image Recognition, CVPR 2016, Table 1";
    "googlenet", "GoogLeNet", &[], ModelForm::Images(convolutional::googlenet);
        "57 convolutions and a matrix for images of 224 x 224 pixels, as in torchvision",
        "Szegedy et al., Going Deeper with Convolutions, CVPR 2015, Table 1";
    "bert_base", "BERT base", &[BERT_SEQUENCE],
        ModelForm::Tokens(transformer::bert, bert_shape(12, 768));
        "12 blocks of width 768, with the heads for pre-training", BERT;
    "bert_large", "BERT large", &[BERT_SEQUENCE],
        ModelForm::Tokens(transformer::bert, bert_shape(24, 1024));
        "24 blocks of width 1024, with the heads for pre-training", BERT;
    "gpt2_small", "GPT-2 small", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(12, 768, 12, 50_257, 1024));
        "12 blocks of width 768", GPT2;
    "gpt2_medium", "GPT-2 medium", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(24, 1024, 16, 50_257, 1024));
        "24 blocks of width 1024", GPT2;
    "gpt2_large", "GPT-2 large", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(36, 1280, 20, 50_257, 1024));
        "36 blocks of width 1280", GPT2;
    "gpt2_xl", "GPT-2 XL", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(48, 1600, 25, 50_257, 1024));
        "48 blocks of width 1600", GPT2;
    "gpt3_6_7b", "GPT-3 6.7B", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(32, 4096, 32, 50_257, 2048));
        "32 blocks of width 4096", GPT3;
    "gpt3_175b", "GPT-3 175B", &[SEQUENCE],
        ModelForm::Tokens(transformer::gpt, standard(96, 12_288, 96, 50_257, 2048));
        "96 blocks of width 12288", GPT3;
    "llama2_7b", "Llama 2 7B", &[LLAMA_SEQUENCE],
        ModelForm::Tokens(transformer::gated, llama_shape(32, 4096, 11_008, 4096));
        "32 blocks of width 4096", LLAMA2;
    "llama2_70b", "Llama 2 70B", &[LLAMA_SEQUENCE],
        ModelForm::Tokens(transformer::gated, llama_shape(80, 8192, 28_672, 1024));
        "80 blocks of width 8192, 8 heads of keys and values", LLAMA2;
    "llama3_8b", "Llama 3 8B", &[LLAMA3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, llama3_shape(32, 4096, 14_336));
        "32 blocks of width 4096, 8 heads of keys and values", LLAMA3;
    "llama3_70b", "Llama 3 70B", &[LLAMA3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, llama3_shape(80, 8192, 28_672));
        "80 blocks of width 8192, 8 heads of keys and values", LLAMA3;
    "llama3_405b", "Llama 3 405B", &[LLAMA3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, llama3_shape(126, 16_384, 53_248));
        "126 blocks of width 16384, 8 heads of keys and values", LLAMA3;
    "gpt", "GPT", GPT_OPTIONS, ModelForm::Family(transformer::gpt, standard(0, 0, 0, 50_257, 2048));
        "A transformer in the form of GPT-2 and GPT-3, of any shape", GPT3;
    "llama", "Llama", LLAMA_OPTIONS, ModelForm::Family(transformer::gated, llama_shape(0, 0, 0, 0));
        "A transformer in the form of Llama 2, of any shape", LLAMA2;
    "qwen3_8b", "Qwen3 8B", &[QWEN3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, qwen3_shape(36, 4096, 32, 12_288, 1024));
        "36 blocks of width 4096, 8 heads of keys and values", QWEN3;
    "qwen3_32b", "Qwen3 32B", &[QWEN3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, qwen3_shape(64, 5120, 64, 25_600, 1024));
        "64 blocks of width 5120, 8 heads of keys and values", QWEN3;
    "qwen3_30b_a3b", "Qwen3 30B-A3B", &[QWEN3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, qwen3_mixture_shape(48, 2048, 32, 768));
        "48 blocks of width 2048 with 128 experts, 8 for each token", QWEN3;
    "qwen3_235b_a22b", "Qwen3 235B-A22B", &[QWEN3_SEQUENCE],
        ModelForm::Tokens(transformer::gated, qwen3_mixture_shape(94, 4096, 64, 1536));
        "94 blocks of width 4096 with 128 experts, 8 for each token", QWEN3;
    "deepseek_v2", "DeepSeek-V2", &[LLAMA_SEQUENCE],
        ModelForm::Tokens(transformer::gated, DEEPSEEK_V2_SHAPE);
        "60 blocks of width 5120 with 160 experts, 6 and 2 shared ones for each token",
        "DeepSeek-AI, DeepSeek-V2, arXiv:2405.04434, section 3.1.2";
    "deepseek_v3", "DeepSeek-V3", &[LLAMA_SEQUENCE],
        ModelForm::Tokens(transformer::gated, DEEPSEEK_V3_SHAPE);
        "61 blocks of width 7168 with 256 experts, 8 and a shared one for each token",
        "DeepSeek-AI, DeepSeek-V3 Technical Report, arXiv:2412.19437, section 4.2";
    "mixtral_8x7b", "Mixtral 8x7B", &[MIXTRAL_SEQUENCE],
        ModelForm::Tokens(transformer::gated, mixtral_shape(32, 4096, 14_336, 32_000, 32_768));
        "32 blocks of width 4096 with 8 experts, 2 for each token", MIXTRAL;
    "mixtral_8x22b", "Mixtral 8x22B", &[MIXTRAL_SEQUENCE.range("1 to 65536")],
        ModelForm::Tokens(transformer::gated, mixtral_shape(56, 6144, 16_384, 32_000, 65_536));
        "56 blocks of width 6144 with 8 experts, 2 for each token", MIXTRAL_8X22B;
    "moe", "Mixture of experts", MIXTURE_OPTIONS,
        ModelForm::Family(transformer::gated, mixtral_shape(0, 0, 0, 32_000, 4096));
        "A transformer in the form of Mixtral, of any shape", MIXTRAL;
};

/// Parses the specification of a model.
///
/// # Errors
/// Fails for an unknown model or option and for a value out of range.
pub fn parse(text: &str) -> Result<Model, TrainingError> {
    with_sequence(text, None)
}

/// Parses the specification of a model like [`parse`]. `tokens` is the number of tokens of a
/// sample, which may exceed the number of positions that have an embedding.
///
/// # Errors
/// Fails like [`parse`].
pub fn with_sequence(text: &str, tokens: Option<u32>) -> Result<Model, TrainingError> {
    let tokens = tokens.map(|tokens| u64::from(tokens.clamp(1, MAX_SEQUENCE)));
    let spec: Spec = text.parse()?;
    let record = MODELS
        .iter()
        .find(|record| same_name(record.name, spec.name()))
        .ok_or_else(|| TrainingError::Unknown {
            what: "model",
            name: spec.name().into(),
            hint: suggest(spec.name(), MODELS.iter().map(|record| record.name)),
        })?;
    spec.only_declared(record.options)?;
    let (layers, sample, shape) = match &record.form {
        ModelForm::Images(build) => (build(), "image".into(), None),
        ModelForm::Tokens(build, shape) => {
            let sequence = spec.count("sequence", 1, shape.context as u32)?;
            let shape = TransformerShape {
                sequence: tokens.unwrap_or(sequence.map_or(shape.sequence, u64::from)),
                ..*shape
            };
            (build(shape), sample(shape), Some(shape))
        }
        ModelForm::Family(build, shape) => {
            let mut shape = shape_from_options(&spec, *shape)?;
            shape.sequence = tokens.unwrap_or(shape.sequence);
            (build(shape), sample(shape), Some(shape))
        }
    };
    let name = spec
        .options()
        .fold(Spec::new(record.name), |spec, (key, value)| {
            spec.with(key, value)
        });
    Ok(Model {
        name: name.to_string(),
        label: record.label.into(),
        sample,
        epoch_samples: shape.is_none().then_some(IMAGENET),
        layers,
        transformer: shape,
    })
}

fn sample(shape: TransformerShape) -> String {
    format!("sequence of {} tokens", shape.sequence)
}

/// Returns the shape that the options determine, with `defaults` for missing options.
fn shape_from_options(
    spec: &Spec,
    defaults: TransformerShape,
) -> Result<TransformerShape, TrainingError> {
    let needed = |key, max| {
        let count = spec.count(key, 1, max)?;
        let missing = || spec.refuse(key, "it is required, such as layers=12,width=768");
        count.map(u64::from).ok_or_else(missing)
    };
    let optional = |key, max, default: u64| {
        spec.count(key, 1, max)
            .map(|given| given.map_or(default, u64::from))
    };
    let or_none = |key, max| {
        let count = spec.count(key, 0, max)?;
        Ok::<_, SpecError>(count.map_or(0, u64::from))
    };
    let width = needed("width", MAX_VALUES)?;
    let layers = needed("layers", MAX_LAYERS)?;
    let (experts, top_k) = match defaults.experts {
        0 => (0, 0),
        _ => {
            let experts = needed("experts", MAX_EXPERTS)?;
            let chosen = optional("top_k", experts as u32, experts.min(defaults.top_k))?;
            (experts, chosen)
        }
    };
    let heads = optional("heads", MAX_VALUES, width.div_ceil(HEAD_WIDTH))?;
    let latent = latent_from_options(spec)?;
    let head = spec.count("head", 1, MAX_VALUES)?.map(u64::from);
    let queries = match (head, latent) {
        (None, None) => width,
        _ => {
            let rotary = latent.map_or(0, |latent| latent.rotary);
            heads * (head.unwrap_or((width / heads).max(1)) + rotary)
        }
    };
    if queries > u64::from(MAX_VALUES) {
        let problem = format!("the heads have {queries} values together, above {MAX_VALUES}");
        return Err(TrainingError::Spec(spec.refuse("head", problem)));
    }
    let positions = spec.count("context", 1, MAX_SEQUENCE)?.map(u64::from);
    let sequence = positions.unwrap_or(defaults.sequence);
    let shape = TransformerShape {
        layers,
        width,
        feed_forward: optional("feed_forward", 4 * MAX_VALUES, 4 * width)?,
        queries,
        key_value: optional("key_value", MAX_VALUES, queries)?,
        heads,
        vocabulary: optional("vocabulary", MAX_WORDS, defaults.vocabulary)?,
        context: positions.unwrap_or(defaults.context),
        sequence: optional("sequence", MAX_SEQUENCE, sequence)?,
        experts,
        top_k,
        shared: or_none("shared", MAX_EXPERTS)?,
        dense: or_none("dense", layers as u32)?,
        dense_feed_forward: optional("dense_feed_forward", 4 * MAX_VALUES, 4 * width)?,
        head_norms: or_none("head_norms", 1)? > 0,
        latent,
    };
    // A layer's operations and the number of all parameters must fit into 64 bits.
    let expert_parameters = 3 * u128::from(shape.width) * u128::from(shape.feed_forward);
    let passed = u128::from(top_k.max(shape.shared));
    let operations = 4 * expert_parameters * passed * u128::from(shape.sequence);
    let stored = u128::from(experts + shape.shared);
    let parameters = expert_parameters * stored * u128::from(shape.layers);
    if operations.max(parameters) >= 1 << 63 {
        return Err(TrainingError::Spec(spec.refuse(
            "experts",
            "the experts are too large: give fewer or narrower experts",
        )));
    }
    Ok(shape)
}

/// Returns the shape of the latent vectors that the options determine.
fn latent_from_options(spec: &Spec) -> Result<Option<LatentShape>, SpecError> {
    let width = |key| spec.count(key, 1, MAX_VALUES);
    let (query, rotary) = (width("latent_query")?, width("rotary")?);
    let Some(key_value) = width("latent")? else {
        let stated = [("latent_query", query), ("rotary", rotary)];
        return match stated.into_iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) => Err(spec.refuse(key, "it applies to latent vectors: give latent=")),
            None => Ok(None),
        };
    };
    for key in ["key_value", "head_norms"] {
        if spec.option(key).is_some() {
            return Err(spec.refuse(key, "it does not apply to latent vectors; leave it out"));
        }
    }
    Ok(Some(LatentShape {
        query: query.map_or(0, u64::from),
        key_value: u64::from(key_value),
        rotary: rotary.map_or(ROTARY_WIDTH, u64::from),
    }))
}
