//! SQL over the dataset, in this process: DataFusion.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use futures::StreamExt;
use object_store::ObjectStore;
use tokio::runtime::Runtime;
use url::Url;

use crate::bind_parameters;
use crate::commits::{CommitLog, DatasetFile, DatasetState};
use crate::error::FleetError;
use crate::layout::DatasetTable;
use crate::memory_pool::{JoinRefusal, QueryMemoryPool};
use crate::one_row_joins;
use crate::questions::ParameterValue;
use crate::store::{SharedStore, join_url, open_snapshot};
use crate::views::{DERIVED_VIEWS, DerivedView};

/// What a query may use.
#[derive(Clone, Debug, Default)]
pub struct QueryLimits {
    /// Bytes of this process, about.
    pub memory: Option<usize>,
    /// Where what has no room in memory goes; none: where the system has temporary files.
    pub spill: Option<PathBuf>,
    pub threads: Option<usize>,
    /// For one question.
    pub time: Option<Duration>,
}

/// Told the columns, and then the rows batch by batch.
pub type BatchCallback<'e> =
    dyn FnMut(&SchemaRef, Option<&RecordBatch>) -> Result<(), FleetError> + 'e;

/// Of the memory that a query may use, so many tenths are what DataFusion accounts for: the rest is what it decodes files into.
const ACCOUNTED_TENTHS: usize = 6;

/// The dataset as it is now; later commits are not seen.
pub struct QueryEngine {
    source: FileSource,
    context: SessionContext,
    limits: QueryLimits,
    refused: Arc<JoinRefusal>,
    /// What the table of parameters has.
    parameters: Vec<ParameterValue>,
    /// Rows that were handed over.
    answered_rows: AtomicU64,
    /// Always there, until the engine ends.
    runtime: Option<Runtime>,
}

/// Where the files of the tables are.
struct FileSource {
    /// It must not end before the last request.
    store: SharedStore,
    /// What reads them, and for which URLs.
    objects: (ObjectStoreUrl, Arc<dyn ObjectStore>),
}

impl Drop for QueryEngine {
    fn drop(&mut self) {
        // Who gave up waiting for a file that cannot be read must not wait for it here.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl QueryEngine {
    /// # Errors
    /// The dataset cannot be read.
    pub fn open(store: &SharedStore, limits: &QueryLimits) -> Result<QueryEngine, FleetError> {
        let state = CommitLog::open(store)?.read_state()?;
        QueryEngine::with_state(store, &state, limits)
    }

    /// # Errors
    /// The system gives no threads, or a path is none.
    pub fn with_state(
        store: &SharedStore,
        state: &DatasetState,
        limits: &QueryLimits,
    ) -> Result<QueryEngine, FleetError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.enable_time();
        if let Some(threads) = limits.threads {
            builder.worker_threads(threads.max(1));
        }
        let runtime = builder.build().map_err(FleetError::Output)?;
        let refused = Arc::new(JoinRefusal::new());
        let files = state.files.values();
        let sizes = files.map(|entry| (entry.path.as_str(), entry.bytes));
        let source = FileSource {
            store: SharedStore::clone(store),
            objects: open_snapshot(store, sizes)?,
        };
        let context = create_context(&source, limits, &refused)?;
        let base = store.base_url()?;
        for table in DatasetTable::ALL {
            let files = state.files_of(table);
            register_table(&context, (table.name(), table), &base, files)?;
        }
        runtime.block_on(register_views(&context))?;
        Ok(QueryEngine {
            source,
            context,
            limits: limits.clone(),
            refused,
            parameters: Vec::new(),
            answered_rows: AtomicU64::new(0),
            runtime: Some(runtime),
        })
    }

    /// The table `parameters`: one row, a column `p_NAME` for each.
    ///
    /// # Errors
    /// A name comes twice.
    pub fn set_parameters(&mut self, parameters: &[ParameterValue]) -> Result<(), FleetError> {
        self.register_rows(
            bind_parameters::PARAMETER_TABLE,
            parameters_row(parameters)?,
        )?;
        self.parameters = parameters.to_vec();
        Ok(())
    }

