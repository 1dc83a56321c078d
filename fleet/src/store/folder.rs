//! A folder of a file system with hard links.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use url::Url;

use super::{DatasetStore, LocalFile, StoredFile};
use crate::error::FleetError;
use crate::layout::{TEMPORARY, resolve_path};

/// A folder. Files are written below `temporary/`, synced, and renamed or linked.
pub struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    pub fn new(folder: &Path) -> FolderStore {
        FolderStore {
            folder: folder.to_owned(),
        }
    }

    fn list_below(&self, folder: &str, files: &mut Vec<StoredFile>) -> Result<(), FleetError> {
        let path = resolve_path(&self.folder, folder);
        let entries = match fs::read_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(FleetError::for_path(&path))?,
        };
        for entry in entries {
            let entry = entry.map_err(FleetError::for_path(&path))?;
            let kind = entry
                .file_type()
                .map_err(FleetError::for_path(&entry.path()))?;
            // The dataset has no other names.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = format!("{folder}/{name}");
            match kind.is_dir() {
                true => self.list_below(&path, files)?,
                false => files.push(StoredFile {
                    path,
                    modified: entry.metadata().and_then(|data| data.modified()).ok(),
                }),
            }
        }
        Ok(())
    }
}

impl DatasetStore for FolderStore {
    fn location(&self) -> &Path {
        &self.folder
    }

    fn display_path(&self, path: &str) -> PathBuf {
        resolve_path(&self.folder, path)
    }

    fn base_url(&self) -> Result<Url, FleetError> {
        let whole = self.folder.canonicalize();
        let whole = whole.map_err(FleetError::for_path(&self.folder))?;
        Url::from_directory_path(&whole)
            .map_err(|()| FleetError::Dataset(whole, "not an absolute path".into()))
    }

    fn object_store(&self) -> (ObjectStoreUrl, Arc<dyn ObjectStore>) {
        let objects = Arc::new(LocalFileSystem::new());
        (ObjectStoreUrl::local_filesystem(), objects)
    }

    fn local_folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn create_staged(&self, extension: &str) -> Result<(LocalFile, File), FleetError> {
        let folder = self.folder.join(TEMPORARY);
        fs::create_dir_all(&folder).map_err(FleetError::for_path(&folder))?;
        // As the user's other files: the dataset's folder says who may read them.
        LocalFile::create_temporary(&folder, extension, 0o666)
    }

    fn create_root(&self) -> Result<Vec<String>, FleetError> {
        // What runs say is their user's, unless that opens it to others.
        let mut folder = fs::DirBuilder::new();
        let created = folder.recursive(true).mode(0o700).create(&self.folder);
        created.map_err(FleetError::for_path(&self.folder))?;
        let entries = fs::read_dir(&self.folder).map_err(FleetError::for_path(&self.folder))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        Ok(names
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }

    fn create_folder(&self, name: &str) -> Result<(), FleetError> {
        let folder = resolve_path(&self.folder, name);
        fs::create_dir_all(&folder).map_err(FleetError::for_path(&folder))
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, FleetError> {
        let path = resolve_path(&self.folder, path);
        match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(FleetError::for_path(&path)),
        }
    }

    fn fetch_file(&self, path: &str) -> Result<LocalFile, FleetError> {
        Ok(LocalFile::in_place(resolve_path(&self.folder, path)))
    }

    fn create_file(&self, path: &str, bytes: &[u8]) -> Result<bool, FleetError> {
        let (staged, mut file) = self.create_staged("json")?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(FleetError::for_path(staged.path()))?;
        let path = resolve_path(&self.folder, path);
        match fs::hard_link(staged.path(), &path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => {
                linked.map_err(FleetError::for_path(&path))?;
                sync_folder(path.parent().unwrap_or(&self.folder))?;
                Ok(true)
            }
        }
    }

    fn publish_file(&self, staged: LocalFile, path: &str) -> Result<(), FleetError> {
        let path = resolve_path(&self.folder, path);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(FleetError::for_path(folder))?;
        fs::rename(staged.path(), &path).map_err(FleetError::for_path(&path))
    }

    /// What the folders of these files say stays when the machine stops. A new folder is an entry of the one above, and so on.
    fn sync_files(&self, paths: &mut dyn Iterator<Item = &str>) -> Result<(), FleetError> {
        let mut folders = BTreeSet::new();
        for path in paths {
            let path = resolve_path(&self.folder, path);
            let above = path.ancestors().skip(1);
            let above = above.take_while(|folder| folder.starts_with(&self.folder));
            folders.extend(above.map(Path::to_owned));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    fn remove_file(&self, path: &str) -> Result<(), FleetError> {
        let path = resolve_path(&self.folder, path);
        match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(FleetError::for_path(&path)),
        }
    }

    fn list_files(&self, folder: &str) -> Result<Vec<StoredFile>, FleetError> {
        let mut files = Vec::new();
        self.list_below(folder, &mut files)?;
        Ok(files)
    }
}

/// What entries of a folder say stays when the machine stops.
fn sync_folder(folder: &Path) -> Result<(), FleetError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(FleetError::for_path(folder))
}
