//! Exchanges beside computing: times of small cases by hand, to the picosecond.

use super::*;

/// Runs an iteration whose exchanges take the times that `time` returns for their kinds.
fn timed(
    training: &GroupedTraining,
    time: impl Fn(Option<CollectiveKind>) -> u64,
) -> GroupedIteration {
    let made = training.collectives().unwrap();
    let times = made.keys().map(|one| (*one, Time::from_ps(time(one.kind))));
    let iteration = training.with_times(&times.collect(), None).unwrap();
    check(&iteration);
    iteration
}

/// A matrix divided by columns, or one divided by rows.
fn matrix(by_columns: bool, forward: u64, backward: u64) -> StageLayer {
    StageLayer {
        sums_input: by_columns,
        sums_output: !by_columns,
        ..layer(0, forward, backward, &[])
    }
}

const FORWARD: u64 = 12_000;
const BACKWARD: u64 = 24_000;
/// Time of the gradient of a layer's input, and of the gradients of its weights.
const HALF: u64 = BACKWARD / 2;

#[test]
fn sequence_parallelism_gathers_the_input_again_beside_its_gradient() {
    // Korthikanti et al., arXiv:2205.05198, section 4.2.2.
    for (gather, scatter) in [(5_000, 7_000), (40_000, 50_000)] {
        let layers = [matrix(true, FORWARD, BACKWARD)];
        let mut training = alike(groups(2, 1, 1, 1), &layers, 100);
        training.practice.sequence_parallel = true;
        let times = |kind| match kind {
            Some(CollectiveKind::AllGather) => gather,
            Some(CollectiveKind::ReduceScatter) => scatter,
            other => panic!("{other:?}"),
        };
        let found = timed(&training, times);
        let backward = HALF.max(gather) + HALF + scatter;
        assert_eq!(found.time.ps(), gather + FORWARD + backward);
        let hidden = HALF.min(gather);
        assert_eq!(found.stages.tensor_hidden[0].ps(), hidden);
        assert_eq!(found.stages.tensor[0].ps(), 2 * gather + scatter - hidden);
        training.overlap = false;
        let found = timed(&training, times);
        let all = FORWARD + BACKWARD + 2 * gather + scatter;
        assert_eq!(found.time.ps(), all);
        assert_eq!(found.stages.tensor_hidden[0].ps(), 0);
    }
}

#[test]
fn tensor_exchanges_run_beside_products_in_pieces() {
    for tensor in [2, 4] {
        // In pieces, all but one of T pieces of a product are beside the exchange.
        let pieces =
            |product: u64, exchange: u64| product.max(exchange + product / u64::from(tensor));
        for (gather, scatter) in [(2_000, 3_000), (11_000, 10_000), (40_000, 50_000)] {
            let times = |kind| match kind {
                Some(CollectiveKind::AllGather) => gather,
                _ => scatter,
            };
            let run = |by_columns, sequence_parallel| {
                let layers = [matrix(by_columns, FORWARD, BACKWARD)];
                let mut training = alike(groups(tensor, 1, 1, 1), &layers, 100);
                training.practice.sequence_parallel = sequence_parallel;
                training.practice.overlap_tensor = true;
                let found = timed(&training, times);
                assert_eq!(found.stages.compute[0].ps(), FORWARD + BACKWARD);
                let exposed = found.time.ps() - FORWARD - BACKWARD;
                assert_eq!(found.stages.tensor[0].ps(), exposed);
                found.time.ps()
            };
            // By columns: gathered; backward gathered again, and scattered.
            let backward = HALF.max(gather) + HALF.max(scatter);
            assert_eq!(run(true, true), pieces(FORWARD, gather) + backward);
            // By rows: scattered; backward gathered.
            let backward = pieces(HALF, gather) + HALF;
            assert_eq!(run(false, true), pieces(FORWARD, scatter) + backward);
            // All_reduces, forward behind rows and backward behind columns.
            assert_eq!(run(true, false), FORWARD + HALF + HALF.max(scatter));
            assert_eq!(run(false, false), pieces(FORWARD, scatter) + BACKWARD);
        }
    }
}

/// Two ranks with a layer of attention and one of experts.
fn with_experts(micro_batches: u64, [attention, experts]: [[u64; 2]; 2]) -> GroupedTraining {
    let form = model(
        "moe:layers=1,width=64,experts=4,top_k=1,heads=2,feed_forward=64,sequence=128,\
         vocabulary=64",
    );
    let layers = [
        layer(0, attention[0], attention[1], &[]),
        StageLayer {
            experts: Some(0),
            ..layer(1, experts[0], experts[1], &[])
        },
    ];
    let mut training = alike(groups(1, 1, 2, 2), &layers, 100);
    let shape = form.transformer.unwrap();
    let weights = ExpertWeights::even(shape);
    let request = experts::loads(2, 128, &weights);
    training.loads = ExpertLoads::new(shape, &request).unwrap();
    training.micro_batches = micro_batches;
    training.practice.overlap_experts = true;
    training
}

