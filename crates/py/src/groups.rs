//! The Python class `GroupedTraining`: training in which groups of ranks divide the model.

use std::collections::BTreeMap;

use opticoll::collective::CollectiveKind;
use opticoll::families::Medium;
use opticoll::planner;
use opticoll::simulate::Simulator;
use opticoll::simulate::circuit::succession::{self, EndCircuits};
use opticoll::units::{Bytes, Time};
use opticoll::workload::network::TransportModel;
use opticoll::workload::training::device;
use opticoll::workload::training::experts::{
    ExpertLoads, ExpertWeights, LoadRequest, Placement, SourceWeights, skews,
};
use opticoll::workload::training::groups::iteration::IterationError;
use opticoll::workload::training::groups::program::{self, GroupCollective, SharedPorts};
use opticoll::workload::training::groups::stages::{StageRequest, optimizer, stages};
use opticoll::workload::training::groups::{Groups, Sharding};
use opticoll::workload::training::memory::GroupedMemory;
use opticoll::workload::training::operators::VALUE;
use opticoll::workload::training::practice::{ContextExchange, Practice, Recompute};
use opticoll::workload::training::{Model, TrainingError as TrainingProblem, models};
use pyo3::prelude::*;

use crate::error::{IntoPyErr, OrRaise, TrainingError};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, method, named_algorithms};
use crate::plan::Plan;
use crate::table::Outcome;
use crate::violation::Violation;

/// An iteration of training whose model is divided among groups of ranks.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct GroupedTraining {
    model: Model,
    training: program::GroupedTraining,
    samples: u64,
    batch: u64,
}

/// Collective that groups of ranks of one kind execute, such as all tensor-parallel groups.
#[derive(IntoPyObject)]
pub(crate) struct GroupCollectiveRecord {
    group: &'static str,
    collective: Option<&'static str>,
    ranks: u32,
    size_bytes: u64,
    count: u64,
    layer: Option<usize>,
    micro_batch: Option<u64>,
    back: bool,
}

/// A layer of experts in a micro-batch. Lists are indexed by expert-parallel rank; times and tokens
/// are those of a chunk.
#[derive(IntoPyObject)]
pub(crate) struct ExpertLayer {
    forward_ps: Vec<u64>,
    backward_ps: Vec<u64>,
    received: Vec<u128>,
    least_received: u128,
    hosts: Vec<Vec<usize>>,
}

/// Numbers of ranks per group, and a sharding, with which the model fits a device.
#[derive(IntoPyObject)]
pub(crate) struct FittingGroups {
    tensor: u32,
    context: u32,
    pipeline: u32,
    expert: u32,
    sharded: usize,
    micro_batches: u64,
    total_bytes: u128,
}

impl GroupedTraining {
    fn memory(&self) -> GroupedMemory<'_> {
        GroupedMemory {
            groups: self.training.groups,
            sharding: self.training.sharding,
            samples: self.samples,
            micro_batches: self.training.micro_batches,
            practice: self.training.practice,
            loads: Some(&self.training.loads),
        }
    }

    fn collectives(&self) -> PyResult<BTreeMap<GroupCollective, u64>> {
        self.training.collectives().or_raise()
    }
}

