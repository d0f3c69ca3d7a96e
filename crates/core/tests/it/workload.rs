//! Traces: readers, checks, replays.

mod real;

use std::fs;
use std::io::Read;
use std::path::Path;

/// The event table of a real run of 16 ranks.
fn table(application: &str) -> String {
    let name = format!("tests/data/traces/{application}.A.16.csv.zst");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let packed = fs::read(path).unwrap();
    let mut text = String::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    text
}
