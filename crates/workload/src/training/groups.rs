//! Training in which groups of ranks divide the model: tensor, pipeline, expert and data parallelism.
//!
//! Ranks are numbered as in Megatron-LM (Narayanan et al., SC 2021, arXiv:2104.04473): with T tensor-parallel ranks and D
//! replicas of the model, rank t + T (d + D p) is number t of the tensor-parallel group of replica d in stage p of the
//! pipeline. E consecutive replicas form an expert-parallel group. Groups and what they send:
//!
//! | group | ranks | sends |
//! |---|---|---|
//! | tensor | T consecutive ones | an all_reduce of the activations after each pair of matrices, forward and backward |
//! | pipeline | one of each stage | activations and their gradients, from stage to stage |
//! | expert | one of each of E replicas | an all_to_all of tokens before and after the experts, forward and backward |
//! | data | one of each replica | gradients, and parameters that are sharded |
//! | expert data | one of every E-th replica | the same for the experts |
//!
//! [`stages`] divides a model. [`program`] is what each rank computes and sends, written as a trace that is
//! [expanded](super::super::expand) and [replayed](super::super::replay) like that of any program, so that groups that
//! share links slow each other down; [`parts`] tells what the time of an iteration was spent on.

pub mod iteration;
pub mod parts;
mod pipeline;
pub mod program;
pub mod stages;
mod trace;
mod writer;

use super::transformer::TransformerShape;
use super::{Model, TrainingError};

/// How many ranks of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Groups {
    /// Ranks that divide each matrix, T.
    pub tensor: u32,
    /// Stages of the pipeline, P.
    pub pipeline: u32,
    /// Replicas that divide the experts, E.
    pub expert: u32,
    /// Replicas of the model, D.
    pub data: u32,
}

opticoll_base::named_enum! {
    /// A kind of group whose members carry out collectives.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum GroupKind {
        /// Ranks that divide each matrix.
        Tensor = "tensor",
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

/// Where a rank stands in its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// The number in its tensor-parallel group.
    pub tensor: u32,
    /// The replica.
    pub data: u32,
    /// The stage.
    pub stage: u32,
}

/// What of the training states is divided among the replicas, by the stages of ZeRO (Rajbhandari et al.,
/// arXiv:1910.02054, section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharding {
    /// Nothing.
    Nothing,
    /// The state of the optimizer.
    Optimizer,
    /// Gradients too.
    Gradients,
    /// Parameters too, as in FSDP.
    Parameters,
}

impl Sharding {
    /// All, by the numbers of their stages.
    pub const ALL: [Sharding; 4] = [
        Sharding::Nothing,
        Sharding::Optimizer,
        Sharding::Gradients,
        Sharding::Parameters,
    ];
}

impl Groups {
    /// Groups of so many ranks, which fit a model; without a number of replicas, as many as there are ranks for.
    ///
    /// # Errors
    /// Numbers whose product is not that of the ranks, or that do not divide what they have to.
    pub fn new(
        ranks: u32,
        [tensor, pipeline, expert]: [u32; 3],
        data: Option<u32>,
        model: &Model,
    ) -> Result<Groups, TrainingError> {
        let one = u64::from(tensor) * u64::from(pipeline);
        if one == 0 || u64::from(ranks) % one != 0 {
            return Err(TrainingError::Groups(format!(
                "tensor-parallel {tensor} x pipeline-parallel {pipeline} = {one} ranks hold the model once, and {one} does \
                 not divide the {ranks} ranks of the fabric"
            )));
        }
        let replicas = (u64::from(ranks) / one) as u32;
        if let Some(data) = data.filter(|data| *data != replicas) {
            return Err(TrainingError::Groups(format!(
                "tensor-parallel {tensor} x pipeline-parallel {pipeline} x data-parallel {data} is {} ranks, and the \
                 fabric has {ranks}; data-parallel {replicas} fits",
                u128::from(one) * u128::from(data)
            )));
        }
        let groups = Groups {
            tensor,
            pipeline,
            expert,
            data: replicas,
        };
        groups.check(model)?;
        Ok(groups)
    }

    fn check(&self, model: &Model) -> Result<(), TrainingError> {
        divides(
            "expert-parallel",
            self.expert,
            "replicas of the model",
            self.data.into(),
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
            if (self.tensor, self.pipeline, self.expert) == (1, 1, 1) {
                return Ok(());
            }
            return Err(TrainingError::Groups(format!(
                "{} is no transformer: tensor, pipeline and expert parallelism divide transformers",
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
        divides(
            "pipeline-parallel",
            self.pipeline,
            "blocks of the model",
            layers,
        )?;
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

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.tensor * self.data * self.pipeline
    }

    /// The number of a rank.
    pub fn rank(&self, place: RankPlace) -> u32 {
        place.tensor + self.tensor * (place.data + self.data * place.stage)
    }

    /// Where a rank stands.
    pub fn place(&self, rank: u32) -> RankPlace {
        RankPlace {
            tensor: rank % self.tensor,
            data: rank / self.tensor % self.data,
            stage: rank / self.tensor / self.data,
        }
    }

    /// How many ranks a group of a kind has; two of the pipeline, which send from one to the next.
    pub fn size(&self, kind: GroupKind) -> u32 {
        match kind {
            GroupKind::Tensor => self.tensor,
            GroupKind::Pipeline => 2,
            GroupKind::Expert => self.expert,
            GroupKind::Data => self.data,
            GroupKind::ExpertData => self.data / self.expert,
        }
    }

    /// The members of the group of a kind that a rank belongs to; of the pipeline all stages.
    pub fn members(&self, kind: GroupKind, place: RankPlace) -> Vec<u32> {
        let RankPlace { data, .. } = place;
        let of = |data: u32| self.rank(RankPlace { data, ..place });
        match kind {
            GroupKind::Tensor => (0..self.tensor)
                .map(|tensor| self.rank(RankPlace { tensor, ..place }))
                .collect(),
            GroupKind::Pipeline => (0..self.pipeline)
                .map(|stage| self.rank(RankPlace { stage, ..place }))
                .collect(),
            GroupKind::Expert => {
                let first = data - data % self.expert;
                (first..first + self.expert).map(of).collect()
            }
            GroupKind::Data => (0..self.data).map(of).collect(),
            GroupKind::ExpertData => (data % self.expert..self.data)
                .step_by(self.expert as usize)
                .map(of)
                .collect(),
        }
    }
}

/// Refuses a number that does not divide another, with those that do.
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
        "{option} {number} does not divide the {count} {what}; {} do",
        fitting.join(", ")
    )))
}
