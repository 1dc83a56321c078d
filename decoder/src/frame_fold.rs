//! Folds traces for people: frames of the program's own code stay, runs of other frames become one line.
//!
//! ```text
//! at java.util.ArrayList.grow(ArrayList.java:239)     the frame of the event always stays
//! … 2 JDK frames (java.util)
//! at shop.Orders.add(Orders.java:12)                  own code
//! … 41 library frames (org.springframework, org.apache.catalina)
//! ```
//! All commands fold with [`FrameDisplay::fold_frames`]. No frame is lost: shown and folded frames add up to the trace.

use std::fmt;
use std::str::FromStr;

use crate::code_origin::project_package;
use crate::escape::EscapedText;
use crate::frame::{CodeOrigin, StackFrame};

/// Which frames of a trace are shown (`--frames`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FrameDisplay {
    /// Own code and the frame of the event; other frames are folded.
    #[default]
    Focused,
    All,
    /// At most this number, from the event on.
    AtMost(usize),
}

/// One line of a trace: a frame, folded frames, or a frame with those that follow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldedLine<'f> {
    pub frame: Option<&'f StackFrame>,
    pub folded: FoldedFrames,
}

/// Successive frames that are not shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FoldedFrames {
    /// Number of frames of own code.
    pub own: u64,
    pub library: u64,
    pub jdk: u64,
    /// The packages of other code, each with its number of frames.
    packages: Vec<(String, u64)>,
}

/// Packages that the text names.
const MAX_PACKAGES: usize = 2;
/// Lines of the shortest form: the frame of the event, the innermost own frame, and the rest.
pub const MIN_TRACE_LINES: usize = 3;

impl FrameDisplay {
    /// Folds a trace. `innermost_first`: its frames, from the event on.
    pub fn fold_frames<'f>(
        self,
        innermost_first: impl IntoIterator<Item = &'f StackFrame>,
    ) -> Vec<FoldedLine<'f>> {
        let frames = innermost_first.into_iter().enumerate();
        let frames: Vec<_> = frames
            .map(|(number, frame)| (self.shows_frame(number, frame), frame))
            .collect();
        let runs = frames.chunk_by(|(a, _), (b, _)| a == b);
        let lines = runs.flat_map(|run| match run {
            [(false, _), ..] if self.folds_run(run.len()) => vec![FoldedLine::from_folded(run)],
            _ => run
                .iter()
                .map(|(_, frame)| FoldedLine::from_frame(frame))
                .collect(),
        });
        lines.collect()
    }

    fn shows_frame(self, number: usize, frame: &StackFrame) -> bool {
        match self {
            FrameDisplay::Focused => number == 0 || frame.is_own() || frame.marker_text().is_some(),
            FrameDisplay::All => true,
            FrameDisplay::AtMost(most) => number < most,
        }
    }

    /// A single frame takes no more room than its fold.
    fn folds_run(self, frames: usize) -> bool {
        frames > 1 || matches!(self, FrameDisplay::AtMost(_))
    }
}

/// Shortens a folded trace to at most `max` lines (at least [`MIN_TRACE_LINES`]); the last line folds the rest.
#[must_use]
pub fn shorten_trace(mut lines: Vec<FoldedLine<'_>>, max: usize) -> Vec<FoldedLine<'_>> {
    let max = max.max(MIN_TRACE_LINES);
    if lines.len() <= max {
        return lines;
    }
    // The innermost own frame is the third line if frames are folded in front of it.
    if max == MIN_TRACE_LINES
        && lines.get(1).is_some_and(|line| !line.is_own())
        && lines.get(2).is_some_and(FoldedLine::is_own)
    {
        let between = lines.remove(1);
        if let Some(first) = lines.first_mut() {
            first.folded.add_line(&between);
        }
    }
    if lines.len() <= max {
        return lines;
    }
    let rest = lines.split_off(max - 1);
    let mut folded = FoldedFrames::default();
    rest.iter().for_each(|line| folded.add_line(line));
    lines.push(FoldedLine {
        frame: None,
        folded,
    });
    lines
}

impl<'f> FoldedLine<'f> {
    fn from_frame(frame: &'f StackFrame) -> FoldedLine<'f> {
        FoldedLine {
            frame: Some(frame),
            folded: FoldedFrames::default(),
        }
    }

    fn from_folded(frames: &[(bool, &StackFrame)]) -> FoldedLine<'f> {
        let mut folded = FoldedFrames::default();
        frames.iter().for_each(|(_, frame)| folded.add_frame(frame));
        FoldedLine {
            frame: None,
            folded,
        }
    }

    /// Number of frames that the line stands for.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        u64::from(self.frame.is_some()) + self.folded.frame_count()
    }

    fn is_own(&self) -> bool {
        self.frame.is_some_and(StackFrame::is_own)
    }
}

