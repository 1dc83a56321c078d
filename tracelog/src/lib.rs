//! The write-only log: its format, writer and tolerant reader.
