//! Where the files of a dataset are: a folder, or a part of a bucket of an object store.
//!
//! ```text
//! staged file on this disk ─► publish_file ─► a file that no commit names yet
//! commit                   ─► create_file  ─► one of two writers wins
//! ```
//! Readers never count on listings: a commit names each file, and the number of a commit says its name. A listing that lags shows an older
//! state, to which newer commits are added, or less garbage.

mod bucket;
mod committed;
mod folder;

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::ObjectStore;
use object_store::path::Path as ObjectPath;
use url::Url;

use crate::error::FleetError;
use bucket::BucketStore;
use committed::CommittedFiles;
use folder::FolderStore;

/// A store that several parts of the program use.
pub type SharedStore = Arc<dyn DatasetStore>;

/// The files of one dataset. Paths are below the dataset, with `/` between folders.
///
/// Each function fails if the store cannot be reached, or refuses the access.
pub trait DatasetStore: Send + Sync {
    /// The dataset itself as users name it, for messages.
    fn location(&self) -> &Path;

    /// The name of a file for messages.
    fn display_path(&self, path: &str) -> PathBuf;

    /// The dataset as a URL that ends with `/`.
    ///
    /// # Errors
    /// The folder is not there.
    fn base_url(&self) -> Result<Url, FleetError>;

    /// What DataFusion reads files with, and for which URLs.
    fn object_store(&self) -> (ObjectStoreUrl, Arc<dyn ObjectStore>);

    /// The dataset, if it is a folder.
    fn local_folder(&self) -> Option<&Path> {
        None
    }

    /// A new file on this disk that becomes one of the dataset, or is needed for a while.
    ///
    /// # Errors
    /// It cannot be made.
    fn create_staged(&self, extension: &str) -> Result<(LocalFile, File), FleetError>;

    /// Makes the place of a dataset, unless it is there. The names of what it has.
    ///
    /// # Errors
    /// As those of all functions.
    fn create_root(&self) -> Result<Vec<String>, FleetError>;

    /// Makes a folder of the dataset, where there are folders.
    ///
    /// # Errors
    /// As those of all functions.
    fn create_folder(&self, name: &str) -> Result<(), FleetError>;

    /// All bytes of a file. `None`: it is not there.
    ///
    /// # Errors
    /// As those of all functions.
    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, FleetError>;

    /// A file to be read on this disk: itself, or a copy.
    ///
    /// # Errors
    /// The file is not there, or as those of all functions.
    fn fetch_file(&self, path: &str) -> Result<LocalFile, FleetError>;

    /// Makes a file that stays when the machine stops. `false`: there is another one of this name.
    ///
    /// # Errors
    /// It is not known whether the file was made.
    fn create_file(&self, path: &str, bytes: &[u8]) -> Result<bool, FleetError>;

    /// Makes a staged file one of the dataset, whose name no other has.
    ///
    /// # Errors
    /// As those of all functions.
    fn publish_file(&self, staged: LocalFile, path: &str) -> Result<(), FleetError>;

    /// Published files stay when the machine stops.
    ///
    /// # Errors
    /// As those of all functions.
    fn sync_files(&self, paths: &mut dyn Iterator<Item = &str>) -> Result<(), FleetError>;

    /// Removes a file, unless it is gone already.
    ///
    /// # Errors
    /// As those of all functions.
    fn remove_file(&self, path: &str) -> Result<(), FleetError>;

    /// All files below a folder; none if it is not there.
    ///
    /// # Errors
    /// As those of all functions.
    fn list_files(&self, folder: &str) -> Result<Vec<StoredFile>, FleetError>;
}

/// A file that is there, whether a commit names it or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredFile {
    pub path: String,
    /// None: the store does not know it.
    pub modified: Option<SystemTime>,
}

/// Opens a folder, or `s3://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`. Nothing is read or written yet.
///
/// # Errors
/// The URL is none of a store, has credentials in it, or the environment has no valid access to the store.
pub fn open_store(dataset: &Path) -> Result<SharedStore, FleetError> {
    let is_url = |text: &&str| {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme.bytes().all(|c| c.is_ascii_alphanumeric()))
    };
    match dataset.to_str().filter(is_url) {
        Some(url) => Ok(Arc::new(BucketStore::open(url)?)),
        None => Ok(Arc::new(FolderStore::new(dataset))),
    }
}

/// A file on this disk that belongs to the dataset, or is a copy or a beginning of one.
#[derive(Debug)]
pub struct LocalFile {
    path: PathBuf,
    /// Named in messages.
    name: PathBuf,
    is_temporary: bool,
}

impl LocalFile {
    /// A file of the dataset itself.
    fn in_place(path: PathBuf) -> LocalFile {
        LocalFile {
            name: path.clone(),
            path,
            is_temporary: false,
        }
    }

    /// A new file, open for writing. It is removed with its owner; after a crash `compact` removes it, if it is in the dataset.
    ///
    /// # Errors
    /// It cannot be made.
    fn create_temporary(
        folder: &Path,
        extension: &str,
        mode: u32,
    ) -> Result<(LocalFile, File), FleetError> {
        let path = folder.join(format!("lucce-fleet-{}.{extension}", unique_name()));
        let mut options = File::options();
        let created = options.write(true).create_new(true).mode(mode).open(&path);
        let file = created.map_err(FleetError::for_path(&path))?;
        let local = LocalFile {
            name: path.clone(),
            path,
            is_temporary: true,
        };
        Ok((local, file))
    }

    fn with_name(self, name: PathBuf) -> LocalFile {
        let mut renamed = self;
        renamed.name = name;
        renamed
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<File, FleetError> {
        File::open(&self.path).map_err(FleetError::for_path(&self.name))
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if self.is_temporary {
            // A published file was renamed; `compact` finds and removes what stays in a dataset.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What DataFusion reads the files of a snapshot with, and for which URLs. `sizes`: paths and bytes of the files.
///
/// # Errors
/// The folder is not there, or a path of the snapshot is none.
pub fn open_snapshot<'s>(
    store: &SharedStore,
    sizes: impl Iterator<Item = (&'s str, u64)>,
) -> Result<(ObjectStoreUrl, Arc<dyn ObjectStore>), FleetError> {
    let base = store.base_url()?;
    let sizes = sizes.map(|(path, bytes)| {
        let key = ObjectPath::from_url_path(join_url(&base, path).path());
        key.map(|key| (key, bytes))
            .map_err(|e| FleetError::Dataset(store.display_path(path), e.to_string()))
    });
    let (url, objects) = store.object_store();
    let files = CommittedFiles::new(objects, sizes.collect::<Result<_, _>>()?);
    Ok((url, Arc::new(files)))
}

/// A file below a dataset.
pub fn join_url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path.split('/'));
    }
    url
}

/// A name that no other writer has: 16 hexadecimal digits from the system's randomness.
#[must_use]
pub fn unique_name() -> String {
    lucce_tracelog::RunId::random().to_string()
}
