//! Training with groups of ranks that divide the model: tensor, context, pipeline, expert and data
//! parallelism.
//!
//! Ranks are numbered as in Megatron-LM (Narayanan et al., SC 2021, arXiv:2104.04473). Let T be the
//! number of ranks in a tensor-parallel group, C the number of ranks in a context-parallel group,
//! and D the number of replicas of the model. The rank with index t in its tensor-parallel group
//! and index c in its context-parallel group, in stage p of the pipeline of replica d, has number
//! t + T (c + C (d + D p)). The C D ranks that differ in c and d only store the same part of the
//! model, and compute different tokens. E consecutive ranks of these form an expert-parallel group.
//! The groups communicate as follows:
//!
//! | group | ranks | sends |
//! |---|---|---|
//! | tensor | T consecutive ranks | all_reduces of activations after each pair of matrices |
//! | context | C ranks of a replica | keys and values, or heads for tokens, at each attention |
//! | pipeline | one rank of each stage | activations and their gradients, from stage to stage |
//! | expert | E of the C D ranks | all_to_alls of tokens before and after the experts |
//! | data | C D ranks with the same part | gradients, and parameters that are sharded |
//! | expert data | every E-th of these ranks | the same as data groups, for the experts |
//!
//! Tensor, context and expert groups communicate in the forward and in the backward pass.
//!
//! [`stages`] divides a model into stages. [`program`] writes the computation and communication of
//! each rank as a trace. The trace is [expanded](super::super::expand) and
//! [replayed](super::super::replay) like the trace of any program, so groups that share links slow
//! each other down. [`parts`] divides the time of an iteration among its causes.

pub mod iteration;
pub mod parts;
pub mod pipeline;
pub mod program;
pub mod stages;
mod trace;
mod writer;

use super::practice::{ContextExchange, Practice};
use super::transformer::TransformerShape;
use super::{Model, TrainingError};

/// Sizes of the groups of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Groups {
    /// T: number of ranks that divide each matrix.
    pub tensor: u32,
    /// C: number of ranks that divide the tokens of each sample.
    pub context: u32,
    /// P: number of stages of the pipeline.
    pub pipeline: u32,
    /// E: number of ranks with the same dense part of the model that divide the experts.
    pub expert: u32,
    /// D: number of replicas of the model.
    pub data: u32,
}

opticoll_base::named_enum! {
    /// Kind of a group of ranks that communicate with each other.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum GroupKind {
        /// Ranks that divide each matrix.
        Tensor = "tensor",
        /// Ranks that divide the tokens of a sample.
        Context = "context",
        /// Ranks of consecutive stages.
        Pipeline = "pipeline",
        /// Ranks that divide the experts.
        Expert = "expert",
        /// Ranks with the same part of the model.
        Data = "data",
        /// Ranks with the same experts.
        ExpertData = "expert_data",
    }
}

/// Position of a rank in all of its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// Index of the rank in its tensor-parallel group.
    pub tensor: u32,
    /// Index of the rank in its context-parallel group.
    pub context: u32,
    /// Index of the replica to which the rank belongs.
    pub data: u32,
    /// Index of the pipeline stage to which the rank belongs.
    pub stage: u32,
}

/// Training state that is divided among the replicas instead of copied, by the stages of ZeRO
/// (Rajbhandari et al., arXiv:1910.02054, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharding {
    /// No state is divided.
    Nothing,
    /// State of the optimizer.
    Optimizer,
    /// State of the optimizer and gradients.
    Gradients,
    /// State of the optimizer, gradients and parameters, as in FSDP.
    Parameters,
}

impl Sharding {
    /// All variants, in the order of ZeRO's stages.
    pub const ALL: [Sharding; 4] = [
        Sharding::Nothing,
        Sharding::Optimizer,
        Sharding::Gradients,
        Sharding::Parameters,
    ];
}

