//! Ballista for the comparison of engines: each process of a cluster is this program.
//!
//! ```text
//! lucce-fleet-ballista scheduler PORT
//! lucce-fleet-ballista executor  SCHEDULER_PORT PORT CONTROL_PORT FOLDER   its tasks leave their results in the folder
//! lucce-fleet-ballista ask       SCHEDULER_PORT SNAPSHOT                   {"sql": …, "parameters": {…}} in, {"rows": […]} out, by lines
//! ```
//! SNAPSHOT is what `lucce-fleet views` prints. All listen on this machine's loopback alone.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

use arrow::json::ArrayWriter;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::start_server;
use datafusion::common::TableReference;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext, lit};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const HOST: &str = "127.0.0.1";
/// Of each executor: there are two on two cores.
const TASKS: usize = 1;
/// A part of a stage for each executor's task, and as many that wait.
const PARTITIONS: usize = 4;
/// Plans are deep, and are walked by calls.
const STACK: usize = 32 << 20;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK)
        .build()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["scheduler", port] => runtime.block_on(schedule(port.parse()?)),
        ["executor", scheduler, port, control, folder] => {
            let ports = [scheduler.parse()?, port.parse()?, control.parse()?];
            runtime.block_on(execute(ports, folder))
        }
        // A question is planned by who asks.
        ["ask", scheduler, snapshot] => {
            let asks = answer(scheduler.to_owned(), snapshot.to_owned());
            runtime.block_on(async { tokio::spawn(asks).await? })
        }
        _ => Err("scheduler PORT | executor PORT PORT PORT FOLDER | ask PORT SNAPSHOT".into()),
    }
}

async fn schedule(port: u16) -> Result<(), Failure> {
    let config = SchedulerConfig {
        external_host: HOST.into(),
        bind_host: HOST.into(),
        bind_port: port,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        // What an executor has been given is counted at the end.
        finished_job_data_clean_up_interval_seconds: 0,
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    Ok(start_server(cluster, format!("{HOST}:{port}").parse()?, Arc::new(config)).await?)
}

async fn execute([scheduler, port, control]: [u16; 3], folder: &str) -> Result<(), Failure> {
    let config = ExecutorProcessConfig {
        external_host: Some(HOST.into()),
        port,
        grpc_port: control,
        scheduler_host: HOST.into(),
        scheduler_port: scheduler,
        // The scheduler may start at the same moment.
        scheduler_connect_timeout_seconds: 60,
        concurrent_tasks: TASKS,
        work_dir: Some(folder.into()),
        ..ExecutorProcessConfig::default()
    };
    Ok(start_executor_process(Arc::new(config)).await?)
}

#[derive(Deserialize)]
struct Snapshot {
    tables: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    table: String,
    /// Name and type.
    columns: Vec<(String, String)>,
    files: Vec<String>,
}

#[derive(Deserialize)]
struct Question {
    sql: String,
    parameters: BTreeMap<String, String>,
}

async fn answer(scheduler: String, snapshot: String) -> Result<(), Failure> {
    let config = SessionConfig::new_with_ballista().with_target_partitions(PARTITIONS);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let context =
        SessionContext::remote_with_state(&format!("df://{HOST}:{scheduler}"), state).await?;
    let snapshot: Snapshot = serde_json::from_slice(&std::fs::read(snapshot)?)?;
    for table in &snapshot.tables {
        register(&context, table).await?;
    }
    for line in BufReader::new(io::stdin()).lines() {
        let question: Question = serde_json::from_str(&line?)?;
        let said = match rows(&context, &question).await {
            Ok(rows) => json!({ "rows": rows }),
            Err(failure) => json!({ "failure": failure.to_string() }),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(())
}

async fn register(context: &SessionContext, table: &Table) -> Result<(), Failure> {
    let name = TableReference::bare(table.table.as_str());
    if table.files.is_empty() {
        let columns = table.columns.iter();
        let columns: Vec<_> = columns
            .map(|(name, of)| format!("CAST(NULL AS {of}) AS \"{name}\""))
            .collect();
        let none = format!("SELECT {} WHERE 1 = 0", columns.join(", "));
        let none = context.sql(&none).await?;
        context.register_table(name, none.into_view())?;
        return Ok(());
    }
    // Not as text: a name may look like a pattern.
    let url = |file: &String| {
        let url = Url::from_file_path(file).map_err(|()| format!("no path: {file}"))?;
        Ok::<_, Failure>(ListingTableUrl::try_new(url, None)?)
    };
    let urls = table.files.iter().map(url);
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    let options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let config = config.infer_schema(&context.state()).await?;
    context.register_table(name, Arc::new(ListingTable::try_new(config)?))?;
    Ok(())
}

async fn rows(context: &SessionContext, question: &Question) -> Result<Value, Failure> {
    let mut columns = vec![lit("").alias("p_")];
    for (name, value) in &question.parameters {
        columns.push(lit(value.as_str()).alias(format!("p_{name}")));
    }
    let one = context.read_empty()?.select(columns)?;
    let name = TableReference::bare("parameters");
    context.deregister_table(name.clone())?;
    context.register_table(name, one.into_view())?;
    let batches = context.sql(&question.sql).await?.collect().await?;
    let mut writer = ArrayWriter::new(Vec::new());
    for batch in &batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    let text = writer.into_inner();
    Ok(match text.is_empty() {
        true => json!([]),
        false => serde_json::from_slice(&text)?,
    })
}
