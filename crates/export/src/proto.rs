//! Writes Protocol Buffers as a stream: a message's repeated fields are written one after the other, as they come.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Writes the fields of one message.
pub struct ProtobufWriter<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> ProtobufWriter<W> {
    pub fn new(out: W) -> Self {
        ProtobufWriter {
            out,
            buffer: Vec::new(),
        }
    }

    pub fn write_message(&mut self, tag: u32, message: &impl Message) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(message.encoded_len() as u64, &mut self.buffer);
        message.encode_raw(&mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    pub fn write_string(&mut self, tag: u32, text: &str) -> io::Result<()> {
        self.write_bytes(tag, text.as_bytes())
    }

    pub fn write_bytes(&mut self, tag: u32, bytes: &[u8]) -> io::Result<()> {
        self.write_length_prefix(tag, bytes.len() as u64)?;
        self.out.write_all(bytes)
    }

    /// Writes the tag and the length in front of `length` bytes of text or of a message.
    pub fn write_length_prefix(&mut self, tag: u32, length: u64) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::LengthDelimited, &mut self.buffer);
        encode_varint(length, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// Writes a number of 64 bits, whatever its size.
    pub fn write_fixed64(&mut self, tag: u32, number: u64) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::SixtyFourBit, &mut self.buffer);
        self.buffer.extend_from_slice(&number.to_le_bytes());
        self.out.write_all(&self.buffer)
    }

    pub fn write_varint(&mut self, tag: u32, number: i64) -> io::Result<()> {
        self.buffer.clear();
        encode_key(tag, WireType::Varint, &mut self.buffer);
        encode_varint(number as u64, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Indices for items that are written once, in the order of first use.
pub struct InternTable<K> {
    numbers: HashMap<K, u64>,
    next: u64,
}

impl<K: Hash + Eq> InternTable<K> {
    /// The first item gets the index `first`.
    pub fn with_first_number(first: u64) -> Self {
        InternTable {
            numbers: HashMap::new(),
            next: first,
        }
    }

    /// Returns the item's index, if it has one.
    pub fn get(&self, key: &K) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Returns all items, in the order of their indices.
    pub fn keys_in_order(&self) -> Vec<&K> {
        let mut all: Vec<_> = self.numbers.iter().collect();
        all.sort_unstable_by_key(|(_, number)| **number);
        all.into_iter().map(|(key, _)| key).collect()
    }

    /// Returns the number of items.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Returns the item's index, and whether it is new.
    pub fn intern(&mut self, key: K) -> (u64, bool) {
        let next = self.next;
        let number = *self.numbers.entry(key).or_insert(next);
        let is_new = number == next;
        self.next += u64::from(is_new);
        (number, is_new)
    }
}