impl FoldedFrames {
    /// Number of frames.
    #[must_use]
    pub fn frame_count(&self) -> u64 {
        self.own + self.library + self.jdk
    }

    fn add_frame(&mut self, frame: &StackFrame) {
        match frame.origin {
            CodeOrigin::Application => self.own += 1,
            CodeOrigin::Library => self.library += 1,
            CodeOrigin::Jdk => self.jdk += 1,
        }
        if !frame.is_own() {
            self.add_package(short_package(&frame.class), 1);
        }
    }

    fn add_line(&mut self, line: &FoldedLine<'_>) {
        if let Some(frame) = line.frame {
            self.add_frame(frame);
        }
        self.own += line.folded.own;
        self.library += line.folded.library;
        self.jdk += line.folded.jdk;
        for (package, frames) in &line.folded.packages {
            self.add_package(package, *frames);
        }
    }

    fn add_package(&mut self, package: &str, frames: u64) {
        match self.packages.iter_mut().find(|(name, _)| name == package) {
            Some((_, known)) => *known += frames,
            None => self.packages.push((package.to_owned(), frames)),
        }
    }

    /// The packages with most frames.
    fn main_packages(&self) -> Vec<&str> {
        let named = self.packages.iter().filter(|(name, _)| !name.is_empty());
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
        let named = named.into_iter().take(MAX_PACKAGES);
        named.map(|(name, _)| name.as_str()).collect()
    }
}

/// The part of a class's package that names its project.
fn short_package(class: &str) -> &str {
    const FAMILIES: [&str; 1] = ["org.springframework"];
    let project = project_package(class).unwrap_or_else(|| {
        let package = class.rsplit_once('.');
        package.map_or("", |(package, _)| package)
    });
    let family = FAMILIES.iter().find(|family| project.starts_with(*family));
    family.copied().unwrap_or(project)
}

/// `38 library and 5 JDK frames (org.springframework, java.util)`
impl fmt::Display for FoldedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.own, "own"),
            (self.library, "library"),
            (self.jdk, "JDK"),
        ];
        let parts = parts.iter().filter(|(frames, _)| *frames > 0);
        let parts: Vec<String> = parts
            .map(|(frames, what)| format!("{frames} {what}"))
            .collect();
        let noun = if self.frame_count() == 1 {
            "frame"
        } else {
            "frames"
        };
        match parts.split_last() {
            Some((last, [])) => write!(f, "{last} {noun}")?,
            Some((last, first)) => write!(f, "{} and {last} {noun}", first.join(", "))?,
            None => write!(f, "no {noun}")?,
        }
        let packages = self.main_packages();
        match packages.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", EscapedText(&packages.join(", "))),
        }
    }
}

/// The line of a trace: `at a.b.C.m(C.java:12)`, `… 41 library frames (org.springframework)`, or both.
impl fmt::Display for FoldedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = match self.frame {
            Some(frame) => {
                write!(f, "at {frame}")?;
                " "
            }
            None => "",
        };
        match self.folded.frame_count() {
            0 => Ok(()),
            _ => write!(f, "{between}… {}", self.folded),
        }
    }
}

/// Reads `--frames`: `own`, `all` or a number.
impl FromStr for FrameDisplay {
    type Err = String;

    fn from_str(text: &str) -> Result<FrameDisplay, String> {
        match (text, text.parse()) {
            ("own", _) => Ok(FrameDisplay::Focused),
            ("all", _) => Ok(FrameDisplay::All),
            (_, Ok(most)) if most > 0 => Ok(FrameDisplay::AtMost(most)),
            _ => Err("own, all or a number of frames, from 1 on".to_owned()),
        }
    }
}

#[cfg(test)]
mod frame_fold_tests {
    use super::*;

    fn frame(origin: CodeOrigin, class: &str, line: i32) -> StackFrame {
        StackFrame {
            class: class.into(),
            method: "m".into(),
            file: None,
            line,
            origin,
        }
    }

