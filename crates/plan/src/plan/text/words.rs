//! Lines and words of a plan file, with their positions.

use std::fmt;

use super::PlanTextError;
use opticoll_base::names::terminal_text;

/// Line of a plan file without comment and trailing blanks, and its line number. Empty lines are
/// skipped.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// Rejects unprintable characters other than blanks, tabs and line ends, because some programs take
/// them for the end of a line.
pub(super) fn check_characters(text: &str) -> Result<(), PlanTextError> {
    let is_unprintable = |letter: &char| {
        !matches!(letter, ' ' | '\t') && (letter.is_control() || letter.is_whitespace())
    };
    for (index, line) in text.lines().enumerate() {
        let before_comment = line.split('#').next().unwrap_or("");
        let is_plain = |byte: u8| byte == b'\t' || (b' '..0x7f).contains(&byte);
        if before_comment.bytes().all(is_plain) {
            continue;
        }
        if let Some((position, letter)) = before_comment
            .chars()
            .enumerate()
            .find(|(_, letter)| is_unprintable(letter))
        {
            return Err(PlanTextError {
                line: index + 1,
                column: position + 1,
                problem: format!(
                    "the character {} is not allowed in a plan file; separate words by blanks",
                    letter.escape_unicode()
                ),
            });
        }
    }
    Ok(())
}

/// Iterator over the lines that are not empty.
#[derive(Clone)]
pub(super) struct TextLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    last: usize,
}

impl<'a> TextLines<'a> {
    pub(super) fn new(text: &'a str) -> TextLines<'a> {
        TextLines {
            lines: text.lines().enumerate(),
            last: 0,
        }
    }

    pub(super) fn next(&mut self) -> Option<Line<'a>> {
        for (index, text) in self.lines.by_ref() {
            self.last = index + 1;
            let text = text.split('#').next().unwrap_or("").trim_end();
            if !text.trim_start().is_empty() {
                return Some(Line {
                    number: index + 1,
                    text,
                });
            }
        }
        None
    }

    pub(super) fn all(mut self) -> impl Iterator<Item = Line<'a>> {
        std::iter::from_fn(move || self.next())
    }

    pub(super) fn line(&mut self, expected: &str) -> Result<Line<'a>, PlanTextError> {
        self.next().ok_or_else(|| self.missing(expected))
    }

    pub(super) fn missing(&self, expected: &str) -> PlanTextError {
        let problem = format!("the file ends where a line was expected: {expected}");
        PlanTextError {
            line: self.last + 1,
            column: 1,
            problem,
        }
    }
}

/// Word of a line, with its position.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) line: Line<'a>,
    /// Number of bytes of the line before the word.
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl Word<'_> {
    pub(super) fn wrong(&self, problem: impl fmt::Display) -> PlanTextError {
        PlanTextError {
            line: self.line.number,
            column: self.line.text[..self.start].chars().count() + 1,
            problem: format!("`{}`: {problem}", terminal_text(self.text)),
        }
    }

    pub(super) fn number<N: std::str::FromStr>(&self) -> Result<N, PlanTextError> {
        self.part(self.text)
    }

    pub(super) fn part<N: std::str::FromStr>(&self, text: &str) -> Result<N, PlanTextError> {
        // The parser of integers accepts a sign, which plan files do not allow.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| {
            self.wrong(format!(
                "`{}` is not a number, or is too large",
                terminal_text(text)
            ))
        })
    }
}

/// Words of a line that have not been read yet.
pub(super) struct Words<'a> {
    pub(super) line: Line<'a>,
    /// Number of bytes of the line that have been read.
    read_bytes: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: Line<'a>) -> Words<'a> {
        Words {
            line,
            read_bytes: 0,
        }
    }

    pub(super) fn optional(&mut self) -> Option<Word<'a>> {
        self.optional_if(|_| true)
    }

    /// Reads the next word if there is one and `fits` accepts it.
    pub(super) fn optional_if(&mut self, fits: impl Fn(&str) -> bool) -> Option<Word<'a>> {
        let rest = &self.line.text[self.read_bytes..];
        let start = self.read_bytes + (rest.len() - rest.trim_start().len());
        let word = self.line.text[start..]
            .split_whitespace()
            .next()
            .filter(|word| fits(word))?;
        self.read_bytes = start + word.len();
        Some(Word {
            line: self.line,
            start,
            text: word,
        })
    }

    pub(super) fn next(&mut self, expected: impl fmt::Display) -> Result<Word<'a>, PlanTextError> {
        self.optional().ok_or_else(|| PlanTextError {
            line: self.line.number,
            column: self.line.text.chars().count() + 1,
            problem: format!("the line ends where {expected} was expected"),
        })
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), PlanTextError> {
        let word = self.next(keyword)?;
        if word.text == keyword {
            Ok(())
        } else {
            Err(word.wrong(format!("expected `{keyword}`")))
        }
    }

    /// Reads a word `name=number`. Returns the number and the word.
    pub(super) fn assigned(&mut self, name: &str) -> Result<(u32, Word<'a>), PlanTextError> {
        let word = self.next(name)?;
        let value = word
            .text
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='))
            .ok_or_else(|| word.wrong(format!("expected `{name}=NUMBER`")))?;
        Ok((word.part(value)?, word))
    }

    pub(super) fn rest(&self) -> &'a str {
        self.line.text[self.read_bytes..].trim()
    }

    pub(super) fn end(&mut self) -> Result<(), PlanTextError> {
        match self.optional() {
            None => Ok(()),
            Some(word) => Err(word.wrong("the line should end here")),
        }
    }
}
