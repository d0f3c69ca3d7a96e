//! Models against published totals, buckets and iterations against a slow reference, costs against
//! theory.

use std::collections::BTreeMap;

use opticoll::collective::CollectiveKind;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::{Bytes, Time};
use opticoll::workload::training::buckets::{self, Bucket, Buckets};
use opticoll::workload::training::device::{self, ComputeRate};
use opticoll::workload::training::{
    Cost, TimedLayer, TrainingError, cost, iterate, memory, models,
};
use proptest::prelude::*;

/// Parameters, gradient tensors, and where the number of parameters was published.
const PUBLISHED: &[(&str, u64, usize)] = &[
    // torchvision 0.15, page of each model, `num_params`; tensors: two of each layer with biases or
    // normalization, one of each convolution before a normalization.
    ("alexnet", 61_100_840, 2 * 8),
    ("vgg16", 138_357_544, 2 * 16),
    ("vgg19", 143_667_240, 2 * 19),
    ("resnet50", 25_557_032, 3 * 53 + 2),
    ("googlenet", 6_624_904, 3 * 57 + 2),
    // Released checkpoints: bert-base-uncased and bert-large-uncased, with the heads for
    // pre-training.
    ("bert_base", 110_106_428, 5 + 16 * 12 + 9),
    ("bert_large", 336_226_108, 5 + 16 * 24 + 9),
    // Released checkpoints: gpt2, gpt2-medium, gpt2-large, gpt2-xl.
    ("gpt2_small", 124_439_808, 2 + 12 * 12 + 2),
    ("gpt2_medium", 354_823_168, 2 + 12 * 24 + 2),
    ("gpt2_large", 774_030_080, 2 + 12 * 36 + 2),
    ("gpt2_xl", 1_557_611_200, 2 + 12 * 48 + 2),
    // Released checkpoints: Llama-2-7b, Llama-2-70b.
    ("llama2_7b", 6_738_415_616, 1 + 9 * 32 + 2),
    ("llama2_70b", 68_976_648_192, 1 + 9 * 80 + 2),
];

#[test]
fn models_have_the_published_parameters() {
    for &(name, parameters, tensors) in PUBLISHED {
        let model = models::parse(name).unwrap();
        assert_eq!(model.parameters(), parameters, "{name}");
        assert_eq!(model.tensors().count(), tensors, "{name}");
    }
}

#[test]
fn large_transformers_have_the_printed_parameters() {
    // Brown et al. 2020, Table 2.1, rounded there.
    for (name, billions) in [("gpt3_6_7b", 6.7), ("gpt3_175b", 175.0)] {
        let parameters = models::parse(name).unwrap().parameters() as f64 / 1e9;
        assert!(
            (parameters / billions - 1.0).abs() < 0.01,
            "{name}: {parameters}"
        );
    }
}

#[test]
fn networks_for_images_multiply_as_published() {
    // torchvision 0.15, page of each model, `GFLOPS`, which counts multiplications with addition.
    let published = [
        ("alexnet", 0.71),
        ("vgg16", 15.47),
        ("vgg19", 19.63),
        ("resnet50", 4.09),
        ("googlenet", 1.50),
    ];
    for (name, giga) in published {
        let (forward, backward) = models::parse(name).unwrap().operations();
        let counted = forward as f64 / 2e9;
        assert!((counted - giga).abs() < 0.0051, "{name}: {counted}");
        // Twice the forward pass, without the gradient by the image.
        assert!(backward < 2 * forward && backward > forward, "{name}");
    }
}

#[test]
fn gpt3_computes_as_its_paper_says() {
    // Table D.1: 3.14e23 operations for 300 billion tokens, attention left out, which is some 3
    // percent.
    let (forward, backward) = models::parse("gpt3_175b").unwrap().operations();
    let total = (forward + backward) as f64 / 2048.0 * 300e9;
    assert!((total / 3.14e23 - 1.0).abs() < 0.04, "{total}");
}

