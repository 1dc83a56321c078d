//! SQL over the dataset, in this process: DataFusion.

use std::path::{Path, PathBuf};
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
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use futures::StreamExt;
use tokio::runtime::Runtime;

use crate::commits::{Log, State};
use crate::error::Error;
use crate::given;
use crate::joins;
use crate::layout::{Table, file};
use crate::memory::{Pool, Refused};
use crate::questions::Parameter;

/// What a query may use.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes of this process, about.
    pub memory: Option<usize>,
    /// Where what has no room in memory goes; none: where the system has temporary files.
    pub spill: Option<PathBuf>,
    pub threads: Option<usize>,
    /// For one question.
    pub time: Option<Duration>,
}

/// Told the columns, and then the rows batch by batch.
pub type Each<'e> = dyn FnMut(&SchemaRef, Option<&RecordBatch>) -> Result<(), Error> + 'e;

/// Of the memory that a query may use, so many tenths are what DataFusion accounts for: the rest is what it decodes files into.
const ACCOUNTED: usize = 6;

/// The dataset as it is now; later commits are not seen.
pub struct Engine {
    context: SessionContext,
    limits: Limits,
    refused: Arc<Refused>,
    /// What the table of parameters has.
    given: Vec<Parameter>,
    /// Rows that were handed over.
    told: AtomicU64,
    /// Always there, until the engine ends.
    runtime: Option<Runtime>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Who gave up waiting for a file that cannot be read must not wait for it here.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Engine {
    /// # Errors
    /// The dataset cannot be read.
    pub fn open(dataset: &Path, limits: &Limits) -> Result<Engine, Error> {
        let state = Log::open(dataset)?.state()?;
        Engine::of(dataset, &state, limits)
    }

    /// # Errors
    /// The system gives no threads, or a path is none.
    pub fn of(dataset: &Path, state: &State, limits: &Limits) -> Result<Engine, Error> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.enable_time();
        if let Some(threads) = limits.threads {
            builder.worker_threads(threads.max(1));
        }
        let runtime = builder.build().map_err(Error::Output)?;
        let refused = Arc::new(Refused::new());
        let context = context(limits, &refused)?;
        let dataset = dataset.canonicalize().map_err(Error::of(dataset))?;
        for table in Table::ALL {
            let paths = state
                .of(table)
                .map(|entry| file(&dataset, &entry.path))
                .collect();
            register(&context, table.name(), table.schema(), paths)?;
        }
        Ok(Engine {
            context,
            limits: limits.clone(),
            refused,
            given: Vec::new(),
            told: AtomicU64::new(0),
            runtime: Some(runtime),
        })
    }

    /// The table `parameters`: one row, a column `p_NAME` for each.
    ///
    /// # Errors
    /// A name comes twice.
    pub fn parameters(&mut self, parameters: &[Parameter]) -> Result<(), Error> {
        self.register_rows(given::TABLE, parameters_row(parameters)?)?;
        self.given = parameters.to_vec();
        Ok(())
    }

    /// Rows as one more table.
    ///
    /// # Errors
    /// Never.
    pub fn register_rows(&self, name: &str, rows: RecordBatch) -> Result<(), Error> {
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        self.context.deregister_table(TableReference::bare(name))?;
        self.context
            .register_table(TableReference::bare(name), Arc::new(table))?;
        Ok(())
    }

    /// Files as one more table.
    ///
    /// # Errors
    /// A path is none.
    pub fn register(&self, name: &str, table: Table, paths: Vec<PathBuf>) -> Result<(), Error> {
        self.context.deregister_table(TableReference::bare(name))?;
        register(&self.context, name, table.schema(), paths)
    }

    /// Hands over the rows of one question, batch by batch; first none, for the columns. It only reads.
    ///
    /// Joins hold one side whole, as that is fast. Where it has no room the question is asked once more: then joins sort both sides, which
    /// may go to files.
    ///
    /// # Errors
    /// The engine's, in its words, and those of `each`.
    pub fn ask(&self, sql: &str, each: &mut Each<'_>) -> Result<(), Error> {
        let Some(runtime) = &self.runtime else {
            return Ok(());
        };
        let answered = async {
            let mut answer = Answer {
                given: &self.given,
                told: &self.told,
                each,
                columns: false,
                rows: false,
            };
            let ended = answer.of(&self.context, &self.refused, sql).await;
            match ended {
                Err(error) if error.is_exhausted() && !answer.rows => {
                    let refused = Arc::new(Refused::new());
                    let context = sorting(&self.context, &self.limits, &refused)?;
                    answer.of(&context, &refused, sql).await
                }
                ended => ended,
            }
        };
        runtime.block_on(async {
            match self.limits.time {
                None => answered.await,
                Some(time) => match tokio::time::timeout(time, answered).await {
                    Ok(ended) => ended,
                    Err(_) => Err(Error::Time(time)),
                },
            }
        })
    }

