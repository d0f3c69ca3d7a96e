//! What large runs need: blocks that stages do not divide, and ranks that represent others.

use super::*;
use opticoll::workload::training::groups::stages::stage_of;

/// Returns the number of blocks of each chunk, in the order of the forward pass.
fn blocks(spec: &str, stages: u32, chunks: u32) -> Vec<usize> {
    let model = model(spec);
    let places = stage_of(&model, stages, chunks);
    let mut found: Vec<usize> = vec![0; (stages * chunks) as usize];
    let mut block = None;
    for (layer, (stage, chunk)) in model.layers.iter().zip(places) {
        let part = (chunk * stages + stage) as usize;
        if layer.split.block.is_some() && layer.split.block != block {
            found[part] += 1;
        }
        block = layer.split.block;
    }
    found
}

#[test]
fn the_ends_of_a_pipeline_have_fewer_blocks() {
    // Llama 3, arXiv:2407.21783, section 3.3.2: a block less in the first and in the last stage;
    // with chunks of one block, these chunks have the embedding and the output only.
    let llama = "llama:layers=126,width=256";
    let mut expected = vec![8; 16];
    (expected[0], expected[15]) = (7, 7);
    assert_eq!(blocks(llama, 16, 1), expected);
    let mut expected = vec![1; 128];
    (expected[0], expected[127]) = (0, 0);
    assert_eq!(blocks(llama, 16, 8), expected);
    // Divisible blocks are divided evenly, and a remainder leaves chunks that differ by one.
    assert_eq!(blocks("llama:layers=12,width=256", 2, 3), [2; 6]);
    assert_eq!(blocks("llama:layers=61,width=256", 16, 1)[..2], [3, 4]);
    assert_eq!(blocks("llama:layers=5,width=256", 4, 1), [1, 2, 1, 1]);
    let one = model("gpt:layers=1,width=256");
    let parts = |pipeline| Groups::new(pipeline, [1, 1, pipeline, 1], None, &one);
    assert!(parts(3).is_ok());
    let refused = parts(4).unwrap_err().to_string();
    assert!(refused.contains("at most 3 chunks"), "{refused}");
}

#[test]
fn a_pipeline_of_unlike_stages_takes_the_time_of_the_longest() {
    let model = model("llama:layers=5,width=256,sequence=128,vocabulary=512");
    let mut training = divided(&model, groups(1, 2, 1, 1), 1);
    training.micro_batches = 50;
    let made = training.collectives().unwrap();
    let times = made.keys().map(|one| (*one, Time::ZERO)).collect();
    let time = training.with_times(&times, None).unwrap().time.ps();
    let stage = |stage: usize| -> u64 {
        let layers = &training.stages[stage].layers;
        layers
            .iter()
            .map(|one| one.forward[0].ps() + one.backward[0].ps())
            .sum()
    };
    // The longer stage works without pause, but for one micro-batch of the other stage.
    let (short, long) = (stage(0).min(stage(1)), stage(0).max(stage(1)));
    assert!(short < long);
    assert!((50 * long..=50 * long + short).contains(&time), "{time}");
}

#[test]
fn one_rank_represents_all_replicas_whose_experts_receive_alike() {
    let model = model("moe:layers=2,width=256,experts=8,top_k=2,heads=8,sequence=128");
    let training = divided(&model, groups(2, 1, 4, 8), 1);
    let made = training.collectives().unwrap();
    let times: BTreeMap<_, _> = made
        .keys()
        .map(|one| (*one, Time::from_ps(one.bytes)))
        .collect();
    let timed = training.with_times(&times, None).unwrap();
    let waits: u64 = made.iter().map(|(one, count)| one.bytes * count).sum();
    let work: u64 = training.stages[0]
        .layers
        .iter()
        .map(|one| one.forward[3].ps() + one.backward[3].ps())
        .sum();
    // Nothing overlaps, so the times add up.
    assert_eq!(timed.time.ps(), work + waits);
    assert_eq!(timed.stages.compute.len(), 2);
}