    /// Rows as one more table.
    ///
    /// # Errors
    /// Never.
    pub fn register_rows(&self, name: &str, rows: RecordBatch) -> Result<(), FleetError> {
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        self.context.deregister_table(TableReference::bare(name))?;
        self.context
            .register_table(TableReference::bare(name), Arc::new(table))?;
        Ok(())
    }

    /// Files of the dataset as one more table.
    ///
    /// # Errors
    /// A path is none.
    pub fn register_files(
        &self,
        name: &str,
        table: DatasetTable,
        files: &[DatasetFile],
    ) -> Result<(), FleetError> {
        self.context.deregister_table(TableReference::bare(name))?;
        let base = self.source.store.base_url()?;
        register_table(&self.context, (name, table), &base, files)
    }

    /// Hands over the rows of one question, batch by batch; first none, for the columns. It only reads.
    ///
    /// Joins hold one side whole, as that is fast. Where it has no room, the question runs once more: then joins sort both sides, which
    /// may go to files.
    ///
    /// # Errors
    /// The engine's, in its words, and those of `each`.
    pub fn run_query(&self, sql: &str, each: &mut BatchCallback<'_>) -> Result<(), FleetError> {
        let Some(runtime) = &self.runtime else {
            return Ok(());
        };
        let answered = async {
            let mut answer = QueryExecution {
                parameters: &self.parameters,
                answered_rows: &self.answered_rows,
                each,
                has_columns: false,
                has_rows: false,
            };
            let ended = answer
                .execute_query(&self.context, &self.refused, sql)
                .await;
            match ended {
                Err(error) if error.is_exhausted() && !answer.has_rows => {
                    let refused = Arc::new(JoinRefusal::new());
                    let context =
                        sort_merge_context(&self.source, &self.context, &self.limits, &refused)?;
                    answer.execute_query(&context, &refused, sql).await
                }
                ended => ended,
            }
        };
        runtime.block_on(async {
            match self.limits.time {
                None => answered.await,
                Some(time) => match tokio::time::timeout(time, answered).await {
                    Ok(ended) => ended,
                    Err(_) => Err(FleetError::Time(time)),
                },
            }
        })
    }

    /// Rows of all answers so far.
    pub fn answered_rows(&self) -> u64 {
        self.answered_rows.load(Ordering::Relaxed)
    }

    /// All rows of a question whose answer is small.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn collect_rows(&self, sql: &str) -> Result<Vec<RecordBatch>, FleetError> {
        let mut batches = Vec::new();
        self.run_query(sql, &mut |_, batch| {
            batches.extend(batch.cloned());
            Ok(())
        })?;
        Ok(batches)
    }
}

/// One question's rows, on their way to the caller.
struct QueryExecution<'a, 'e> {
    parameters: &'a [ParameterValue],
    answered_rows: &'a AtomicU64,
    each: &'a mut BatchCallback<'e>,
    /// The columns were passed on.
    has_columns: bool,
    /// Some rows were passed on.
    has_rows: bool,
}

impl QueryExecution<'_, '_> {
    async fn execute_query(
        &mut self,
        context: &SessionContext,
        refused: &JoinRefusal,
        sql: &str,
    ) -> Result<(), FleetError> {
        tokio::select! {
            // What the engine says by itself comes first.
            biased;
            ended = self.stream_rows(context, sql) => ended,
            why = refused.wait() => Err(FleetError::Engine(why.clone())),
        }
    }