impl Groups {
    /// Creates the groups of `ranks` ranks and checks that they fit a model. If `data` is `None`,
    /// the number of replicas follows from the number of ranks.
    ///
    /// # Errors
    /// Fails if the product of the group sizes is not the number of ranks. Also fails if a group
    /// size does not divide a number that it must divide, such as the number of attention heads.
    pub fn new(
        ranks: u32,
        [tensor, context, pipeline, expert]: [u32; 4],
        data: Option<u32>,
        model: &Model,
    ) -> Result<Groups, TrainingError> {
        let model_ranks = u64::from(tensor) * u64::from(context) * u64::from(pipeline);
        let factors = match context {
            1 => format!("tensor-parallel {tensor} x pipeline-parallel {pipeline}"),
            _ => format!(
                "tensor-parallel {tensor} x context-parallel {context} x pipeline-parallel \
                 {pipeline}"
            ),
        };
        if model_ranks == 0 || u64::from(ranks) % model_ranks != 0 {
            return Err(TrainingError::Groups(format!(
                "{factors} = {model_ranks} ranks hold the model once, and {model_ranks} does not \
                 divide the {ranks} ranks of the fabric"
            )));
        }
        let replicas = (u64::from(ranks) / model_ranks) as u32;
        if let Some(data) = data.filter(|data| *data != replicas) {
            return Err(TrainingError::Groups(format!(
                "{factors} x data-parallel {data} is {} ranks, and the fabric has {ranks}; \
                 data-parallel {replicas} fits",
                u128::from(model_ranks) * u128::from(data)
            )));
        }
        let groups = Groups {
            tensor,
            context,
            pipeline,
            expert,
            data: replicas,
        };
        groups.check(model)?;
        Ok(groups)
    }

    /// Checks that the group sizes divide the sizes of `model`.
    fn check(&self, model: &Model) -> Result<(), TrainingError> {
        divides(
            "expert-parallel",
            self.expert,
            match self.context {
                1 => "replicas of the model",
                _ => "context-parallel ranks of all replicas",
            },
            self.shares().into(),
        )?;
        let Some(TransformerShape {
            layers,
            feed_forward,
            heads,
            key_value,
            experts,
            ..
        }) = model.transformer
        else {
            if [self.tensor, self.context, self.pipeline, self.expert] == [1; 4] {
                return Ok(());
            }
            return Err(TrainingError::Groups(format!(
                "{} is not a transformer: tensor, context, pipeline and expert parallelism \
                 divide transformers",
                model.label
            )));
        };
        divides("tensor-parallel", self.tensor, "heads of attention", heads)?;
        divides("tensor-parallel", self.tensor, "values of keys", key_value)?;
        divides(
            "tensor-parallel",
            self.tensor,
            "values of the feed-forward part",
            feed_forward,
        )?;
        covers("pipeline-parallel", self.pipeline, layers)?;
        match (experts, self.expert) {
            (_, 1) => Ok(()),
            (0, _) => Err(TrainingError::Groups(format!(
                "{} has no experts: expert-parallel is for models such as mixtral_8x7b",
                model.label
            ))),
            (experts, _) => divides(
                "expert-parallel",
                self.expert,
                "experts of a block",
                experts,
            ),
        }
    }

    /// Checks that a practice fits the groups, `micro_batches` micro-batches and `model`.
    ///
    /// # Errors
    /// Fails if there are several chunks per stage, and there is one stage only, or a chunk has no
    /// layer, or the stages do not divide the micro-batches. Fails if context-parallel ranks cannot
    /// divide tokens or heads, or if attention stores its scores.
    pub fn check_practice(
        &self,
        practice: Practice,
        micro_batches: u64,
        model: &Model,
    ) -> Result<(), TrainingError> {
        self.check_context(practice, model)?;
        if practice.chunks == 1 {
            return Ok(());
        }
        if practice.chunks == 0 || self.pipeline == 1 {
            return Err(TrainingError::Groups(format!(
                "chunks {} of a stage need a pipeline: give pipeline-parallel 2 or more",
                practice.chunks
            )));
        }
        divides(
            "pipeline-parallel",
            self.pipeline,
            "micro-batches, as interleaved stages need",
            micro_batches,
        )?;
        covers(
            "chunks x pipeline-parallel",
            practice.chunks.saturating_mul(self.pipeline),
            model.transformer.map_or(1, |shape| shape.layers),
        )
    }

