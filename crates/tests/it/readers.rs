//! The seeds of the fuzz targets and a few thousand mutations of them, with bytes changed, lost and
//! doubled: readers accept or refuse them, and never panic.

#[path = "../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is a crate of its own as well")]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use targets::READERS;

fn seeds(reader: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let files = fs::read_dir(folder.join(reader)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A change of a seed: the place, the kind of change, and a byte for it.
type Change = (prop::sample::Index, u8, u8);

fn change(bytes: &mut Vec<u8>, (place, kind, byte): &Change) {
    if bytes.is_empty() {
        return;
    }
    let place = place.index(bytes.len());
    let ends = |byte: &u8| *byte == b'\n';
    let start = bytes[..place].iter().rposition(ends).map_or(0, |at| at + 1);
    let length = bytes[place..].iter().position(ends);
    let end = length.map_or(bytes.len(), |length| place + length + 1);
    // Bytes that mean something to a reader of text are likelier than others.
    let meaning = b"0123456789-,:=+@> \n#{}/*abrelxS";
    let likely = meaning[usize::from(*byte) % meaning.len()];
    match kind % 8 {
        0 => bytes[place] = likely,
        1 => bytes[place] = *byte,
        2 => bytes.insert(place, likely),
        3 => _ = bytes.remove(place),
        4 => bytes.truncate(place),
        5 => bytes[place] = bytes[place].wrapping_add(1),
        6 => _ = bytes.drain(start..end),
        _ => {
            let copy = bytes[start..end].to_vec();
            bytes.splice(start..start, copy);
        }
    }
}

#[test]
fn seeds_are_read() {
    for (name, check) in READERS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name}");
        for seed in seeds {
            check(&seed).unwrap_or_else(|said| panic!("{name}: {said}"));
        }
    }
}

#[test]
fn changed_seeds_are_read_or_refused() {
    let changes = prop::collection::vec(any::<Change>(), 1..4);
    for (name, check) in READERS {
        for seed in seeds(name) {
            let configuration = ProptestConfig {
                cases: 1500,
                failure_persistence: None,
                ..ProptestConfig::default()
            };
            let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            let mut runner = TestRunner::new_with_rng(configuration, random);
            let tried = runner.run(&changes, |changes| {
                let mut bytes = seed.clone();
                changes.iter().for_each(|one| change(&mut bytes, one));
                _ = check(&bytes);
                Ok(())
            });
            tried.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// A word of 16 kB in the place of every word of every seed: the message stays short, which `check`
/// asserts.
#[test]
fn messages_repeat_a_part_of_a_long_word() {
    let of_text = |name: &str| name != "chakra";
    for (name, check) in READERS.iter().filter(|(name, _)| of_text(name)) {
        for seed in seeds(name) {
            let text = String::from_utf8(seed).unwrap();
            let ends = |c: char| !c.is_ascii_alphanumeric();
            for (place, word) in text.split(ends).scan(0, |at, word| {
                let place = *at;
                *at += word.len() + 1;
                Some((place, word))
            }) {
                let long = "x".repeat(1 << 14);
                let changed = format!("{}{long}{}", &text[..place], &text[place + word.len()..]);
                _ = check(changed.as_bytes());
            }
        }
    }
}

/// Bytes that fuzzing has found.
#[test]
fn bytes_that_once_broke_a_rule_are_refused_in_one_line() {
    let cases: &[(&str, &[u8], &str)] = &[
        (
            "fabric",
            b"mesh:dragon\0eedr\nnks=2,wavelengs`d",
            "characters that do not print",
        ),
        ("fabric", b"torus:si\ndes=3", "no option `si des`"),
        (
            "fabric",
            "custom:ranks=2,links=0-1,names=a\u{202e}+b".as_bytes(),
            "characters that do not print",
        ),
        (
            "fabric",
            b"custom:ranks=2,links=0-1,names=a%1B[2K+b",
            "the name `a\\u001b[2K` holds characters that do not print",
        ),
        (
            "plan_text",
            b"opticoll plan 1\n\x1b[2K\rx 1",
            "the character \\u{1b} is not allowed in a plan file",
        ),
        (
            "event_table",
            "# ranks=1\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n0,\u{9b}2K,\
             ,,,,,,"
                .as_bytes(),
            "unknown call `\\u009b2K`",
        ),
        (
            "goal_text",
            b"num_ranks \x1b]0;x\x07",
            "`\\u001b]0;x\\u0007`",
        ),
        (
            "time_independent",
            "0 init\n0 \u{e0001}\u{2066}".as_bytes(),
            "`\\udb40\\udc01\\u2066`",
        ),
    ];
    for (name, bytes, expected) in cases {
        let said = targets::check(name, bytes).unwrap_err();
        assert!(said.contains(expected) && !said.contains('\n'), "{said}");
    }
}
