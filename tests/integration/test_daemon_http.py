#!/usr/bin/env python3
"""The page of metrics over HTTP: what it holds, who else asks for what, clients that are slow, many or wrong.

    SCANCTL=PATH test_daemon_http.py SCAND [unittest's arguments]
"""

import functools
import http.client
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from daemons import ON_CPU, Daemon, DaemonTest, children, main, scand
from test_daemon_watch import SCANCTL, check_names, read_metrics
from wire import TIMEOUT_S, eventually, scan, tensor

LIMIT_S = 5  # of a connection
CONNECTIONS = 16
HEAD_BYTES = 8192  # memory for a connection
PAGE_S = 0.05  # for which a page is given to all who ask
FORMAT = "text/plain; version=0.0.4; charset=utf-8"
ABSENT = "built without libmicrohttpd"


RESERVED = []  # sockets


def free_port():
    """A port that nobody else gets before this process ends. A daemon gets it beside a socket that does not listen."""
    RESERVED.append(socket.socket())
    RESERVED[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    RESERVED[-1].bind(("127.0.0.1", 0))
    return RESERVED[-1].getsockname()[1]


@functools.cache
def is_absent():
    """True when this daemon is built without HTTP, which it says before it looks for a device."""
    folder = tempfile.mkdtemp(prefix="scand")
    command = ["--foreground", "--socket", f"{folder}/socket", "--metrics-listen", f"127.0.0.1:{free_port()}"]
    done = scand(*command, "--device", "cuda:31")
    os.rmdir(folder)
    return done.returncode == 78 and ABSENT in done.stderr


def needs_http():
    if is_absent():
        raise unittest.SkipTest(ABSENT)


def ask(port, method="GET", path="/metrics", host="127.0.0.1", **more):
    """The response, read to its end, and its body."""
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, **more)
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def connect(port, sent=b"", host="127.0.0.1"):
    client = socket.create_connection((host, port), TIMEOUT_S)
    client.sendall(sent)
    return client


def read_end(client):
    """All that comes until the connection ends."""
    data = b""
    try:
        while more := client.recv(65536):
            data += more
    except ConnectionError:
        pass
    return data


def still(text):
    """The page without what the question itself or the time changes."""
    return [line for line in text.splitlines() if not re.match("scand_(uptime|clients_)", line)]


def without_users(text):
    return "".join(line for line in text.splitlines(True) if not re.match("(# (HELP|TYPE) )?scand_user_", line))


