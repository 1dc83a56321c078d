//! All integration tests of the crate, in one program.

mod companions;
mod evidence;
mod exported;
mod focus;
mod hot_paths;
mod large;
mod scope;
