//! Repeated starts: the VM loads the agent once for each option that names it, first from `JAVA_TOOL_OPTIONS`, then from the command
//! line. The first start records. A second start of this library, or of a copy of it, changes nothing.
#![allow(
    unsafe_code,
    reason = "copies of this library are asked by its C functions"
)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;
use std::{fs, ptr};

/// The options of the recording start.
static RECORDED: OnceLock<CString> = OnceLock::new();

/// The function that copies of this library export.
type AskOptions = extern "C" fn() -> *const c_char;
const ASK_OPTIONS: &CStr = c"lucce_recorded_options";

/// Sets the options with which this library records.
pub fn set_recorded_options(text: &str) {
    if let Ok(text) = CString::new(text) {
        let _ = RECORDED.set(text);
    }
}

/// For copies of this library in the same process: the options with which it records; null: it does not.
#[unsafe(no_mangle)]
pub extern "C" fn lucce_recorded_options() -> *const c_char {
    RECORDED.get().map_or(ptr::null(), |text| text.as_ptr())
}

/// The options with which this library or a copy of it records this VM.
pub fn recorded_options() -> Option<String> {
    let own = RECORDED
        .get()
        .map(|text| text.to_string_lossy().into_owned());
    own.or_else(|| {
        mapped_libraries()
            .iter()
            .find_map(|library| query_options(library))
    })
}

/// The message about the second start.
pub fn repetition_message(first: &str, second: &str) -> String {
    match first == second {
        true => "the agent is named twice with the same options (JAVA_TOOL_OPTIONS and the command line, say); the second one is ignored"
            .to_owned(),
        false => format!(
            "the agent is named twice (JAVA_TOOL_OPTIONS and the command line, say), with different options; it records with the first \
             ones, {first:?}, and refuses the second ones, {second:?}: leave out one of them"
        ),
    }
}

/// Files that this process has mapped as code.
fn mapped_libraries() -> Vec<CString> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lines = maps
        .lines()
        .filter(|line| line.split(' ').nth(1).is_some_and(|may| may.contains('x')));
    let files = lines.filter_map(|line| Some(&line[line.find('/')?..]));
    let mut files: Vec<_> = files.filter_map(|file| CString::new(file).ok()).collect();
    files.dedup();
    files
}

fn query_options(library: &CStr) -> Option<String> {
    // SAFETY: the name ends with a zero. Nothing is loaded that is not loaded already.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: an open library, and a name that ends with a zero.
    let ask = unsafe { libc::dlsym(handle, ASK_OPTIONS.as_ptr()) };
    let text = (!ask.is_null()).then(|| {
        // SAFETY: all versions of this library have this function with this type.
        let ask = unsafe { std::mem::transmute::<*mut c_void, AskOptions>(ask) };
        ask()
    });
    let text = text.filter(|text| !text.is_null()).map(|text| {
        // SAFETY: a text that ends with a zero and lives as long as its library, which the VM never unloads.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    });
    // SAFETY: the library was opened once by this function, and is closed once.
    unsafe { libc::dlclose(handle) };
    text
}

#[cfg(test)]
mod repeated_start_tests {
    use super::*;

    #[test]
    fn the_second_start_names_the_options_that_differ() {
        assert!(repetition_message("a", "a").ends_with("the second one is ignored"));
        let message = repetition_message("events=alloc", "");
        assert!(
            message.contains("\"events=alloc\"") && message.contains("second ones, \"\""),
            "{message}"
        );
    }

    #[test]
    fn the_first_options_hold() {
        assert_eq!(recorded_options(), None);
        set_recorded_options("events=alloc");
        set_recorded_options("events=lock");
        assert_eq!(recorded_options().as_deref(), Some("events=alloc"));
        assert!(
            mapped_libraries()
                .iter()
                .any(|file| file.to_string_lossy().contains("libc"))
        );
    }
}