#[test]
fn exchanges_with_experts_run_beside_another_micro_batch() {
    let (x, f, b) = (5_000, FORWARD, BACKWARD);
    // Experts only. Beside each other, a forward and a backward pass need one exchange before and
    // one after their computing; the two others are hidden.
    for micro_batches in [1, 2, 5] {
        let training = with_experts(micro_batches, [[0, 0], [f, b]]);
        let found = timed(&training, |_| x);
        let first_and_last = 2 * x + f + 2 * x + b;
        let pairs = (micro_batches - 1) * (2 * x + f + b);
        assert_eq!(found.time.ps(), first_and_last + pairs);
        assert_eq!(found.stages.compute[0].ps(), micro_batches * (f + b));
        let hidden = (micro_batches - 1) * 2 * x;
        assert_eq!(found.stages.expert_hidden[0].ps(), hidden);
        let mut plain = training;
        plain.practice.overlap_experts = false;
        let time = timed(&plain, |_| x).time.ps();
        assert_eq!(time, micro_batches * (4 * x + f + b));
    }
    // With attention, all four exchanges of a pair of passes are hidden: the backward pass sends
    // during the forward attention, and so on.
    let (a, c) = (8_000, 16_000);
    let training = with_experts(3, [[a, c], [f, b]]);
    let found = timed(&training, |_| x);
    let alone = 4 * x + a + f + b + c;
    assert_eq!(found.time.ps(), alone + 2 * (a + f + b + c));
}

#[test]
fn passes_beside_each_other_keep_the_bubble_of_a_pipeline() {
    for pipeline in [1, 2, 4] {
        for micro_batches in [8, 11] {
            let layers = [layer(0, FORWARD, BACKWARD, &[])];
            let mut training = alike(groups(1, pipeline, 1, 1), &layers, 0);
            training.practice.overlap_experts = true;
            training.micro_batches = micro_batches;
            let found = timed(&training, |_| 0);
            let rounds = micro_batches + u64::from(pipeline) - 1;
            assert_eq!(found.time.ps(), rounds * (FORWARD + BACKWARD));
        }
    }
}

/// Time at which the last of `runs` ends, if a gathering of `gather` starts `ahead` runs before the
/// run that needs it, after the gatherings before it.
fn gathered_ahead(runs: &[u64], gather: u64, ahead: usize) -> u64 {
    let (mut ends, mut gathered) = (vec![0], Vec::new());
    for (number, run) in runs.iter().enumerate() {
        while gathered.len() <= number + ahead {
            let before = gathered.last().copied().unwrap_or(0);
            gathered.push(before.max(ends[number]) + gather);
        }
        ends.push(ends[number].max(gathered[number]) + run);
    }
    ends[runs.len()]
}

#[test]
fn parameters_are_gathered_as_many_units_ahead_as_asked() {
    let unit = |forward, backward| layer(0, forward, backward, &[1000]);
    let layers = [unit(2_000, 9_000), unit(9_000, 2_000), unit(4_000, 4_000)];
    for gather in [1_000, 6_000, 20_000] {
        for ahead in 0..4 {
            let mut training = alike(groups(1, 1, 1, 2), &layers, 0);
            // No gradients, whose collectives use the same stream.
            training.stages[0].dense.clear();
            training.sharding = Sharding::Parameters;
            training.practice.prefetch = Some(ahead);
            let found = timed(&training, |_| gather);
            let runs = [2_000, 9_000, 4_000, 4_000, 2_000, 9_000];
            let expected = gathered_ahead(&runs, gather, ahead as usize);
            assert_eq!(found.time.ps(), expected);
            if ahead == 0 {
                assert_eq!(expected, 30_000 + 6 * gather);
            }
            if ahead == 1 {
                training.practice.prefetch = None;
                assert_eq!(timed(&training, |_| gather).time.ps(), expected);
            }
            // A sharded optimizer: once for each unit, in the forward pass.
            training.sharding = Sharding::Optimizer;
            training.practice.prefetch = Some(ahead);
            let found = timed(&training, |_| gather);
            let forward = gathered_ahead(&runs[..3], gather, ahead as usize);
            assert_eq!(found.time.ps(), forward + 15_000);
        }
    }
}

#[test]
fn the_first_parameters_are_gathered_while_a_stage_waits_for_activations() {
    let (gather, forward, backward) = (3_000, 2_000, 9_000);
    for sharding in [Sharding::Optimizer, Sharding::Parameters] {
        let layers = [layer(0, forward, backward, &[1000])];
        let mut training = alike(groups(1, 2, 1, 2), &layers, 0);
        // No gradients, whose collectives use the same stream.
        training
            .stages
            .iter_mut()
            .for_each(|stage| stage.dense.clear());
        training.sharding = sharding;
        training.practice.prefetch = Some(1);
        let found = timed(&training, |kind| kind.map_or(0, |_| gather));
        // The first stage gathers before it computes. The second stage has gathered when the
        // activations arrive, and has gathered again when its backward pass begins.
        assert_eq!(found.time.ps(), gather + 2 * forward + 2 * backward);
    }
}

#[test]
fn prefetch_of_a_sharded_optimizer_moves_no_more_bytes() {
    let layers = [layer(0, 10, 20, &[4000]), layer(1, 10, 20, &[8000])];
    let mut training = alike(groups(1, 1, 1, 4), &layers, 0);
    training.sharding = Sharding::Optimizer;
    let bytes = |training: &GroupedTraining| -> u64 {
        let made = training.collectives().unwrap();
        made.iter().map(|(one, count)| one.bytes * count).sum()
    };
    let before = bytes(&training);
    training.practice.prefetch = Some(1);
    assert_eq!(bytes(&training), before);
    let simulated = over_crossbar(&training, &RING);
    let part = |bytes: u64| 3 * transfer(bytes / 4);
    // Reduce_scatters of 4 bytes and all_gathers of 2 bytes a parameter.
    let sending = part(4 * 12_000) + part(2 * 12_000);
    let stages = &simulated.stages;
    near(
        stages.replicas[0].ps() + stages.replicas_hidden[0].ps(),
        sending,
    );
}
