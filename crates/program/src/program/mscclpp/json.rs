//! Reader of JSON (RFC 8259) that keeps the line of each value, for errors.

use std::iter::Peekable;
use std::str::CharIndices;

use super::super::ProgramError;

/// Maximum depth of nested values. Plans need a depth of eight.
const MAX_DEPTH: usize = 64;

/// JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    /// Line on which the value begins, counted from 1.
    pub(super) line: u32,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Null,
    Flag(bool),
    /// Number, as it is written.
    Number(String),
    Text(String),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl Value {
    pub(super) fn error(&self, problem: &str) -> ProgramError {
        ProgramError::line(self.line, problem)
    }

    /// Returns the value of the key `name`, if this is a table that has the key.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        match &self.kind {
            Kind::Table(pairs) => {
                let mut pairs = pairs.iter();
                pairs
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value)
                    .filter(|value| value.kind != Kind::Null)
            }
            _ => None,
        }
    }

    pub(super) fn required(&self, name: &str) -> Result<&Value, ProgramError> {
        self.get(name)
            .ok_or_else(|| self.error(&format!("`{name}` is missing")))
    }

    pub(super) fn text(&self) -> Result<&str, ProgramError> {
        match &self.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.error("a text is expected here")),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, ProgramError> {
        match &self.kind {
            Kind::Flag(flag) => Ok(*flag),
            _ => Err(self.error("true or false is expected here")),
        }
    }

    pub(super) fn list(&self) -> Result<&[Value], ProgramError> {
        match &self.kind {
            Kind::List(values) => Ok(values),
            _ => Err(self.error("a list is expected here")),
        }
    }

    /// Returns the list of the key `name`; the empty list if the key is missing.
    pub(super) fn list_of(&self, name: &str) -> Result<&[Value], ProgramError> {
        self.get(name).map_or(Ok(&[][..]), Value::list)
    }

    pub(super) fn number(&self, max: u64) -> Result<u64, ProgramError> {
        let number = match &self.kind {
            Kind::Number(text) => text.parse().ok().filter(|number| *number <= max),
            _ => None,
        };
        number.ok_or_else(|| self.error(&format!("a number from 0 to {max} is expected here")))
    }

    /// Returns the number of the key `name`, at most `max`.
    pub(super) fn number_of(&self, name: &str, max: u64) -> Result<u64, ProgramError> {
        self.required(name)?.number(max)
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.kind, Kind::Table(_))
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    line: u32,
}

/// Parses `text`, which must be one JSON value.
pub(super) fn parse(text: &str) -> Result<Value, ProgramError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut parser = Parser {
        text,
        rest: text.char_indices().peekable(),
        line: 1,
    };
    let value = parser.value(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(other) => Err(parser.unexpected(Some(other), "the end of the file")),
    }
}

