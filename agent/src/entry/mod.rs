//! Entry points: functions that the VM, the helper class, JNI, Java and C code call. Each passes on to a lower layer.
//!
//! `agent_load`, `callbacks` and `event_callbacks` are called by the VM, `natives`, `lab_natives` and `premain` by the helper classes,
//! `java_api` and `c_api` by programs. `jni_brackets`, `jni_allocations` and `tool_calls` replace functions of JNI
//! and JVMTI, `native_methods` and `library_calls` those that allocate memory outside of the heap; `critical_regions` are
//! those in which it is recorded later.

mod agent_load;
mod c_api;
mod callbacks;
mod critical_regions;
mod event_callbacks;
mod java_api;
mod jni_allocations;
mod jni_brackets;
#[cfg(feature = "lab")]
mod lab_natives;
mod library_calls;
mod native_methods;
mod natives;
mod premain;
mod tool_calls;
