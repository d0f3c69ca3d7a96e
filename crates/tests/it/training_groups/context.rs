//! Context parallelism: exchanges, times and memory by formulas.

use opticoll::workload::training::practice::ContextExchange;

use super::*;

/// Groups of `context` ranks that divide the tokens, and others.
fn with_context(context: u32, groups: Groups) -> Groups {
    Groups { context, ..groups }
}

/// Grouped-query attention: 8 heads of 32 values, and 2 heads of keys and of values.
const GROUPED_QUERIES: &str =
    "llama:layers=3,width=256,heads=8,key_value=64,feed_forward=512,sequence=128,vocabulary=512";

#[test]
fn ranks_are_numbered_by_tensor_then_context_then_replica_then_stage() {
    // Megatron-LM's order tp-cp-dp-pp.
    let groups = with_context(3, groups(2, 2, 6, 4));
    for rank in 0..48 {
        assert_eq!(groups.rank(groups.place(rank)), rank);
    }
    let place = RankPlace {
        tensor: 1,
        context: 2,
        data: 1,
        stage: 1,
    };
    // 1 + 2 (2 + 3 (1 + 4 x 1)) = 35.
    let of = |kind| groups.members(kind, place);
    assert_eq!(of(GroupKind::Tensor), [34, 35]);
    assert_eq!(of(GroupKind::Context), [31, 33, 35]);
    assert_eq!(of(GroupKind::Pipeline), [11, 35]);
    // 12 ranks have the same part of the model; 6 in turn divide the experts.
    let same: Vec<u32> = (0..12).map(|share| 25 + 2 * share).collect();
    assert_eq!(of(GroupKind::Data), same);
    assert_eq!(of(GroupKind::Expert), same[..6]);
    assert_eq!(of(GroupKind::ExpertData), [35, 47]);
}

/// A layer of attention whose queries have `queries` bytes, and whose keys and values have `pairs`
/// bytes together.
fn attention(forward: u64, backward: u64, [queries, pairs]: [u64; 2]) -> StageLayer {
    StageLayer {
        attention: Some([queries, pairs, queries]),
        ..layer(0, forward, backward, &[])
    }
}

#[test]
fn keys_and_values_pass_around_a_ring_beside_attention() {
    let (forward, backward) = (12_000_000, 24_000_000);
    for context in [2, 3, 4] {
        for bytes in [100, 20_000, 60_000] {
            let groups = with_context(context, groups(1, 1, 1, 1));
            let layers = [attention(forward, backward, [7, bytes])];
            let training = alike(groups, &layers, 0);
            let iteration = over_crossbar(&training, &[]);
            let ranks = u64::from(context);
            let (block, message) = (forward / ranks, transfer(bytes));
            let twice = backward / ranks;
            // Forward: C - 1 messages, each beside a block. Backward: C messages, of which all but
            // the first and the last carry keys, values and gradients.
            let time = (ranks - 1) * block.max(message) + block;
            let back = 2 * twice.max(message) + (ranks - 2) * twice.max(2 * message);
            near(iteration.time.ps(), time + back);
            let stages = &iteration.stages;
            let sent = (ranks - 1) * message + 2 * (ranks - 1) * message;
            near(stages.context[0].ps() + stages.context_hidden[0].ps(), sent);
            near(stages.context[0].ps(), time + back - forward - backward);
            assert_eq!(iteration.bytes, 3 * ranks * (ranks - 1) * bytes);
            // With given times, to the picosecond.
            let made = training.collectives().unwrap();
            let times = made
                .keys()
                .map(|one| (*one, Time::from_ps(transfer(one.bytes))));
            let timed = training.with_times(&times.collect(), None).unwrap();
            check(&timed);
            assert_eq!(timed.time.ps(), time + back);
        }
    }
}

