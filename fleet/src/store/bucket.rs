//! A part of a bucket of an object store: S3, Azure Blob Storage, and servers that understand their protocols.
//!
//! Access is what the environment says (`AWS_…`, `AZURE_…`). Requests that fail are sent again for up to three minutes.

use std::fs::File;
use std::future::Future;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use datafusion::execution::object_store::ObjectStoreUrl;
use futures::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::SpawnedReqwestConnector;
use object_store::path::Path as ObjectPath;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutPayload, WriteMultipart,
};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::{DatasetStore, LocalFile, StoredFile, join_url};
use crate::error::FleetError;

/// Larger files are uploaded in parts of this size.
const PART_BYTES: usize = 8 << 20;
/// Parts that are in memory at a time.
const PARALLEL_PARTS: usize = 4;
/// How often a commit is tried, beside the repetitions of each request.
const CREATE_ATTEMPTS: u32 = 6;
/// The wait after the first attempt; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Objects whose keys begin with a prefix.
pub struct BucketStore {
    /// As the user wrote it.
    location: PathBuf,
    base: Url,
    bucket: ObjectStoreUrl,
    prefix: ObjectPath,
    objects: Arc<dyn ObjectStore>,
    /// All requests are made here, whoever waits for them. Always there, until the store ends.
    runtime: Option<Runtime>,
}

impl Drop for BucketStore {
    fn drop(&mut self) {
        // The last owner may be a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl BucketStore {
    /// # Errors
    /// The URL is none of a store or has more than a place in it, or the environment has no valid access.
    pub fn open(text: &str) -> Result<BucketStore, FleetError> {
        let refuse = |why: &str| FleetError::Usage(format!("the URL of the dataset {why}"));
        let invalid = |e: &dyn std::fmt::Display| refuse(&format!("is not valid: {e}"));
        let mut base = Url::parse(text).map_err(|e| invalid(&e))?;
        if !["s3", "az"].contains(&base.scheme()) {
            return Err(refuse("must begin with s3:// or az://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(refuse(
                "must not contain credentials; set them in the environment",
            ));
        }
        if base.query().is_some() || base.fragment().is_some() || base.port().is_some() {
            return Err(refuse("must be SCHEME://BUCKET/PREFIX"));
        }
        let host = base.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refuse("names no bucket"))?;
        let bucket = ObjectStoreUrl::parse(format!("{}://{host}", base.scheme()))?;
        let prefix = ObjectPath::from_url_path(base.path()).map_err(|e| invalid(&e))?;
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(FleetError::Output)?;
        let connector = SpawnedReqwestConnector::new(runtime.handle().clone());
        let objects: Result<Arc<dyn ObjectStore>, StoreError> = match base.scheme() {
            "s3" => AmazonS3Builder::from_env()
                .with_url(base.as_str())
                .with_http_connector(connector)
                .build()
                .map(|store| Arc::new(store) as _),
            _ => MicrosoftAzureBuilder::from_env()
                .with_url(base.as_str())
                .with_http_connector(connector)
                .build()
                .map(|store| Arc::new(store) as _),
        };
        let location = PathBuf::from(text);
        Ok(BucketStore {
            objects: objects.map_err(|e| store_error(&location, e))?,
            location,
            base,
            bucket,
            prefix,
            runtime: Some(runtime),
        })
    }

    /// The key as it is, without escapes of the library: DataFusion and other engines must find the object by it.
    fn object_path(&self, path: &str) -> Result<ObjectPath, FleetError> {
        let whole = match self.prefix.as_ref() {
            "" => ObjectPath::parse(path),
            prefix => ObjectPath::parse(format!("{prefix}/{path}")),
        };
        whole.map_err(|e| FleetError::Dataset(self.location.clone(), e.to_string()))
    }

