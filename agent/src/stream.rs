//! `record=stream`: each event that is counted is also an entry, with its time, of a file beside the log.
//!
//! A thread's place for its next entry lies in its state (`thread`), where Java code writes as well: the
//! helper class's editions with STREAM do for what is counted in Java what [`record`] does here. When a
//! thread has ended, the next one of its lane goes on in its block. What finds no room is counted
//! only, so the log's counters say how much that was.
#![allow(unsafe_code, reason = "a native method of the helper class")]

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jlong};
use lucce_callgraph::ContextId;
use lucce_stream::{MOST_TYPE, Place, StreamThread, ThreadId, Writer};
use lucce_tracelog::{EventTypeId, Header};

use crate::agent::Agent;
use crate::cells::{self, lane_of};
use crate::clock;
use crate::fate::Fate;
use crate::jvm::Env;
use crate::lane::Lane;
use crate::natives::guard;
use crate::options::Level;
use crate::thread::{OwnState, ThreadState};

/// The stream of all threads.
pub struct Streamer {
    writer: Writer,
    path: PathBuf,
}

impl Streamer {
    /// Beside the log, whose header this is.
    ///
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(path: &Path, log: &Header, limit: u64) -> io::Result<Streamer> {
        let since_start = clock::nanos().saturating_sub(log.start);
        let header = lucce_stream::Header {
            pid: log.pid,
            start: log.start,
            clock: clock::nano_time().saturating_sub(since_start),
        };
        let writer = Writer::create(path, &header, limit)?;
        let path = path.to_owned();
        Ok(Streamer { writer, path })
    }

    /// The file, to be read, and its size; entries in it go on being written.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> io::Result<(File, u64)> {
        let bytes = self.writer.bytes();
        Ok((self.writer.file()?, bytes))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fate(&self) -> Fate {
        let lost = self.writer.lost();
        let file = self.writer.file();
        file.map_or(Fate::Failed, |file| Fate::of(&file, &self.path, lost))
    }

    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    pub fn is_full(&self) -> bool {
        self.writer.is_full()
    }

    /// The JVM ends; what the user is told.
    pub fn finish(&self) -> (Level, String) {
        self.writer.finish(clock::nano_time());
        let megabytes = self.writer.bytes() as f64 / 1e6;
        let full = match self.writer.is_full() {
            true => "; it is full, later events are counted only",
            false => "",
        };
        let fate = self.fate();
        let path = fate.path(&self.path).display();
        match fate.told(&self.path).filter(|_| fate.is_lost()) {
            Some(what) => {
                let line = format!("{what}: the events' times are lost");
                (Level::Error, line)
            }
            None => {
                let line = format!("events streamed to {path} ({megabytes:.1} MB{full})");
                (Level::Info, line)
            }
        }
    }

    /// Room for the thread's next event, at the time `now`, or the certainty that there is none.
    fn make_room(&self, agent: &Agent, env: Env, state: &ThreadState, now: u64) {
        let known = state.stream_thread.get();
        let mut lane = lane_of(agent, env, state);
        let id = cells::id(agent, &mut lane);
        if known != StreamThread::default() {
            return state.place.renew(&self.writer, (id, known), now);
        }
        let (thread, place) = self.begin(&mut lane, id, now);
        state.stream_thread.set(thread);
        state.place.go_to(place);
    }

    /// A thread's first event: who it is, and a place.
    fn begin(&self, lane: &mut Lane, id: ThreadId, now: u64) -> (StreamThread, Place) {
        let Some(thread) = self.writer.thread(id, &lane.name, lane.is_virtual) else {
            return (StreamThread::default(), self.writer.refuse(now));
        };
        let place = std::mem::take(&mut lane.place);
        if !place.hand_over(now, thread) {
            place.renew(&self.writer, (id, thread), now);
        }
        (thread, place)
    }
}

/// With `record=stream`: an event of the current thread, whose state this is, has just been counted.
pub fn record(
    agent: &Agent,
    env: Env,
    state: &ThreadState,
    (event, number): (EventTypeId, ContextId),
    value: i64,
) {
    let Some(streamer) = &agent.streamer else {
        return;
    };
    if number == ContextId::UNKNOWN || event.0 > MOST_TYPE {
        return;
    }
    if state.place.is_refused() {
        return;
    }
    let now = clock::nano_time();
    if !state.place.put(now, event.0, number.0, value) {
        streamer.make_room(agent, env, state, now);
        // Without room it is counted only.
        state.place.put(now, event.0, number.0, value);
    }
}

/// The same for an event that Java code writes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_LucceRtEvents_room0(
    env: *mut JNIEnv,
    _: jclass,
    own: OwnState,
    now: jlong,
) {
    guard((), |agent| {
        if let (Some(streamer), Some(state)) = (&agent.streamer, own.get()) {
            streamer.make_room(agent, agent.env(env), state, now.cast_unsigned());
        }
    });
}
