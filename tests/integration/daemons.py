"""Real daemons for tests, the test case around one, and the program that runs a file of tests."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from wire import CODES, TIMEOUT_S, Client, Failure, eventually, pack_f32, scan, tensor, unpack_f32

SCAND = None  # the daemon's executable, from the command line
DEVICE = os.environ.get("SCAND_TEST_DEVICE", "cpu")  # also several, as in "cpu:2" and "all"
BACKEND = "cpu" if DEVICE.startswith("cpu") else "cuda"
ON_CPU = ("--device", "cpu")  # for tests of jobs that last, or of few open files
FAULTS = re.compile(r"Sanitizer|runtime error:|Assertion")


def scand(*options, **more):
    """Runs scand to its end, which has to come by itself."""
    return subprocess.run(
        [SCAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, **more
    )


def children(pid):
    """Living processes whose parent is pid."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(name))
    return found


class Daemon:
    """A daemon on DEVICE in the foreground; of an option given twice the last counts. Leaving the context stops it, and checks that it ends well."""

    def __init__(self, *options, folder=None, files=None, user=None):
        self.folder = folder or tempfile.mkdtemp(prefix="scand")
        os.chmod(self.folder, 0o755)

        def become():
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        if user:
            os.chown(self.folder, user, user)
        self.socket = os.path.join(self.folder, "socket")
        self.log = tempfile.TemporaryFile("w+")
        command = [SCAND, "--device", DEVICE, "--foreground", "--socket", self.socket, "--pool", "64M", "--threads", "2"]
        try:
            self.process = subprocess.Popen([*command, *options], stdout=self.log, stderr=self.log, preexec_fn=become)
            self.starts()
        except BaseException:
            self.forget()
            raise

    def starts(self):
        if eventually(lambda: self.process.poll() is not None or "ready at" in self.log_text()) and not self.process.poll():
            return
        self.process.kill()
        self.process.wait()
        raise AssertionError(f"the daemon does not start:\n{self.log_text()}")

    def forget(self):
        """Removes what it has left, once it has ended."""
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.stop()
        except AssertionError:
            if kind is None:
                raise

    def log_text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def worker(self):
        """The worker's pid, once there is one."""
        found = eventually(lambda: children(self.process.pid))
        assert len(found) == 1, found
        return found[0]

    def client(self, **options):
        return Client(self.socket, **options)

    def wait(self, code=0):
        """Waits for the daemon's end and checks its exit code, what it logged, and that its socket is gone."""
        try:
            ended = self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            ended = "none: it did not end"
        text, has_left = self.log_text(), os.path.exists(self.socket)
        self.forget()
        assert ended == code and not FAULTS.search(text), f"exit code {ended}, expected: {code}; log:\n{text}"
        assert ended < 0 or not has_left

    def stop(self):
        if not self.log.closed:
            self.process.send_signal(signal.SIGTERM)
            self.wait()


class DaemonTest(unittest.TestCase):
    """Tests that share a daemon, and a neighbour who has to notice nothing of what they do."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*cls.options)
        cls.addClassCleanup(cls.daemon.stop)
        cls.neighbour = cls.daemon.client()
        cls.addClassCleanup(cls.neighbour.close)
        cls.memory = cls.neighbour.create(4096)
        cls.worker = cls.daemon.worker()

    def tearDown(self):
        self.memory.write(pack_f32([1] * 100))
        self.neighbour.call("job.submit", scan(tensor(self.memory.buffer, [100])))
        self.assertEqual(unpack_f32(self.memory.read(0, 400)), list(range(1, 101)))
        self.assertEqual(children(self.daemon.process.pid), [self.worker])

    def client(self, **options):
        client = self.daemon.client(**options)
        self.addCleanup(client.close)
        return client

    def fails(self, client, msgid, name, message):
        """The request's response is this error: code, name, and a message that the pattern matches."""
        with self.assertRaises(Failure) as caught:
            client.wait(msgid)
        error = caught.exception.error
        self.assertEqual((error["name"], error["code"]), (name, CODES[name]), error["message"])
        self.assertRegex(error["message"], message)
        return error

    def refused(self, client, name, message, method, params=None, fds=(), **fields):
        """The request fails so, and the connection goes on."""
        error = self.fails(client, client.send(method, params, fds, **fields), name, message)
        if client.greeting:
            client.call("server.ping")
        return error

    def settles(self):
        """Everything of clients that are gone comes back: only the neighbour's buffer stays."""

        def is_settled():
            stats = self.neighbour.call("server.stats")
            left = {
                name: stats[name]
                for name in ("clients_open", "buffers_open", "host_bytes", "device_bytes", "jobs_open")
            }
            return left == {"clients_open": 1, "buffers_open": 1, "host_bytes": 4096, "device_bytes": 0, "jobs_open": 0}

        self.assertTrue(eventually(is_settled), self.neighbour.call("server.stats"))


def main():
    """`FILE SCAND [unittest's arguments]`. Ends with a line that counts; exit code 77 when all tests were skipped."""
    global SCAND
    SCAND = os.path.abspath(sys.argv.pop(1))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    result = unittest.main(verbosity=2, exit=False, warnings="ignore").result
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{max(result.testsRun - failed - skipped, 0)} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed else 77 if skipped == result.testsRun else 0)
