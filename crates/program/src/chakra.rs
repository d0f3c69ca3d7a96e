//! Files of Chakra execution traces: a header and the nodes of one rank. Header and nodes are
//! messages of Protocol Buffers, each preceded by its length.
//!
//! Unused fields and attributes, such as lists, are ignored. An integer attribute may have any
//! integer type. The header may be empty, and a message without bytes is a node with default
//! values. A length that exceeds the file is rejected before memory is allocated for it.
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
use opticoll_base::names::terminal_text;
use wire::{Input, Output};

/// Reason why bytes do not form a trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: {}", terminal_text(problem))]
pub struct ChakraError {
    /// Offset of the problem in the file, in bytes.
    pub offset: usize,
    /// Description of the problem.
    pub problem: String,
}

/// Maximum number of bytes of a file. The largest public files have about 100 MB.
pub const MAX_BYTES: usize = 2 << 30;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeKind {
    /// Unknown kind.
    #[default]
    Invalid,
    /// Node with metadata, such as groups of ranks.
    Metadata,
    /// Node that loads from memory.
    MemoryLoad,
    /// Node that stores to memory.
    MemoryStore,
    /// Node that computes.
    Compute,
    /// Node that sends a message.
    Send,
    /// Node that receives a message.
    Receive,
    /// Node that takes part in a collective.
    Collective,
}

impl NodeKind {
    /// All kinds, indexed by their number in the format.
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

/// Value of an attribute. Integers of any type are read as `Int64` or `Uint64`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Signed integer of 32 bits.
    Int32(i32),
    /// Signed integer of 64 bits.
    Int64(i64),
    /// Unsigned integer of 64 bits.
    Uint64(u64),
    /// Truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// Real number, list, bytes, or no value at all.
    Other,
}

/// Attribute: a name with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Name of the attribute.
    pub name: String,
    /// Value of the attribute.
    pub value: Value,
}

impl Attribute {
    /// Returns an attribute with a name and a value.
    pub fn new(name: &str, value: Value) -> Attribute {
        Attribute {
            name: name.to_owned(),
            value,
        }
    }
}

/// Node of the trace of a rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChakraNode {
    /// Number of the node, which is unique among the nodes of the rank.
    pub id: u64,
    /// Name of the node.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Numbers of the nodes that must be complete before this node because of control dependencies.
    /// The file may lack some of these nodes.
    pub control: Vec<u64>,
    /// Numbers of the nodes that must be complete before this node because of data dependencies.
    /// The file may lack some of these nodes.
    pub data: Vec<u64>,
    /// Duration in microseconds.
    pub duration_us: u64,
    /// Values of the inputs of the node, as text.
    pub inputs: String,
    /// Further attributes of the node.
    pub attributes: Vec<Attribute>,
    /// Index of the node in the file, counted from 1.
    pub record: u32,
    /// Offset in the file of the message with this node, in bytes.
    pub offset: usize,
}

/// Trace of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChakraFile {
    /// Version of the format; often empty.
    pub version: String,
    /// Attributes in the header, which apply to the whole trace.
    pub attributes: Vec<Attribute>,
    /// Nodes in the order of the file.
    pub nodes: Vec<ChakraNode>,
}

/// Returns the value of the last attribute with this name.
fn last_value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Value> {
    let mut found = attributes
        .iter()
        .rev()
        .filter(|attribute| attribute.name == name);
    found.next().map(|attribute| &attribute.value)
}

impl ChakraNode {
    /// Returns the value of the attribute `name`; `None` if the node does not have it.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        last_value(&self.attributes, name)
    }

    /// Returns the value of the integer attribute `name`; `None` if the node does not have it.
    /// Fails if the attribute is not an integer.
    pub fn whole(&self, name: &str) -> Result<Option<i128>, ChakraError> {
        whole(&self.attributes, name).map_err(|problem| self.error(problem))
    }

    /// Returns the value of the text attribute `name`; `None` if the node does not have it.
    pub fn text(&self, name: &str) -> Option<&str> {
        text(&self.attributes, name)
    }

    /// Returns the error for a problem with this node.
    pub fn error(&self, problem: impl std::fmt::Display) -> ChakraError {
        ChakraError {
            offset: self.offset,
            problem: format!("node {}: {problem}", self.id),
        }
    }
}

fn whole(attributes: &[Attribute], name: &str) -> Result<Option<i128>, String> {
    match last_value(attributes, name) {
        None => Ok(None),
        Some(Value::Int32(value)) => Ok(Some((*value).into())),
        Some(Value::Int64(value)) => Ok(Some((*value).into())),
        Some(Value::Uint64(value)) => Ok(Some((*value).into())),
        Some(Value::Bool(value)) => Ok(Some((*value).into())),
        Some(_) => Err(format!("{name} is not a whole number")),
    }
}

fn text<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    match last_value(attributes, name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

impl ChakraFile {
    /// Reads the trace of one rank. If the bytes do not form a trace, the error has the offset of
    /// the first problem.
    pub fn read(bytes: &[u8]) -> Result<ChakraFile, ChakraError> {
        if bytes.len() > MAX_BYTES {
            return Err(ChakraError {
                offset: MAX_BYTES,
                problem: format!("traces of at most {MAX_BYTES} bytes for a rank are read"),
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

    /// Returns the bytes of the trace.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Output::default();
        let mut header = Output::default();
        header.text(1, &self.version);
        for attribute in &self.attributes {
            header.message(2, &encode(attribute));
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
                message.message(10, &encode(attribute));
            }
            bytes.delimited(&message);
        }
        bytes.bytes
    }

    /// Returns the value of the integer attribute `name` of the header; `None` if there is none.
    /// Fails if the attribute is not an integer.
    pub fn whole(&self, name: &str) -> Result<Option<i128>, ChakraError> {
        let offset = 0;
        whole(&self.attributes, name).map_err(|problem| ChakraError { offset, problem })
    }

    /// Returns the value of the text attribute `name` of the header; `None` if there is none.
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
                    message.error(&format!("the type of nodes {number} does not exist"))
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
                let zigzag = message.whole(field)?;
                Value::Int64((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
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

fn encode(attribute: &Attribute) -> Output {
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
