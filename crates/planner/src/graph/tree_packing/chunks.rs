//! Sizes of the chunks of a pipeline, in pieces.

use std::fmt;
use std::str::FromStr;

use crate::building::MAX_PARTS;
use opticoll_base::spec;

/// Sizes of consecutive chunks, in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunks(Vec<u32>);

impl Chunks {
    pub(super) fn with_sizes(sizes: Vec<u32>) -> Chunks {
        Chunks(sizes)
    }

    /// Creates `count` chunks of one piece each.
    pub(super) fn equal(count: u32) -> Chunks {
        Chunks(vec![1; count as usize])
    }

    /// Returns the number of chunks, or `None` if a chunk has several pieces.
    pub(super) fn count(&self) -> Option<u32> {
        let equal = self.0.iter().all(|pieces| *pieces == 1);
        equal.then_some(self.0.len() as u32)
    }

    pub(super) fn sizes(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn pieces(&self) -> u32 {
        self.0.iter().sum()
    }
}

impl fmt::Display for Chunks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(count) = self.count() {
            return write!(formatter, "{count}");
        }
        let sizes: Vec<String> = self.0.iter().map(u32::to_string).collect();
        formatter.write_str(&sizes.join("+"))
    }
}

impl FromStr for Chunks {
    type Err = String;

    fn from_str(text: &str) -> Result<Chunks, String> {
        let sizes = text.split('+').map(spec::whole_number);
        let sizes: Option<Vec<u32>> = sizes.collect();
        let sizes = sizes.filter(|sizes| sizes.iter().all(|size| (1..=MAX_PARTS).contains(size)));
        let fits = |sizes: &Vec<u32>| {
            sizes.iter().map(|size| u64::from(*size)).sum::<u64>() <= MAX_PARTS.into()
        };
        match sizes.filter(fits).as_deref() {
            Some([count]) => Ok(Chunks::equal(*count)),
            Some(sizes) => Ok(Chunks(sizes.to_vec())),
            None => Err(format!(
                "must be a whole number from 1 to {MAX_PARTS}, or sizes with a + between them, \
                 {MAX_PARTS} together at most"
            )),
        }
    }
}
