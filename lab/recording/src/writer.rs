//! Writes recordings: a buffer per thread, one lock for the file.
//!
//! Nothing here panics, and the file never outgrows its limit. When the next block would, or the
//! disk refuses one, the file is closed with a "cut" block and every later call is a no-op: what
//! threads still hold in their buffers is lost for all of them, so each thread's part of the file is
//! the beginning of what it did.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lucce_callgraph::MethodId;
use lucce_tracelog::LogRecord;

use crate::file::RecordingFile;
use crate::format::{
    BLOCK_HEADER, FILE_HEADER, RecordingBlockHead, RecordingBlockKind, file_header,
};
use crate::limits::{MAX_EDGES, MAX_NAME, MAX_THREADS, MAX_UNPACKED, RESERVE};
use crate::token::{StepToken, append_number};
use crate::{CallEdge, ProgramThreadId};

/// A thread's buffer is written when it holds this much.
const FULL: usize = MAX_UNPACKED / 2;
/// zlib's scale: beyond it, packing takes much longer and gains little.
const LEVEL: u8 = 6;

/// The file of a recording, shared by all threads.
pub struct RecordingWriter<W: Write = RecordingFile> {
    began: Instant,
    shared: Mutex<RecordingState<W>>,
}

struct RecordingState<W> {
    to: W,
    written: u64,
    limit: u64,
    /// Nothing more is written.
    closed: bool,
    cut: bool,
    edges: HashMap<CallEdge, u32>,
    threads: u32,
    /// Records and edges that no block contains yet.
    names: Vec<u8>,
    new_edges: Vec<u8>,
}

impl RecordingWriter<RecordingFile> {
    /// `limit` is the largest size of the file in bytes.
    ///
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(
        path: impl AsRef<Path>,
        limit: u64,
    ) -> io::Result<RecordingWriter<RecordingFile>> {
        RecordingWriter::new(RecordingFile::create(path.as_ref())?, limit)
    }

    /// The file, to be looked at.
    ///
    /// # Errors
    /// The system's.
    pub fn clone_file(&self) -> io::Result<File> {
        self.lock().to.clone_file()
    }
}

impl<W: Write> RecordingWriter<W> {
    /// # Errors
    /// The header cannot be written.
    pub fn new(mut to: W, limit: u64) -> io::Result<RecordingWriter<W>> {
        to.write_all(&file_header())?;
        let shared = RecordingState {
            to,
            written: FILE_HEADER as u64,
            limit: limit.saturating_sub(RESERVE),
            closed: false,
            cut: false,
            edges: HashMap::new(),
            threads: 0,
            names: Vec::new(),
            new_edges: Vec::new(),
        };
        Ok(RecordingWriter {
            began: Instant::now(),
            shared: Mutex::new(shared),
        })
    }

    /// A class, method or site, in the log's words. Before the first edge that uses it.
    pub fn name(&self, record: &LogRecord<'_>) {
        let (nanos, mut shared) = (self.nanos(), self.lock());
        if shared.closed {
            return;
        }
        let before = shared.names.len();
        record.append_to(&mut shared.names);
        if shared.names.len() - before > FULL {
            // No name is worth a block of its own.
            shared.names.truncate(before);
        } else if shared.names.len() >= FULL {
            let last = shared.names.split_off(before);
            shared.write_names(nanos);
            shared.names = last;
        }
    }

