//! Practices of training: recomputation, sequence parallelism, interleaved stages, and the step of
//! the optimizer, against published formulas and times by hand.

use super::*;

#[test]
fn activations_with_sequence_parallelism_are_those_of_figure_1() {
    // Korthikanti et al., arXiv:2205.05198, Figure 1: GiB of activations with sequence parallelism
    // and selective recomputation. Layers, width, heads, stages, chunks, samples, GiB.
    let printed = [
        (48, 6144, 64, 1, 1, 4, 9.56),
        (96, 12_288, 96, 8, 3, 1, 12.35),
        (105, 20_480, 128, 35, 3, 1, 23.08),
        (128, 25_600, 160, 64, 1, 1, 26.56),
    ];
    for (layers, width, heads, pipeline, chunks, samples, gibibytes) in printed {
        let model = model(&format!("gpt:layers={layers},width={width},heads={heads}"));
        let mut asked = GroupedMemory {
            groups: groups(8, pipeline, 1, 1),
            sharding: Sharding::Nothing,
            samples,
            micro_batches: 1000,
            practice: Practice {
                recompute: Recompute::Selective,
                sequence_parallel: true,
                flash: false,
                chunks,
                fused_loss: false,
                wide_gradients: true,
                ..Practice::USUAL
            },
            loads: None,
        };
        let bytes = asked.forecast(&model).activations as f64;
        assert!(
            (bytes / f64::from(1 << 30) - gibibytes).abs() < 0.006,
            "{width}: {bytes}"
        );
        // Table 2 there: full recomputation stores 2 s b h of each block, and here also the values
        // of the block that is computed again.
        asked.practice.recompute = Recompute::Full;
        asked.practice.sequence_parallel = false;
        let blocks = u128::from(pipeline * chunks);
        let held = blocks + u128::from(pipeline - 1) * u128::from(chunks > 1);
        let (s, h, b) = (2048, u128::from(width as u64), u128::from(samples));
        let inputs = 2 * s * b * h * (layers / blocks) * held;
        let found = asked.forecast(&model).activations;
        assert!(
            found.abs_diff(inputs + s * b * h * (10 + 24 / 8)) <= 1,
            "{found}"
        );
    }
}

#[test]
fn interleaved_stages_divide_the_bubble_by_their_chunks() {
    // Narayanan et al., arXiv:2104.04473, section 2.2: (p - 1) (f + b) / v of idle time.
    let (forward, backward) = (1_000_000, 2_000_000);
    for (pipeline, chunks, rounds) in [(2, 2, 2), (4, 2, 1), (4, 3, 3)] {
        let layers: Vec<StageLayer> = (0..chunks)
            .map(|place| layer(place, forward, backward, &[]))
            .collect();
        let mut training = alike(groups(1, pipeline, 1, 1), &layers, 1);
        training.practice.chunks = chunks as u32;
        for stage in &mut training.stages {
            for (place, unit) in stage.units.iter_mut().enumerate() {
                unit.chunk = place as u32;
            }
        }
        training.micro_batches = u64::from(pipeline) * rounds;
        let iteration = over_crossbar(&training, &[]);
        let work = training.micro_batches * chunks as u64 * (forward + backward);
        let idle = u64::from(pipeline - 1) * (forward + backward);
        let time = iteration.time.ps();
        assert!(time.abs_diff(work + idle) < (work + idle) / 1000, "{time}");
        near(iteration.stages.compute[0].ps(), work);
    }
}

#[test]
fn sequence_parallelism_gathers_and_scatters_what_was_reduced() {
    let model = model("gpt:layers=3,width=256,heads=8,sequence=128,context=128,vocabulary=512");
    let mut training = divided(&model, groups(4, 1, 1, 1), 2);
    training.practice.sequence_parallel = true;
    // Korthikanti et al., section 4.2.2: each all_reduce of a block becomes a reduce_scatter and an
    // all_gather of the same values; so do those of the table of words and the output matrix. The
    // backward pass gathers the input of each matrix divided by columns once more.
    let bytes = 2 * 2 * 128 * 256;
    let all = training.collectives().unwrap();
    let found: Vec<_> = all
        .iter()
        .map(|(one, count)| (one.kind, one.bytes, *count))
        .collect();
    let count = 4 * 3 + 2;
    assert_eq!(
        found,
        [
            (
                Some(CollectiveKind::AllGather),
                bytes / 4,
                count + 2 * 3 + 1
            ),
            (Some(CollectiveKind::ReduceScatter), bytes, count),
        ]
    );
}

#[test]
fn full_recomputation_runs_blocks_forward_once_more() {
    let model = model("gpt:layers=3,width=256,heads=8,sequence=128,context=128,vocabulary=512");
    let mut training = divided(&model, groups(2, 1, 1, 1), 2);
    let plain = over_crossbar(&training, &RING);
    training.practice.recompute = Recompute::Full;
    let again = over_crossbar(&training, &RING);
    let blocks = &training.stages[0].units;
    let layers = blocks.iter().filter(|unit| unit.block);
    let layers = layers.flat_map(|unit| &training.stages[0].layers[unit.first..unit.end]);
    let forward: u64 = layers.map(|layer| layer.forward[0].ps()).sum();
    let more = again.stages.compute[0].ps() - plain.stages.compute[0].ps();
    near(more, forward);
    // Two all_reduces of each block in place of none.
    let tensor = again.stages.tensor[0].ps();
    near(
        tensor,
        plain.stages.tensor[0].ps() * (6 * 3 + 2) / (4 * 3 + 2),
    );
}

#[test]
fn the_optimizer_updates_the_shard_of_a_rank() {
    let model = model("gpt:layers=2,width=1024,heads=8");
    let rate = device::parse("h100:memory=1,launch=0.000001").unwrap();
    // 30 bytes a parameter (gradient, three states twice, weight) over 3350 GB/s.
    let step = model.optimizer(rate).unwrap().seconds();
    let expected = 30.0 * model.parameters() as f64 / 3350e9;
    assert!((step / expected - 1.0).abs() < 1e-6, "{step} {expected}");
    // 4 passes over 5 million sums of 4 bytes, and 3 passes over those of 1 million parameters.
    let step = rate.optimizer(1_000_000, 5_000_000).unwrap().seconds();
    let expected = (30e6 + 4.0 * 4.0 * 5e6 + 3.0 * 4.0 * 1e6) / 3350e9;
    assert!((step / expected - 1.0).abs() < 1e-6, "{step} {expected}");
    assert_eq!(
        model.optimizer(ComputeRate::Operations(1)).unwrap(),
        Time::ZERO
    );
}

#[test]
fn tokens_in_8_bits_travel_to_experts_with_their_scales() {
    // DeepSeek-V3, sections 3.3.2 and 3.3.3: 8-bit values, a 32-bit scale for every 128 of them;
    // the way back has 16 bits, forward and backward.
    let model = model(
        "moe:layers=2,width=256,experts=8,top_k=2,heads=8,feed_forward=64,sequence=128,\
         vocabulary=512",
    );
    let mut training = divided(&model, groups(1, 1, 4, 4), 2);
    training.practice.narrow_dispatch = true;
    let made = training.collectives().unwrap();
    let exchanges = made
        .iter()
        .filter(|(one, _)| one.group == GroupKind::Expert);
    let found: Vec<_> = exchanges.map(|(one, count)| (one.bytes, *count)).collect();
    let tokens = 2 * (2 * 128);
    assert_eq!(
        found,
        [(tokens * (256 + 2 * 4), 2 * 2), (tokens * 2 * 256, 2 * 2)]
    );
}
