//! Reads the newest data of the page, when a browser asks and the last reading is old enough.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lucce_decoder::{
    ContextCounters, EventStream, Profile, check_same_run, events_path, read_header,
};
use lucce_page::{HtmlPage, PageRefresh};

use super::super::fact_tables::list_fact_tables;
use super::super::open::milliseconds_now;
use super::super::selection::CountSelection;
use super::super::{CommandError, agent_status, leaks, process, view};
use super::metrics::format_metrics;

pub struct PageReader<'a> {
    log: PathBuf,
    /// The process that writes or wrote the log.
    pid: u32,
    selection: &'a CountSelection,
    /// Minimum time between readings.
    interval: Duration,
    before: ContextCounters,
    /// Time of the reading before; `None`: there is one reading so far, and no interval.
    counters_read_at: Option<Instant>,
    newest: PageReading,
    /// `None`: nobody has asked for the figures.
    metrics: Option<MetricsReading>,
}

/// The figures for Prometheus.
struct MetricsReading {
    at: Instant,
    read_duration: Duration,
    text: Arc<str>,
}

/// The result of one reading.
struct PageReading {
    /// The number of the reading, from 1.
    number: u64,
    at: Instant,
    read_duration: Duration,
    page: HtmlPage,
    /// The page as a file, and its data alone; each is built at its first request.
    html: Option<Arc<str>>,
    json: Option<Arc<str>>,
    /// Whether no more data will come.
    is_last: bool,
}

impl<'a> PageReader<'a> {
    /// Creates a reader and reads the log for the first time.
    pub fn new(
        log: PathBuf,
        selection: &'a CountSelection,
        interval: Duration,
    ) -> Result<PageReader<'a>, CommandError> {
        let begun = Instant::now();
        let header = read_header(&log).map_err(|e| CommandError::Open(log.clone(), e))?;
        let is_last = process::is_gone(header.pid, &log);
        let mut profile = selection.open_log(&log)?;
        let mut readings = PageReader {
            newest: PageReading::empty(begun),
            metrics: None,
            before: profile.events.clone(),
            counters_read_at: None,
            log,
            pid: header.pid,
            selection,
            interval,
        };
        readings.store_reading(&mut profile, begun, is_last);
        Ok(readings)
    }

    /// The page with its data.
    pub fn page_html(&mut self) -> Result<Arc<str>, String> {
        self.refresh_reading()?;
        let PageReading { html, page, .. } = &mut self.newest;
        Ok(Arc::clone(
            html.get_or_insert_with(|| page.to_html().into()),
        ))
    }

    /// The data alone; `None`: they are not newer than reading `after`.
    pub fn newer_data(&mut self, after: u64) -> Result<Option<Arc<str>>, String> {
        self.refresh_reading()?;
        let PageReading {
            json, page, number, ..
        } = &mut self.newest;
        let is_new = *number > after;
        let json = is_new.then(|| Arc::clone(json.get_or_insert_with(|| page.to_json().into())));
        Ok(json)
    }

    /// The figures for Prometheus, at most as old as the time between readings.
    pub fn metrics_text(&mut self) -> Result<Arc<str>, String> {
        let begun = Instant::now();
        let last = self.metrics.as_ref().filter(|last| {
            let pause = self.interval.max(last.read_duration * 4);
            begun - last.at < pause
        });
        if let Some(last) = last {
            return Ok(Arc::clone(&last.text));
        }
        let profile = self.open_log()?;
        let dropped = self.count_dropped(&profile);
        let text: Arc<str> = format_metrics(&profile, dropped).into();
        self.metrics = Some(MetricsReading {
            at: begun,
            read_duration: begun.elapsed(),
            text: Arc::clone(&text),
        });
        Ok(text)
    }

    /// The number of dropped events: from the agent while the JVM runs, as the log has it at the end only.
    fn count_dropped(&self, profile: &Profile) -> u64 {
        let asked = match profile.ended || process::is_gone(self.pid, &self.log) {
            true => None,
            false => agent_status::count_dropped_events(self.pid),
        };
        asked.unwrap_or_else(|| profile.dropped_events())
    }

    fn open_log(&self) -> Result<Profile, String> {
        self.selection.open_log(&self.log).map_err(|failure| {
            failure.report_to_stderr();
            format!("{} cannot be read any more", self.log.display())
        })
    }

    /// Time until the next reading: reading takes at most a quarter of a processor.
    fn poll_interval(&self) -> Duration {
        self.interval.max(self.newest.read_duration * 4)
    }

    fn refresh_reading(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        if self.newest.is_last || begun - self.newest.at < self.poll_interval() {
            return Ok(());
        }
        // The process writes until its end, so this is checked before the log is read.
        let is_last = process::is_gone(self.pid, &self.log);
        let mut profile = self.open_log()?;
        self.store_reading(&mut profile, begun, is_last);
        Ok(())
    }

    fn store_reading(&mut self, profile: &mut Profile, begun: Instant, is_last: bool) {
        let is_last = is_last || profile.ended;
        let counters_read_at = profile.counters_read_at;
        let before = self.counters_read_at.replace(counters_read_at);
        let seconds = before.map(|before| (counters_read_at - before).as_secs_f64());
        let number = self.newest.number + 1;
        let mut page = HtmlPage::default();
        let (log, selection) = (&self.log, self.selection);
        let run_text = |profile: &Profile| {
            let mut text = view::run_text(log, profile);
            if !selection.is_whole() {
                text.coverage = None;
                text.notes.push(selection.page_note());
            }
            text
        };
        let more = profile.events.subtract_earlier(&self.before);
        self.before = std::mem::replace(&mut profile.events, more);
        page.add_profile(run_text(profile), profile, None, &|_| ());
        std::mem::swap(&mut profile.events, &mut self.before);
        // The time line has all events.
        let stream = selection.is_whole().then(|| open_stream(log, profile));
        page.add_profile(
            run_text(profile),
            profile,
            stream.flatten().as_ref(),
            &|_| (),
        );
        if selection.is_whole() && !profile.is_restricted() && profile.interval.is_none() {
            let now_ms = (!is_last).then(milliseconds_now);
            page.set_facts(list_fact_tables(profile, now_ms));
        }
        std::mem::swap(&mut profile.events, &mut self.before);
        if profile.meta.contains_key("leak.interval") && selection.tagged.is_unrestricted() {
            page.set_leaks(leaks::leaks_text(profile, (!is_last).then_some(self.pid)));
        }
        let took = begun.elapsed();
        self.newest = PageReading {
            number,
            at: begun,
            read_duration: took,
            page,
            html: None,
            json: None,
            is_last,
        };
        let pause = self.poll_interval();
        self.newest.page.set_refresh(PageRefresh {
            reading: number,
            pause: pause.as_millis() as u64,
            seconds,
            ended: is_last,
        });
    }
}

impl PageReading {
    fn empty(at: Instant) -> PageReading {
        PageReading {
            number: 0,
            at,
            read_duration: Duration::ZERO,
            page: HtmlPage::default(),
            html: None,
            json: None,
            is_last: false,
        }
    }
}

/// The stream beside the log, if it exists and is of this run.
fn open_stream(log: &Path, profile: &Profile) -> Option<EventStream> {
    let stream = EventStream::open(events_path(log)).ok()?;
    check_same_run(profile, &stream).ok().map(|()| stream)
}