#[test]
fn all_to_alls_exchange_heads_for_tokens() {
    // DeepSpeed-Ulysses: three all_to_alls before attention and one afterwards, and the reverse.
    let (forward, backward) = (1_000_000, 2_000_000);
    for context in [2, 4] {
        let groups = with_context(context, groups(1, 1, 1, 1));
        let layers = [attention(forward, backward, [40_000, 16_000])];
        let mut training = alike(groups, &layers, 0);
        training.practice.context_exchange = ContextExchange::AllToAll;
        let made = training.collectives().unwrap();
        let found: Vec<_> = made
            .iter()
            .map(|(one, count)| (one.kind, one.ranks, one.bytes, *count))
            .collect();
        let kind = Some(CollectiveKind::AllToAll);
        // Forward and backward: queries and output; keys, values.
        let expected = [(kind, context, 8_000, 4), (kind, context, 40_000, 4)];
        assert_eq!(found, expected);
        let iteration = over_crossbar(&training, &[(CollectiveKind::AllToAll, "direct")]);
        let each = |bytes: u64| u64::from(context - 1) * transfer(bytes / u64::from(context));
        let exchanges = 4 * each(40_000) + 4 * each(8_000);
        near(iteration.time.ps(), forward + backward + exchanges);
        near(iteration.stages.context[0].ps(), exchanges);
    }
}

#[test]
fn exchanges_of_attention_have_the_bytes_of_their_heads() {
    let model = model(GROUPED_QUERIES);
    for (tensor, context) in [(1, 2), (2, 4), (1, 8)] {
        let groups = with_context(context, groups(tensor, 1, 1, 2));
        let training = divided(&model, groups, 2);
        let ranks = u64::from(tensor) * u64::from(context);
        // 2 bytes, 2 samples of 128 tokens, 8 heads of 32 values; 2 + 2 heads of keys and values.
        let [queries, pairs] = [2 * 2 * 128 * 8 * 32, 2 * 2 * 128 * (2 + 2) * 32];
        let layers = &training.stages[0].layers;
        let found: Vec<_> = layers.iter().filter_map(|layer| layer.attention).collect();
        assert_eq!(
            found,
            [[queries, pairs, queries].map(|bytes| bytes / ranks); 3]
        );
        // The activations between layers are those of the rank's tokens.
        let made = training.collectives().unwrap();
        for (one, _) in made
            .iter()
            .filter(|(one, _)| one.group == GroupKind::Tensor)
        {
            assert_eq!(one.bytes, 2 * 2 * 128 * 256 / u64::from(context));
        }
        // Gradients are added over all ranks with the same part of the model.
        let gradients = made.iter().filter(|(one, _)| one.group == GroupKind::Data);
        assert!(gradients.clone().count() > 0);
        for (one, _) in gradients {
            assert_eq!(one.ranks, 2 * context);
        }
    }
}

#[test]
fn context_parallel_ranks_divide_operations_and_memory() {
    for text in [
        GROUPED_QUERIES,
        "moe:layers=2,width=256,experts=8,top_k=2,heads=8,\
         feed_forward=64,sequence=128,vocabulary=512",
    ] {
        let model = model(text);
        for context in [2, 4] {
            let whole = groups(1, 1, 1, 1);
            let parts = with_context(context, whole);
            let one = divided(&model, whole, 2);
            let part = divided(&model, parts, 2);
            near(u64::from(context) * computing(&part), computing(&one));
            let memory = |groups| {
                let asked = GroupedMemory {
                    groups,
                    sharding: Sharding::Optimizer,
                    samples: 2,
                    micro_batches: 1,
                    practice: Practice::USUAL,
                    loads: None,
                };
                asked.forecast(&model)
            };
            let ranks = u128::from(context);
            assert_eq!(memory(parts).activations * ranks, memory(whole).activations);
            assert_eq!(memory(parts).weights, memory(whole).weights);
            let optimizer = memory(parts).optimizer * ranks;
            assert!(optimizer.abs_diff(memory(whole).optimizer) < 1000);
        }
    }
}

#[test]
fn a_division_of_tokens_must_fit_the_model() {
    let model = model(GROUPED_QUERIES);
    let refused = |context, practice| {
        let groups = Groups::new(context, [1, context, 1, 1], None, &model).unwrap();
        let problem = groups.check_practice(practice, 1, &model).unwrap_err();
        problem.to_string()
    };
    let usual = Practice::USUAL;
    let flash = false;
    assert!(refused(128, usual).contains("2 x context-parallel 256"));
    assert!(refused(2, Practice { flash, ..usual }).contains("FlashAttention"));
    let all_to_all = Practice {
        context_exchange: ContextExchange::AllToAll,
        ..usual
    };
    assert!(refused(16, all_to_all).contains("heads of attention"));
    let problem = Groups::new(8, [2, 3, 1, 1], None, &model).unwrap_err();
    let text = problem.to_string();
    assert!(text.contains("tensor-parallel 2 x context-parallel 3 x pipeline-parallel 1 = 6"));
}