    /// A thread starts; `parent` is the thread that starts it, at the place where it does.
    pub fn start(&self, name: &str, parent: Option<&mut ThreadWriter>) -> ThreadWriter {
        let parent = parent.map(|parent| {
            parent.flush(self);
            (parent.id, parent.steps)
        });
        let (nanos, mut shared) = (self.nanos(), self.lock());
        let id = ProgramThreadId(shared.threads);
        if shared.threads == MAX_THREADS {
            shared.cut_recording(nanos);
        }
        shared.threads = shared.threads.saturating_add(1);
        let mut bytes = Vec::new();
        append_number(
            &mut bytes,
            parent.map_or(0, |(parent, _)| u64::from(parent.0) + 1),
        );
        append_number(&mut bytes, parent.map_or(0, |(_, position)| position));
        bytes.extend_from_slice(clip_name(name).as_bytes());
        shared.write_block(RecordingBlockKind::Start, id.0, nanos, &bytes);
        ThreadWriter {
            id,
            steps: 0,
            bytes: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// The program has ended; threads that did not `flush` lose what they hold. Says whether
    /// everything that was flushed is in the file.
    pub fn finish(&self) -> bool {
        let (nanos, mut shared) = (self.nanos(), self.lock());
        shared.write_pending(nanos);
        if !shared.closed {
            shared.close_recording(RecordingBlockKind::End, nanos);
        }
        !shared.cut
    }

    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// The file's size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().written
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A panic in another thread leaves no half block behind, so poison is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, RecordingState<W>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write> RecordingState<W> {
    fn number_edge(&mut self, edge: CallEdge, nanos: u64) -> Option<u32> {
        if self.closed {
            return None;
        }
        if let Some(known) = self.edges.get(&edge) {
            return Some(*known);
        }
        let id = self.edges.len() as u32;
        if id == MAX_EDGES {
            self.cut_recording(nanos);
            return None;
        }
        self.edges.insert(edge, id);
        for number in [edge.site.0, edge.caller.0, edge.callee.0] {
            append_number(&mut self.new_edges, number.into());
        }
        if self.new_edges.len() >= FULL {
            self.write_pending(nanos);
        }
        Some(id)
    }

    fn write_names(&mut self, nanos: u64) {
        let names = std::mem::take(&mut self.names);
        if !names.is_empty() {
            self.write_block(RecordingBlockKind::Names, 0, nanos, &names);
        }
    }

    /// What later blocks build upon.
    fn write_pending(&mut self, nanos: u64) {
        self.write_names(nanos);
        let new_edges = std::mem::take(&mut self.new_edges);
        if !new_edges.is_empty() {
            self.write_block(RecordingBlockKind::Edges, 0, nanos, &new_edges);
        }
    }

    fn write_block(&mut self, kind: RecordingBlockKind, thread: u32, nanos: u64, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let packed = miniz_oxide::deflate::compress_to_vec(bytes, LEVEL);
        let head = RecordingBlockHead {
            kind,
            thread,
            nanos,
            unpacked: bytes.len() as u32,
            packed: packed.len() as u32,
        };
        let size = (BLOCK_HEADER + packed.len()) as u64;
        let fits = self.written + size <= self.limit;
        if !fits || self.to.write_all(&head.encode_block(&packed)).is_err() {
            return self.cut_recording(nanos);
        }
        self.written += size;
    }

    #[cold]
    fn cut_recording(&mut self, nanos: u64) {
        self.cut = true;
        self.close_recording(RecordingBlockKind::Cut, nanos);
    }

    fn close_recording(&mut self, kind: RecordingBlockKind, nanos: u64) {
        if self.closed {
            return;
        }
        self.closed = true;
        let head = RecordingBlockHead {
            kind,
            thread: 0,
            nanos,
            unpacked: 0,
            packed: 0,
        };
        // Without it a reader says that the file ends early, which is as true.
        let result = self.to.write_all(&head.encode_block(&[]));
        if result.and_then(|()| self.to.flush()).is_ok() {
            self.written += BLOCK_HEADER as u64;
        } else {
            self.cut = true;
        }
    }
}

/// One thread's part of a recording. What it holds is lost unless it is flushed.
#[derive(Debug)]
pub struct ThreadWriter {
    id: ProgramThreadId,
    steps: u64,
    bytes: Vec<u8>,
    /// Numbers of edges, so that the lock is taken once per edge.
    known: HashMap<CallEdge, u32>,
}

impl ThreadWriter {
    #[must_use]
    pub fn id(&self) -> ProgramThreadId {
        self.id
    }

    /// Whether this thread has used the edge before.
    #[must_use]
    pub fn has_used_edge(&self, edge: CallEdge) -> bool {
        self.known.contains_key(&edge)
    }

    /// The innermost frame, `edge.caller`, calls `edge.callee`.
    pub fn enter<W: Write>(&mut self, writer: &RecordingWriter<W>, edge: CallEdge) {
        let known = self.known.get(&edge).copied();
        let number = known.or_else(|| {
            let number = writer.lock().number_edge(edge, writer.nanos())?;
            self.known.insert(edge, number);
            Some(number)
        });
        if let Some(number) = number {
            self.append_token(writer, StepToken::Edge(number));
        }
    }

    /// The innermost frame, `edge.caller`, wants to know its context at `edge.site`.
    pub fn event<W: Write>(&mut self, writer: &RecordingWriter<W>, edge: CallEdge) {
        let callee = MethodId::EVENT;
        self.enter(writer, CallEdge { callee, ..edge });
    }

    pub fn exit<W: Write>(&mut self, writer: &RecordingWriter<W>) {
        self.append_token(writer, StepToken::Exit);
    }

    /// An exception ended `frames` frames.
    pub fn unwind<W: Write>(&mut self, writer: &RecordingWriter<W>, frames: u32) {
        if frames > 0 {
            self.append_token(writer, StepToken::Unwind(frames));
        }
    }

    /// Writes what the buffer holds.
    pub fn flush<W: Write>(&mut self, writer: &RecordingWriter<W>) {
        if self.bytes.is_empty() {
            return;
        }
        let (nanos, mut shared) = (writer.nanos(), writer.lock());
        shared.write_pending(nanos);
        shared.write_block(RecordingBlockKind::Calls, self.id.0, nanos, &self.bytes);
        self.bytes.clear();
    }

    fn append_token<W: Write>(&mut self, writer: &RecordingWriter<W>, token: StepToken) {
        self.steps += 1;
        token.append_to(&mut self.bytes);
        if self.bytes.len() >= FULL {
            self.flush(writer);
        }
    }
}

fn clip_name(name: &str) -> &str {
    let end = (0..=MAX_NAME.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}
