//! Training with groups of ranks: iterations against closed forms, memory and volumes against
//! papers.

mod context;
mod device_memory;
mod experts;
mod large;
mod overlap;
mod placement;
mod practice;

use std::collections::BTreeMap;

use opticoll::collective::CollectiveKind;
use opticoll::fabric::Fabric;
use opticoll::families::Medium;
use opticoll::simulate::TimingModel;
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::workload::expand::Algorithms;
use opticoll::workload::network::TransportModel;
use opticoll::workload::training::buckets::{Bucket, Buckets};
use opticoll::workload::training::device::{self, ComputeRate};
use opticoll::workload::training::experts::{ExpertLoads, ExpertWeights};
use opticoll::workload::training::groups::iteration::GroupedIteration;
use opticoll::workload::training::groups::program::GroupedTraining;
use opticoll::workload::training::groups::stages::{Stage, StageLayer, StageRequest, Unit, stages};
use opticoll::workload::training::groups::{GroupKind, Groups, RankPlace, Sharding};
use opticoll::workload::training::memory::GroupedMemory;
use opticoll::workload::training::practice::{Practice, Recompute};
use opticoll::workload::training::{Model, memory, models};

/// Bytes per second of the crossbars here, 80 Gb/s.
const RATE: u64 = 10_000_000_000;
const SECOND: u64 = 1_000_000_000_000;

fn transfer(bytes: u64) -> u64 {
    bytes * (SECOND / RATE)
}

fn groups(tensor: u32, pipeline: u32, expert: u32, data: u32) -> Groups {
    Groups {
        tensor,
        context: 1,
        pipeline,
        expert,
        data,
    }
}

fn layer(number: usize, forward: u64, backward: u64, parameters: &[u64]) -> StageLayer {
    StageLayer {
        layer: number,
        dense: parameters.to_vec(),
        expert: Vec::new(),
        copied: Vec::new(),
        forward: vec![Time::from_ps(forward)],
        backward: vec![Time::from_ps(backward)],
        sums_output: false,
        sums_input: false,
        experts: None,
        attention: None,
    }
}

/// Stages that are alike, each of these layers, each layer a unit.
fn alike(groups: Groups, layers: &[StageLayer], activations: u64) -> GroupedTraining {
    let buckets = layers.iter().enumerate().rev().flat_map(|(place, layer)| {
        let bytes = layer
            .dense
            .iter()
            .map(|parameters| Bytes::new(4 * parameters));
        bytes.map(move |bytes| Bucket {
            bytes,
            tensors: 1,
            layer: place,
        })
    });
    let units = layers.iter().enumerate().map(|(place, layer)| Unit {
        first: place,
        end: place + 1,
        dense: layer.dense.iter().sum(),
        expert: 0,
        chunk: 0,
        block: true,
    });
    let stage = Stage {
        layers: layers.to_vec(),
        units: units.collect(),
        dense: buckets.collect(),
        expert: Vec::new(),
        copied: Vec::new(),
    };
    GroupedTraining {
        groups,
        sharding: Sharding::Nothing,
        overlap: true,
        micro_batches: 1,
        activations,
        token: 2,
        gradient_bytes: 4,
        practice: Practice::USUAL,
        optimizer: vec![Time::ZERO; groups.pipeline as usize],
        stages: vec![stage; groups.pipeline as usize],
        loads: ExpertLoads::none(),
    }
}

/// Runs an iteration over a crossbar without latency, and checks the invariants of every iteration.
fn over_crossbar(
    training: &GroupedTraining,
    algorithms: &[(CollectiveKind, &str)],
) -> GroupedIteration {
    let ranks = training.groups.ranks();
    let fabric = format!("crossbar:ranks={ranks},rate=80Gb/s,latency=0s");
    over(training, &fabric, algorithms)
}

fn over(
    training: &GroupedTraining,
    fabric: &str,
    algorithms: &[(CollectiveKind, &str)],
) -> GroupedIteration {
    let fabric = Fabric::parse(fabric).unwrap();
    let network = TransportModel::new(Medium::Fabric(fabric), None::<Vec<(&str, &str)>>).unwrap();
    let mut chosen = Algorithms::default();
    for (kind, name) in algorithms {
        chosen = chosen.with(*kind, Spec::new(name));
    }
    let iteration = training
        .over(&network, &TimingModel::default(), &chosen)
        .unwrap();
    check(&iteration);
    iteration
}

