//! Opens recordings: everything up to the first damage, then where and what it is.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use lucce_callgraph::{MethodId, SiteId};
use lucce_tracelog::{LogDamage, LogRecord, OpenError, open_file};
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::format::{
    BLOCK_HEADER, FILE_HEADER, RecordingBlockHead, RecordingBlockKind, check_file_header,
};
use crate::limits::{MAX_EDGES, MAX_PACKED, MAX_THREADS, MAX_UNPACKED};
use crate::token::{read_number, read_u32};
use crate::{CallEdge, ProgramThreadId, RecordedStart};

/// A recording in memory: its dictionary is read, its steps are unpacked on the way.
pub struct Recording {
    bytes: Vec<u8>,
    /// Of starts and calls, in the file's order.
    blocks: Vec<StepBlock>,
    edges: Vec<CallEdge>,
    names: Vec<u8>,
    threads: Vec<String>,
    nanos: u64,
    ended: bool,
    cut: bool,
    damage: Option<LogDamage>,
}

/// The method that each site lies in.
type Callers = HashMap<SiteId, MethodId>;

/// Something that threads did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepBlock {
    pub offset: usize,
    pub thread: ProgramThreadId,
    pub nanos: u64,
    /// The block is a thread's start; otherwise calls.
    pub start: Option<RecordedStart>,
    /// Number of edges that the file defined before this block.
    pub edges: u32,
}

impl Recording {
    /// # Errors
    /// See [`OpenError`]. Damage after the header is not one: see [`damage`](Self::damage).
    pub fn open(path: impl AsRef<Path>) -> Result<Recording, OpenError> {
        let mut file = open_file(path)?;
        let mut bytes = Vec::new();
        file.by_ref()
            .take(FILE_HEADER as u64)
            .read_to_end(&mut bytes)?;
        // First, so that a huge foreign file is not read.
        check_file_header(&bytes)?;
        file.read_to_end(&mut bytes)?;
        Self::from_bytes(bytes)
    }

