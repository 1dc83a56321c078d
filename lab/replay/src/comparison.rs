//! All encodings on several programs, as data.

use lucce_encodings::ReEncodingProgress;
use lucce_recording::Recording;
use serde::{Serialize, Serializer};

use crate::depths::CumulativeShare;
use crate::pass::{create_clock, run_timed};
use crate::{EncodingOutcome, NAMES, RecordingSurvey, ReplaySettings, Tick};

/// The programs in the order in which they were given.
#[derive(Serialize)]
pub struct EncodingComparison {
    pub programs: Vec<ComparedProgram>,
}

/// A recording and what every encoding made of it.
pub struct ComparedProgram {
    pub name: String,
    pub survey: RecordingSurvey,
    pub outcomes: Vec<EncodingOutcome>,
    /// Bytes of the recording.
    pub size: u64,
    /// The limit was reached while recording.
    pub cut: bool,
}

impl ComparedProgram {
    /// Runs all encodings. Passes the recording's number of steps to `tick` for each.
    #[must_use]
    pub fn from_outcomes(
        name: String,
        recording: &Recording,
        survey: RecordingSurvey,
        settings: ReplaySettings,
        tick: Tick<'_>,
    ) -> ComparedProgram {
        let clock = create_clock(recording, &survey, settings);
        let outcome = |encoding: &&str| {
            run_timed(encoding, recording, &survey, settings, clock.as_ref(), tick)
        };
        ComparedProgram {
            name,
            outcomes: NAMES.iter().filter_map(outcome).collect(),
            survey,
            size: recording.size(),
            cut: recording.is_cut(),
        }
    }

    #[must_use]
    pub fn find_outcome(&self, name: &str) -> Option<&EncodingOutcome> {
        self.outcomes.iter().find(|outcome| outcome.name == name)
    }

    #[must_use]
    pub fn count_mismatches(&self) -> u64 {
        self.outcomes.iter().map(|outcome| outcome.mismatches).sum()
    }
}

impl EncodingOutcome {
    /// Stack operations of a million calls.
    #[must_use]
    pub fn operations_per_million(&self, survey: &RecordingSurvey) -> f64 {
        self.statistics.stack_operations as f64 * 1e6 / survey.calls.max(1) as f64
    }

    #[must_use]
    pub fn log_per_context(&self, survey: &RecordingSurvey) -> f64 {
        self.statistics.log_bytes as f64 / survey.requested_contexts().max(1) as f64
    }

    /// Of the calls whose numbers were computed.
    #[must_use]
    pub fn anchoring_percent(&self) -> f64 {
        self.statistics.anchoring as f64 * 100.0 / self.statistics.steps.max(1) as f64
    }

    /// A count that this encoding alone has.
    #[must_use]
    pub fn other_count(&self, name: &str) -> u64 {
        let found = self
            .statistics
            .other_counts
            .iter()
            .find(|(key, _)| *key == name);
        found.map_or(0, |(_, count)| *count)
    }
}

/// What JSON says of a program.
#[derive(Serialize)]
struct ProgramJson<'a> {
    program: &'a str,
    recording_bytes: u64,
    cut: bool,
    calls: u64,
    events: u64,
    threads: u64,
    methods: u64,
    edges: usize,
    /// Nodes of the calling context tree, without events and of events.
    contexts: u64,
    event_contexts: u64,
    depth: DepthJson,
    encodings: Vec<OutcomeJson<'a>>,
}

#[derive(Serialize)]
struct DepthJson {
    mean: f64,
    p90: usize,
    max: usize,
    cumulative: Vec<CumulativeShare>,
}

#[derive(Serialize)]
struct OutcomeJson<'a> {
    encoding: &'a str,
    #[serde(rename = "asked")]
    request_count: u64,
    numbers_mean: f64,
    numbers_max: usize,
    bits_mean: f64,
    bits_max: u32,
    nanos_per_call: f64,
    nodes: u64,
    edges: u64,
    max_id: u64,
    memory: u64,
    log_bytes: u64,
    log_bytes_per_context: f64,
    lost: u64,
    stack_operations: u64,
    stack_operations_per_million_calls: f64,
    stack_depth: DepthJson,
    anchors: u64,
    steps: u64,
    anchoring_percent: f64,
    re_encodings: u64,
    re_encoding_micros: u128,
    collisions: u64,
    progress: Vec<ProgressJson>,
    more: std::collections::BTreeMap<&'a str, u64>,
    checked: u64,
    mismatches: u64,
}

#[derive(Serialize)]
struct ProgressJson {
    calls: u64,
    samples: u64,
    nodes: u64,
    edges: u64,
    max_id: u64,
}

impl Serialize for ComparedProgram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let survey = &self.survey;
        let program = ProgramJson {
            program: &self.name,
            recording_bytes: self.size,
            cut: self.cut,
            calls: survey.calls,
            events: survey.events,
            threads: survey.threads,
            methods: survey.methods,
            edges: survey.profile.len(),
            contexts: survey.contexts,
            event_contexts: survey.event_contexts,
            depth: DepthJson::from_depths(&survey.depths),
            encodings: self
                .outcomes
                .iter()
                .map(|outcome| outcome.as_json(survey))
                .collect(),
        };
        program.serialize(to)
    }
}

impl DepthJson {
    fn from_depths(depths: &crate::DepthDistribution) -> DepthJson {
        DepthJson {
            mean: depths.mean_depth(),
            p90: depths.percentile(90),
            max: depths.max_depth(),
            cumulative: depths.cumulative_shares(),
        }
    }
}

impl EncodingOutcome {
    fn as_json(&self, survey: &RecordingSurvey) -> OutcomeJson<'_> {
        let statistics = &self.statistics;
        OutcomeJson {
            encoding: self.name,
            request_count: self.request_count,
            numbers_mean: self.numbers_mean,
            numbers_max: self.numbers_max,
            bits_mean: self.bits_mean,
            bits_max: self.bits_max,
            nanos_per_call: self.nanos_per_call,
            nodes: statistics.nodes,
            edges: statistics.edges,
            max_id: statistics.max_id,
            memory: statistics.memory_bytes,
            log_bytes: statistics.log_bytes,
            log_bytes_per_context: self.log_per_context(survey),
            lost: statistics.unnumbered,
            stack_operations: statistics.stack_operations,
            stack_operations_per_million_calls: self.operations_per_million(survey),
            stack_depth: DepthJson::from_depths(&self.depths),
            anchors: statistics.anchors,
            steps: statistics.steps,
            anchoring_percent: self.anchoring_percent(),
            re_encodings: statistics.re_encodings,
            re_encoding_micros: statistics.re_encoding_time.as_micros(),
            collisions: statistics.collisions,
            progress: statistics
                .progress
                .iter()
                .map(ProgressJson::from_progress)
                .collect(),
            more: statistics.other_counts.iter().copied().collect(),
            checked: self.checked,
            mismatches: self.mismatches,
        }
    }

    /// As one JSON object, for a report on this encoding alone.
    #[must_use]
    pub fn to_json<'a>(&'a self, survey: &RecordingSurvey) -> impl Serialize + use<'a> {
        self.as_json(survey)
    }
}

impl ProgressJson {
    fn from_progress(progress: &ReEncodingProgress) -> ProgressJson {
        ProgressJson {
            calls: progress.calls,
            samples: progress.samples,
            nodes: progress.nodes,
            edges: progress.edges,
            max_id: progress.max_id,
        }
    }
}
