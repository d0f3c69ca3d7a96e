//! Types of the elements in buffers, and the operators that combine elements.

use std::str::FromStr;

use half::{bf16, f16};

use super::ProgramError;
use opticoll_base::names::{suggest, terminal_text};

/// Type of an element; elements are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// Signed integer of 8 bits.
    Int8,
    /// Unsigned integer of 8 bits.
    Uint8,
    /// Signed integer of 32 bits.
    Int32,
    /// Unsigned integer of 32 bits.
    Uint32,
    /// Signed integer of 64 bits.
    Int64,
    /// Unsigned integer of 64 bits.
    Uint64,
    /// Upper half of a floating-point number of 32 bits.
    Bfloat16,
    /// Floating-point number of 16 bits.
    Float16,
    /// Floating-point number of 32 bits.
    Float32,
    /// Floating-point number of 64 bits.
    Float64,
}

/// Operator that combines two elements. Sums and products of integers wrap around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceOperator {
    /// Sum.
    Sum,
    /// Product.
    Product,
    /// Minimum.
    Minimum,
    /// Maximum.
    Maximum,
}

/// Combines the elements of two buffers of equal length, element by element. Writes the results to
/// the first buffer.
macro_rules! combine {
    ($kind:ty, $operator:expr, $into:expr, $from:expr, $add:expr, $multiply:expr) => {{
        const BYTES: usize = size_of::<$kind>();
        let pairs = $into.chunks_exact_mut(BYTES).zip($from.chunks_exact(BYTES));
        for (into, from) in pairs {
            let (mut first, mut second) = ([0; BYTES], [0; BYTES]);
            first.copy_from_slice(into);
            second.copy_from_slice(from);
            let (first, second) = (
                <$kind>::from_le_bytes(first),
                <$kind>::from_le_bytes(second),
            );
            let combined: $kind = match $operator {
                ReduceOperator::Sum => $add(first, second),
                ReduceOperator::Product => $multiply(first, second),
                ReduceOperator::Minimum => first.min(second),
                ReduceOperator::Maximum => first.max(second),
            };
            into.copy_from_slice(&combined.to_le_bytes());
        }
    }};
}

macro_rules! whole {
    ($kind:ty, $operator:expr, $into:expr, $from:expr) => {
        combine!(
            $kind,
            $operator,
            $into,
            $from,
            <$kind>::wrapping_add,
            <$kind>::wrapping_mul
        )
    };
}

impl ElementType {
    /// All types with their names.
    pub const ALL: [(ElementType, &'static str); 10] = [
        (ElementType::Int8, "int8"),
        (ElementType::Uint8, "uint8"),
        (ElementType::Int32, "int32"),
        (ElementType::Uint32, "uint32"),
        (ElementType::Int64, "int64"),
        (ElementType::Uint64, "uint64"),
        (ElementType::Bfloat16, "bfloat16"),
        (ElementType::Float16, "float16"),
        (ElementType::Float32, "float32"),
        (ElementType::Float64, "float64"),
    ];

    /// Returns the size of an element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            ElementType::Int8 | ElementType::Uint8 => 1,
            ElementType::Bfloat16 | ElementType::Float16 => 2,
            ElementType::Int32 | ElementType::Uint32 | ElementType::Float32 => 4,
            ElementType::Int64 | ElementType::Uint64 | ElementType::Float64 => 8,
        }
    }

    /// Combines the elements of two buffers of equal length, element by element. Writes the results
    /// to `into`.
    pub(super) fn reduce(self, operator: ReduceOperator, into: &mut [u8], from: &[u8]) {
        match self {
            ElementType::Int8 => whole!(i8, operator, into, from),
            ElementType::Uint8 => whole!(u8, operator, into, from),
            ElementType::Int32 => whole!(i32, operator, into, from),
            ElementType::Uint32 => whole!(u32, operator, into, from),
            ElementType::Int64 => whole!(i64, operator, into, from),
            ElementType::Uint64 => whole!(u64, operator, into, from),
            ElementType::Bfloat16 => {
                combine!(bf16, operator, into, from, |a, b| a + b, |a, b| a * b);
            }
            ElementType::Float16 => {
                combine!(f16, operator, into, from, |a, b| a + b, |a, b| a * b);
            }
            ElementType::Float32 => {
                combine!(f32, operator, into, from, |a, b| a + b, |a, b| a * b);
            }
            ElementType::Float64 => {
                combine!(f64, operator, into, from, |a, b| a + b, |a, b| a * b);
            }
        }
    }
}

impl ReduceOperator {
    /// All operators with their names.
    pub const ALL: [(ReduceOperator, &'static str); 4] = [
        (ReduceOperator::Sum, "sum"),
        (ReduceOperator::Product, "prod"),
        (ReduceOperator::Minimum, "min"),
        (ReduceOperator::Maximum, "max"),
    ];
}

impl FromStr for ElementType {
    type Err = ProgramError;

    fn from_str(name: &str) -> Result<ElementType, ProgramError> {
        find_by_name("type", &ElementType::ALL, name)
    }
}

impl FromStr for ReduceOperator {
    type Err = ProgramError;

    fn from_str(name: &str) -> Result<ReduceOperator, ProgramError> {
        find_by_name("operator", &ReduceOperator::ALL, name)
    }
}

fn find_by_name<T: Copy>(
    what: &'static str,
    values: &[(T, &'static str)],
    name: &str,
) -> Result<T, ProgramError> {
    let found = values.iter().find(|(_, known)| *known == name);
    found.map(|(value, _)| *value).ok_or_else(|| {
        let hint = suggest(name, values.iter().map(|(_, known)| *known));
        ProgramError::Refused(format!("unknown {what} `{}`{hint}", terminal_text(name)))
    })
}