class Http(DaemonTest):
    @classmethod
    def setUpClass(cls):
        needs_http()
        cls.port = free_port()
        cls.options = ("--metrics-listen", f"127.0.0.1:{cls.port}")
        super().setUpClass()

    def sockets(self):
        """Counts the worker's sockets."""
        folder, count = f"/proc/{self.worker}/fd", 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(f"{folder}/{name}").startswith("socket:")
            except OSError:  # it was closed meanwhile
                pass
        return count

    def setUp(self):
        self.assertIn(f"metrics at http://127.0.0.1:{self.port}/metrics", self.daemon.log_text())

        def check_sockets():
            """The sockets that listen, the channel to the supervisor, and the neighbour's are left."""
            self.assertTrue(eventually(lambda: self.sockets() == 4), self.sockets())

        self.addCleanup(check_sockets)

    def answers(self):
        response, text = ask(self.port)
        self.assertEqual(response.status, 200)
        return text

    def wait_for_a_new_page(self):
        before = self.answers()
        self.assertTrue(eventually(lambda: self.answers() != before))

    def test_page(self):
        self.wait_for_a_new_page()
        response, text = ask(self.port)
        self.assertEqual((response.status, response.headers["Content-Type"]), (200, FORMAT))
        self.assertEqual(int(response.headers["Content-Length"]), len(text))
        families = read_metrics(text)
        check_names(families)
        self.assertEqual(families["scand_clients_open"][1], {("scand_clients_open", ""): 1})
        done = subprocess.run([SCANCTL, "--socket", self.daemon.socket, "metrics"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        all_families = read_metrics(done.stdout)
        check_names(all_families)
        self.assertEqual(still(text), still(without_users(done.stdout)))
        self.assertEqual(families.keys(), {name for name in all_families if not name.startswith("scand_user_")})

    def test_users(self):
        """The page names users only where the daemon is told to."""
        self.assertNotIn("scand_user_", self.answers())
        port = free_port()
        with Daemon(*ON_CPU, "--metrics-listen", f"127.0.0.1:{port}", "--metrics-users", "1") as daemon, daemon.client() as client:
            memory = client.create(4096)
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            families = read_metrics(ask(port)[1])
            done = subprocess.run([SCANCTL, "--socket", daemon.socket, "metrics"], capture_output=True, text=True)
            self.assertEqual(families.keys(), read_metrics(done.stdout).keys())
        check_names(families)
        own = f'user="{os.geteuid()}"'
        self.assertEqual(families["scand_user_jobs_done_total"][1], {("scand_user_jobs_done_total", own): 1})
        self.assertEqual(families["scand_user_connections"][1], {("scand_user_connections", own): 1})
        self.assertGreater(families["scand_user_queued_seconds_total"][1]["scand_user_queued_seconds_total", own], 0)

    def test_jobs_are_counted(self):
        name = "scand_jobs_done_total"
        self.wait_for_a_new_page()
        before = read_metrics(self.answers())[name][1][name, ""]
        self.tearDown()
        self.assertTrue(eventually(lambda: read_metrics(self.answers())[name][1][name, ""] == before + 1))

    def test_pages_are_shared(self):
        """Whoever asks again and again gets the page of a short while ago, and keeps the loop from nobody."""
        began, pages = time.monotonic(), {self.answers() for _ in range(200)}
        self.assertLessEqual(len(pages), (time.monotonic() - began) / PAGE_S + 2)
        self.assertTrue(eventually(lambda: self.answers() not in pages))

    def test_head_and_query(self):
        head, nothing = ask(self.port, "HEAD")
        self.assertEqual((head.status, head.headers["Content-Type"], nothing), (200, FORMAT, ""))
        self.assertGreater(int(head.headers["Content-Length"]), 1000)
        self.assertEqual(ask(self.port, path="/metrics?from=here")[0].status, 200)

    def test_other_requests(self):
        for path in ("/", "/metric", "/metrics/", "/metrics/x", "/../metrics", "/%00", "//"):
            response, text = ask(self.port, path=path)
            self.assertEqual((response.status, text), (404, "There is one page here: /metrics\n"), path)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "ANYTHING"):
            response, text = ask(self.port, method, body=b"x" * 100000 if method in ("POST", "PUT") else None)
            self.assertEqual((response.status, response.headers["Allow"]), (405, "GET, HEAD"), method)
            self.assertEqual(text, "Only GET and HEAD are allowed.\n")

    def test_one_address(self):
        """It listens at the loopback address alone: whoever comes by another one of this machine is refused."""
        with self.assertRaises(ConnectionRefusedError):
            connect(self.port, host="127.0.0.2")

    def test_one_request_each(self):
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"
        with connect(self.port, 3 * request) as client:
            self.assertEqual(read_end(client).count(b"HTTP/1.1 200"), 1)

    def test_wrong_requests(self):
        """Refused, or cut off in time, and bounded in memory."""
        for sent in (
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100000 + b"\r\n\r\n",
            b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10000 + b"\r\n",
            b"\0" * 1000,
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + os.urandom(500) + b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET /metrics HTTP/9.9\r\n\r\n",
        ):
            with self.subTest(sent[:40]):
                with connect(self.port) as client:
                    try:
                        client.sendall(sent)
                        client.shutdown(socket.SHUT_WR)
                    except OSError:  # refused before all of it was there
                        pass
                    self.assertNotIn(b"200 OK", read_end(client))
                self.answers()

    def test_size_of_a_head(self):
        """Of LIMIT_HTTP_BYTES for a connection: half is taken, and what does not fit is refused."""
        for size, status in ((HEAD_BYTES // 2, b"200"), (HEAD_BYTES, b"4")):
            head = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: "
            with connect(self.port, head + b"x" * (size - len(head) - 4) + b"\r\n\r\n") as client:
                self.assertRegex(read_end(client), b"^HTTP/1.1 " + status, size)

    def test_slow_clients(self):
        """Each has its time from start to end, also one from which a byte comes now and then."""
        began = time.monotonic()
        with connect(self.port) as silent, connect(self.port, b"GET /metrics HT") as half, connect(self.port) as dribbles:

            def is_cut():
                try:
                    dribbles.sendall(b"G")
                    return False
                except ConnectionError:
                    return True

            self.answers()  # once: for others' sake libmicrohttpd looks at all of its connections
            while not is_cut():
                self.assertLess(time.monotonic(), began + TIMEOUT_S)
                time.sleep(0.2)
            self.assertGreater(time.monotonic() - began, LIMIT_S - 0.5)
            self.assertEqual((read_end(silent), read_end(half)), (b"", b""))

    def test_silent_clients_hold_up_nobody(self):
        """Who asks takes the place of the oldest who has not, and waits for nobody's time to end."""
        silent = [connect(self.port) for _ in range(CONNECTIONS + 4)]
        for client in silent:
            self.addCleanup(client.close)
        for _ in range(3):
            self.answers()
        ended = select.select(silent, [], [], 0)[0]
        self.assertLessEqual(set(ended), set(silent[:7]))
        self.assertGreater(len(ended), 0)
        self.assertEqual([read_end(client) for client in silent], [b""] * len(silent))

    def test_many_clients(self):
        failures = []

        def scrape():
            for _ in range(10):
                try:
                    read_metrics(self.answers())
                except Exception as error:
                    failures.append(error)

        threads = [threading.Thread(target=scrape) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_clients_that_leave(self):
        """Clients leave in the middle of a request or of its answer, politely or by a reset."""
        request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
        for i in range(100):
            with connect(self.port, request[: len(request) if i % 2 else i % len(request)]) as client:
                if i % 4 > 1:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.answers()

    def test_idle(self):
        """Nothing wakes up while nobody asks, except that the watchdog has the loop turn every 1.25 s."""

        def switches():
            total = 0
            for task in os.listdir(f"/proc/{self.worker}/task"):
                with open(f"/proc/{self.worker}/task/{task}/status") as file:
                    total += int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)$", file.read())[1])
            return total

        def is_idle():
            before = switches()
            time.sleep(3)
            return switches() - before <= 6

        with open(f"/proc/{self.worker}/maps") as file:
            if re.search("libasan|libtsan", file.read()):
                self.skipTest("a sanitizer has a thread of its own")
        self.answers()
        time.sleep(0.2)
        self.assertTrue(eventually(is_idle, 10))  # it may have begun before the answer's end was known


class Process(unittest.TestCase):
    def setUp(self):
        needs_http()
        self.port = free_port()
        self.listen = ("--metrics-listen", f"localhost:{self.port}")

    def answers(self):
        return ask(self.port)[0].status == 200

    def test_restart(self):
        """The socket is the supervisor's: who asks meanwhile waits for the next worker."""
        with Daemon(*self.listen) as daemon:
            for _ in range(2):
                worker = daemon.worker()
                self.assertTrue(self.answers())
                os.kill(worker, signal.SIGKILL)
                self.assertTrue(eventually(lambda: children(daemon.process.pid) not in ([], [worker])))
                self.assertTrue(self.answers())

    def test_start_after_start(self):
        """The port is free again at once, though its last connections are remembered."""
        for _ in range(2):
            with Daemon(*self.listen):
                self.assertTrue(self.answers())
        with self.assertRaises(ConnectionRefusedError):
            self.answers()

    def test_no_threads(self):
        counts = []
        for options in ((), self.listen):
            with Daemon(*options) as daemon, daemon.client():
                if options:
                    self.assertTrue(self.answers())
                counts.append(len(os.listdir(f"/proc/{daemon.worker()}/task")))
        self.assertEqual(*counts)

    def test_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        with Daemon("--metrics-listen", f"[::1]:{self.port}"):
            self.assertEqual(ask(self.port, host="::1")[0].status, 200)
            with self.assertRaises(ConnectionRefusedError):
                self.answers()

    def test_port_is_taken(self):
        folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(os.rmdir, folder)  # the socket is gone
        with Daemon(*self.listen):
            done = scand("--foreground", *ON_CPU, "--socket", f"{folder}/socket", *self.listen)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertRegex(done.stderr, f'metrics-listen is "127.0.0.1:{self.port}": .*another program has that port')

    def test_few_files(self):
        """Short of descriptors a request waits, without the loop going round, and is answered when there are some."""
        with Daemon(*ON_CPU, *self.listen) as daemon:
            before = resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE)
            resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE, (3, before[1]))  # whatever is closed meanwhile
            answer = []
            thread = threading.Thread(target=lambda: answer.append(self.answers()))
            thread.start()
            self.assertTrue(eventually(lambda: "a request for metrics waits: the limit of open files" in daemon.log_text()))
            time.sleep(1)
            self.assertLess(daemon.log_text().count("a request for metrics waits"), 5)
            self.assertEqual(answer, [])
            resource.prlimit(daemon.worker(), resource.RLIMIT_NOFILE, before)
            thread.join()
            self.assertEqual(answer, [True])

    def test_stops_while_somebody_is_connected(self):
        with Daemon(*self.listen) as daemon, connect(self.port, b"GET /met") as client:
            daemon.client().call("server.ping")
            daemon.stop()
            self.assertEqual(read_end(client), b"")


class Settings(unittest.TestCase):
    def test_file_of_a_daemon_without_http(self):
        """It is wrong before the daemon starts, so that a service manager's reload says so, and no start is tried again."""
        if not is_absent():
            self.skipTest("this daemon has HTTP")
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("[daemon]\nmetrics-listen = 127.0.0.1:9464\n")
            file.flush()
            for words in (["--check-config", file.name], ["--foreground", "--config", file.name]):
                done = scand(*words)
                self.assertEqual(done.returncode, 78)
                self.assertRegex(done.stderr, 'metrics-listen is "127.0.0.1:9464", but scand was ' + ABSENT)

    def test_wrong_addresses(self):
        for value in (
            *("", "on", "9464", ":9464", "0.0.0.0:9464", "*:9464", "192.168.0.1:9464", "example.org:9464", "::1:9464"),
            *("[::]:9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http"),
            *("127.0.0.1:9464 ", "localhost.example.org:9464", "off:1", "unix:/tmp/x"),
        ):
            with self.subTest(value):
                done = scand("--metrics-listen", value)
                self.assertEqual(done.returncode, 64)
                self.assertIn(f'--metrics-listen is "{value}"; allowed: off, 127.0.0.1:PORT', done.stderr)

    def test_wrong_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("[daemon]\nmetrics-listen = 10.0.0.1:9464\n")
            file.flush()
            done = scand("--config", file.name)
        self.assertEqual(done.returncode, 78)
        self.assertIn(f'{file.name}:2: [daemon] "metrics-listen" is "10.0.0.1:9464"; allowed: off,', done.stderr)

    def test_file_and_reload(self):
        """The setting counts from start to end."""
        needs_http()
        port = free_port()
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(f"[daemon]\nmetrics-listen = localhost:{port}\n")
            file.flush()
            with Daemon("--config", file.name) as daemon:
                self.assertEqual(ask(port)[0].status, 200)
                file.truncate(0)
                daemon.process.send_signal(signal.SIGHUP)
                kept = f'"metrics-listen" is "off" now, but stays "127.0.0.1:{port}" until scand is started again'
                self.assertTrue(eventually(lambda: kept in daemon.log_text()), daemon.log_text())
                self.assertEqual(ask(port)[0].status, 200)


if __name__ == "__main__":
    main()