    /// For `map_err`: what happened to this file.
    fn for_path(&self, path: &str) -> impl Fn(StoreError) -> FleetError {
        let path = self.display_path(path);
        move |error| store_error(&path, error)
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(answer),
            None => Err(FleetError::Engine("the store is closed".into())),
        }
    }

    async fn try_read(&self, path: &str) -> Result<Option<Vec<u8>>, FleetError> {
        let object = self.object_path(path)?;
        let read = async { self.objects.get(&object).await?.bytes().await };
        match read.await {
            Err(StoreError::NotFound { .. }) => Ok(None),
            read => read
                .map(|bytes| Some(bytes.to_vec()))
                .map_err(self.for_path(path)),
        }
    }

    /// A request may have had its effect although no answer, or another one, came: what is there then says who has won. So it can be
    /// repeated, unlike other conditional puts.
    async fn try_create(&self, path: &str, bytes: &[u8]) -> Result<bool, FleetError> {
        let object = self.object_path(path)?;
        let mut pause = FIRST_WAIT;
        let mut attempt = 1;
        loop {
            let payload = PutPayload::from(bytes.to_vec());
            let put = self
                .objects
                .put_opts(&object, payload, PutMode::Create.into());
            let failed = match put.await {
                Ok(_) => return Ok(true),
                Err(error) => error,
            };
            if let Ok(Some(there)) = self.try_read(path).await {
                return Ok(there == bytes);
            }
            // "Already exists": another request for this name was under way, and may have failed since.
            let may_succeed = matches!(
                failed,
                StoreError::AlreadyExists { .. } | StoreError::Generic { .. }
            );
            if !may_succeed || attempt == CREATE_ATTEMPTS {
                return Err(self.for_path(path)(failed));
            }
            attempt += 1;
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    async fn upload_parts(&self, staged: &LocalFile, path: &str) -> Result<(), FleetError> {
        let fail = self.for_path(path);
        let object = self.object_path(path)?;
        let upload = self.objects.put_multipart(&object).await;
        let mut upload = WriteMultipart::new_with_chunk_size(upload.map_err(&fail)?, PART_BYTES);
        let mut file = staged.open()?;
        let mut size = 0;
        loop {
            let mut part = Vec::new();
            let read = (&mut file).take(PART_BYTES as u64).read_to_end(&mut part);
            let ended = match read {
                Ok(0) => break,
                Ok(_) => upload
                    .wait_for_capacity(PARALLEL_PARTS)
                    .await
                    .map_err(&fail),
                Err(error) => Err(FleetError::File(staged.name().to_owned(), error)),
            };
            if let Err(error) = ended {
                // The cause is reported, not its consequences.
                let _ = upload.abort().await;
                return Err(error);
            }
            size += part.len() as u64;
            upload.put(part.into());
        }
        let Err(error) = upload.finish().await else {
            return Ok(());
        };
        // The request that ends an upload is repeated if its answer was lost, and then finds no upload: the object is there.
        match self.objects.head(&object).await {
            Ok(there) if there.size == size => Ok(()),
            _ => Err(fail(error)),
        }
    }

    async fn download(&self, path: &str, mut to: impl Write) -> Result<(), FleetError> {
        let fail = self.for_path(path);
        let found = self.objects.get(&self.object_path(path)?).await;
        let mut bytes = found.map_err(&fail)?.into_stream();
        while let Some(some) = bytes.next().await {
            to.write_all(&some.map_err(&fail)?)
                .map_err(FleetError::for_path(&self.display_path(path)))?;
        }
        Ok(())
    }
}

impl DatasetStore for BucketStore {
    fn location(&self) -> &Path {
        &self.location
    }

    fn display_path(&self, path: &str) -> PathBuf {
        PathBuf::from(join_url(&self.base, path).as_str())
    }

    fn base_url(&self) -> Result<Url, FleetError> {
        Ok(self.base.clone())
    }

    fn object_store(&self) -> (ObjectStoreUrl, Arc<dyn ObjectStore>) {
        (self.bucket.clone(), Arc::clone(&self.objects))
    }

    fn create_staged(&self, extension: &str) -> Result<(LocalFile, File), FleetError> {
        // Others share the folder.
        LocalFile::create_temporary(&std::env::temp_dir(), extension, 0o600)
    }

    fn create_root(&self) -> Result<Vec<String>, FleetError> {
        self.wait(async {
            let prefix = Some(&self.prefix);
            let listed = self.objects.list_with_delimiter(prefix).await;
            let listed = listed.map_err(self.for_path(""))?;
            let folders = listed.common_prefixes.into_iter();
            let objects = listed.objects.into_iter().map(|object| object.location);
            let names = folders.chain(objects).filter_map(|path| {
                let name = path.filename()?;
                Some(name.to_owned())
            });
            Ok(names.collect())
        })
    }

    fn create_folder(&self, _: &str) -> Result<(), FleetError> {
        Ok(())
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, FleetError> {
        self.wait(self.try_read(path))
    }

    fn fetch_file(&self, path: &str) -> Result<LocalFile, FleetError> {
        let extension = path.rsplit_once('.').map_or("copy", |(_, last)| last);
        let (local, file) = self.create_staged(extension)?;
        self.wait(self.download(path, &file))?;
        Ok(local.with_name(self.display_path(path)))
    }

    fn create_file(&self, path: &str, bytes: &[u8]) -> Result<bool, FleetError> {
        self.wait(self.try_create(path, bytes))
    }

    fn publish_file(&self, staged: LocalFile, path: &str) -> Result<(), FleetError> {
        let size = staged.open()?.metadata();
        let size = size.map_err(FleetError::for_path(staged.name()))?.len();
        if size > PART_BYTES as u64 {
            return self.wait(self.upload_parts(&staged, path));
        }
        let bytes = std::fs::read(staged.path()).map_err(FleetError::for_path(staged.name()))?;
        self.wait(async {
            let object = self.object_path(path)?;
            let put = self.objects.put(&object, bytes.into());
            put.await.map(|_| ()).map_err(self.for_path(path))
        })
    }

    /// An object that was answered for stays.
    fn sync_files(&self, _: &mut dyn Iterator<Item = &str>) -> Result<(), FleetError> {
        Ok(())
    }

    fn remove_file(&self, path: &str) -> Result<(), FleetError> {
        self.wait(async {
            match self.objects.delete(&self.object_path(path)?).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.for_path(path)(error)),
            }
        })
    }

    fn list_files(&self, folder: &str) -> Result<Vec<StoredFile>, FleetError> {
        self.wait(async {
            let below = self.object_path(folder)?;
            let mut found = self.objects.list(Some(&below));
            let mut files = Vec::new();
            while let Some(object) = found.next().await {
                let object = object.map_err(self.for_path(folder))?;
                let Some(names) = object.location.prefix_match(&self.prefix) else {
                    continue;
                };
                let names: Vec<_> = names.map(|name| name.as_ref().to_owned()).collect();
                files.push(StoredFile {
                    path: names.join("/"),
                    modified: Some(SystemTime::from(object.last_modified)),
                });
            }
            Ok(files)
        })
    }
}

fn store_error(path: &Path, error: StoreError) -> FleetError {
    FleetError::File(path.to_owned(), error.into())
}
