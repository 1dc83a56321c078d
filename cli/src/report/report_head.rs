//! The run of a report.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{Profile, RunInterval};
use serde::Serialize;

use crate::amounts::format_amount;

/// Places of own code that the text names.
const MAX_PLACES: usize = 3;

#[derive(Serialize)]
pub struct ReportHead {
    /// The run's id; `None`: the log is from before run ids.
    run: Option<String>,
    command: Option<String>,
    /// The VM's version, which identifies the JDK.
    jvm: Option<String>,
    /// What counts as the program's own code: archives, folders, packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    own_code: Vec<String>,
    /// Seconds that the agent ran; `None`: the JVM was killed or still runs.
    seconds: Option<f64>,
    /// The marks between which events are counted; `None`: the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<RunInterval>,
}

impl ReportHead {
    pub fn new(profile: &Profile) -> Self {
        let meta = |key: &str| profile.meta.get(key).cloned();
        let millis = profile.stat_value("run.millis");
        ReportHead {
            run: profile.header.run.map(|run| run.to_string()),
            command: meta("command").filter(|command| !command.is_empty()),
            jvm: meta("jvm"),
            own_code: profile.own_code().iter().cloned().collect(),
            seconds: (millis > 0).then_some(millis as f64 / 1e3),
            interval: profile.interval.clone(),
        }
    }

    /// `run 0123456789abcdef: app.Main --fast, JVM 21.0.9+10-LTS, 4.10 s; counted since mark warm at 1.250 s`
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let texts = [
            self.command
                .as_ref()
                .map(|text| EscapedText(text).to_string()),
            self.jvm
                .as_ref()
                .map(|jvm| format!("JVM {}", EscapedText(jvm))),
            self.seconds
                .map(|seconds| format_amount(seconds * 1e9, "ns")),
        ];
        let texts: Vec<_> = texts.into_iter().flatten().collect();
        match &self.run {
            Some(run) => write!(out, "run {run}")?,
            None => write!(out, "run")?,
        }
        let between = if texts.is_empty() { "" } else { ": " };
        write!(out, "{between}{}", texts.join(", "))?;
        match &self.interval {
            Some(interval) => writeln!(out, "; {interval}{}", interval.start_hint()),
            None => writeln!(out),
        }
    }

    /// `own code: shop.jar!BOOT-INF/classes`; `None`: the log does not tell own code.
    pub fn describe_own_code(&self) -> Option<String> {
        let (shown, more) = self.own_code.split_at(self.own_code.len().min(MAX_PLACES));
        let shown: Vec<_> = shown
            .iter()
            .map(|place| EscapedText(place).to_string())
            .collect();
        let more = match more.len() {
            0 => String::new(),
            places => format!(" and {places} more"),
        };
        (!shown.is_empty()).then(|| format!("own code: {}{more}", shown.join(", ")))
    }
}
