#!/usr/bin/env python3
"""The daemon as processes under a service manager: its socket, what it is told, what it asks.

test_daemon_managed.py SCAND [unittest's arguments]
"""

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading

import daemons
from daemons import ON_CPU, Daemon, children, main, scand
from processes import MIB, ProcessTest
from wire import Client, eventually, scan, tensor


class Managed(ProcessTest):
    """A daemon under a service manager: its socket, what it is told, what it asks."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "socket")
        self.log = open(self.folder + "/log", "w+")
        self.addCleanup(self.log.close)

    def listen(self, kind=socket.SOCK_STREAM):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        listener.bind(self.path)
        if kind == socket.SOCK_STREAM:
            listener.listen(8)
        return listener

    def start(self, passed, count=1, pid="os.getpid()", **environment):
        """A daemon that gets the socket as its descriptor 3. There is another one, 4, that nobody passes."""
        become = f"""import os, sys
os.dup2({passed.fileno()}, 3)
os.dup2(1, 4)
os.environ |= {{"LISTEN_PID": str({pid}), "LISTEN_FDS": "{count}"}}
os.execv(sys.argv[1], sys.argv[1:])"""
        return daemons.subprocess.Popen(
            [sys.executable, "-c", become, daemons.SCAND, *ON_CPU, "--foreground", "--pool", "16M", "--watchdog", "1"],
            stderr=self.log,
            pass_fds=[passed.fileno()],
            env={**os.environ, "SCAND_SOCKET": self.folder + "/other", **environment},
        )

    def log_text(self):
        with open(self.log.name) as file:
            return file.read()

    def test_passed_socket(self):
        """Clients wait in it while no daemon runs, and it is not the daemon's to remove."""
        listener = self.listen()
        for _ in range(2):
            early = threading.Thread(target=self.serves, args=[self.path])
            early.start()
            daemon = self.start(listener)
            early.join()
            self.serves(self.path)
            self.assertFalse(os.path.exists(self.folder + "/other"))
            daemon.terminate()
            self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)
            self.assertTrue(os.path.exists(self.path))
        self.assertEqual(self.log_text().count(f"ready at {self.path} on"), 2)

    def test_passed_to_another(self):
        daemon = self.start(self.listen(), pid="1")
        self.assertTrue(eventually(lambda: f"ready at {self.folder}/other" in self.log_text()))
        daemon.terminate()
        self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)

    def test_passed_what_is_no_use(self):
        wrong = "error: what the service manager passes is no Unix stream socket that listens at a path; give scand.socket"
        for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            self.assertEqual(self.start(self.listen(kind)).wait(daemons.TIMEOUT_S), 64)
            os.unlink(self.path)
        with open(os.devnull) as file:
            self.assertEqual(self.start(file).wait(daemons.TIMEOUT_S), 64)
        self.assertEqual(self.log_text().count(wrong), 3)
        self.assertEqual(self.start(self.listen(), count=2).wait(daemons.TIMEOUT_S), 64)
        self.assertIn("error: the service manager passes 2 sockets; allowed: one", self.log_text())

    def test_what_the_manager_is_told(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.folder + "/notify")
        manager.settimeout(daemons.TIMEOUT_S)
        told = []

        def hears(*lines):
            while not set(lines) <= set(told):
                told.extend(manager.recv(4096).decode().split("\n"))

        daemon = self.start(self.listen(), NOTIFY_SOCKET=self.folder + "/notify", WATCHDOG_USEC="100000")
        hears("READY=1", f"STATUS=serving at {self.path}", "WATCHDOG=1")
        (worker,) = children(daemon.pid)
        told.clear()
        os.kill(worker, signal.SIGKILL)
        hears("STATUS=the worker ended by signal 9 (Killed); starting another", "READY=1")
        with Client(self.path) as client:
            buffer = client.call("buffer.create", size=256 * MIB, place="device")["buffer"]
            for _ in range(100):
                client.send("job.submit", scan(tensor(buffer, [6553, 10240]), accumulator="f2"))
            client.call("server.ping")
            told.clear()
            daemon.terminate()
            hears("STOPPING=1", "EXTEND_TIMEOUT_USEC=120000000")
        self.assertTrue(any(line.startswith("STATUS=draining: no more jobs are taken, ") for line in told), told)
        self.assertEqual(daemon.wait(daemons.TIMEOUT_S), 0)
        self.assertRegex(self.log_text(), "draining: no more jobs are taken, [1-9][0-9]* are left\nscand: drained: none is left\n$")

    def check(self, text, code, message):
        with open(self.folder + "/scand.conf", "w") as file:
            file.write(text)
        for words in (["--check-config", file.name], ["--config", file.name, "--check-config"]):
            result = scand(*words)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(message, result.stdout + result.stderr)
        result = scand("--check-config", env={**os.environ, "CONFIGURATION_DIRECTORY": self.folder})
        self.assertEqual(result.returncode, code)
        self.assertEqual(os.listdir(self.folder), ["log", "scand.conf"])

    def test_check_config(self):
        os.chdir("/")
        self.check("[daemon]\npool = 1G\n[user root]\nweight = 2\n", 0, "scand.conf: right, with settings of 1 user\n")
        self.check("[daemon]\npool = much\n", 78, 'scand.conf:2: [daemon] "pool" is "much"; allowed: 0 to 256G, a whole number of bytes, or of K, M, G')
        self.check("[daemon\n", 78, "scand.conf:1: this is neither")
        self.assertEqual(scand("--check-config", self.folder + "/none").returncode, 78)
        self.assertEqual(scand("--check-config", "a", "b").returncode, 64)
        result = scand("--check-config", env={**os.environ, "CONFIGURATION_DIRECTORY": "/none"})
        self.assertEqual((result.returncode, result.stdout), (0, "there is no configuration file: all settings are the defaults\n"))

    def test_mode_and_group(self):
        group = (os.getgroups() or [os.getgid()])[0] if os.getuid() else 12
        for words, mode in ((["--socket-mode", "0660"], 0o660), (["--socket-mode", "600"], 0o600), ([], None)):
            with Daemon("--socket-group", str(group), *words) as daemon:
                status = os.stat(daemon.socket)
                self.assertEqual(status.st_gid, group)
                self.assertEqual(status.st_mode & 0o777, mode or (0o600 if os.getuid() else 0o666))
                self.serves(daemon.socket)


if __name__ == "__main__":
    main()