/// Checks that the parts of every stage sum to the time, except for the rounding of means.
fn check(iteration: &GroupedIteration) {
    let stages = &iteration.stages;
    for row in 0..stages.compute.len() {
        let parts = [
            &stages.compute,
            &stages.tensor,
            &stages.context,
            &stages.expert,
            &stages.sending,
            &stages.bubble,
            &stages.replicas,
        ];
        let sum: u64 = parts.iter().map(|part| part[row].ps()).sum();
        assert!(iteration.time.ps() - sum < 6, "{sum} of {}", iteration.time);
    }
}

#[track_caller]
fn near(found: u64, expected: u64) {
    let apart = found.abs_diff(expected);
    // Rates of flows are fractions: a few picoseconds.
    assert!(apart <= 40 + expected / 1_000_000, "{found} for {expected}");
}

#[test]
fn ranks_are_numbered_by_tensor_then_replica_then_stage() {
    let groups = groups(2, 3, 2, 4);
    for rank in 0..24 {
        assert_eq!(groups.rank(groups.place(rank)), rank);
    }
    let place = RankPlace {
        tensor: 1,
        context: 0,
        data: 2,
        stage: 1,
    };
    // 1 + 2 (2 + 4 x 1) = 13.
    let of = |kind| groups.members(kind, place);
    assert_eq!(of(GroupKind::Tensor), [12, 13]);
    assert_eq!(of(GroupKind::Pipeline), [5, 13, 21]);
    assert_eq!(of(GroupKind::Data), [9, 11, 13, 15]);
    assert_eq!(of(GroupKind::Expert), [13, 15]);
    assert_eq!(of(GroupKind::ExpertData), [9, 13]);
    for kind in [
        GroupKind::Tensor,
        GroupKind::Data,
        GroupKind::Expert,
        GroupKind::ExpertData,
    ] {
        assert_eq!(of(kind).len(), groups.size(kind) as usize);
    }
}

#[test]
fn a_pipeline_idles_for_stages_less_one_micro_batches() {
    let (forward, backward) = (1_000_000, 2_000_000);
    for stages in [1, 2, 4, 5] {
        for micro_batches in [1, 2, 4, 8] {
            let groups = groups(1, stages, 1, 1);
            let mut training = alike(groups, &[layer(0, forward, backward, &[])], 0);
            training.micro_batches = micro_batches;
            let iteration = over_crossbar(&training, &[]);
            // Narayanan et al., arXiv:2104.04473, section 2.2.1: (p - 1) (t_f + t_b) beside m (t_f
            // + t_b).
            let bubble = u64::from(stages - 1) * (forward + backward);
            let busy = micro_batches * (forward + backward);
            assert_eq!(iteration.time.ps(), bubble + busy);
            for stage in 0..stages as usize {
                assert_eq!(iteration.stages.bubble[stage].ps(), bubble);
                assert_eq!(iteration.stages.compute[stage].ps(), busy);
            }
        }
    }
}

#[test]
fn a_micro_batch_crosses_a_pipeline_there_and_back() {
    let (forward, backward, bytes) = (1_000_000, 2_000_000, 50_000);
    let training = alike(
        groups(2, 4, 1, 1),
        &[layer(0, forward, backward, &[])],
        bytes,
    );
    let iteration = over_crossbar(&training, &[]);
    let stages = 4 * (forward + backward);
    near(iteration.time.ps(), stages + 2 * 3 * transfer(bytes));
    // Two ranks send each activation, six times.
    assert_eq!((iteration.messages, iteration.bytes), (12, 12 * bytes));
    // The first stage waits for one message, the second for two.
    near(iteration.stages.sending[0].ps(), transfer(bytes));
    near(iteration.stages.sending[1].ps(), 2 * transfer(bytes));
}

/// Reads the specification of a model.
fn model(text: &str) -> Model {
    models::parse(text).unwrap()
}

