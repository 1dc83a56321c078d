//! Colours, on a terminal only, and not if NO_COLOR is set (<https://no-color.org>).

use std::env;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write, stdout};
use std::sync::OnceLock;

use lucce_decoder::{FoldedLine, StackFrame, is_jdk_name};

/// The styles of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalStyle {
    has_colours: bool,
}

const STRONG: &str = "1";
const FAINT: &str = "2";

impl TerminalStyle {
    /// The style of standard output.
    pub fn for_stdout() -> TerminalStyle {
        static KNOWN: OnceLock<bool> = OnceLock::new();
        let has_colours = *KNOWN.get_or_init(|| {
            let has_no_color = env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
            let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
            stdout().is_terminal() && !has_no_color && !is_dumb
        });
        TerminalStyle { has_colours }
    }

    pub fn strong<T: Display>(self, what: T) -> StyledText<T> {
        self.apply_code(STRONG, what)
    }

    pub fn faint<T: Display>(self, what: T) -> StyledText<T> {
        self.apply_code(FAINT, what)
    }

    /// Shows folded frames and frames of the JDK faint.
    fn style_line<'l, 'f>(self, line: &'l FoldedLine<'f>) -> StyledText<&'l FoldedLine<'f>> {
        let is_faint = line.frame.is_none_or(StackFrame::is_jdk_frame);
        self.apply_code(if is_faint { FAINT } else { "" }, line)
    }

    /// Shows text faint if `name` belongs to the JDK, whose frames are rarely of interest.
    pub fn style_by_name<T: Display>(self, name: &str, what: T) -> StyledText<T> {
        let code = match is_jdk_name(name) {
            true => FAINT,
            false => "",
        };
        self.apply_code(code, what)
    }

    fn apply_code<T>(self, code: &'static str, what: T) -> StyledText<T> {
        let code = if self.has_colours { code } else { "" };
        StyledText { code, what }
    }
}

/// Writes the lines of a folded trace, as the JVM prints them under an exception.
pub fn write_trace(lines: &[FoldedLine<'_>], out: &mut impl Write) -> io::Result<()> {
    let style = TerminalStyle::for_stdout();
    let mut lines = lines.iter();
    lines.try_for_each(|line| writeln!(out, "\t{}", style.style_line(line)))
}

/// Text with its colour.
pub struct StyledText<T> {
    /// The terminal's escape code; empty: none.
    code: &'static str,
    what: T,
}

impl<T: Display> Display for StyledText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            "" => self.what.fmt(f),
            code => write!(f, "\x1b[{code}m{}\x1b[0m", self.what),
        }
    }
}

#[cfg(test)]
mod style_tests {
    use super::*;

    #[test]
    fn only_terminals_have_colours() {
        let plain = TerminalStyle { has_colours: false };
        assert_eq!(plain.strong(1).to_string(), "1");
        let colours = TerminalStyle { has_colours: true };
        assert_eq!(colours.strong(1).to_string(), "\x1b[1m1\x1b[0m");
        assert_eq!(colours.style_by_name("com.acme.A", 1).to_string(), "1");
        assert_eq!(
            colours.style_by_name("java.util.List", 1).to_string(),
            "\x1b[2m1\x1b[0m"
        );
    }
}