#[pymethods]
impl GroupedTraining {
    /// Divides a model among groups of ranks. Raises TrainingError if the numbers contradict each
    /// other.
    ///
    /// `groups` are the numbers of ranks for tensor, pipeline and expert parallelism. `weights` are
    /// those of `expert_weights`. `capacity` is the capacity factor in millionths. `placement` is
    /// `order` or `load`. `recompute` is `none`, `selective` or `full`. `chunks` is the number of
    /// model chunks of a stage. `context` is the number of ranks that divide the tokens of a
    /// sample, `context_exchange` is `ring` or `all_to_all`. `prefetch` is the number of units
    /// whose parameters are gathered ahead.
    #[new]
    #[pyo3(signature = (
        model, ranks, groups: "tuple[int, int, int]", *, batch, micro_batches = 1, data = None,
        sharded = 0, device = None, throughput = None, bytes_per_parameter = 4, buckets = "ddp",
        overlap = true,
        weights: "tuple[list[list[list[tuple[int, list[int]]]]], list[int]] | None" = None,
        capacity = None, expert_copies = 0, placement = "order", expert_chunks = 1,
        recompute = "none", sequence_parallel = false, flash = true, chunks = 1,
        wide_gradients = false, context = 1, context_exchange = "ring", narrow_dispatch = false,
        overlap_tensor = false, overlap_experts = false, prefetch = None, fused_loss = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn new(
        model: &str,
        ranks: u32,
        groups: [u32; 3],
        batch: u64,
        micro_batches: u64,
        data: Option<u32>,
        sharded: usize,
        device: Option<&str>,
        throughput: Option<&str>,
        bytes_per_parameter: u64,
        buckets: &str,
        overlap: bool,
        weights: Option<Weights>,
        capacity: Option<u64>,
        expert_copies: u64,
        placement: &str,
        expert_chunks: u64,
        recompute: &str,
        sequence_parallel: bool,
        flash: bool,
        chunks: u32,
        wide_gradients: bool,
        context: u32,
        context_exchange: &str,
        narrow_dispatch: bool,
        overlap_tensor: bool,
        overlap_experts: bool,
        prefetch: Option<u32>,
        fused_loss: bool,
    ) -> PyResult<GroupedTraining> {
        let build = || -> Result<GroupedTraining, TrainingProblem> {
            let model = models::parse(model)?;
            let [tensor, pipeline, expert] = groups;
            let groups = [tensor, context, pipeline, expert];
            let groups = Groups::new(ranks, groups, data, &model)?;
            let sharding = Sharding::ALL.get(sharded).copied().ok_or_else(|| {
                TrainingProblem::Groups(format!(
                    "sharded {sharded} is no stage of ZeRO: 0 to 3 are"
                ))
            })?;
            if micro_batches == 0 || batch % micro_batches != 0 {
                return Err(TrainingProblem::Groups(format!(
                    "micro-batches {micro_batches} does not divide the batch of {batch} samples"
                )));
            }
            let samples = batch / micro_batches;
            let practice = Practice {
                recompute: Recompute::ALL
                    .into_iter()
                    .find(|part| part.name() == recompute)
                    .ok_or_else(|| {
                        TrainingProblem::Groups(format!(
                            "recompute is `{recompute}`, not none, selective or full"
                        ))
                    })?,
                sequence_parallel,
                flash,
                chunks,
                wide_gradients,
                context_exchange: ContextExchange::ALL
                    .into_iter()
                    .find(|exchange| exchange.name() == context_exchange)
                    .ok_or_else(|| {
                        TrainingProblem::Groups(format!(
                            "context-exchange is `{context_exchange}`, not ring or all_to_all"
                        ))
                    })?,
                narrow_dispatch,
                expert_copies,
                overlap_tensor,
                overlap_experts,
                prefetch,
                fused_loss,
            };
            groups.check_practice(practice, micro_batches, &model)?;
            let rate = match throughput {
                Some(text) => device::throughput(text)?,
                None => device::parse(device.unwrap_or(device::DEVICES[0].name))?,
            };
            let form = model.transformer;
            let tokens = form.map_or(0, |shape| shape.sequence.saturating_mul(samples));
            let tokens = tokens / u64::from(context);
            let states_experts = weights.is_some()
                || expert_copies > 0
                || expert_chunks > 1
                || overlap_experts
                || narrow_dispatch;
            if states_experts && form.is_none_or(|shape| shape.experts == 0) {
                return Err(TrainingProblem::Groups(format!(
                    "{} has no experts: options of experts are for models such as mixtral_8x7b",
                    model.label
                )));
            }
            if expert_chunks > 1 && groups.expert == 1 {
                return Err(TrainingProblem::Groups(
                    "expert-chunks: no tokens are sent to experts; give expert-parallel 2 or more"
                        .into(),
                ));
            }
            let loads = match form {
                Some(shape) => {
                    let even = || ExpertWeights::even(shape);
                    let request = LoadRequest {
                        ranks: groups.expert,
                        tokens,
                        weights: &weights.map_or_else(even, from_rows),
                        capacity,
                        copies: expert_copies,
                        placement: placement_named(placement)?,
                        chunks: expert_chunks,
                    };
                    ExpertLoads::new(shape, &request)?
                }
                None => ExpertLoads::none(),
            };
            let request = StageRequest {
                groups,
                samples,
                rate,
                loads: &loads,
                buckets: buckets.parse()?,
                gradient_bytes: bytes_per_parameter,
                practice,
            };
            let stages = stages(&model, &request)?;
            let token = form.map_or(0, |shape| VALUE * shape.width);
            Ok(GroupedTraining {
                training: program::GroupedTraining {
                    groups,
                    sharding,
                    overlap,
                    micro_batches,
                    activations: token.saturating_mul(tokens),
                    token,
                    gradient_bytes: bytes_per_parameter,
                    practice,
                    optimizer: optimizer(&stages, groups, sharded > 0, wide_gradients, rate)?,
                    stages,
                    loads,
                },
                model,
                samples,
                batch,
            })
        };
        build().or_raise()
    }

