//! Buckets: groups of gradients that share an all_reduce.
//!
//! Gradients become available in the reverse order of the layers, and of the tensors within a
//! layer. A bucket collects gradients in this order until it has at least its minimum size. The
//! next tensor then starts another bucket. Tensors are never divided. PyTorch's
//! DistributedDataParallel fills its buckets in this way (Li et al., VLDB 2020, section 3.2.3). Its
//! first bucket is smaller than the others, so that sending starts early.

use std::fmt;
use std::str::FromStr;

use super::{TimedLayer, TrainingError};
use opticoll_base::units::{Bytes, UnitError};

/// Rule that assigns gradients to buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buckets {
    /// A separate all_reduce for each tensor.
    Tensor,
    /// A single all_reduce for all tensors.
    All,
    /// Buckets of at least a given number of bytes.
    Sized {
        /// Minimum size of the first bucket.
        first: Bytes,
        /// Minimum size of all other buckets.
        rest: Bytes,
    },
}

/// Group of gradients that share an all_reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Total bytes of the gradients.
    pub bytes: Bytes,
    /// Number of gradient tensors.
    pub tensors: u32,
    /// Index of the layer whose backward pass completes the bucket.
    pub layer: usize,
}

impl Buckets {
    /// Defaults of DistributedDataParallel: 1 MiB for the first bucket, 25 MiB for the others.
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

/// Assigns the gradients of a model to buckets. Returns the buckets in the order of sending.
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
