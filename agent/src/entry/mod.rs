//! The only doors: what the VM, the helper class, JNI, Java and C code call. Each hands on to a floor below.

mod c_api;
mod callbacks;
mod hookless_callbacks;
mod java_api;
mod jni_allocations;
mod jni_brackets;
mod natives;
mod premain;
mod tool_calls;
