"""Asks DataFusion, DuckDB and Spark the same SQL files, and compares what they answer.

    compare.py LUCCE_FLEET DATASET QUESTIONS.json ENGINE…

QUESTIONS.json is a list of {"name": …, "sql": FILE, "parameters": {…}}. DataFusion's answer, by `lucce-fleet ask` or
`lucce-fleet query`, is what the others must answer, row by row; it must have rows, but for questions with "empty": true.
"""

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


def snapshot(fleet, dataset):
    said = subprocess.run([fleet, "views", "--dataset", dataset], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


class DuckDb:
    def __init__(self, fleet, dataset):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 2")
        said = subprocess.run([fleet, "views", "--dataset", dataset, "--for", "duckdb"], check=True, stdout=subprocess.PIPE)
        self.connection.execute(said.stdout.decode())

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
        }.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        state = snapshot(fleet, dataset)
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
        started = time.process_time(), time.monotonic()
        expected[question["name"]] = datafusion(fleet, dataset, question)
        print(f"datafusion {question['name']}: {time.monotonic() - started[1]:.2f} s", flush=True)
        if not expected[question["name"]] and not question.get("empty"):
            raise SystemExit(f"{question['name']}: no rows, so nothing is compared")
    wrong = 0
    for name in engines:
        engine = {"duckdb": DuckDb, "spark": Spark}[name](fleet, dataset)
        for question in questions:
            started = time.monotonic()
            with open(question["sql"], encoding="utf-8") as file:
                answer = engine.ask(file.read().rstrip().rstrip(";"), question["parameters"])
            took = time.monotonic() - started
            answer = [known(row) for row in answer]
            same = answer == expected[question["name"]]
            print(f"{name} {question['name']}: {took:.2f} s, {len(answer)} rows, {'equal' if same else 'NOT EQUAL'}", flush=True)
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
