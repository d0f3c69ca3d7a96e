//! Files of Chakra execution traces: a header and the nodes of one rank, each a message of Protocol Buffers with its
//! length before it.
//!
//! Fields and attributes that nothing here uses are passed over, lists among attributes too. An integer attribute may
//! have any integer type. A header may be empty, and a message without bytes is a node with default values. Lengths
//! that leave the file are refused before anything is taken for them.
//!
//! Source: `et_def.proto` of MLCommons Chakra.
//!
//! ```
//! use opticoll_program::chakra::{Attribute, ChakraFile, ChakraNode, NodeKind, Value};
//! let mut file = ChakraFile::default();
//! file.nodes.push(ChakraNode {
//!     id: 7,
//!     kind: NodeKind::Send,
//!     data: vec![3],
//!     attributes: vec![Attribute::new("comm_dst", Value::Int32(1))],
//!     ..ChakraNode::default()
//! });
//! let read = ChakraFile::read(&file.write())?;
//! assert_eq!(read.nodes[0].whole("comm_dst")?, Some(1));
//! # Ok::<(), opticoll_program::chakra::ChakraError>(())
//! ```

mod wire;

use thiserror::Error;

use opticoll_base::interrupt;
use opticoll_base::names::shown;
use wire::{Input, Output};

/// Why bytes are no trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: {}", shown(problem))]
pub struct ChakraError {
    /// Where the problem is, in the file of the rank.
    pub offset: usize,
    /// What is wrong.
    pub problem: String,
}

/// Bytes of a file at most; the largest public ones have some 100 MB.
pub const MOST_BYTES: usize = 2 << 30;

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeKind {
    /// Nothing that is known here.
    #[default]
    Invalid,
    /// States something, such as groups of ranks.
    Metadata,
    /// Loads from memory.
    MemoryLoad,
    /// Stores to memory.
    MemoryStore,
    /// Computes.
    Compute,
    /// Sends a message.
    Send,
    /// Receives a message.
    Receive,
    /// Takes part in a collective.
    Collective,
}

impl NodeKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [NodeKind; 8] = [
        NodeKind::Invalid,
        NodeKind::Metadata,
        NodeKind::MemoryLoad,
        NodeKind::MemoryStore,
        NodeKind::Compute,
        NodeKind::Send,
        NodeKind::Receive,
        NodeKind::Collective,
    ];
}

/// The value of an attribute; whole numbers of any type read as `Int64` or `Uint64`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// 32 bits with a sign.
    Int32(i32),
    /// 64 bits with a sign.
    Int64(i64),
    /// 64 bits.
    Uint64(u64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(String),
    /// A real number, a list, bytes, or nothing.
    Other,
}

/// A named value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

impl Attribute {
    /// An attribute.
    pub fn new(name: &str, value: Value) -> Attribute {
        Attribute {
            name: name.to_owned(),
            value,
        }
    }
}

/// A node of a rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChakraNode {
    /// Its number, which no other node of the rank has.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: NodeKind,
    /// Nodes that must be complete before by the program's control; they may be missing from the file.
    pub control: Vec<u64>,
    /// Nodes that must be complete before since their data are used; likewise.
    pub data: Vec<u64>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// The values of its inputs, as text.
    pub inputs: String,
    /// What else is known of it.
    pub attributes: Vec<Attribute>,
    /// Which message of the file it is, from 1, the header not counted.
    pub record: u32,
    /// Where it begins in the file, in bytes.
    pub offset: usize,
}

/// The trace of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChakraFile {
    /// The version of the format; often empty.
    pub version: String,
    /// What is known of the whole trace.
    pub attributes: Vec<Attribute>,
    /// The nodes, in the order of the file.
    pub nodes: Vec<ChakraNode>,
}

/// The last attribute with a name.
fn named<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Value> {
    let mut found = attributes.iter().rev().filter(|one| one.name == name);
    found.next().map(|one| &one.value)
}

impl ChakraNode {
    /// An attribute.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        named(&self.attributes, name)
    }

    /// A whole number among the attributes.
    ///
    /// # Errors
    /// The attribute is no whole number.
    pub fn whole(&self, name: &str) -> Result<Option<i128>, ChakraError> {
        whole(&self.attributes, name).map_err(|problem| self.error(problem))
    }

    /// A text among the attributes.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(&self.attributes, name)
    }

    /// Something that is wrong with this node.
    pub fn error(&self, problem: impl std::fmt::Display) -> ChakraError {
        ChakraError {
            offset: self.offset,
            problem: format!("node {}: {problem}", self.id),
        }
    }
}

fn whole(attributes: &[Attribute], name: &str) -> Result<Option<i128>, String> {
    match named(attributes, name) {
        None => Ok(None),
        Some(Value::Int32(value)) => Ok(Some((*value).into())),
        Some(Value::Int64(value)) => Ok(Some((*value).into())),
        Some(Value::Uint64(value)) => Ok(Some((*value).into())),
        Some(Value::Bool(value)) => Ok(Some((*value).into())),
        Some(_) => Err(format!("{name} is no whole number")),
    }
}

