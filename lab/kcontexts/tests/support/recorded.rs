//! Recorded contexts of real programs, as calls: what changes from one event's stack to the next.
//!
//! A file holds events: a big-endian u32 length, then that many u32 sites from the thread's entry
//! to the event, outermost first; `site >> 12` is the method. Events that hold a zero are skipped.

use std::collections::HashMap;
use std::io::Read;

use lucce_kcontexts::*;

/// The stacks of methods, outermost first, with methods counted from 0.
pub fn read(source: impl Read) -> (Vec<Vec<Label>>, u32) {
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(source).expect("zstd");
    decoder.read_to_end(&mut bytes).expect("zstd");
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let (mut stacks, mut labels) = (Vec::new(), HashMap::new());
    while let Some(length) = words.next() {
        let sites: Vec<u32> = words.by_ref().take(length as usize).collect();
        if sites.is_empty() || sites.contains(&0) {
            continue;
        }
        let label = |site: u32| {
            let next = labels.len() as u32;
            Label(*labels.entry(site >> 12).or_insert(next))
        };
        stacks.push(sites.into_iter().map(label).collect());
    }
    let known = labels.len() as u32;
    (stacks, known)
}

/// Leaves and calls from each stack to the next. Frames that two stacks share are one call.
pub fn tell(stacks: &[Vec<Label>], listener: &mut impl Listener) -> Result<(), Error> {
    let thread = Thread(0);
    let mut last: &[Label] = &[];
    for stack in stacks {
        let same = last.iter().zip(stack).take_while(|(a, b)| a == b).count();
        for _ in same..last.len() {
            listener.leave(thread)?;
        }
        for label in &stack[same..] {
            listener.call(thread, (*label).into())?;
        }
        last = stack;
    }
    Ok(())
}