    /// # Errors
    /// See [`OpenError`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Recording, OpenError> {
        check_file_header(&bytes)?;
        let mut recording = Recording {
            bytes: Vec::new(),
            blocks: Vec::new(),
            edges: Vec::new(),
            names: Vec::new(),
            threads: Vec::new(),
            nanos: 0,
            ended: false,
            cut: false,
            damage: None,
        };
        recording.damage = recording.scan_blocks(&bytes).err();
        recording.bytes = bytes;
        Ok(recording)
    }

    /// Classes, methods and sites, as far as the recording names them.
    pub fn names(&self) -> impl Iterator<Item = LogRecord<'_>> {
        let mut rest = &*self.names;
        std::iter::from_fn(move || {
            // Each was parsed when the recording was opened.
            while !rest.is_empty() {
                if let Some(record) = LogRecord::parse_next(&mut rest).ok()? {
                    return Some(record);
                }
            }
            None
        })
    }

    /// All different calls and events, in the order of first use.
    #[must_use]
    pub fn edges(&self) -> &[CallEdge] {
        &self.edges
    }

    /// Threads' names, by [`ThreadId`].
    #[must_use]
    pub fn threads(&self) -> &[String] {
        &self.threads
    }

    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// How long the recording took, in nanoseconds. Being recorded slows a program down.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.nanos
    }

    /// The program ended, and the whole run is here.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The limit was reached: each thread's beginning is here.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Where reading stopped. A file that ends between two blocks without an end is no damage: its
    /// program was killed.
    #[must_use]
    pub fn damage(&self) -> Option<&LogDamage> {
        self.damage.as_ref()
    }

    pub(crate) fn blocks(&self) -> &[StepBlock] {
        &self.blocks
    }

    /// The unpacked bytes of a block that was surveyed.
    pub(crate) fn unpack_block(&self, block: &StepBlock) -> Result<Vec<u8>, LogDamage> {
        let failed = |reason| damage_at(block.offset, reason);
        let bytes = self.bytes.get(block.offset..).unwrap_or_default();
        let (head, packed, _) = RecordingBlockHead::split_block(bytes).map_err(failed)?;
        unpack_bytes(&head, packed).map_err(failed)
    }

    /// Reads everything but calls.
    fn scan_blocks(&mut self, bytes: &[u8]) -> Result<(), LogDamage> {
        let mut rest = bytes.get(FILE_HEADER..).unwrap_or_default();
        let mut callers = Callers::new();
        while !rest.is_empty() {
            let offset = bytes.len() - rest.len();
            let (head, packed, behind) =
                RecordingBlockHead::split_block(rest).map_err(|e| damage_at(offset, e))?;
            if self.ended || self.cut {
                return Err(damage_at(offset, "a block after the end"));
            }
            self.read_block(offset, &head, packed, &mut callers)?;
            self.nanos = self.nanos.max(head.nanos);
            rest = behind;
        }
        Ok(())
    }

    fn read_block(
        &mut self,
        offset: usize,
        head: &RecordingBlockHead,
        packed: &[u8],
        callers: &mut Callers,
    ) -> Result<(), LogDamage> {
        let failed = |reason| damage_at(offset, reason);
        let fits = head.packed as usize <= MAX_PACKED && head.unpacked as usize <= MAX_UNPACKED;
        if !fits {
            return Err(failed("a block is larger than the format allows"));
        }
        let bytes = || unpack_bytes(head, packed).map_err(failed);
        match head.kind {
            RecordingBlockKind::Names => self.read_names(offset, &bytes()?),
            RecordingBlockKind::Edges => self.read_edges(offset, &bytes()?, callers),
            RecordingBlockKind::Start => self.read_start(head, offset, &bytes()?),
            RecordingBlockKind::Calls => self.add_calls(head, offset),
            RecordingBlockKind::Cut => {
                self.cut = true;
                Ok(())
            }
            RecordingBlockKind::End => {
                self.ended = true;
                Ok(())
            }
        }
    }

    fn read_names(&mut self, offset: usize, bytes: &[u8]) -> Result<(), LogDamage> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = bytes.len() - rest.len();
            LogRecord::parse_next(&mut rest).map_err(|e| damage_within(offset, within, e))?;
        }
        self.names.extend_from_slice(bytes);
        Ok(())
    }

    fn read_edges(
        &mut self,
        offset: usize,
        bytes: &[u8],
        callers: &mut Callers,
    ) -> Result<(), LogDamage> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = bytes.len() - rest.len();
            let edge = read_edge(&mut rest).map_err(|e| damage_within(offset, within, e))?;
            if self.edges.len() as u32 == MAX_EDGES {
                return Err(damage_within(
                    offset,
                    within,
                    "more edges than the format allows",
                ));
            }
            if *callers.entry(edge.site).or_insert(edge.caller) != edge.caller {
                return Err(damage_within(
                    offset,
                    within,
                    "a site that lies in two methods",
                ));
            }
            self.edges.push(edge);
        }
        Ok(())
    }

    fn read_start(
        &mut self,
        head: &RecordingBlockHead,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), LogDamage> {
        let failed = |reason| damage_at(offset, reason);
        if head.thread as usize != self.threads.len() || head.thread >= MAX_THREADS {
            return Err(failed("threads do not start in order"));
        }
        let mut rest = bytes;
        let parent = read_number(&mut rest).map_err(failed)?;
        let position = read_number(&mut rest).map_err(failed)?;
        if parent > u64::from(head.thread) {
            return Err(failed("a thread was started by one that is not there yet"));
        }
        let parent = parent
            .checked_sub(1)
            .map(|parent| ProgramThreadId(parent as u32));
        let name = std::str::from_utf8(rest).map_err(|_| failed("a name is not UTF-8"))?;
        self.threads.push(name.to_owned());
        self.add_block(head, offset, Some(RecordedStart { parent, position }));
        Ok(())
    }

    fn add_calls(&mut self, head: &RecordingBlockHead, offset: usize) -> Result<(), LogDamage> {
        if head.thread as usize >= self.threads.len() {
            return Err(damage_at(offset, "calls of a thread that has not started"));
        }
        self.add_block(head, offset, None);
        Ok(())
    }

    fn add_block(
        &mut self,
        head: &RecordingBlockHead,
        offset: usize,
        start: Option<RecordedStart>,
    ) {
        self.blocks.push(StepBlock {
            offset,
            thread: ProgramThreadId(head.thread),
            nanos: head.nanos,
            start,
            edges: self.edges.len() as u32,
        });
    }
}

fn unpack_bytes(head: &RecordingBlockHead, packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    let bytes = decompress_to_vec_with_limit(packed, head.unpacked as usize)
        .map_err(|_| "a block cannot be unpacked")?;
    match bytes.len() == head.unpacked as usize {
        true => Ok(bytes),
        false => Err("a block is shorter than it says"),
    }
}

fn read_edge(bytes: &mut &[u8]) -> Result<CallEdge, &'static str> {
    let site = SiteId(read_u32(bytes)?);
    let caller = MethodId(read_u32(bytes)?);
    let callee = MethodId(read_u32(bytes)?);
    let edge = CallEdge {
        site,
        caller,
        callee,
    };
    let callee_fits = callee.0 >= 1 && callee <= MethodId::EVENT;
    let is_call = site.0 >= 1 && site.0 <= SiteId::MAX && (1..=MethodId::MAX).contains(&caller.0);
    let is_entry = edge == CallEdge::from_thread_entry(callee) && callee != MethodId::EVENT;
    match callee_fits && (is_call || is_entry) {
        true => Ok(edge),
        false => Err("an edge's ids are out of range"),
    }
}

#[cold]
fn damage_at(offset: usize, reason: &'static str) -> LogDamage {
    LogDamage::at_offset(offset as u64, reason)
}

#[cold]
pub(crate) fn damage_within(offset: usize, within: usize, reason: &'static str) -> LogDamage {
    LogDamage {
        within: Some(within),
        ..damage_at(offset, reason)
    }
}

const _: () = assert!(BLOCK_HEADER == 28 && FILE_HEADER == 16);