    async fn stream_rows(&mut self, context: &SessionContext, sql: &str) -> Result<(), FleetError> {
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let query = context.sql_with_options(sql, options).await?;
        let (state, plan) = query.into_parts();
        let frame = DataFrame::new(state, bind_parameters::bind_plan(plan, self.parameters)?);
        let mut stream = frame.execute_stream().await?;
        let schema = stream.schema();
        if !self.has_columns {
            self.has_columns = true;
            (self.each)(&schema, None)?;
        }
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            self.has_rows |= batch.num_rows() > 0;
            // Relaxed: only the number counts.
            self.answered_rows
                .fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            (self.each)(&schema, Some(&batch))?;
        }
        Ok(())
    }
}

/// # Errors
/// A name comes twice.
pub fn parameters_row(parameters: &[ParameterValue]) -> Result<RecordBatch, FleetError> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<arrow::array::ArrayRef>::new());
    for (name, value) in bind_parameters::parameter_columns(parameters) {
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(vec![value])));
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// Memory and files for one question.
fn build_runtime(
    source: &FileSource,
    limits: &QueryLimits,
    refused: &Arc<JoinRefusal>,
) -> Result<Arc<RuntimeEnv>, FleetError> {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(memory) = limits.memory {
        let pool = QueryMemoryPool::new(memory / 10 * ACCOUNTED_TENTHS, Arc::clone(refused));
        runtime = runtime.with_memory_pool(Arc::new(pool));
    }
    if let Some(folder) = &limits.spill {
        runtime = runtime.with_temp_file_path(folder);
    }
    let runtime = runtime.build_arc()?;
    let (url, objects) = &source.objects;
    runtime.register_object_store(url.as_ref(), Arc::clone(objects));
    Ok(runtime)
}

/// The tables of another context, whose joins by equal columns sort both sides.
fn sort_merge_context(
    source: &FileSource,
    context: &SessionContext,
    limits: &QueryLimits,
    refused: &Arc<JoinRefusal>,
) -> Result<SessionContext, FleetError> {
    // Not tables anew, and none.
    let config = context.copied_config();
    let mut config = config.with_create_default_catalog_and_schema(false);
    config.options_mut().optimizer.prefer_hash_join = false;
    let state = SessionStateBuilder::new_from_existing(context.state())
        .with_config(config)
        .with_runtime_env(build_runtime(source, limits, refused)?);
    Ok(SessionContext::new_with_state(state.build()))
}

fn create_context(
    source: &FileSource,
    limits: &QueryLimits,
    refused: &Arc<JoinRefusal>,
) -> Result<SessionContext, FleetError> {
    let mut config = SessionConfig::new().with_information_schema(true);
    if let Some(threads) = limits.threads {
        config = config.with_target_partitions(threads.max(1));
    }
    let options = config.options_mut();
    // Comparisons of a column with few different values decode only the rows that are wanted.
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(build_runtime(source, limits, refused)?)
        .with_default_features()
        .with_physical_optimizer_rules(one_row_joins::optimizer_rules());
    Ok(SessionContext::new_with_state(state.build()))
}

/// Adds the views over the tables of the dataset.
pub async fn register_views(context: &SessionContext) -> Result<(), FleetError> {
    for DerivedView { name, sql } in &DERIVED_VIEWS {
        let view = context.sql(sql).await?.into_view();
        context.register_table(TableReference::bare(*name), view)?;
    }
    Ok(())
}

fn register_table<'e>(
    context: &SessionContext,
    (name, table): (&str, DatasetTable),
    base: &Url,
    files: impl IntoIterator<Item = &'e DatasetFile>,
) -> Result<(), FleetError> {
    let (name, schema) = (TableReference::bare(name), table.schema());
    // Not as text: a name may look like a pattern.
    let urls = files
        .into_iter()
        .map(|entry| ListingTableUrl::try_new(join_url(base, &entry.path), None));
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    if urls.is_empty() {
        let empty = MemTable::try_new(schema, vec![vec![]])?;
        context.register_table(name, Arc::new(empty))?;
        return Ok(());
    }
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(".parquet")
        .with_session_config_options(&context.copied_config());
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(schema);
    context.register_table(name, Arc::new(ListingTable::try_new(config)?))?;
    Ok(())
}
