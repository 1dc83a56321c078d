//! All integration tests of the crate, in one program.

mod annotate_fleet;
mod arguments;
mod bad_input;
mod bench;
mod chrome;
mod deep;
mod fuzz;
mod gate;
mod golden;
mod hostile;
mod init;
mod json;
mod marks;
mod no_file;
mod order;
mod otlp;
mod packed;
mod replay;
mod rows;
mod run;
mod runs;
mod selection;
mod serve;
mod symbols;
mod tags;
mod view;