    /// The numbers of ranks of tensor, pipeline, expert and data parallelism.
    #[getter]
    fn groups(&self) -> (u32, u32, u32, u32) {
        let groups = self.training.groups;
        (groups.tensor, groups.pipeline, groups.expert, groups.data)
    }

    /// The number of ranks that divide the tokens of a sample.
    #[getter]
    fn context(&self) -> u32 {
        self.training.groups.context
    }

    /// The number of micro-batches of an iteration.
    #[getter]
    fn micro_batches(&self) -> u64 {
        self.training.micro_batches
    }

    /// The number of tokens of a micro-batch on a rank; 0 if the model has no tokens.
    #[getter]
    fn tokens(&self) -> u64 {
        let shape = self.model.transformer;
        let tokens = shape.map_or(0, |shape| shape.sequence.saturating_mul(self.samples));
        tokens / u64::from(self.training.groups.context)
    }

    /// The number of assignments of tokens to experts, and the number of assignments above the
    /// capacity of experts, summed over all layers and sources.
    #[getter]
    fn assignments(&self) -> (u128, u128) {
        let loads = &self.training.loads;
        (loads.assigned, loads.dropped)
    }

    /// Returns the bytes on a device of the pipeline stage that needs the most memory, for weights,
    /// gradients, optimizer, activations and working memory.
    fn memory_of_device(&self) -> (u128, u128, u128, u128, u128) {
        let memory = self.memory().forecast(&self.model);
        let states = (memory.weights, memory.gradients, memory.optimizer);
        (
            states.0,
            states.1,
            states.2,
            memory.activations,
            memory.working,
        )
    }

    /// Returns the groups and sharding that take at most `device_bytes` with the fewest changes, or
    /// None if there are none.
    #[pyo3(signature = (device_bytes) -> "FittingGroups | None")]
    fn that_fit(&self, device_bytes: u128) -> Option<FittingGroups> {
        let current = self.memory();
        let fitting = current.nearest_fit(&self.model, device_bytes, self.batch);
        fitting.map(|(fits, memory)| FittingGroups {
            tensor: fits.groups.tensor,
            context: fits.groups.context,
            pipeline: fits.groups.pipeline,
            expert: fits.groups.expert,
            sharded: fits.sharding as usize,
            micro_batches: fits.micro_batches,
            total_bytes: memory.total(),
        })
    }