    /// Rows of all answers so far.
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// All rows of a question whose answer is small.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>, Error> {
        let mut batches = Vec::new();
        self.ask(sql, &mut |_, batch| {
            batches.extend(batch.cloned());
            Ok(())
        })?;
        Ok(batches)
    }
}

/// One question's rows, on their way to who asks.
struct Answer<'a, 'e> {
    given: &'a [Parameter],
    told: &'a AtomicU64,
    each: &'a mut Each<'e>,
    /// The columns were told.
    columns: bool,
    /// Some rows were told.
    rows: bool,
}

impl Answer<'_, '_> {
    async fn of(
        &mut self,
        context: &SessionContext,
        refused: &Refused,
        sql: &str,
    ) -> Result<(), Error> {
        tokio::select! {
            // What the engine says by itself comes first.
            biased;
            ended = self.stream(context, sql) => ended,
            why = refused.wait() => Err(Error::Engine(why.clone())),
        }
    }

    async fn stream(&mut self, context: &SessionContext, sql: &str) -> Result<(), Error> {
        let options = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let asked = context.sql_with_options(sql, options).await?;
        let (state, plan) = asked.into_parts();
        let frame = DataFrame::new(state, given::put(plan, self.given)?);
        let mut stream = frame.execute_stream().await?;
        let schema = stream.schema();
        if !self.columns {
            self.columns = true;
            (self.each)(&schema, None)?;
        }
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            self.rows |= batch.num_rows() > 0;
            // Relaxed: only the number counts.
            self.told
                .fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            (self.each)(&schema, Some(&batch))?;
        }
        Ok(())
    }
}

/// # Errors
/// A name comes twice.
pub fn parameters_row(parameters: &[Parameter]) -> Result<RecordBatch, Error> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<arrow::array::ArrayRef>::new());
    for (name, value) in given::columns(parameters) {
        fields.push(Field::new(name, DataType::Utf8, false));
        columns.push(Arc::new(StringArray::from(vec![value])));
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// Memory and files for one question.
fn runtime(limits: &Limits, refused: &Arc<Refused>) -> Result<Arc<RuntimeEnv>, Error> {
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(memory) = limits.memory {
        let pool = Pool::new(memory / 10 * ACCOUNTED, Arc::clone(refused));
        runtime = runtime.with_memory_pool(Arc::new(pool));
    }
    if let Some(folder) = &limits.spill {
        runtime = runtime.with_temp_file_path(folder);
    }
    Ok(runtime.build_arc()?)
}

/// The tables of another context, whose joins by equal columns sort both sides.
fn sorting(
    context: &SessionContext,
    limits: &Limits,
    refused: &Arc<Refused>,
) -> Result<SessionContext, Error> {
    // Not tables anew, and none.
    let config = context.copied_config();
    let mut config = config.with_create_default_catalog_and_schema(false);
    config.options_mut().optimizer.prefer_hash_join = false;
    let state = SessionStateBuilder::new_from_existing(context.state())
        .with_config(config)
        .with_runtime_env(runtime(limits, refused)?);
    Ok(SessionContext::new_with_state(state.build()))
}

fn context(limits: &Limits, refused: &Arc<Refused>) -> Result<SessionContext, Error> {
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
        .with_runtime_env(runtime(limits, refused)?)
        .with_default_features()
        .with_physical_optimizer_rules(joins::rules());
    Ok(SessionContext::new_with_state(state.build()))
}

fn register(
    context: &SessionContext,
    name: &str,
    schema: SchemaRef,
    paths: Vec<PathBuf>,
) -> Result<(), Error> {
    let name = TableReference::bare(name);
    if paths.is_empty() {
        let empty = MemTable::try_new(schema, vec![vec![]])?;
        context.register_table(name, Arc::new(empty))?;
        return Ok(());
    }
    let mut urls = Vec::with_capacity(paths.len());
    for path in paths {
        // Not as text: a name may look like a pattern.
        let url = url_of(&path)?;
        urls.push(ListingTableUrl::try_new(url, None)?);
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

fn url_of(path: &Path) -> Result<url::Url, Error> {
    url::Url::from_file_path(path)
        .map_err(|()| Error::Dataset(path.to_owned(), "not an absolute path".into()))
}
