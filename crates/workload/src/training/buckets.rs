//! Which gradients share an all_reduce.
//!
//! Gradients come in the reverse order of the layers, and of the tensors of a layer. A bucket takes them
//! in that order until it holds at least its size; the next tensor opens another one. A tensor is never
//! cut. This is how PyTorch's DistributedDataParallel fills its buckets (Li et al., VLDB 2020, section
//! 3.2.3); its first one is smaller than the others, so that sending begins early.

use std::fmt;
use std::str::FromStr;

use super::{TimedLayer, TrainingError};
use opticoll_base::units::{Bytes, UnitError};

/// The rule by which gradients are put into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// An all_reduce for each tensor.
    Tensor,
    /// One all_reduce for all.
    All,
    /// Buckets of at least a size.
    Sized {
        /// The size of the first.
        first: Bytes,
        /// The size of the others.
        rest: Bytes,
    },
}

/// A bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The bytes of its gradients.
    pub bytes: Bytes,
    /// How many there are.
    pub tensors: u32,
    /// The layer whose backward pass completes it.
    pub layer: usize,
}

impl Buckets {
    /// The buckets of DistributedDataParallel where nothing is set: 1 MiB and then 25 MiB.
    pub const DDP: Buckets = Buckets::Sized {
        first: Bytes::new(1 << 20),
        rest: Bytes::new(25 << 20),
    };
}

impl FromStr for Buckets {
    type Err = TrainingError;

    fn from_str(text: &str) -> Result<Buckets, TrainingError> {
        match text.trim().to_lowercase().as_str() {
            "tensor" => return Ok(Buckets::Tensor),
            "all" => return Ok(Buckets::All),
            "ddp" => return Ok(Buckets::DDP),
            _ => {}
        }
        let refuse = |hint: String| TrainingError::Text {
            what: "buckets",
            text: text.into(),
            hint,
        };
        let size: Bytes = text.parse().map_err(|problem| match problem {
            UnitError::Syntax { ref hint, .. }
                if text.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                refuse(hint.clone())
            }
            _ => refuse("give tensor, all, ddp or a size such as 25MiB".into()),
        })?;
        if size.get() == 0 {
            return Err(refuse("a bucket has at least 1B".into()));
        }
        Ok(Buckets::Sized {
            first: size,
            rest: size,
        })
    }
}

impl fmt::Display for Buckets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buckets::Tensor => formatter.write_str("tensor"),
            Buckets::All => formatter.write_str("all"),
            Buckets::Sized { first, rest } if first == rest => write!(formatter, "{rest}"),
            Buckets::Sized { .. } => formatter.write_str("ddp"),
        }
    }
}

/// The buckets of a model, in the order in which they are sent.
///
/// # Errors
/// A size beyond 64 bits.
pub fn group(layers: &[TimedLayer], rule: Buckets) -> Result<Vec<Bucket>, TrainingError> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut open = false;
    for (layer, timed) in layers.iter().enumerate().rev() {
        for &bytes in timed.tensors.iter().rev() {
            if !open {
                buckets.push(Bucket {
                    bytes: Bytes::new(0),
                    tensors: 0,
                    layer,
                });
            }
            let first = buckets.len() == 1;
            let Some(bucket) = buckets.last_mut() else {
                continue;
            };
            bucket.bytes = bucket.bytes.plus(bytes)?;
            bucket.tensors += 1;
            bucket.layer = layer;
            open = match rule {
                Buckets::Tensor => false,
                Buckets::All => true,
                Buckets::Sized { first: size, .. } if first => bucket.bytes < size,
                Buckets::Sized { rest, .. } => bucket.bytes < rest,
            };
        }
    }
    Ok(buckets)
}
