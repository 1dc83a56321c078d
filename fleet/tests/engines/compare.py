"""Asks DataFusion, DuckDB and Spark the same SQL files, and compares what they answer.

    compare.py LUCCE_FLEET DATASET QUESTIONS.json ENGINE…

QUESTIONS.json is a list of {"name": …, "sql": FILE, "parameters": {…}}. DataFusion's answer, by `lucce-fleet ask` or
`lucce-fleet query`, is what the others must answer, row by row; it must have rows, but for questions with "empty": true.

DATASET is a folder or s3://…, with the server and the access in AWS_…. Then LUCCE_SPARK_JARS is a folder with the jars of pom.xml, and
DuckDB's extension httpfs is a package of Python's.
"""

import glob
import json
import os
import subprocess
import sys
import time


def datafusion(fleet, dataset, question):
    command = [fleet]
    if question.get("ask"):
        command += ["ask", question["name"]]
        for name, value in question["parameters"].items():
            command += [f"--{name}", value]
    else:
        command += ["query", "--file", question["sql"]]
    said = subprocess.run(command + ["--dataset", dataset, "--output", "json"], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def views(fleet, dataset, engine):
    said = subprocess.run([fleet, "views", "--dataset", dataset, "--for", engine], check=True, stdout=subprocess.PIPE)
    return said.stdout.decode()


def on_store(dataset):
    return dataset.startswith("s3://")


def cpu_seconds():
    """Of this process, and of all that it has started, with theirs."""
    ticks, parents = {}, {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat, encoding="utf-8", errors="replace") as file:
                process, fields = file.read().rsplit(")", 1)
        except OSError:
            # It has ended.
            continue
        process, fields = int(process.split()[0]), fields.split()
        parents[process] = int(fields[1])
        # User and system, and those of children that have ended.
        ticks[process] = sum(int(field) for field in fields[11:15])
    total, started = 0, [os.getpid()]
    while started:
        process = started.pop()
        total += ticks.get(process, 0)
        started += [child for child, parent in parents.items() if parent == process]
    return total / os.sysconf("SC_CLK_TCK")


class DuckDb:
    def __init__(self, fleet, dataset):
        import duckdb

        self.connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self.connection.execute("SET threads = 2")
        if on_store(dataset):
            self.open_store()
        self.connection.execute(views(fleet, dataset, "duckdb"))

    def open_store(self):
        import duckdb_extension_httpfs

        folder = os.path.dirname(duckdb_extension_httpfs.__file__)
        (extension,) = glob.glob(f"{folder}/extensions/*/httpfs.duckdb_extension")
        self.connection.execute(f"LOAD '{extension}'")
        scheme, host = os.environ["AWS_ENDPOINT_URL"].split("://")
        for name, value in {
            "s3_endpoint": host,
            "s3_use_ssl": str(scheme == "https").lower(),
            "s3_url_style": "path",
            "s3_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
            "s3_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
            "s3_region": os.environ["AWS_REGION"],
        }.items():
            self.connection.execute(f"SET {name} = '{value}'")

    def ask(self, sql, parameters):
        names = ["p_"] + [f"p_{name}" for name in parameters]
        columns = ", ".join(f"CAST(? AS VARCHAR) AS {name}" for name in names)
        self.connection.execute(f"CREATE OR REPLACE TABLE parameters AS SELECT {columns}", ["", *parameters.values()])
        answer = self.connection.execute(sql)
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row)) for row in answer.fetchall()]

    def close(self):
        self.connection.close()


class Spark:
    """A cluster on this machine: a master, and two workers that are processes of their own."""

    def __init__(self, fleet, dataset):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local-cluster[2,1,1024]")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.driver.memory": "1g",
            # Spark takes a table for small by the size of its files, which are compressed; copies would fill the workers.
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            **(Spark.store_settings() if on_store(dataset) else {}),
        }.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        state = json.loads(views(fleet, dataset, "spark"))
        for table in state["tables"]:
            schema = ", ".join(f"`{name}` {kind}" for name, kind in table["columns"])
            reader = self.session.read.schema(schema)
            frame = reader.parquet(*table["files"]) if table["files"] else self.session.createDataFrame([], schema)
            frame.createOrReplaceTempView(table["table"])
        for view in state["views"]:
            self.session.sql(view["sql"]).createOrReplaceTempView(view["view"])
        workers = self.session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        limit = time.monotonic() + 60
        while workers < 2 and time.monotonic() < limit:
            time.sleep(0.2)
            workers = self.session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        if workers < 2:
            raise SystemExit(f"Spark has {workers} workers, not two")

    @staticmethod
    def store_settings():
        jars = os.environ["LUCCE_SPARK_JARS"] + "/*"
        return {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
            "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        }

    def ask(self, sql, parameters):
        schema = ", ".join(["p_ STRING", *(f"p_{name} STRING" for name in parameters)])
        row = ("", *parameters.values())
        self.session.createDataFrame([row], schema).createOrReplaceTempView("parameters")
        return [row.asDict() for row in self.session.sql(sql).collect()]

    def close(self):
        self.session.stop()


def known(row):
    """What DataFusion leaves out is not known; numbers that are whole are integers everywhere."""
    return {name: value for name, value in row.items() if value is not None}


def main():
    fleet, dataset, questions, *engines = sys.argv[1:]
    with open(questions, encoding="utf-8") as file:
        questions = json.load(file)
    expected = {}
    for question in questions:
        started, cpu = time.monotonic(), cpu_seconds()
        answer = expected[question["name"]] = datafusion(fleet, dataset, question)
        took, cpu = time.monotonic() - started, cpu_seconds() - cpu
        print(f"datafusion {question['name']}: {took:.2f} s, {cpu:.2f} s of CPU time, {len(answer)} rows", flush=True)
        if not answer and not question.get("empty"):
            raise SystemExit(f"{question['name']}: no rows, so nothing is compared")
    wrong = 0
    for name in engines:
        started, cpu = time.monotonic(), cpu_seconds()
        engine = {"duckdb": DuckDb, "spark": Spark}[name](fleet, dataset)
        took, cpu = time.monotonic() - started, cpu_seconds() - cpu
        print(f"{name} start: {took:.2f} s, {cpu:.2f} s of CPU time", flush=True)
        for question in questions:
            started, cpu = time.monotonic(), cpu_seconds()
            with open(question["sql"], encoding="utf-8") as file:
                answer = engine.ask(file.read().rstrip().rstrip(";"), question["parameters"])
            took, cpu = time.monotonic() - started, cpu_seconds() - cpu
            answer = [known(row) for row in answer]
            same = answer == expected[question["name"]]
            told = f"{len(answer)} rows, {'equal' if same else 'NOT EQUAL'}"
            print(f"{name} {question['name']}: {took:.2f} s, {cpu:.2f} s of CPU time, {told}", flush=True)
            if not same:
                wrong += 1
                pairs = zip(expected[question["name"]], answer)
                first = next((pair for pair in pairs if pair[0] != pair[1]), None)
                print(f"  {len(expected[question['name']])} rows expected; the first that differ: {first}")
        engine.close()
    if wrong:
        raise SystemExit(f"{wrong} answers differ")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
