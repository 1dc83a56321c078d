//! A store whose listings are those of the time when it was opened; everything else is as it is.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use lucce_fleet::error::FleetError;
use lucce_fleet::store::{DatasetStore, LocalFile, SharedStore, StoredFile};
use object_store::ObjectStore;
use url::Url;

pub struct LaggingStore {
    store: SharedStore,
    /// By folder.
    listings: HashMap<String, Vec<StoredFile>>,
}

impl LaggingStore {
    /// Folders that are not named seem empty.
    pub fn new(store: SharedStore, folders: &[&str]) -> LaggingStore {
        let list = |folder: &&str| {
            let files = store.list_files(folder).unwrap();
            ((*folder).to_owned(), files)
        };
        LaggingStore {
            listings: folders.iter().map(list).collect(),
            store,
        }
    }
}

type Outcome<T> = Result<T, FleetError>;

impl DatasetStore for LaggingStore {
    fn list_files(&self, folder: &str) -> Outcome<Vec<StoredFile>> {
        Ok(self.listings.get(folder).cloned().unwrap_or_default())
    }

    fn location(&self) -> &Path {
        self.store.location()
    }

    fn display_path(&self, path: &str) -> PathBuf {
        self.store.display_path(path)
    }

    fn base_url(&self) -> Outcome<Url> {
        self.store.base_url()
    }

    fn object_store(&self) -> (ObjectStoreUrl, Arc<dyn ObjectStore>) {
        self.store.object_store()
    }

    fn create_staged(&self, extension: &str) -> Outcome<(LocalFile, File)> {
        self.store.create_staged(extension)
    }

    fn create_root(&self) -> Outcome<Vec<String>> {
        self.store.create_root()
    }

    fn create_folder(&self, name: &str) -> Outcome<()> {
        self.store.create_folder(name)
    }

    fn read_file(&self, path: &str) -> Outcome<Option<Vec<u8>>> {
        self.store.read_file(path)
    }

    fn fetch_file(&self, path: &str) -> Outcome<LocalFile> {
        self.store.fetch_file(path)
    }

    fn create_file(&self, path: &str, bytes: &[u8]) -> Outcome<bool> {
        self.store.create_file(path, bytes)
    }

    fn publish_file(&self, staged: LocalFile, path: &str) -> Outcome<()> {
        self.store.publish_file(staged, path)
    }

    fn sync_files(&self, paths: &mut dyn Iterator<Item = &str>) -> Outcome<()> {
        self.store.sync_files(paths)
    }

    fn remove_file(&self, path: &str) -> Outcome<()> {
        self.store.remove_file(path)
    }
}
