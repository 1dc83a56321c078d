"""Twelve JVMs push their logs; four are killed, the collector is killed and restarted in the middle. Then the dataset has every event that
each JVM's own log counts, context by context.

push.py FLEET LUCCE AGENT JAVA CLASSES FOLDER
"""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import threading

FLEET, LUCCE, AGENT, JAVA, CLASSES, FOLDER = sys.argv[1:]
DATASET = os.path.join(FOLDER, "pushed")
JVMS, KILLED = 12, 4
# Known to the collector, which is started twice, and to the JVMs.
TOKEN = os.path.join(FOLDER, "token")
with open(os.open(TOKEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as token:
    token.write("0123456789abcdef-push\n")


class Process:
    """A process whose lines are kept, and waited for."""

    def __init__(self, *command, **more):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=FOLDER, **more
        )
        self.lines, self.changed, self.over = [], threading.Condition(), False
        atexit.register(self.process.kill)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def line(self, pattern, behind=0):
        """The first line that has the pattern, behind so many lines."""
        with self.changed:
            while True:
                for line in self.lines[behind:]:
                    if re.search(pattern, line):
                        return line
                if self.over:
                    raise SystemExit(f"no line with {pattern}: {self.lines}")
                self.changed.wait()

    def ask(self):
        """How far the program is."""
        seen = len(self.lines)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.line(r"^\d+$", seen))

    def end(self):
        self.process.stdin.close()
        code = self.process.wait()
        self.line("")
        if code != 0:
            raise SystemExit(f"ended with {code}: {self.lines}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def said(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=FOLDER)
    if done.returncode != 0:
        raise SystemExit(f"{command} ended with {done.returncode}")
    return done.stdout


def query(sql):
    return json.loads(said(FLEET, "query", "--output", "json", "--dataset", DATASET, sql))


def collector(address):
    process = Process(FLEET, "collect", DATASET, "--listen", address, "--interval", "500ms", "--token-file", TOKEN)
    return process, process.line("taken at").split("http://")[1]


def jvm(number, address):
    options = ",".join(
        [
            f"out=steady-{number}.lucce",
            f"push=http://{address}",
            f"push-token={TOKEN}",
            "push-every=300ms",
            "push-service=steady",
            "push-version=1",
            "cache=off",
        ]
    )
    return Process(JAVA, "-Xmx64m", "-XX:TieredStopAtLevel=1", f"-agentpath:{AGENT}={options}", "-cp", CLASSES, "Steady")


def log(number):
    return os.path.join(FOLDER, f"steady-{number}.lucce")


def compare(number):
    """Counts by path of the log, and of the dataset."""
    report = json.loads(said(LUCCE, "report", "--json", "--top", "1000000000", log(number)))
    run = report["run"]
    numbers = {
        row["number"] & (2**64 - 1): row["stack_id"]
        for row in query(f"SELECT number, stack_id FROM numbers WHERE run_id = '{run}'")
    }
    counted = {}
    for context in report["contexts"]:
        stack = numbers[int(context["id"].rsplit(":", 1)[1], 16)]
        count, value = counted.get(stack, (0, 0))
        counted[stack] = (count + context["count"], value + context["value"])
    rows = query(
        "SELECT stack_id, CAST(SUM(count) AS BIGINT) AS n, CAST(SUM(value) AS BIGINT) AS v FROM events"
        f" WHERE run_id = '{run}' AND event = 'alloc' GROUP BY stack_id"
    )
    there = {row["stack_id"]: (row["n"], row["v"]) for row in rows}
    if there != counted or sum(count for count, _ in counted.values()) != report["totals"]["count"]:
        differing = [(stack, counted.get(stack), there.get(stack)) for stack in counted.keys() | there.keys()]
        differing = [row for row in differing if row[1] != row[2]]
        raise SystemExit(f"run {run}, log {number}: {len(differing)} contexts differ: {differing[:5]}")
    return report["totals"]["count"], len(counted)


def main():
    collecting, address = collector("127.0.0.1:0")
    jvms = [jvm(number, address) for number in range(JVMS)]
    for each in jvms:
        each.line("works")
    collecting.line("added .* event")
    for each in jvms[:KILLED]:
        each.kill()
    collecting.kill()
    # The collector is away: each says so once, and goes on.
    for each in jvms[KILLED:]:
        each.line("push: .*the log keeps what is to be pushed")
        before = each.ask()
        while each.ask() <= before:
            pass
    collecting, address = collector(address)
    for each in jvms[KILLED:]:
        each.line("answers again")
    for each in jvms[KILLED:]:
        each.end()
    for each in jvms[KILLED:]:
        each.line("pushed to .* events")
    # What the killed ones have left the next one pushes.
    last = jvm(JVMS, address)
    for number in range(KILLED):
        last.line(f"pushed .*steady-{number}.lucce, which another")
    last.end()
    left = [name for name in os.listdir(FOLDER) if name.endswith(".push")]
    if left:
        raise SystemExit(f"not pushed: {left}")
    collecting.kill()
    said(FLEET, "collect", DATASET, "--drain")
    sums = [compare(number) for number in range(JVMS)]
    events, contexts = (sum(column) for column in zip(*sums))
    runs = query("SELECT COUNT(*) AS runs, CAST(SUM(CASE WHEN ended THEN 1 ELSE 0 END) AS BIGINT) AS ended FROM runs")
    if runs != [{"runs": JVMS + 1, "ended": JVMS - KILLED + 1}]:
        raise SystemExit(f"runs: {runs}")
    print(f"pushed: {events} events in {contexts} contexts of {JVMS} JVMs, {KILLED} of them killed, are in the dataset")


main()