    /// Returns the distinct collectives of an iteration, each with its number of calls: the calls
    /// of one rank of each stage, added over all stages.
    ///
    /// `collective` is None for a message between stages. `layer` is the layer of an uneven
    /// exchange, `micro_batch` its first micro-batch, and `back` is True if its tokens return.
    #[pyo3(signature = () -> "list[GroupCollectiveRecord]")]
    fn made_of(&self) -> PyResult<Vec<GroupCollectiveRecord>> {
        let loads = &self.training.loads;
        let record = |(collective, count): (GroupCollective, u64)| GroupCollectiveRecord {
            group: collective.group.name(),
            collective: collective.kind.map(CollectiveKind::name),
            ranks: collective.ranks,
            size_bytes: collective.bytes,
            count,
            layer: collective.uneven.map(|(number, _)| number % loads.layers()),
            micro_batch: collective
                .uneven
                .map(|(number, _)| first_micro_batch(loads, number)),
            back: collective.uneven.is_some_and(|(_, back)| back),
        };
        Ok(self.collectives()?.into_iter().map(record).collect())
    }

    /// Returns the bytes from each expert-parallel rank to each other rank in a layer of experts,
    /// for a chunk of a micro-batch. If `back` is true, the tokens return from the experts.
    #[pyo3(signature = (layer, back, micro_batch = 0))]
    fn demand(&self, layer: usize, back: bool, micro_batch: u64) -> Vec<Vec<u64>> {
        let loads = &self.training.loads;
        let number = loads.number(loads.phase(micro_batch), layer);
        let ranks = self.training.groups.expert as usize;
        let token = self.training.exchanged(back);
        let bytes = |source, target| {
            let (source, target) = if back {
                (target, source)
            } else {
                (source, target)
            };
            loads.between(number, source, target) * token
        };
        let row = |source| (0..ranks).map(|target| bytes(source, target)).collect();
        (0..ranks).map(row).collect()
    }

    /// Returns the times and tokens of the experts of a layer, and the ranks of their copies.
    ///
    /// `received` are the assignments of tokens to the experts of each rank, `least_received` is a
    /// lower bound on their maximum, and `hosts` are the ranks of each expert. Raises TrainingError
    /// if there is no such layer.
    #[pyo3(signature = (layer, micro_batch = 0) -> "ExpertLayer")]
    fn expert_layer(&self, layer: usize, micro_batch: u64) -> PyResult<ExpertLayer> {
        let (loads, groups) = (&self.training.loads, self.training.groups);
        let layers = self.training.stages.iter().flat_map(|stage| &stage.layers);
        let mut layers = layers.filter(|one| one.experts == Some(layer));
        let Some(found) = layers.next() else {
            let count = loads.layers();
            let problem = format!("there is no layer {layer}: {count} layers have experts");
            return Err(TrainingError::new_err(problem));
        };
        let ranks = groups.expert as usize;
        let phase = loads.phase(micro_batch);
        let number = loads.number(phase, layer);
        let of_ranks = |times: &[Time]| {
            let first = phase * ranks;
            times[first..first + ranks]
                .iter()
                .map(|time| time.ps())
                .collect()
        };
        Ok(ExpertLayer {
            forward_ps: of_ranks(&found.forward),
            backward_ps: of_ranks(&found.backward),
            received: (0..ranks)
                .map(|rank| loads.received(number, rank))
                .collect(),
            least_received: loads.least(number),
            hosts: loads.hosts(layer).to_vec(),
        })
    }

    /// Simulates an iteration in which all groups use the fabric together. Raises the errors of
    /// `replay_trace`.
    #[pyo3(signature = (fabric, algorithms, **settings: "Unpack[Settings]"))]
    fn over(
        &self,
        py: Python<'_>,
        fabric: &str,
        algorithms: BTreeMap<String, String>,
        settings: Option<Settings>,
    ) -> PyResult<Outcome> {
        let medium = Medium::parse_for(fabric, self.training.groups.ranks()).or_raise()?;
        let network = TransportModel::new(medium, None::<Vec<(&str, &str)>>).or_raise()?;
        let method = method(settings)?;
        let chosen = named_algorithms(&algorithms)?;
        interrupt::attempt(py, || self.training.over(&network, &method, &chosen))
            .map(Outcome::from_core)
    }