fn text<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    match named(attributes, name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

impl ChakraFile {
    /// Reads the trace of one rank.
    ///
    /// # Errors
    /// The first place at which the bytes are no such trace.
    pub fn read(bytes: &[u8]) -> Result<ChakraFile, ChakraError> {
        if bytes.len() > MOST_BYTES {
            return Err(ChakraError {
                offset: MOST_BYTES,
                problem: format!("traces of at most {MOST_BYTES} bytes for a rank are read"),
            });
        }
        let mut input = Input::new(bytes, 0);
        if input.is_empty() {
            return Err(input.error("the file is empty; a trace begins with a header"));
        }
        let mut file = ChakraFile::default();
        let mut header = input.message()?;
        while let Some(field) = header.field()? {
            match field.number {
                1 => file.version = header.text(field)?,
                2 => file.attributes.push(attribute(&mut header.nested(field)?)?),
                _ => header.skip(field)?,
            }
        }
        while !input.is_empty() {
            interrupt::check();
            let offset = input.offset();
            let mut message = input.message()?;
            let record = file.nodes.len() as u32 + 1;
            file.nodes.push(node(&mut message, record, offset)?);
        }
        Ok(file)
    }

    /// The bytes of the trace.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Output::default();
        let mut header = Output::default();
        header.text(1, &self.version);
        for attribute in &self.attributes {
            header.message(2, &written(attribute));
        }
        bytes.delimited(&header);
        for node in &self.nodes {
            let mut message = Output::default();
            message.whole(1, node.id);
            message.text(2, &node.name);
            message.whole(3, node.kind as u64);
            message.wholes(4, &node.control);
            message.wholes(5, &node.data);
            message.whole(7, node.duration_us);
            if !node.inputs.is_empty() {
                let mut inputs = Output::default();
                inputs.text(1, &node.inputs);
                message.message(8, &inputs);
            }
            for attribute in &node.attributes {
                message.message(10, &written(attribute));
            }
            bytes.delimited(&message);
        }
        bytes.bytes
    }

    /// A whole number among the attributes of the header.
    ///
    /// # Errors
    /// The attribute is no whole number.
    pub fn whole(&self, name: &str) -> Result<Option<i128>, ChakraError> {
        let offset = 0;
        whole(&self.attributes, name).map_err(|problem| ChakraError { offset, problem })
    }

    /// A text among the attributes of the header.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(&self.attributes, name)
    }
}

fn node(message: &mut Input<'_>, record: u32, offset: usize) -> Result<ChakraNode, ChakraError> {
    let mut node = ChakraNode {
        record,
        offset,
        ..ChakraNode::default()
    };
    while let Some(field) = message.field()? {
        match field.number {
            1 => node.id = message.whole(field)?,
            2 => node.name = message.text(field)?,
            3 => {
                let number = message.whole(field)?;
                let known = usize::try_from(number).ok();
                let known = known.and_then(|number| NodeKind::ALL.get(number));
                node.kind = *known.ok_or_else(|| {
                    message.error(&format!(
                        "there is no type of nodes with the number {number}"
                    ))
                })?;
            }
            4 => message.wholes(field, &mut node.control)?,
            5 => message.wholes(field, &mut node.data)?,
            7 => node.duration_us = message.whole(field)?,
            8 => {
                let mut inputs = message.nested(field)?;
                while let Some(field) = inputs.field()? {
                    match field.number {
                        1 => node.inputs = inputs.text(field)?,
                        _ => inputs.skip(field)?,
                    }
                }
            }
            10 => {
                let mut inside = message.nested(field)?;
                node.attributes.push(attribute(&mut inside)?);
            }
            _ => message.skip(field)?,
        }
    }
    Ok(node)
}

fn attribute(message: &mut Input<'_>) -> Result<Attribute, ChakraError> {
    let mut attribute = Attribute::new("", Value::Other);
    while let Some(field) = message.field()? {
        attribute.value = match field.number {
            1 => {
                attribute.name = message.text(field)?;
                continue;
            }
            7 | 9 => Value::Int64(message.whole(field)? as i64),
            11 | 13 => Value::Uint64(message.whole(field)?),
            15 | 17 => {
                let folded = message.whole(field)?;
                Value::Int64((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
            19 => Value::Uint64(message.fixed32(field)?.into()),
            21 => Value::Uint64(message.fixed64(field)?),
            23 => Value::Int64((message.fixed32(field)? as i32).into()),
            25 => Value::Int64(message.fixed64(field)? as i64),
            27 => Value::Bool(message.whole(field)? != 0),
            29 => Value::Text(message.text(field)?),
            2 => {
                message.skip(field)?;
                continue;
            }
            _ => {
                message.skip(field)?;
                Value::Other
            }
        };
    }
    Ok(attribute)
}

fn written(attribute: &Attribute) -> Output {
    let mut message = Output::default();
    message.text(1, &attribute.name);
    match &attribute.value {
        Value::Int32(value) => message.always(7, i64::from(*value) as u64),
        Value::Int64(value) => message.always(9, *value as u64),
        Value::Uint64(value) => message.always(13, *value),
        Value::Bool(value) => message.always(27, u64::from(*value)),
        Value::Text(value) => message.bytes(29, value.as_bytes()),
        Value::Other => {}
    }
    message
}
