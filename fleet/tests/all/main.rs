//! Tests of datasets, of the command and of its servers. They are one program: DataFusion is linked once.

mod collect;
mod command;
mod common;
mod compact;
mod dataset;
mod described;
mod limits;
mod serve;
mod stores;