    /// Simulates an iteration in which the collectives of `made_of` take the given picoseconds.
    ///
    /// `port_sets` has, for each collective, the index of its set of ports. The collectives of a
    /// rank with the same set run one after another. With None, collectives of different kinds of
    /// groups do not wait for each other. `plans` are the plans of the collectives on a circuit
    /// switch with `ports` ports of a rank. If the circuits with which a plan starts are not up,
    /// its collective takes `setup_ps` picoseconds longer.
    #[pyo3(signature = (times_ps, port_sets = None, plans = Vec::new(), ports = 1, setup_ps = 0))]
    fn with_times(
        &self,
        py: Python<'_>,
        times_ps: Vec<u64>,
        port_sets: Option<Vec<usize>>,
        plans: Vec<Option<Bound<'_, Plan>>>,
        ports: usize,
        setup_ps: u64,
    ) -> PyResult<Outcome> {
        let collectives = self.collectives()?;
        if times_ps.len() != collectives.len() {
            let (given, needed) = (times_ps.len(), collectives.len());
            let problem = format!("{given} times are given for {needed} collectives");
            return Err(TrainingError::new_err(problem));
        }
        let collectives: Vec<GroupCollective> = collectives.into_keys().collect();
        let plans = collectives.iter().zip(&plans);
        let plans = plans.filter_map(|(collective, plan)| {
            let plan = plan.as_ref()?.get().rows();
            Some((*collective, EndCircuits::new(plan)))
        });
        let ports = port_sets.map(|sets| SharedPorts {
            set_of: collectives.iter().copied().zip(sets).collect(),
            circuits: plans.collect(),
            ports,
            setup: Time::from_ps(setup_ps),
        });
        let times = collectives.into_iter().zip(times_ps);
        let times = times
            .map(|(collective, time)| (collective, Time::from_ps(time)))
            .collect();
        interrupt::attempt(py, || self.training.with_times(&times, ports.as_ref()))
            .map(Outcome::from_core)
    }
}

/// Tables of weights by layer, source and expert, and the table of each micro-batch. A source also
/// has its number of tokens, in millionths of the tokens of a micro-batch.
type Weights = (Vec<Vec<Vec<(u64, Vec<u64>)>>>, Vec<usize>);

fn from_rows((tables, order): Weights) -> ExpertWeights {
    let row = |(tokens, weights)| SourceWeights { tokens, weights };
    let layer = |rows: Vec<(u64, Vec<u64>)>| rows.into_iter().map(row).collect();
    let table = |layers: Vec<Vec<(u64, Vec<u64>)>>| layers.into_iter().map(layer).collect();
    ExpertWeights {
        tables: tables.into_iter().map(table).collect(),
        order,
    }
}

fn placement_named(name: &str) -> Result<Placement, TrainingProblem> {
    let named = Placement::ALL.into_iter().find(|one| one.name() == name);
    named.ok_or_else(|| {
        TrainingProblem::Groups(format!("expert-placement is `{name}`, not order or load"))
    })
}

/// Returns the first micro-batch with an exchange.
fn first_micro_batch(loads: &ExpertLoads, number: usize) -> u64 {
    let mut micro_batch = 0;
    while loads.phase(micro_batch) != number / loads.layers() {
        micro_batch += 1;
    }
    micro_batch
}

