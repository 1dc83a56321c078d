//! Memory that Java code reads as well, and compact tables. Nothing here knows its purpose.
//!
//! Start with [`shared_layout`], the contract with the helper classes, and [`slots`]. [`address_space`] reserves the
//! memory; [`event_mask`], [`java_table`] and [`java_caches`] are read by Java code.

pub mod address_space;
pub mod allocation_weight;
pub mod bit_set;
pub mod counter;
pub mod grow_only_array;
pub mod java_caches;
pub mod java_table;
pub mod library_imports;
pub mod locks;
pub mod pages;
#[cfg(test)]
pub mod random_numbers;
pub mod slots;
pub mod text_table;

pub use lucce_layout::{event_mask, shared_layout, site_method};
