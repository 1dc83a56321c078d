//! The only doors: what the VM, the helper class, JNI, Java and C code call. Each hands on to a floor below.

mod attached;
mod bracket;
mod c_api;
mod callbacks;
mod java_api;
mod jni;
mod natives;
mod premain;
mod tool_calls;