/// Returns the weights of experts that a rule such as `zipf:exponent=1.2,seed=0` describes: tables,
/// and the number of the table of each micro-batch. Tables have, by layer and source, the source's
/// tokens in millionths of the tokens of a micro-batch, and the weight of each expert. Raises
/// TrainingError for an unknown rule.
#[pyfunction]
#[pyo3(signature = (
    model, skew, ranks, micro_batches = 1
) -> "tuple[list[list[list[tuple[int, list[int]]]]], list[int]]")]
pub(crate) fn expert_weights(
    model: &str,
    skew: &str,
    ranks: u32,
    micro_batches: u64,
) -> PyResult<Weights> {
    let generate = || -> Result<ExpertWeights, TrainingProblem> {
        let spec = skew.parse()?;
        let model = models::parse(model)?;
        let form = model.transformer.filter(|shape| shape.experts > 0);
        let shape = form.ok_or_else(|| {
            TrainingProblem::Groups(format!("expert-skew: {} has no experts", model.label))
        })?;
        skews::generate(&spec, shape, ranks, micro_batches)
    };
    let ExpertWeights { tables, order } = generate().or_raise()?;
    let row = |row: SourceWeights| (row.tokens, row.weights);
    let layer = |rows: Vec<SourceWeights>| rows.into_iter().map(row).collect();
    let table = |layers: Vec<Vec<SourceWeights>>| layers.into_iter().map(layer).collect();
    Ok((tables.into_iter().map(table).collect(), order))
}

/// Unites the plans of groups of ranks that carry out `plan` at the same time, each for its own
/// members. Returns the plan on the whole fabric, its size in bytes, and its violations.
#[pyfunction]
#[pyo3(signature = (plan, fabric, groups, size_bytes, **settings: "Unpack[Settings]"))]
pub(crate) fn unite(
    py: Python<'_>,
    plan: &Bound<'_, Plan>,
    fabric: &Fabric,
    groups: Vec<Vec<u32>>,
    size_bytes: u64,
    settings: Option<Settings>,
) -> PyResult<(Plan, u64, Vec<Violation>)> {
    let method = method(settings)?;
    let (plan, fabric, size) = (plan.get().rows(), &fabric.fabric, Bytes::new(size_bytes));
    let united = interrupt::attempt(py, || planner::unite(plan, fabric, &groups, size, &method))?;
    let violations = united.violations.into_iter().map(Violation::from_core);
    let size = united.size.get();
    Ok((Plan::from_core(united.plan), size, violations.collect()))
}

/// Returns the picoseconds of a setup of circuits between two plans; 0 if `policy` charges no
/// setup, or if the time of each plan contains its first setup.
#[pyfunction]
pub(crate) fn uncharged_setup_ps(fabric: &Fabric, policy: &str) -> PyResult<u64> {
    let policy = policy.parse().or_raise()?;
    let setup = succession::uncharged_setup(&fabric.fabric, policy).or_raise()?;
    Ok(setup.ps())
}

/// Returns whether all circuits of the plans can be up at the same time.
#[pyfunction]
pub(crate) fn circuits_agree(plans: Vec<Bound<'_, Plan>>) -> bool {
    let plans: Vec<_> = plans.iter().map(|plan| plan.get().rows()).collect();
    succession::agree(&plans)
}

/// Returns whether the simulator of a fabric can time single messages, as programs send them.
#[pyfunction]
#[pyo3(signature = (fabric, **settings: "Unpack[Settings]"))]
pub(crate) fn carries_messages(fabric: &Fabric, settings: Option<Settings>) -> PyResult<bool> {
    let method = method(settings)?;
    let simulator = Simulator::for_messages(&fabric.fabric, &method).or_raise()?;
    let live = simulator.live;
    Ok(live.is_some_and(|live| live(&fabric.fabric, &method).is_ok()))
}

impl IntoPyErr for IterationError {
    fn into_py_err(self) -> PyErr {
        match self {
            IterationError::Training(problem) => problem.into_py_err(),
            IterationError::Replay(problem) => problem.into_py_err(),
        }
    }
}
