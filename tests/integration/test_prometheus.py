#!/usr/bin/env python3
"""A real Prometheus server scrapes a daemon; its answers are shown. It takes the rules and each question of the dashboard
that systemd/monitoring has. Without prometheus, the names in them are looked for in what the daemon tells.

    SCANCTL=PATH test_prometheus.py SCAND
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from daemons import ON_CPU, Daemon, main
from test_daemon_http import free_port, needs_http
from wire import eventually, scan, tensor

JOBS = 7
MONITORING = os.path.join(os.path.dirname(__file__), "..", "..", "systemd", "monitoring")
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: scand
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def alerts():
    with open(os.path.join(MONITORING, "alerts.yml")) as file:
        return file.read()


def questions():
    """Returns the dashboard's queries, as it asks them of all instances."""
    with open(os.path.join(MONITORING, "dashboard.json")) as file:
        panels = json.load(file)["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    return [question.replace("$instance", ".*").replace("$__rate_interval", "10s") for question in asked]


class Monitoring(unittest.TestCase):
    def test_all_names_are_the_daemons(self):
        needs_http()
        port = free_port()
        with Daemon(*ON_CPU, "--metrics-listen", f"127.0.0.1:{port}", "--metrics-users", "1") as daemon, daemon.client():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
                known = set(re.findall(r"^(scand_\w+)", response.read().decode(), re.MULTILINE))
        asked = re.findall(r"\bscand_\w+", alerts() + " ".join(questions()))
        self.assertGreater(len(asked), 20)
        self.assertEqual(set(asked) - known, set())


@unittest.skipUnless(shutil.which("prometheus"), "no prometheus here: apt-get install prometheus")
class Prometheus(unittest.TestCase):
    def setUp(self):
        needs_http()
        self.port, self.folder = free_port(), tempfile.mkdtemp(prefix="scand-prometheus")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, scand_port):
        path = os.path.join(self.folder, "prometheus.yml")
        with open(path, "w") as file:
            file.write(CONFIG.format(port=scand_port, rules=os.path.join(os.path.realpath(MONITORING), "alerts.yml")))
        storage, listen = f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"
        with open(os.path.join(self.folder, "log"), "w") as log:
            server = subprocess.Popen(["prometheus", f"--config.file={path}", storage, listen], stdout=log, stderr=log)

        def stop():
            server.send_signal(signal.SIGTERM)
            server.wait()

        self.addCleanup(stop)

    def get(self, what):
        """Returns what the server's HTTP interface tells; None while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{what}") as response:
                return json.load(response)["data"]
        except urllib.error.URLError:
            return None

    def query(self, expression):
        """The values of a query, as {labels: number}."""
        data = self.get("query?" + urllib.parse.urlencode({"query": expression})) or {"result": []}
        return {json.dumps(row["metric"], sort_keys=True): float(row["value"][1]) for row in data["result"]}

    def log(self):
        with open(os.path.join(self.folder, "log")) as file:
            return file.read()

    def test_scrape(self):
        port = free_port()
        with Daemon(*ON_CPU, "--metrics-listen", f"127.0.0.1:{port}", "--metrics-users", "1") as daemon, daemon.client() as client:
            memory = client.create(4096)
            for _ in range(JOBS):
                client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.start(port)

            def holds(expression, *values):
                self.assertTrue(eventually(lambda: tuple(self.query(expression).values()) == values, 60), self.log())
                print(f"{expression}: {self.query(expression)}", flush=True)

            holds('up{job="scand"}', 1)
            holds("scand_jobs_done_total", JOBS)
            holds('scand_build_info{server=~"scand .*"}', 1)
            holds("scand_job_duration_seconds_count", JOBS)
            holds("scand_user_jobs_done_total", JOBS)
            holds('scand_job_duration_seconds_bucket{le="+Inf"}', JOBS)
            median = self.query("histogram_quantile(0.5, scand_job_duration_seconds_bucket)")
            self.assertTrue(all(0 < value < 1 for value in median.values()) and len(median) == 1, median)
            self.assertEqual(self.get("targets")["activeTargets"][0]["lastError"], "")
            types = {name: rows[0]["type"] for name, rows in self.get("metadata").items() if name.startswith("scand_")}
            self.assertEqual(types["scand_jobs_done_total"], "counter")
            self.assertEqual(types["scand_job_duration_seconds"], "histogram")
            self.check_rules()
            for question in questions():
                with self.subTest(question):
                    self.assertIsNotNone(self.get("query?" + urllib.parse.urlencode({"query": question})))

    def check_rules(self):
        def all_evaluated():
            rules = self.get("rules")["groups"][0]["rules"]
            return all(rule["health"] == "ok" for rule in rules) and len(rules) == alerts().count("- alert:")

        self.assertTrue(eventually(all_evaluated, 60), self.get("rules"))
        firing = [alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"]
        self.assertEqual(firing, [])


if __name__ == "__main__":
    main()