    /// A trace from letters: own, library, JDK.
    fn trace(letters: &str) -> Vec<StackFrame> {
        let frames = letters.chars().zip(0..);
        let frames = frames.map(|(letter, line)| match letter {
            'o' => frame(CodeOrigin::Application, "com.acme.A", line),
            'l' => frame(CodeOrigin::Library, "org.apache.catalina.core.B", line),
            _ => frame(CodeOrigin::Jdk, "java.util.List", line),
        });
        frames.collect()
    }

    fn texts(lines: &[FoldedLine<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn other_code_is_folded() {
        let frames = trace("jjjolljloo");
        let folded = texts(&FrameDisplay::Focused.fold_frames(&frames));
        assert_eq!(
            folded,
            [
                "at java.util.List.m(Unknown Source)",
                "… 2 JDK frames (java.util)",
                "at com.acme.A.m(Unknown Source)",
                "… 3 library and 1 JDK frames (org.apache.catalina, java.util)",
                "at com.acme.A.m(Unknown Source)",
                "at com.acme.A.m(Unknown Source)",
            ]
        );
    }

    #[test]
    fn the_shortest_form_has_event_and_own_frame() {
        let frames = trace("jjjolljloo");
        let lines = FrameDisplay::Focused.fold_frames(&frames);
        assert_eq!(
            texts(&shorten_trace(lines, MIN_TRACE_LINES)),
            [
                "at java.util.List.m(Unknown Source) … 2 JDK frames (java.util)",
                "at com.acme.A.m(Unknown Source)",
                "… 2 own, 3 library and 1 JDK frames (org.apache.catalina, java.util)",
            ]
        );
    }

    #[test]
    fn a_number_shows_the_innermost_frames() {
        let frames = trace("jlo");
        let of = |text: &str| text.parse::<FrameDisplay>().unwrap();
        let folded = texts(&of("1").fold_frames(&frames));
        let rest = "… 1 own and 1 library frames (org.apache.catalina)";
        assert_eq!(folded, ["at java.util.List.m(Unknown Source)", rest]);
        assert_eq!(texts(&of("all").fold_frames(&frames)).len(), 3);
        assert!(
            ["0", "-1", "x", ""]
                .iter()
                .all(|text| text.parse::<FrameDisplay>().is_err())
        );
    }

    /// All traces of up to eight frames: no frame is lost, the order stays, and what must be shown is shown.
    #[test]
    fn shown_and_folded_frames_are_the_trace() {
        for number in 0..3_usize.pow(8) {
            let mut letters = String::new();
            let mut rest = number;
            while rest > 0 {
                letters.push(['o', 'l', 'j'][rest % 3]);
                rest /= 3;
            }
            let frames = trace(&letters);
            for display in [
                FrameDisplay::Focused,
                FrameDisplay::All,
                FrameDisplay::AtMost(3),
            ] {
                let lines = display.fold_frames(&frames);
                let shortened = (3..6).map(|max| shorten_trace(lines.clone(), max));
                for lines in [lines.clone()].into_iter().chain(shortened) {
                    let counted: u64 = lines.iter().map(FoldedLine::frame_count).sum();
                    assert_eq!(counted, frames.len() as u64, "{letters} {lines:?}");
                    let shown: Vec<i32> = lines
                        .iter()
                        .filter_map(|l| l.frame)
                        .map(|f| f.line)
                        .collect();
                    assert!(shown.is_sorted(), "{letters} {lines:?}");
                    assert_eq!(shown.first(), frames.first().map(|frame| &frame.line));
                    let own = frames.iter().find(|frame| frame.is_own());
                    if let Some(own) = own.filter(|_| display == FrameDisplay::Focused) {
                        assert!(shown.contains(&own.line), "{letters} {lines:?}");
                    }
                }
                let own = |frame: &&StackFrame| frame.is_own();
                if display == FrameDisplay::Focused {
                    let shown = lines.iter().filter_map(|line| line.frame).filter(own);
                    assert_eq!(shown.count(), frames.iter().filter(own).count());
                    let is_single =
                        |line: &FoldedLine<'_>| line.frame.is_none() && line.frame_count() < 2;
                    assert!(!lines.iter().any(is_single), "{letters}");
                }
                assert!(shorten_trace(lines, 3).len() <= 3);
            }
        }
    }
}
