//! The newest data of the page: the log is read again when a browser asks and the last reading is old enough.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lucce_decoder::{Events, Page, Profile, Refresh, Stream, header_of, path_beside};

use super::super::classes::Classes;
use super::super::{Failure, leaks, process, view};

pub struct Readings<'a> {
    log: PathBuf,
    /// The process that writes the log, or has written it.
    pid: u32,
    classes: &'a Classes,
    /// From one reading to the next, at least.
    interval: Duration,
    before: Events,
    /// When these were read; none: there is one reading so far, and no interval.
    counted_at: Option<Instant>,
    newest: Reading,
}

/// What was read once.
struct Reading {
    /// The first is 1.
    number: u64,
    at: Instant,
    took: Duration,
    page: Page,
    /// The page as a file, and its data alone, each made when it is first asked for.
    html: Option<Arc<str>>,
    json: Option<Arc<str>>,
    /// Nothing more will come.
    is_last: bool,
}

impl<'a> Readings<'a> {
    /// Reads the log for the first time.
    pub fn new(
        log: PathBuf,
        classes: &'a Classes,
        interval: Duration,
    ) -> Result<Readings<'a>, Failure> {
        let begun = Instant::now();
        let header = header_of(&log).map_err(|e| Failure::Open(log.clone(), e))?;
        let is_last = process::is_gone(header.pid, &log);
        let mut profile = classes.open(&log)?;
        let mut readings = Readings {
            newest: Reading::empty(begun),
            before: profile.events.clone(),
            counted_at: None,
            log,
            pid: header.pid,
            classes,
            interval,
        };
        readings.take(&mut profile, begun, is_last);
        Ok(readings)
    }

    /// The page with its data.
    pub fn page(&mut self) -> Result<Arc<str>, String> {
        self.renew()?;
        let Reading { html, page, .. } = &mut self.newest;
        Ok(Arc::clone(html.get_or_insert_with(|| page.html().into())))
    }

    /// The data alone; `None`: they are not newer than that reading.
    pub fn data(&mut self, after: u64) -> Result<Option<Arc<str>>, String> {
        self.renew()?;
        let Reading {
            json, page, number, ..
        } = &mut self.newest;
        let is_new = *number > after;
        let json = is_new.then(|| Arc::clone(json.get_or_insert_with(|| page.json().into())));
        Ok(json)
    }

    /// From now to the next reading: reading takes a quarter of a processor at most.
    fn pause(&self) -> Duration {
        self.interval.max(self.newest.took * 4)
    }

    fn renew(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        if self.newest.is_last || begun - self.newest.at < self.pause() {
            return Ok(());
        }
        // The process writes until it has ended, so that is asked before the log is read.
        let is_last = process::is_gone(self.pid, &self.log);
        let profile = self.classes.open(&self.log);
        let mut profile = profile.map_err(|failure| {
            failure.tell();
            format!("{} cannot be read any more", self.log.display())
        })?;
        self.take(&mut profile, begun, is_last);
        Ok(())
    }

    fn take(&mut self, profile: &mut Profile, begun: Instant, is_last: bool) {
        let is_last = is_last || profile.ended;
        let counted_at = profile.counted_at;
        let before = self.counted_at.replace(counted_at);
        let seconds = before.map(|before| (counted_at - before).as_secs_f64());
        let number = self.newest.number + 1;
        let mut page = Page::default();
        let log = &self.log;
        let more = profile.events.since(&self.before);
        self.before = std::mem::replace(&mut profile.events, more);
        page.add(view::text(log, profile), profile, None, &|_| ());
        std::mem::swap(&mut profile.events, &mut self.before);
        let stream = stream(log, profile);
        page.add(view::text(log, profile), profile, stream.as_ref(), &|_| ());
        std::mem::swap(&mut profile.events, &mut self.before);
        if profile.meta.contains_key("leak.interval") {
            page.leaks(leaks::text(profile, (!is_last).then_some(self.pid)));
        }
        let took = begun.elapsed();
        self.newest = Reading {
            number,
            at: begun,
            took,
            page,
            html: None,
            json: None,
            is_last,
        };
        let pause = self.pause();
        self.newest.page.live(Refresh {
            reading: number,
            pause: pause.as_millis() as u64,
            seconds,
            ended: is_last,
        });
    }
}

impl Reading {
    fn empty(at: Instant) -> Reading {
        Reading {
            number: 0,
            at,
            took: Duration::ZERO,
            page: Page::default(),
            html: None,
            json: None,
            is_last: false,
        }
    }
}

/// That beside the log, if it is there and of this run.
fn stream(log: &Path, profile: &Profile) -> Option<Stream> {
    let stream = Stream::open(path_beside(log)).ok()?;
    profile.explains(&stream).ok().map(|()| stream)
}
