//! Escapes names for each output format, so that no name can be mistaken for something else.
//!
//!  format | in addition to the escapes of `Text` |
//! |---|---|
//! | text for people | nothing |
//!  collapsed stacks | `;`, which separates frames, and a space before a digit: the number at the end of a line is the value |
//!  CSV | quotes by RFC 4180; `'` before text that a spreadsheet would take for a formula |
//!  JSON | characters that JSON allows but terminals interpret are `\u…` |

use std::fmt;
use std::io;

use lucce_tracelog::escape::{is_plain, write_escaped};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

pub use lucce_tracelog::escape::{EscapedLine, EscapedText};

/// One frame of a collapsed stack.
pub struct CollapsedFrameText<'t>(pub &'t str);

impl fmt::Display for CollapsedFrameText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c| is_plain(c) && !matches!(c, ';' | '\\');
        let mut words = self.0.split(' ');
        write_escaped(words.next().unwrap_or_default(), is_plain, f)?;
        for word in words {
            let is_value = word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit());
            f.write_str(if is_value { "\\u0020" } else { " " })?;
            write_escaped(word, is_plain, f)?;
        }
        Ok(())
    }
}

/// One cell of a line of comma-separated values.
pub struct CsvCellText<'t>(pub &'t str);

impl fmt::Display for CsvCellText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = EscapedText(self.0).to_string();
        let formula = [
            '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
        ];
        let guard = if text.trim_start().starts_with(formula) {
            "'"
        } else {
            ""
        };
        match text.contains([',', '"', ';']) {
            true => write!(f, "\"{guard}{}\"", text.replace('"', "\"\"")),
            false => write!(f, "{guard}{text}"),
        }
    }
}

/// Writes JSON on one line, without a line break at its end.
///
/// # Errors
/// The output's errors.
pub fn write_escaped_json(
    out: &mut impl io::Write,
    value: &(impl Serialize + ?Sized),
) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(&mut *out, TerminalSafeFormatter);
    value.serialize(&mut serializer)?;
    Ok(())
}

struct TerminalSafeFormatter;

impl Formatter for TerminalSafeFormatter {
    /// Writes text that has no characters that JSON itself must escape.
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|c| !is_plain(c)) {
            let (plain, from) = rest.split_at(at);
            CompactFormatter.write_string_fragment(out, plain)?;
            let mut chars = from.chars();
            for unit in chars
                .next()
                .map(|c| c.encode_utf16(&mut [0; 2]).to_vec())
                .into_iter()
                .flatten()
            {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

#[cfg(test)]
mod escape_tests {
    use super::*;

    #[test]
    fn no_name_ends_a_frame_or_a_line_of_a_collapsed_stack() {
        let text = |name| CollapsedFrameText(name).to_string();
        assert_eq!(text("a.b.C.m"), "a.b.C.m");
        assert_eq!(
            text("java.io.IOException caught"),
            "java.io.IOException caught"
        );
        assert_eq!(text("x 99999\nroot;evil"), r"x\u002099999\nroot\u003bevil");
        assert_eq!(text("x 7 "), r"x\u00207\u0020");
        assert_eq!(text(" 1"), r"\u00201");
    }

    #[test]
    fn no_cell_is_a_formula() {
        let text = |name| CsvCellText(name).to_string();
        assert_eq!(text("main"), "main");
        assert_eq!(text("worker, \"1\""), "\"worker, \"\"1\"\"\"");
        assert_eq!(text("=cmd|' '!A1"), "'=cmd|' '!A1");
        assert_eq!(text("@a,b"), "\"'@a,b\"");
        assert_eq!(text(" +1"), "' +1");
        assert_eq!(text("\n=1"), r"\n=1");
        assert_eq!(text("a\r\nb"), r"a\r\nb");
    }

    #[test]
    fn json_comes_back_and_is_plain() {
        for name in [
            "a\"b\\c",
            "\u{1b}[31m\0\n\u{7f}\u{9b}",
            "\u{202e}x\u{e0041}\u{2028}",
            "größer 🦀",
        ] {
            let mut bytes = Vec::new();
            write_escaped_json(&mut bytes, name).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.chars().all(is_plain), "{text}");
            assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
        }
    }
}
