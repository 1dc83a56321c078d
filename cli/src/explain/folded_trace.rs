//! A trace as its own frames and the frame of the event; runs of other frames are one line each.

use std::fmt;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{CodeOrigin, StackFrame};
use serde::{Serialize, Serializer};

use super::prepared_run::{PathIndex, PreparedRun};

/// A line of a folded trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceLine<'f> {
    Frame(&'f StackFrame),
    Folded(FoldedFrames),
}

/// Frames that are not the program's own, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldedFrames {
    count: u64,
    /// Packages of libraries, the most frequent first; empty: all frames belong to the JDK.
    packages: Vec<(String, u64)>,
}

/// Packages that a folded line names.
const MAX_PACKAGES: usize = 3;
/// Own frames that a trace shows; further ones are omitted.
const MAX_OWN_FRAMES: usize = 4;

/// Folds a trace, innermost frame first. Frames outside the outermost own frame are left out.
pub fn fold_trace<'f>(run: &PreparedRun<'f>, path: PathIndex) -> Vec<TraceLine<'f>> {
    let mut lines: Vec<TraceLine<'f>> = Vec::new();
    let mut own_frames = 0;
    for (number, frame) in run.frames_outwards(path).enumerate() {
        if frame.is_own() {
            own_frames += 1;
        }
        if own_frames > MAX_OWN_FRAMES {
            break;
        }
        match lines.last_mut() {
            _ if number == 0 || frame.is_own() => lines.push(TraceLine::Frame(frame)),
            Some(TraceLine::Folded(folded)) => folded.add_frame(frame),
            _ => lines.push(TraceLine::Folded(FoldedFrames::from_frame(frame))),
        }
    }
    while lines.len() > 1 && matches!(lines.last(), Some(TraceLine::Folded(_))) {
        lines.pop();
    }
    lines
}

impl FoldedFrames {
    fn from_frame(frame: &StackFrame) -> FoldedFrames {
        let mut folded = FoldedFrames {
            count: 0,
            packages: Vec::new(),
        };
        folded.add_frame(frame);
        folded
    }

    fn add_frame(&mut self, frame: &StackFrame) {
        self.count += 1;
        if frame.origin == CodeOrigin::Jdk {
            return;
        }
        let package = library_package(&frame.class);
        match self.packages.iter_mut().find(|(name, _)| name == package) {
            Some((_, count)) => *count += 1,
            None => self.packages.push((package.to_owned(), 1)),
        }
        self.packages
            .sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    }
}

/// The first two parts of a package, as `org.hibernate`.
fn library_package(class: &str) -> &str {
    let package = class.rsplit_once('.').map_or(class, |(package, _)| package);
    let second = package.match_indices('.').nth(1);
    second.map_or(package, |(end, _)| package.get(..end).unwrap_or(package))
}

/// `… 41 library frames (org.hibernate, org.h2)`
impl fmt::Display for FoldedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if self.packages.is_empty() {
            "JDK"
        } else {
            "library"
        };
        let frames = if self.count == 1 { "frame" } else { "frames" };
        write!(f, "… {} {whose} {frames}", self.count)?;
        let shown = self.packages.iter().take(MAX_PACKAGES);
        let shown: Vec<String> = shown
            .map(|(name, _)| EscapedText(name).to_string())
            .collect();
        match shown.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", shown.join(", ")),
        }
    }
}

impl fmt::Display for TraceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceLine::Frame(frame) => write!(f, "at {frame}"),
            TraceLine::Folded(folded) => folded.fmt(f),
        }
    }
}

impl Serialize for TraceLine<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
