//! Decoder library.
