//! The text of `lucce --version`.

use std::sync::LazyLock;

/// Product and version, then the newest versions of files that it reads. `lucce -V` prints only the first line.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{}\nlucce: calling contexts of Java programs. Every event is counted under its whole stack of calls.\n\
             reads logs up to version {}, streams of events up to {}, recordings of calls up to {}",
            env!("CARGO_PKG_VERSION"),
            lucce_tracelog::FORMAT_VERSION,
            lucce_stream::FORMAT_VERSION,
            lucce_recording::FORMAT_VERSION,
        )
    });
    &TEXT
}