impl Parser<'_> {
    fn error(&self, problem: &str) -> ProgramError {
        ProgramError::line(self.line, problem)
    }

    fn unexpected(&self, found: Option<char>, wanted: &str) -> ProgramError {
        let found = found.map_or("the end of the file".to_owned(), |found| {
            format!("`{found}`")
        });
        self.error(&format!(
            "the file is not JSON: {found} where {wanted} should be"
        ))
    }

    fn next(&mut self) -> Option<char> {
        let (_, next) = self.rest.next()?;
        self.line += u32::from(next == '\n');
        Some(next)
    }

    /// Returns the next character that is not white space, without passing it.
    fn peek(&mut self) -> Option<char> {
        while let Some(&(_, next)) = self.rest.peek() {
            if !matches!(next, ' ' | '\t' | '\r' | '\n') {
                return Some(next);
            }
            self.next();
        }
        None
    }

    fn expect(&mut self, wanted: char) -> Result<(), ProgramError> {
        match self.peek() {
            Some(found) if found == wanted => {
                self.next();
                Ok(())
            }
            found => Err(self.unexpected(found, &format!("`{wanted}`"))),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, ProgramError> {
        let first = self.peek();
        let line = self.line;
        if depth > MAX_DEPTH {
            return Err(self.error(&format!("values are nested more than {MAX_DEPTH} deep")));
        }
        let kind = match first {
            Some('{') => Kind::Table(self.table(depth)?),
            Some('[') => {
                let mut values = Vec::new();
                self.items(']', |parser| {
                    values.push(parser.value(depth + 1)?);
                    Ok(())
                })?;
                Kind::List(values)
            }
            Some('"') => Kind::Text(self.string()?),
            Some('-' | '0'..='9' | 'a'..='z') => self.word()?,
            other => return Err(self.unexpected(other, "a value")),
        };
        Ok(Value { line, kind })
    }

    fn table(&mut self, depth: usize) -> Result<Vec<(String, Value)>, ProgramError> {
        let mut pairs: Vec<(String, Value)> = Vec::new();
        self.items('}', |parser| {
            parser.peek();
            let key = parser.string()?;
            if pairs.iter().any(|(other, _)| *other == key) {
                return Err(parser.error(&format!("`{key}` occurs twice")));
            }
            parser.expect(':')?;
            let value = parser.value(depth + 1)?;
            pairs.push((key, value));
            Ok(())
        })?;
        Ok(pairs)
    }

    /// Reads items that commas separate, from the opening bracket to the closing bracket `close`.
    fn items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), ProgramError>,
    ) -> Result<(), ProgramError> {
        self.next();
        if self.peek() == Some(close) {
            self.next();
            return Ok(());
        }
        loop {
            item(self)?;
            match self.peek() {
                Some(',') => {
                    self.next();
                }
                Some(found) if found == close => {
                    self.next();
                    return Ok(());
                }
                found => return Err(self.unexpected(found, &format!("`,` or `{close}`"))),
            }
        }
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Kind, ProgramError> {
        let start = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        while let Some((_, '-' | '+' | '.' | '0'..='9' | 'a'..='z' | 'E')) = self.rest.peek() {
            self.next();
        }
        let end = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        let word = &self.text[start..end];
        match word {
            "true" => Ok(Kind::Flag(true)),
            "false" => Ok(Kind::Flag(false)),
            "null" => Ok(Kind::Null),
            _ if !word.starts_with(char::is_alphabetic) && word.parse::<f64>().is_ok() => {
                Ok(Kind::Number(word.to_owned()))
            }
            _ => Err(self.unexpected(word.chars().next(), "a value")),
        }
    }

    fn string(&mut self) -> Result<String, ProgramError> {
        match self.next() {
            Some('"') => {}
            found => return Err(self.unexpected(found, "`\"`")),
        }
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(other) if other >= ' ' => text.push(other),
                other => return Err(self.unexpected(other, "a character of a text")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, ProgramError> {
        match self.next() {
            Some(same @ ('"' | '\\' | '/')) => Ok(same),
            Some('b') => Ok('\u{8}'),
            Some('f') => Ok('\u{c}'),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('u') => {
                let mut code = 0;
                for _ in 0..4 {
                    let digit = self.next();
                    let Some(value) = digit.and_then(|digit| digit.to_digit(16)) else {
                        return Err(self.unexpected(digit, "a hexadecimal digit"));
                    };
                    code = 16 * code + value;
                }
                // Names of plans need no characters outside of the first 65,536.
                Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            other => Err(self.unexpected(other, "an escape sequence")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn values_and_lines_are_those_of_the_text() {
        let text = "{\"a\": [1,\n true, null],\n\"b\\u0041\\n\": {\"c\": \"\u{e4}\\\"\"}, \"d\": -0.5e3}\n";
        let value = parse(text).expect("JSON");
        let list = value
            .required("a")
            .and_then(|list| list.list())
            .expect("a list");
        assert_eq!(list[0].number(1), Ok(1));
        assert!(list[0].number(0).is_err());
        assert_eq!((list[1].flag(), list[1].line), (Ok(true), 2));
        let inner = value
            .get("bA\n")
            .and_then(|inner| inner.get("c"))
            .expect("c");
        assert_eq!((inner.text(), inner.line), (Ok("\u{e4}\""), 3));
        assert!(
            value
                .get("d")
                .is_some_and(|number| number.number(9).is_err())
        );
        assert!(value.get("e").is_none());
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_line() {
        let texts = [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "{\"a\":1,}",
            "[1] 2",
            "\"a",
            "[tru]",
            "{1:2}",
            "\"\\x\"",
            "\"\t\"",
            "[1 2]",
            "\"\\u12g4\"",
            "{\"a\":1,\"a\":2}",
        ];
        for text in texts {
            let error = parse(&format!("\n{text}")).expect_err(text);
            assert!(error.to_string().starts_with("line 2: "), "{text}: {error}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
