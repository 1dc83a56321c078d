//! What fuzz targets do with a file, and how they damage files; also run by tests from fixed seeds.

pub mod bodies;
pub mod mutate;