/// Divides a model whose experts receive equal numbers of tokens.
fn divided(model: &Model, groups: Groups, samples: u64) -> GroupedTraining {
    let shape = model.transformer.unwrap();
    let weights = ExpertWeights::even(shape);
    let tokens = samples * shape.sequence / u64::from(groups.context);
    let request = experts::loads(groups.expert, tokens, &weights);
    let loads = ExpertLoads::new(shape, &request).unwrap();
    with_loads(model, groups, samples, loads)
}

/// Divides a model whose experts receive `loads`.
fn with_loads(model: &Model, groups: Groups, samples: u64, loads: ExpertLoads) -> GroupedTraining {
    let shape = model.transformer.unwrap();
    let tokens = samples * shape.sequence / u64::from(groups.context);
    let request = StageRequest {
        groups,
        samples,
        rate: ComputeRate::Operations(100 * SECOND),
        loads: &loads,
        buckets: Buckets::All,
        gradient_bytes: 4,
        practice: Practice::USUAL,
    };
    GroupedTraining {
        groups,
        sharding: Sharding::Nothing,
        overlap: false,
        micro_batches: 1,
        activations: 2 * tokens * shape.width,
        token: 2 * shape.width,
        gradient_bytes: 4,
        practice: Practice::USUAL,
        optimizer: vec![Time::ZERO; groups.pipeline as usize],
        stages: stages(model, &request).unwrap(),
        loads,
    }
}

/// Picoseconds of all layers.
fn computing(training: &GroupedTraining) -> u64 {
    let layers = training.stages.iter().flat_map(|stage| &stage.layers);
    layers
        .map(|layer| layer.forward[0].ps() + layer.backward[0].ps())
        .sum()
}

const RING: [(CollectiveKind, &str); 3] = [
    (CollectiveKind::AllReduce, "ring"),
    (CollectiveKind::ReduceScatter, "ring"),
    (CollectiveKind::AllGather, "ring"),
];

#[test]
fn four_all_reduces_of_a_block_are_those_of_megatron() {
    let model = model("gpt:layers=3,width=256,heads=8,sequence=128,context=128,vocabulary=512");
    for tensor in [2, 4, 8] {
        let mut training = divided(&model, groups(tensor, 1, 1, 1), 2);
        training.micro_batches = 3;
        // Narayanan et al., arXiv:2104.04473, section 3.2: all_reduces of b s h values, two forward
        // and two backward for each layer and micro-batch; one more behind the table of words, one
        // before the output matrix.
        let count = 3 * (4 * 3 + 2);
        let bytes = 2 * 2 * 128 * 256;
        let all = training.collectives().unwrap();
        let (one, made) = all.iter().next().unwrap();
        assert_eq!((all.len(), one.group, *made), (1, GroupKind::Tensor, count));
        assert_eq!(
            (one.kind, one.bytes),
            (Some(CollectiveKind::AllReduce), bytes)
        );
        let iteration = over_crossbar(&training, &RING);
        let ranks = u64::from(tensor);
        let each = 2 * (ranks - 1) * transfer(bytes / ranks);
        near(iteration.stages.tensor[0].ps(), count * each);
        near(iteration.time.ps(), 3 * computing(&training) + count * each);
    }
}

#[test]
fn tensor_parallel_ranks_divide_the_operations() {
    let model = model("gpt:layers=2,width=256,heads=8,sequence=128,context=128,vocabulary=512");
    let whole = divided(&model, groups(1, 1, 1, 1), 2);
    let part = divided(&model, groups(4, 1, 1, 1), 2);
    near(4 * computing(&part), computing(&whole));
    let (forward, backward) = model.operations();
    near(computing(&whole), ((forward + backward) * 2 / 100) as u64);
}

