//! Passes the page's address to the browser. Every user of the machine can read the command lines of all processes. So the
//! address, which holds the secret, is in a file that forwards to it and that only its user can read.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, thread};

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lucce_control::stop_signal;

use super::super::output::private_file_options;

const NAME: &str = "open.html";
/// Time between two checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A file that forwards a browser to an address, in its own folder. Dropping it removes both.
pub struct OpenerFile {
    folder: PathBuf,
}

impl OpenerFile {
    /// # Errors
    /// The folder or the file cannot be created.
    pub fn new(address: &str) -> io::Result<OpenerFile> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|folder| folder.is_dir());
        let opener = OpenerFile {
            folder: new_folder(&runtime.unwrap_or_else(env::temp_dir))?,
        };
        let mut file = private_file_options()
            .create_new(true)
            .open(opener.path())?;
        // The address has only letters, digits and `:/.`.
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>lucce serve</title>\n\
             <a href=\"{address}\">The page of lucce serve</a>\n</html>\n"
        );
        file.write_all(page.as_bytes())?;
        Ok(opener)
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }
}

impl Drop for OpenerFile {
    fn drop(&mut self) {
        // A file that cannot be removed leads to a server that has ended.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn new_folder(within: &Path) -> io::Result<PathBuf> {
    let mut bits = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bits)?;
    let folder = within.join(format!("lucce-serve-{:016x}", u64::from_ne_bytes(bits)));
    DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Holds the file until the page was requested, or the command ends.
#[derive(Default)]
pub struct OpenerHolder(Mutex<Option<OpenerFile>>);

impl OpenerHolder {
    pub fn set_file(&self, file: OpenerFile) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    pub fn remove_file(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Removes the file and ends the process after Ctrl-C or SIGTERM (see `stop_signal::handle_stop_signals`).
    pub fn end_on_request(&self) {
        while !stop_signal::is_stop_requested() {
            thread::sleep(POLL_INTERVAL);
        }
        self.remove_file();
        std::process::exit(0);
    }
}

#[cfg(test)]
mod opener_tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_its_users_alone_and_goes() {
        let file = OpenerFile::new("http://127.0.0.1:1/00ff/").unwrap();
        let path = file.path();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("content=\"0; url=http://127.0.0.1:1/00ff/\""),
            "{text}"
        );
        let opener = OpenerHolder::default();
        opener.set_file(file);
        assert!(path.exists());
        opener.remove_file();
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }
}
