//! Protocol Buffers in a stream: a message whose repeated fields are written one after the other, as they come.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Writes fields of one message.
pub struct Fields<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Fields<W> {
    pub fn new(out: W) -> Self {
        Fields {
            out,
            buffer: Vec::new(),
        }
    }

    pub fn message(&mut self, tag: u32, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(message.encoded_len() as u64, &mut self.buffer);
        message.encode_raw(&mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    pub fn text(&mut self, tag: u32, text: &str) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(text.len() as u64, &mut self.buffer);
        self.buffer.extend_from_slice(text.as_bytes());
        self.out.write_all(&self.buffer)
    }

    pub fn number(&mut self, tag: u32, number: i64) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::Varint, &mut self.buffer);
        encode_varint(number as u64, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Numbers for what is written once, in the order of first use.
pub struct Once<K> {
    known: HashMap<K, u64>,
    next: u64,
}

impl<K: Hash + Eq> Once<K> {
    /// The first one has this number.
    pub fn from(first: u64) -> Self {
        Once {
            known: HashMap::new(),
            next: first,
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.known.len() as u64
    }

    /// Its number, and whether it is new.
    pub fn number(&mut self, key: K) -> (u64, bool) {
        let next = self.next;
        let number = *self.known.entry(key).or_insert(next);
        let is_new = number == next;
        self.next += u64::from(is_new);
        (number, is_new)
    }
}