#[test]
fn sharded_states_move_as_many_bytes_as_zero_says() {
    let parameters = [4000, 8000];
    let layers = [
        layer(0, 10, 20, &parameters[..1]),
        layer(1, 10, 20, &parameters[1..]),
    ];
    let all: u64 = parameters.iter().sum();
    let ranks = 4;
    let part = |bytes: u64| (ranks - 1) * transfer(bytes / ranks);
    // Gradients of 4 bytes, parameters of 2: all_reduce; reduce_scatter and all_gather; the same;
    // two all_gathers and a reduce_scatter for each micro-batch.
    let gathered = part(2 * all);
    let expected = [
        (Sharding::Nothing, 1, 2 * part(4 * all)),
        (Sharding::Nothing, 3, 2 * part(4 * all)),
        (Sharding::Optimizer, 1, part(4 * all) + gathered),
        (Sharding::Optimizer, 3, part(4 * all) + gathered),
        (Sharding::Gradients, 3, 3 * part(4 * all) + gathered),
        (Sharding::Parameters, 1, part(4 * all) + 2 * gathered),
        (Sharding::Parameters, 3, 3 * (part(4 * all) + 2 * gathered)),
    ];
    for (sharding, micro_batches, sending) in expected {
        for overlap in [true, false] {
            let mut training = alike(groups(1, 1, 1, 4), &layers, 0);
            training.sharding = sharding;
            training.micro_batches = micro_batches;
            training.overlap = overlap;
            let iteration = over_crossbar(&training, &RING);
            let stages = &iteration.stages;
            near(
                stages.replicas[0].ps() + stages.replicas_hidden[0].ps(),
                sending,
            );
            assert_eq!(stages.compute[0].ps(), micro_batches * 60);
            if sharding == Sharding::Nothing && !overlap {
                near(iteration.time.ps(), micro_batches * 60 + sending);
            }
        }
    }
}

#[test]
fn gradients_are_sent_while_earlier_layers_go_backward() {
    // The second layer's gradient is there at 2 + 4, and takes 3 us, the first layer's at 2 + 8.
    let microsecond = 1_000_000;
    let parameters = 3 * microsecond * (RATE / 1_000_000) / 4 / 1_000_000 * 2 / 3;
    let layers = [
        layer(0, microsecond, 4 * microsecond, &[parameters]),
        layer(1, microsecond, 4 * microsecond, &[parameters]),
    ];
    let training = alike(groups(1, 1, 1, 4), &layers, 0);
    let each = 2 * 3 * transfer(4 * parameters / 4);
    assert!(each < 4 * microsecond);
    let iteration = over_crossbar(&training, &RING);
    near(iteration.time.ps(), 10 * microsecond + each);
    near(iteration.stages.replicas_hidden[0].ps(), each);
}

#[test]
fn a_time_for_each_collective_gives_the_time_of_a_crossbar() {
    let model = model("gpt:layers=4,width=256,heads=8,sequence=128,context=128,vocabulary=512");
    let divisions = [(4, 1, 1), (1, 4, 1), (1, 1, 4), (2, 2, 1), (2, 1, 2)];
    for (tensor, pipeline, data) in divisions {
        let groups = groups(tensor, pipeline, 1, data);
        let training = divided(&model, groups, 1);
        // One micro-batch, and gradients behind it: no two groups send at a time.
        let made = training.collectives().unwrap();
        let times: BTreeMap<_, _> = made
            .keys()
            .map(|one| {
                let ranks = u64::from(one.ranks);
                let time = match one.kind {
                    None => transfer(one.bytes),
                    Some(_) => 2 * (ranks - 1) * transfer(one.bytes / ranks),
                };
                (*one, Time::from_ps(time))
            })
            .collect();
        let timed = training.with_times(&times, None).unwrap();
        check(&timed);
        let simulated = over_crossbar(&training, &RING);
        let apart = timed.time.ps().abs_diff(simulated.time.ps());
        assert!(
            apart * 1000 < timed.time.ps(),
            "{groups:?}: {} {}",
            timed.time,
            simulated.time
        );
    }
}

#[test]
fn groups_that_share_links_slow_each_other_down() {
    // Two leaves of two ranks with one link up: both data-parallel groups cross it.
    let layers = [layer(0, 10, 20, &[1_000_000])];
    let training = alike(groups(2, 1, 1, 2), &layers, 0);
    let rate = "rate=80Gb/s,latency=0s";
    let wide = over(
        &training,
        &format!("fat_tree:down=2x2,up=1x2,{rate}"),
        &RING,
    );
    let narrow = over(
        &training,
        &format!("fat_tree:down=2x2,up=1x1,{rate}"),
        &RING,
    );
    // A ring of two: half of the gradients to the other and back.
    let each = 2 * transfer(2_000_000);
    near(wide.time.ps(), 30 + each);
    near(narrow.time.ps(), 30 + 2 * each);
}