#[test]
fn a_family_takes_any_shape() {
    let same = [
        ("gpt:layers=24,width=1024,context=1024", "gpt2_medium"),
        ("llama:layers=32,width=4096,feed_forward=11008", "llama2_7b"),
    ];
    for (shape, name) in same {
        let [one, other] = [shape, name].map(|name| models::parse(name).unwrap());
        assert_eq!(one.parameters(), other.parameters(), "{shape}");
        assert_eq!(one.operations(), other.operations(), "{shape}");
    }
    let largest = "gpt:layers=4096,width=262144,feed_forward=1048576,vocabulary=2097152,\
                   context=131072";
    let model = models::parse(largest).unwrap();
    // 12 d^2 of each block outweigh the rest; no sum may have wrapped.
    assert!(model.parameters() > 4096 * 12 * (1 << 36));
    let per_token = model.operations().0 / 131_072;
    assert!(per_token > 2 * 4096 * 12 * (1 << 36));
}

#[test]
fn bad_spellings_are_refused_with_a_hint() {
    let refused = [
        ("resnet5", "did you mean `resnet50`?"),
        ("resnet50:layers=3", "no option `layers`"),
        ("gpt2_small:sequence=2000", "from 1 to 1024"),
        ("gpt:layers=3", "width"),
        ("gpt:layers=0,width=8", "from 1 to"),
    ];
    for (text, words) in refused {
        let problem = models::parse(text).unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
    let devices = [
        ("a10", "did you mean `a100`?"),
        ("a100:efficiency=0", "above 0"),
        ("a100:efficiency=1.5", "at most 1"),
        ("a100:efficency=0.3", "did you mean `efficiency`?"),
    ];
    for (text, words) in devices {
        let problem = device::parse(text).unwrap_err().to_string();
        assert!(problem.contains(words), "{text}: {problem}");
    }
    let rates = [
        "",
        "5",
        "TFLOP/s",
        "0TFLOP/s",
        "1e3TFLOP/s",
        "5FLOPS",
        "-1samples/s",
    ];
    for text in rates {
        let problem = device::throughput(text).unwrap_err().to_string();
        assert!(problem.starts_with("throughput: "), "{text}: {problem}");
    }
    for text in ["", "25", "25M", "0B", "tensors", "ddp2"] {
        let problem = text.parse::<Buckets>().unwrap_err().to_string();
        assert!(problem.starts_with("buckets: "), "{text}: {problem}");
    }
}

#[test]
fn compute_takes_operations_over_rate() {
    let model = models::parse("resnet50").unwrap();
    let (forward, backward) = model.operations();
    let total = |layers: &[TimedLayer], of: fn(&TimedLayer) -> Time| -> u128 {
        layers.iter().map(|layer| u128::from(of(layer).ps())).sum()
    };
    // 256 images at 50 TFLOP/s; one rounding for the whole batch.
    let layers = model
        .timed(256, ComputeRate::Operations(50_000_000_000_000), 4)
        .unwrap();
    assert_eq!(total(&layers, |layer| layer.forward), forward * 256 / 50);
    let both = total(&layers, |layer| layer.forward) + total(&layers, |layer| layer.backward);
    assert_eq!(both, (forward + backward) * 256 / 50);
    // 2000 images per second: 256 take 128 ms, independent of the operations.
    let pace = device::throughput("2000images/s").unwrap();
    let layers = model.timed(256, pace, 2).unwrap();
    let both = total(&layers, |layer| layer.forward) + total(&layers, |layer| layer.backward);
    assert_eq!(both, 128_000_000_000);
    let bytes: u64 = layers
        .iter()
        .flat_map(|layer| &layer.tensors)
        .map(|tensor| tensor.get())
        .sum();
    assert_eq!(bytes, 2 * 25_557_032);
    assert_eq!(model.timed(0, pace, 4), Err(TrainingError::EmptyBatch));
    assert!(model.timed(u64::MAX, pace, 4).is_err());
    let rate = device::parse("a100:efficiency=0.5").unwrap();
    assert_eq!(rate, ComputeRate::Operations(156_000_000_000_000));
}

fn layer(forward: u64, backward: u64, tensors: &[u64]) -> TimedLayer {
    TimedLayer {
        name: "layer".into(),
        tensors: tensors.iter().copied().map(Bytes::new).collect(),
        forward: Time::from_ps(forward),
        backward: Time::from_ps(backward),
    }
}

#[test]
fn buckets_fill_backwards_until_they_hold_their_size() {
    let layers = [
        layer(1, 1, &[10, 20]),
        layer(1, 1, &[]),
        layer(1, 1, &[30, 40]),
    ];
    let sized = |first, rest| Buckets::Sized {
        first: Bytes::new(first),
        rest: Bytes::new(rest),
    };
    // (rule, bytes with the layer that completes them)
    let cases: [(Buckets, &[(u64, usize)]); 6] = [
        (Buckets::Tensor, &[(40, 2), (30, 2), (20, 0), (10, 0)]),
        (Buckets::All, &[(100, 0)]),
        (sized(1, 1), &[(40, 2), (30, 2), (20, 0), (10, 0)]),
        (sized(41, 41), &[(70, 2), (30, 0)]),
        (sized(40, 50), &[(40, 2), (50, 0), (10, 0)]),
        (Buckets::DDP, &[(100, 0)]),
    ];
    for (rule, expected) in cases {
        let grouped = buckets::group(&layers, rule).unwrap();
        let found: Vec<(u64, usize)> = grouped
            .iter()
            .map(|one| (one.bytes.get(), one.layer))
            .collect();
        assert_eq!(found, expected, "{rule}");
    }
    assert_eq!("25MiB".parse::<Buckets>().unwrap().to_string(), "25MiB");
    assert_eq!("DDP".parse::<Buckets>().unwrap(), Buckets::DDP);
}

#[test]
fn resnet50_has_as_many_buckets_as_tensors() {
    let model = models::parse("resnet50").unwrap();
    let layers = model
        .timed(1, ComputeRate::Operations(1_000_000_000_000), 4)
        .unwrap();
    let sizes = |rule| -> Vec<u64> {
        let grouped = buckets::group(&layers, rule).unwrap();
        grouped.iter().map(|bucket| bucket.bytes.get()).collect()
    };
    assert_eq!(sizes(Buckets::Tensor).len(), 161);
    assert_eq!(sizes(Buckets::All), [102_228_128]);
    // The first bucket of DDP: the biases of the last layer, then its weights.
    assert_eq!(sizes(Buckets::DDP)[0], 4 * (1000 + 2048 * 1000));
}

/// Computes the iteration picosecond by picosecond: a device that computes, and a stream that takes
/// the buckets that are ready.
fn slow(
    layers: &[TimedLayer],
    buckets: &[Bucket],
    overlap: bool,
    costs: &BTreeMap<Bytes, Cost>,
) -> u64 {
    let mut passes: Vec<(u64, Option<usize>)> = Vec::new();
    passes.extend(layers.iter().map(|layer| (layer.forward.ps(), None)));
    let backward = layers.iter().enumerate().rev();
    passes.extend(backward.map(|(index, layer)| (layer.backward.ps(), Some(index))));
    let mut finished = vec![false; layers.len()];
    let (mut now, mut pass, mut spent) = (0u64, 0, 0);
    let (mut bucket, mut sending) = (0, None::<u64>);
    loop {
        while pass < passes.len() && passes[pass].0 == spent {
            if let Some(layer) = passes[pass].1 {
                finished[layer] = true;
            }
            (pass, spent) = (pass + 1, 0);
        }
        loop {
            if sending == Some(0) {
                (bucket, sending) = (bucket + 1, None);
            }
            let computed = pass == passes.len();
            let ready = |bucket: &Bucket| computed || (overlap && finished[bucket.layer]);
            if sending.is_none() && buckets.get(bucket).is_some_and(ready) {
                sending = Some(costs[&buckets[bucket].bytes].time.ps());
            }
            if sending != Some(0) {
                break;
            }
        }
        if pass == passes.len() && bucket == buckets.len() {
            return now;
        }
        now += 1;
        spent += u64::from(pass < passes.len());
        sending = sending.map(|left| left - 1);
    }
}

proptest! {
    #[test]
    fn an_iteration_is_what_a_clock_sees(
        shapes in prop::collection::vec(
            (0u64..9, 0u64..9, prop::collection::vec(1u64..4, 0..3)), 1..6
        ),
        prices in prop::array::uniform16(0u64..12),
        rule in 0..4usize,
        overlap: bool,
    ) {
        let layers: Vec<TimedLayer> = shapes
            .iter()
            .map(|(forward, backward, tensors)| layer(*forward, *backward, tensors))
            .collect();
        let size = Bytes::new(4);
        let rule = [Buckets::Tensor, Buckets::All, Buckets::DDP,
            Buckets::Sized { first: Bytes::new(1), rest: size }][rule];
        let grouped = buckets::group(&layers, rule).unwrap();
        let costs: BTreeMap<Bytes, Cost> = grouped
            .iter()
            .map(|bucket| {
                let time = prices[bucket.bytes.get() as usize % 16];
                let part = |by: u64| Time::from_ps(time / by);
                let cost = Cost { time: part(1), reconfiguration: part(3), control: part(4) };
                (bucket.bytes, cost)
            })
            .collect();
        let found = iterate(&layers, &grouped, overlap, &costs, Time::ZERO).unwrap();
        prop_assert_eq!(found.time.ps(), slow(&layers, &grouped, overlap, &costs));
        let parts = [found.compute, found.exposed, found.reconfiguration, found.control];
        prop_assert_eq!(found.time.ps(), parts.iter().map(|part| part.ps()).sum::<u64>());
        prop_assert_eq!(found.buckets.len(), grouped.len());
        let tensors: u32 = grouped.iter().map(|bucket| bucket.tensors).sum();
        let expected: usize = shapes.iter().map(|(_, _, own)| own.len()).sum();
        prop_assert_eq!(tensors as usize, expected);
    }
}

#[test]
fn what_waits_is_split_as_what_was_sent() {
    // Ready at 40 and 60, each takes 100: the first ends at 140, of which 80 lie after 60.
    let layers = [layer(10, 20, &[8]), layer(10, 20, &[8])];
    let cost = Cost {
        time: Time::from_ps(100),
        reconfiguration: Time::from_ps(50),
        control: Time::from_ps(25),
    };
    let costs = BTreeMap::from([(Bytes::new(8), cost)]);
    let grouped = buckets::group(&layers, Buckets::Tensor).unwrap();
    let check = |overlap, expected: [u64; 5]| {
        let found = iterate(&layers, &grouped, overlap, &costs, Time::ZERO).unwrap();
        let parts = [
            found.time,
            found.compute,
            found.reconfiguration,
            found.control,
            found.exposed,
        ];
        assert_eq!(parts.map(Time::ps), expected, "overlap {overlap}");
        assert_eq!(found.sending.ps(), 200);
    };
    check(true, [240, 60, 40 + 50, 20 + 25, 20 + 25]);
    check(false, [260, 60, 100, 50, 50]);
    let nothing = BTreeMap::new();
    let missing = iterate(&layers, &grouped, true, &nothing, Time::ZERO).unwrap_err();
    assert_eq!(
        missing,
        TrainingError::NoCost {
            size: Bytes::new(8)
        }
    );
}

#[test]
fn reconfiguration_is_what_circuits_take_to_set_up() {
    // A ring of 8: 14 slots, the same circuits in each.
    let plan = crate::verified_with(
        CollectiveKind::AllReduce,
        "ring",
        "wdm_ring:ranks=8,wavelengths=1,rate=80Gb/s,reconfiguration=25us",
        "auto",
    );
    let data = 14 * 100; // ns: 1000 B at 10 B/ns in each slot
    for (policy, charged) in [
        ("every_step", 14),
        ("on_change", 1),
        ("per_port", 1),
        ("free", 0),
    ] {
        let method = TimingModel::from_settings([("policy", policy)]).unwrap();
        let (found, _) = cost::simulate(&plan, Bytes::new(8000), &method).unwrap();
        assert_eq!(found.reconfiguration.ps(), charged * 25_000_000, "{policy}");
        assert_eq!(
            found.time.ps(),
            charged * 25_000_000 + data * 1000,
            "{policy}"
        );
    }
}

#[test]
fn reconfiguration_of_a_switch_is_each_change_of_its_setting() {
    // The pairwise exchange of 8 ranks: 7 settings, the first of which is there; 7 slots of 125 B
    // at 10 B/ns.
    let fabric = "ranks=8,rate=80Gb/s,reconfiguration=10us";
    let kind = CollectiveKind::AllToAll;
    let plan = crate::circuit_switch::proved(kind, "pairwise", fabric, 1000, Policy::AllStop);
    for policy in ["all_stop", "per_port"] {
        let method = TimingModel::from_settings([("policy", policy)]).unwrap();
        let (found, _) = cost::simulate(&plan, Bytes::new(1000), &method).unwrap();
        assert_eq!(found.reconfiguration.ps(), 6 * 10_000_000, "{policy}");
        assert_eq!(found.time.ps(), 6 * 10_000_000 + 7 * 12_500, "{policy}");
    }
}

#[test]
fn a_grid_tunes_and_asks_for_every_exchange_but_one() {
    // 4 x 4 nodes: 8 exchanges, 7 circuits; a circuit takes 10 + 5 ns to set up and 2 x 1000 ns to
    // ask for.
    let fabric = "wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=10ns,lock=5ns,control=1us,\
                  latency=3ns,plan=xor";
    let plan = crate::wss_grid::proved(CollectiveKind::AllReduce, "halving_doubling", fabric);
    for simulator in ["control", "circuit"] {
        let method = TimingModel::from_settings([("simulator", simulator)]).unwrap();
        let (found, outcome) = cost::simulate(&plan, Bytes::new(1600), &method).unwrap();
        assert_eq!(found.reconfiguration.ps(), 7 * 15_000, "{simulator}");
        assert_eq!(found.control.ps(), 7 * 2_000_000, "{simulator}");
        // 2 (N - 1) parts of 100 B at a byte per nanosecond.
        let data = 2 * 15 * 100_000 + 8 * 3_000;
        assert_eq!(found.time.ps(), data + 7 * 2_015_000, "{simulator}");
        assert_eq!(outcome.simulator, simulator);
    }
}

#[test]
fn memory_is_that_of_the_published_formulas() {
    // Layers, width, tokens: 34 s h bytes a layer and sample, without the scores that
    // FlashAttention does not store (Korthikanti et al., equation 1).
    let transformers: [(&str, u128, u128, u128); 4] = [
        ("gpt3_175b", 96, 12_288, 2048),
        ("gpt2_small", 12, 768, 1024),
        ("bert_large", 24, 1024, 128),
        ("gpt:layers=2,width=256,heads=8,sequence=64", 2, 256, 64),
    ];
    for (name, layers, width, tokens) in transformers {
        let forecast = memory::forecast(&models::parse(name).unwrap(), 3);
        let layer = 34 * tokens * width;
        assert_eq!(forecast.activations, 3 * layers * layer, "{name}");
    }
    // The outputs of VGG16's layers, counted by hand: two of 224 x 224 x 64, two of 112 x 112 x
    // 128, three of 56 x 56 x 256, three of 28 x 28 x 512, three of 14 x 14 x 512, and 4096, 4096,
    // 1000.
    let outputs = 2 * 224 * 224 * 64 + 2 * 112 * 112 * 128 + 3 * 56 * 56 * 256;
    let outputs = outputs + 3 * 28 * 28 * 512 + 3 * 14 * 14 * 512 + 4096 + 4096 + 1000;
    let vgg = memory::forecast(&models::parse("vgg16").unwrap(), 10);
    assert_eq!(vgg.activations, 10 * 2 * outputs);
    // ZeRO, section 3.1: GPT-2 of 1.5 billion parameters takes 24 GB in all, 3 GB for its weights.
    let weights = memory::Memory::for_parameters(1_500_000_000);
    assert_eq!(
        (weights.total(), weights.weights),
        (24_000_000_000, 3_000_000_000)
    );
}