    /// Checks that the ranks of a context-parallel group can divide the work of attention.
    fn check_context(&self, practice: Practice, model: &Model) -> Result<(), TrainingError> {
        let Some(shape) = model.transformer.filter(|_| self.context > 1) else {
            return Ok(());
        };
        if !practice.flash {
            return Err(TrainingError::Groups(format!(
                "context-parallel {} needs FlashAttention: no rank has all scores",
                self.context
            )));
        }
        // A rank has one part from the beginning and one from the end of a sample.
        divides(
            "2 x context-parallel",
            self.context.saturating_mul(2),
            "tokens of a sample",
            shape.sequence,
        )?;
        if practice.context_exchange == ContextExchange::Ring {
            return Ok(());
        }
        let both = self.tensor.saturating_mul(self.context);
        let option = "tensor-parallel x context-parallel";
        divides(option, both, "heads of attention", shape.heads)?;
        if shape.latent.is_some() {
            return Ok(());
        }
        divides(
            option,
            both,
            "heads of keys",
            shape.key_value / shape.head(),
        )
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.tensor * self.shares() * self.pipeline
    }

    /// Returns the number of ranks that store the same dense part of the model: C D.
    pub fn shares(&self) -> u32 {
        self.context * self.data
    }

    /// Returns the index of a rank among the ranks that store the same dense part of the model.
    pub fn share(&self, place: RankPlace) -> u32 {
        place.context + self.context * place.data
    }

    /// Returns the rank at position `place`.
    pub fn rank(&self, place: RankPlace) -> u32 {
        place.tensor + self.tensor * (self.share(place) + self.shares() * place.stage)
    }

    /// Returns the position of `rank` in its groups.
    pub fn place(&self, rank: u32) -> RankPlace {
        RankPlace {
            tensor: rank % self.tensor,
            context: rank / self.tensor % self.context,
            data: rank / self.tensor / self.context % self.data,
            stage: rank / self.tensor / self.shares(),
        }
    }

    /// Returns the number of ranks in a group of this kind. Returns 2 for the pipeline, in which
    /// messages go from one rank to the next rank.
    pub fn size(&self, kind: GroupKind) -> u32 {
        match kind {
            GroupKind::Tensor => self.tensor,
            GroupKind::Context => self.context,
            GroupKind::Pipeline => 2,
            GroupKind::Expert => self.expert,
            GroupKind::Data => self.shares(),
            GroupKind::ExpertData => self.shares() / self.expert,
        }
    }

    /// Returns the members of the group of this kind to which the rank at `place` belongs. For the
    /// pipeline, returns the ranks of all stages.
    pub fn members(&self, kind: GroupKind, place: RankPlace) -> Vec<u32> {
        let share = self.share(place);
        let member = |share: u32| {
            self.rank(RankPlace {
                context: share % self.context,
                data: share / self.context,
                ..place
            })
        };
        match kind {
            GroupKind::Tensor => (0..self.tensor)
                .map(|tensor| self.rank(RankPlace { tensor, ..place }))
                .collect(),
            GroupKind::Pipeline => (0..self.pipeline)
                .map(|stage| self.rank(RankPlace { stage, ..place }))
                .collect(),
            GroupKind::Context | GroupKind::Expert => {
                let size = self.size(kind);
                let first = share - share % size;
                (first..first + size).map(member).collect()
            }
            GroupKind::Data => (0..self.shares()).map(member).collect(),
            GroupKind::ExpertData => (share % self.expert..self.shares())
                .step_by(self.expert as usize)
                .map(member)
                .collect(),
        }
    }
}

/// Checks that each of `number` chunks of the blocks has a layer. The first chunk has the
/// embedding, and the last chunk the output.
fn covers(option: &'static str, number: u32, blocks: u64) -> Result<(), TrainingError> {
    if number == 1 || (1..=blocks + 2).contains(&u64::from(number)) {
        return Ok(());
    }
    Err(TrainingError::Groups(format!(
        "{option} {number} leaves a chunk without layers: the model has {blocks} blocks, and at \
            most {} chunks",
        blocks + 2
    )))
}

/// Checks that `number` divides `count`. The error lists numbers that divide `count`.
fn divides(
    option: &'static str,
    number: u32,
    what: &'static str,
    count: u64,
) -> Result<(), TrainingError> {
    if number > 0 && count % u64::from(number) == 0 {
        return Ok(());
    }
    let fitting: Vec<String> = (1..=count.min(4096))
        .filter(|divisor| count % divisor == 0)
        .take(12)
        .map(|divisor| divisor.to_string())
        .collect();
    Err(TrainingError::Groups(format!(
        "{option} {number} does not divide the {count} {what}; {} divide them",
        fitting.join(", ")
    )))
}