#[test]
fn mixtures_of_experts_have_the_published_parameters() {
    // Checkpoints as released, safetensors index: Mixtral-8x7B-v0.1 and Mixtral-8x22B-v0.1. Those
    // that a token goes through: Jiang et al., arXiv:2401.04088, Table 2 (13B); Mistral AI, April
    // 2024 (39B).
    let published = [
        ("mixtral_8x7b", 46_702_792_704, 13.0),
        ("mixtral_8x22b", 140_620_634_112, 39.0),
    ];
    for (name, parameters, active) in published {
        let model = model(name);
        assert_eq!(model.parameters(), parameters, "{name}");
        let shape = model.transformer.unwrap();
        let one = 3 * shape.width * shape.feed_forward * shape.layers;
        let used = model.parameters() - one * (shape.experts - shape.top_k);
        assert!((used as f64 / 1e9 - active).abs() < 0.6, "{name}: {used}");
    }
    let same =
        model("moe:layers=32,width=4096,feed_forward=14336,experts=8,top_k=2,key_value=1024");
    assert_eq!(same.parameters(), 46_702_792_704);
    assert_eq!(same.operations(), model("mixtral_8x7b").operations());
}

#[test]
fn memory_shrinks_as_zero_prints() {
    // Rajbhandari et al., arXiv:1910.02054, Figure 1: 7.5 billion parameters on 64 devices.
    let printed = [120.0, 31.4, 16.6, 1.9];
    let model = model("gpt:layers=36,width=4096,heads=32,vocabulary=50257");
    let parameters = model.parameters() as f64 / 1e9;
    assert!((parameters / 7.5 - 1.0).abs() < 0.02, "{parameters}");
    for (sharding, gigabytes) in Sharding::ALL.into_iter().zip(printed) {
        let asked = GroupedMemory {
            groups: groups(1, 1, 1, 64),
            sharding,
            samples: 1,
            micro_batches: 1,
            practice: Practice::USUAL,
            loads: None,
        };
        let states = asked.forecast(&model).states() as f64 / 1e9 * 7.5 / parameters;
        assert!((states - gigabytes).abs() < 0.051, "{sharding:?}: {states}");
    }
}

#[test]
fn activations_are_divided_as_korthikanti_says() {
    // arXiv:2205.05198, equation 2, of a block: s b h (10 + 24 / t + 5 a s / (h t)).
    let (layers, s, h, a) = (8u128, 2048u128, 12_288u128, 96u128);
    let model = model("gpt:layers=8,width=12288,heads=96");
    for tensor in [1, 2, 4, 8] {
        for pipeline in [1, 2, 4] {
            for micro_batches in [1, 2, 16] {
                let asked = GroupedMemory {
                    groups: groups(tensor, pipeline, 1, 1),
                    sharding: Sharding::Nothing,
                    samples: 3,
                    micro_batches,
                    practice: Practice {
                        flash: false,
                        ..Practice::USUAL
                    },
                    loads: None,
                };
                let t = u128::from(tensor);
                let block = 3 * s * (10 * h + (24 * h + 5 * a * s) / t);
                // The first stage holds as many micro-batches as there are stages (section 4.2.3).
                let stages = u128::from(pipeline);
                let held = stages.min(u128::from(micro_batches)) * layers / stages;
                assert_eq!(asked.forecast(&model).activations, held * block);
            }
        }
    }
    let asked = GroupedMemory {
        groups: groups(1, 1, 1, 4),
        sharding: Sharding::Nothing,
        samples: 5,
        micro_batches: 1,
        practice: Practice::USUAL,
        loads: None,
    };
    assert_eq!(asked.forecast(&model), memory::forecast(&model, 5));
}

#[test]
fn a_division_that_fits_is_proposed_and_fits() {
    let model = model("gpt3_175b");
    let asked = GroupedMemory {
        groups: groups(1, 1, 1, 512),
        sharding: Sharding::Nothing,
        samples: 8,
        micro_batches: 1,
        practice: Practice::USUAL,
        loads: None,
    };
    let (fits, memory) = asked.nearest_fit(&model, 80_000_000_000, 8).unwrap();
    assert_eq!(fits.groups.ranks(), 512);
    assert_eq!(fits.forecast(&model), memory);
    assert!(memory.total() <= 80_000_000_000);
    assert!(asked.nearest_fit(&model, 1_000_000, 8).is_none());
}
