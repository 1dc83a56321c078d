//! Escapes text from outside, so that a terminal or an editor shows it and does not obey it.
//!
//! Class files may hold any characters in the names of classes, methods and files, and programs choose the names of
//! threads and events. A line break in a name forges a line, an escape sequence changes earlier output, and a
//! bidirectional override shows a text that is not there. Each such character is written as in Java source, `\u001b`; a
//! backslash is doubled, so that two names never look alike.
//!
//! Other output formats have their own rules on top of [`is_plain`].

use std::fmt::{self, Write};

/// Displays a name or another text from outside on one line.
pub struct EscapedText<'t>(pub &'t str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.0, |c| is_plain(c) && c != '\\', f)
    }
}

/// Displays a whole message on one line. Its parts may have been escaped already, so backslashes stay.
pub struct EscapedLine<'t>(pub &'t str);

impl fmt::Display for EscapedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.0, is_plain, f)
    }
}

/// Writes the text and escapes every character that is not plain.
///
/// # Errors
/// Errors of the output.
pub fn write_escaped(
    text: &str,
    is_plain: impl Fn(char) -> bool,
    out: &mut impl Write,
) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(|c| !is_plain(c)) {
        let (plain, from) = rest.split_at(at);
        out.write_str(plain)?;
        let mut chars = from.chars();
        chars.next().map_or(Ok(()), |c| write_escape(c, out))?;
        rest = chars.as_str();
    }
    out.write_str(rest)
}

fn write_escape(c: char, out: &mut impl Write) -> fmt::Result {
    match c {
        '\\' => out.write_str("\\\\"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if u32::from(c) > 0xffff => write!(out, "\\u{{{:x}}}", u32::from(c)),
        c => write!(out, "\\u{:04x}", u32::from(c)),
    }
}

/// Whether the character is visible and does not change how others are shown.
#[must_use]
pub fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c.is_control() || c.is_whitespace() => false,
        // Soft hyphen; marks, embeddings, overrides and isolates of direction; joiners; invisible characters.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => {
            false
        }
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => false,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => false,
        // Musical and shorthand controls, tags, variation selectors; noncharacters.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => false,
        '\u{fdd0}'..='\u{fdef}' => false,
        c => u32::from(c) & 0xfffe != 0xfffe,
    }
}

#[cfg(test)]
mod escape_tests {
    use super::*;

    #[test]
    fn names_stay_as_they_are() {
        for name in [
            "a.b.C$D.<init>(C.java:12)",
            "größer",
            "注文",
            "🦀",
            "java.lang.Object[] (clone)",
        ] {
            assert_eq!(EscapedText(name).to_string(), name);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let text = |name| EscapedText(name).to_string();
        assert_eq!(text("\u{1b}[31mRED\u{7}"), r"\u001b[31mRED\u0007");
        assert_eq!(text("a\nat b\r\tc\0"), r"a\nat b\r\tc\u0000");
        assert_eq!(text("\u{9b}31m\u{7f}"), r"\u009b31m\u007f");
        assert_eq!(
            text("\u{202e}ltr\u{2066}\u{200f}"),
            r"\u202eltr\u2066\u200f"
        );
        assert_eq!(text("\u{2028}\u{85}\u{feff}"), r"\u2028\u0085\ufeff");
        assert_eq!(text("\u{e0041}"), r"\u{e0041}");
        assert_eq!(text(r"\n"), r"\\n");
        assert_eq!(EscapedLine("a\\n\n").to_string(), r"a\n\n");
    }
}
