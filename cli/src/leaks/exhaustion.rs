//! The content of the heap when a JVM ran out of memory.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{Profile, list_alive_objects};
use serde::Serialize;

use super::alive::AliveListing;
use super::as_of_time::AsOfTime;

/// Number of listed contexts.
const CONTEXTS: usize = 3;

/// The live objects when the heap was exhausted.
#[derive(Serialize)]
pub struct HeapExhaustion {
    /// The JVM's message. `None`: it ended without one.
    what: Option<String>,
    /// The flag that makes the JVM exit at once.
    exits_by: Option<String>,
    #[serde(flatten)]
    listing: AliveListing,
}

impl HeapExhaustion {
    /// Reads the state. `is_gone`: the JVM has ended. `None`: the heap was not exhausted.
    pub fn from_profile(profile: &Profile, is_gone: bool, top: usize) -> Option<HeapExhaustion> {
        let exits_by = profile.meta.get("leak.exits_by");
        let at_exhaustion = profile.followed_objects.exhaustion_census();
        let is_silent = is_gone && !profile.ended && exits_by.is_some();
        let last = profile.followed_objects.last_census().filter(|_| is_silent);
        let census = at_exhaustion.or(last)?;
        let objects = list_alive_objects(profile, census, &|_| ());
        let as_of = AsOfTime::new(profile.header.start, census.record.millis, None);
        Some(HeapExhaustion {
            what: at_exhaustion
                .map(|at_exhaustion| at_exhaustion.record.detail.clone().into_owned()),
            exits_by: exits_by.cloned(),
            listing: AliveListing::new(profile, &objects, as_of, top.min(CONTEXTS)),
        })
    }

    /// Whether these bytes are at least a tenth of the live bytes of the exhausted heap.
    pub fn is_filled_by(&self, bytes: u64) -> bool {
        bytes >= self.listing.total_bytes() / 10
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let listing = &self.listing;
        let seconds = listing.millis() as f64 / 1e3;
        let as_of = listing.as_of();
        match &self.what {
            Some(what) => writeln!(
                out,
                "the JVM ran out of memory after {seconds:.1} s ({}), {as_of}",
                EscapedText(what)
            )?,
            None => writeln!(
                out,
                "the JVM ended without a word: its memory was exhausted (-XX:+{}), or it was killed; after {seconds:.1} s, {as_of}:",
                EscapedText(self.exits_by.as_deref().unwrap_or_default())
            )?,
        }
        if let Some(heap) = listing.format_heap() {
            writeln!(out, "{heap}")?;
        }
        let what = match self.what.is_some() || listing.is_full() && listing.is_collected() {
            true => "what filled the heap",
            false => "what was alive, or not collected yet",
        };
        writeln!(out, "{what}, {}:\n", listing.format_estimate())?;
        listing.write_rows(out)?;
        writeln!(out)
    }
}
