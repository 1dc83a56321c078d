//! Lossless class-file rewriter.
