//! Encoding of Protocol Buffers: integers as varints of seven bits per byte, and fields with wire
//! types.

use super::ChakraError;

/// Wire type of a field, which defines the length of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Varint,
    Fixed64,
    Bytes,
    Fixed32,
}

/// Number of a field, and its wire type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u64,
    wire: Wire,
}

/// Bytes of a message that have not been read yet.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte in the file, in bytes.
    offset: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8], offset: usize) -> Input<'a> {
        Input { bytes, offset }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn error(&self, problem: &str) -> ChakraError {
        ChakraError {
            offset: self.offset,
            problem: problem.to_owned(),
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ChakraError> {
        if count > self.bytes.len() {
            let remaining = self.bytes.len();
            return Err(self.error(&format!(
                "{count} bytes should follow, but only {remaining} bytes do: the file is cut short \
                 or damaged"
            )));
        }
        let (first, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        self.offset += count;
        Ok(first)
    }

    fn varint(&mut self) -> Result<u64, ChakraError> {
        let mut value = 0u64;
        for place in 0..10 {
            let Some(&byte) = self.bytes.get(place) else {
                return Err(self.error("a number has no end: the file is cut short or damaged"));
            };
            if place == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                self.take(place + 1)?;
                return Ok(value);
            }
        }
        Err(self
            .error("a number has more than 64 bits; this is not a Chakra trace, or it is damaged"))
    }

    /// Reads a length, and a message of this length.
    pub(super) fn message(&mut self) -> Result<Input<'a>, ChakraError> {
        let length = self.varint()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = self.take(length)?;
        Ok(Input::new(bytes, self.offset - length))
    }

    /// Reads the key of the next field of a message; `None` at the end of the message.
    pub(super) fn field(&mut self) -> Result<Option<Field>, ChakraError> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = Input::new(self.bytes, self.offset);
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            5 => Wire::Fixed32,
            other => {
                return Err(start.error(&format!(
                    "a field has the kind {other}, which no Chakra trace has"
                )));
            }
        };
        let number = key >> 3;
        if number == 0 {
            return Err(start.error("a field has the number 0: this is not a Chakra trace"));
        }
        Ok(Some(Field { number, wire }))
    }

    fn expect(&self, field: Field, wire: Wire) -> Result<(), ChakraError> {
        if field.wire == wire {
            return Ok(());
        }
        Err(self.error(&format!("field {} is of another type", field.number)))
    }

    pub(super) fn skip(&mut self, field: Field) -> Result<(), ChakraError> {
        match field.wire {
            Wire::Varint => self.varint().map(drop),
            Wire::Fixed64 => self.take(8).map(drop),
            Wire::Fixed32 => self.take(4).map(drop),
            Wire::Bytes => self.message().map(drop),
        }
    }

    pub(super) fn whole(&mut self, field: Field) -> Result<u64, ChakraError> {
        self.expect(field, Wire::Varint)?;
        self.varint()
    }

    pub(super) fn fixed32(&mut self, field: Field) -> Result<u32, ChakraError> {
        self.expect(field, Wire::Fixed32)?;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn fixed64(&mut self, field: Field) -> Result<u64, ChakraError> {
        self.expect(field, Wire::Fixed64)?;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn nested(&mut self, field: Field) -> Result<Input<'a>, ChakraError> {
        self.expect(field, Wire::Bytes)?;
        self.message()
    }

    /// Reads a text. Replaces invalid UTF-8.
    pub(super) fn text(&mut self, field: Field) -> Result<String, ChakraError> {
        let inside = self.nested(field)?;
        Ok(String::from_utf8_lossy(inside.bytes).into_owned())
    }

    /// Reads a field of integers into `into`. The field contains a single integer or a packed list.
    pub(super) fn wholes(&mut self, field: Field, into: &mut Vec<u64>) -> Result<(), ChakraError> {
        if field.wire == Wire::Varint {
            into.push(self.varint()?);
            return Ok(());
        }
        let mut inside = self.nested(field)?;
        while !inside.is_empty() {
            into.push(inside.varint()?);
        }
        Ok(())
    }
}

/// Bytes of a message that is being written. Its methods omit values that are 0 or empty, as the
/// encoding prescribes.
#[derive(Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
}

impl Output {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn whole(&mut self, number: u64, value: u64) {
        if value != 0 {
            self.always(number, value);
        }
    }

    /// Writes a value even if it is 0. The field number tells readers the type of the value.
    pub(super) fn always(&mut self, number: u64, value: u64) {
        self.varint(number << 3);
        self.varint(value);
    }

    pub(super) fn text(&mut self, number: u64, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    pub(super) fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, number: u64, message: &Output) {
        self.bytes(number, &message.bytes);
    }

    pub(super) fn wholes(&mut self, number: u64, values: &[u64]) {
        if !values.is_empty() {
            let mut packed = Output::default();
            values.iter().for_each(|&value| packed.varint(value));
            self.message(number, &packed);
        }
    }

    /// Writes the length of `message`, and then `message`.
    pub(super) fn delimited(&mut self, message: &Output) {
        self.varint(message.bytes.len() as u64);
        self.bytes.extend_from_slice(&message.bytes);
    }
}
