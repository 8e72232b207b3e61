#!/usr/bin/env python3
"""The daemon as processes: how it starts, and what it refuses to start with.

test_daemon_starts.py SCAND [unittest's arguments]
"""

import os
import resource
import shutil
import signal
import socket
import struct
import tempfile
import unittest

import daemons
from daemons import Daemon, children, main, scand
from processes import MIB, ProcessTest, is_gone
from wire import Client, Failure, eventually, pack_f32, scan, tensor, unpack_f32

WRONG_OPTIONS = [
    (["--device", "gpu"], '--device is "gpu"; allowed: auto, all, cpu, cpu:COUNT, cuda, cuda:N,N'),
    (["--device", ""], '--device is ""; allowed: '),
    (["--device", "cuda:"], '--device is "cuda:"'),
    (["--device", "cuda:x"], '--device is "cuda:x"'),
    (["--device", "cuda:32"], '--device is "cuda:32"; allowed: .* N from 0 to 31'),
    (["--device", "cuda:0,"], '--device is "cuda:0,"'),
    (["--device", "cuda:1,1"], '--device is "cuda:1,1"'),
    (["--device", "cpu:0"], '--device is "cpu:0"'),
    (["--device", "cpu:33"], '--device is "cpu:33"'),
    (["--pool", "1T"], '--pool is "1T"; allowed: 0 to 256G'),
    (["--pool", "257G"], '--pool is "257G"'),
    (["--pool", "-1"], '--pool is "-1"'),
    (["--pool", ""], '--pool is ""'),
    (["--pool", "M"], '--pool is "M"'),
    (["--pool", "1MM"], '--pool is "1MM"'),
    (["--pool", "1.5G"], '--pool is "1.5G"'),
    (["--pool", "18446744073709551616"], '--pool is "18446744073709551616"'),
    (["--pool", " 1"], '--pool is " 1"'),
    (["--pool", "9" * 60], '--pool is "999'),
    (["--device-memory", "1025G"], '--device-memory is "1025G"; allowed: 0 to'),
    (["--threads", "1025"], '--threads is "1025"; allowed: 0 to 1024'),
    (["--threads", "two"], '--threads is "two"'),
    (["--fail-chunk", "0"], '--fail-chunk is "0"; allowed: 1 and more'),
    (["--fail-chunk", "x"], '--fail-chunk is "x"'),
    (["--hang-chunk", "0"], '--hang-chunk is "0"; allowed: 1 and more'),
    (["--fail-memory", "-1"], '--fail-memory is "-1"; allowed: 1 and more'),
    (["--watchdog", "3601"], '--watchdog is "3601"; allowed: 0 to 3600'),
    (["--socket", ""], '--socket is "": the socket path is empty'),
    (["--socket", "/tmp/" + "x" * 103], '--socket is "/tmp/x+": .* has 108 bytes; allowed: up to 107'),
    (["--socket"], "--socket"),
    (["--bogus"], "--bogus"),
    (["-x"], "x"),
    (["--foreground=1"], "--foreground"),
    (["cpu"], '"cpu" is no option'),
]


class Starts(ProcessTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="scand")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "socket")

    def refused(self, code, message, *options):
        result = scand(*options)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertRegex(result.stderr, message)

    def test_second_daemon(self):
        with Daemon() as daemon:
            client = daemon.client()
            for options in (["--foreground"], []):
                self.refused(
                    69,
                    f"^scand: error: a daemon answers at {daemon.socket}; stop it, wait for its end if it drains, or choose another path\n$",
                    "--device",
                    "cpu",
                    "--socket",
                    daemon.socket,
                    "--pool",
                    "16M",
                    *options,
                )
            self.assertEqual(client.call("server.ping"), {})
            self.serves(daemon.socket)

    def test_places_that_are_no_good(self):
        with open(self.path, "w"):
            pass
        self.refused(69, "is there and is no socket", "--device", "cpu", "--socket", self.path)
        self.refused(69, "cannot", "--device", "cpu", "--socket", self.path + "/below")
        self.refused(69, "cannot", "--device", "cpu", "--socket", self.folder + "/no/such/folder")
        self.assertTrue(os.path.exists(self.path))

    @unittest.skipIf(os.getuid(), "needs another user")
    def test_places_of_others(self):
        """Permission refused has an exit code of its own; and who may only read the socket's folder keeps nobody out."""

        def become():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        os.chmod(self.folder, 0o755)
        options = ["--device", "cpu", "--foreground", "--pool", "16M", "--socket", self.path]
        result = scand(*options, preexec_fn=become)
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertRegex(result.stderr, "cannot open .*/socket.lock: Permission denied; choose a socket path in a folder where")
        locking = daemons.subprocess.Popen(
            ["flock", "--no-fork", self.folder, "sh", "-c", "echo locked; exec sleep 60"],
            preexec_fn=become,
            stdout=daemons.subprocess.PIPE,
        )
        self.addCleanup(locking.stdout.close)
        self.addCleanup(locking.wait)
        self.addCleanup(locking.kill)
        self.assertEqual(locking.stdout.readline(), b"locked\n")
        self.start_behind('"$0" "$@"')
        command = ["flock", "-n", self.path + ".lock", "true"]
        refused = daemons.subprocess.run(command, preexec_fn=become, stderr=daemons.subprocess.PIPE)
        self.assertIn(b"Permission denied", refused.stderr)
        self.end()
        self.assertEqual(os.listdir(self.folder), ["log"])

    def test_own_socket_is_gone(self):
        """A socket that another daemon has put at the path stays there."""
        with Daemon() as daemon:
            os.unlink(daemon.socket)
            with Daemon(folder=daemon.folder) as other:
                daemon.process.send_signal(signal.SIGTERM)
                daemon.process.wait(daemons.TIMEOUT_S)
                self.serves(other.socket)
                other.stop()
            daemon.log.close()

    def test_options(self):
        for words, message in WRONG_OPTIONS:
            with self.subTest(words):
                self.refused(64, message + "(.|\n)*scand --help", *words)

    def test_help_and_version(self):
        text = scand("--help").stdout
        self.assertRegex(text, "^Usage: scand")
        for option in ("--socket PATH", "--socket-mode MODE", "--socket-group GROUP", "--device DEVICE", "--metrics-listen ADDRESS",
                       "--pool SIZE", "--threads N", "--watchdog SECONDS"):
            self.assertIn(f"  {option} ", text)
        self.assertRegex(scand("--version").stdout, r"\Ascand \d+\.\d+\.\d+\ncommit \S+, built with(out)? CUDA.*, with(out)? metrics over HTTP\n\Z")
        self.assertEqual(scand("--help", "--bogus").returncode, 0)

    def test_no_such_gpu(self):
        for options in (["--foreground"], []):
            self.refused(69, '--device is "cuda:31": there is no GPU.*use cpu', "--device", "cuda:31", "--socket", self.path, *options)
            self.assertFalse(os.path.exists(self.path))

    def test_socket_from_the_environment(self):
        environment = {
            key: value for key, value in os.environ.items() if key not in ("SCAND_SOCKET", "XDG_RUNTIME_DIR")
        }
        with open(self.path, "w"):
            pass
        result = scand(env={**environment, "SCAND_SOCKET": self.path})
        self.assertIn(f"{self.path} is there and is no socket", result.stderr)
        os.mkdir(self.folder + "/run")
        os.rename(self.path, self.folder + "/run/scand.sock")
        result = scand(env={**environment, "XDG_RUNTIME_DIR": self.folder + "/run"})
        self.assertIn("run/scand.sock is there and is no socket", result.stderr)

    def test_permissions(self):
        """A daemon of root serves everyone, any other its own user."""
        with Daemon() as daemon:
            self.assertEqual(os.stat(daemon.socket).st_mode & 0o777, 0o600 if os.getuid() else 0o666)

    def test_background(self):
        """The command returns when the daemon is ready, and leaves it behind."""
        with tempfile.TemporaryFile("w+") as log:
            result = daemons.subprocess.run(
                [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"],
                stdout=log,
                stderr=log,
                timeout=daemons.TIMEOUT_S,
            )
            self.assertEqual(result.returncode, 0)
            self.serves(self.path)
            with Client(self.path) as client:
                pid, uid, _ = struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self.assertEqual((uid, os.getsid(pid)), (os.getuid(), pid))
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/1"), "/dev/null")
            (worker,) = children(pid)
            os.kill(pid, signal.SIGTERM)
            self.assertTrue(eventually(lambda: is_gone(pid) and is_gone(worker)))
            self.assertFalse(os.path.exists(self.path))
            log.seek(0)
            self.assertRegex(
                log.read(),
                "^scand: ready at [^\n]+\nscand: draining: no more jobs are taken, 0 are left\nscand: drained: none is left\n$",
            )

    def start_behind(self, *shell):
        """Starts a daemon by a shell that may change descriptors first. Returns what the shell printed, and leaves the daemon there."""
        command = [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"]
        with open(self.folder + "/log", "w") as log:
            result = daemons.subprocess.run(
                ["sh", "-c", *shell, *command], stdout=daemons.subprocess.PIPE, stderr=log, timeout=daemons.TIMEOUT_S
            )
        self.assertEqual(result.returncode, 0)
        return result.stdout

    def listener(self):
        with Client(self.path) as client:
            return struct.unpack("3i", client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def end(self):
        pid = self.listener()
        with Client(self.path) as client:
            client.call("server.drain")
        self.assertTrue(eventually(lambda: is_gone(pid)))

    def test_closed_descriptors(self):
        """Nothing that the daemon opens gets a closed standard descriptor, where programs read, write or log."""
        for closed in ("2>&-", "<&- >&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                self.start_behind(f'"$0" "$@" {closed}')
                pid = self.listener()
                (worker,) = children(pid)
                for process in (pid, worker):
                    for fd in range(3):
                        target = os.readlink(f"/proc/{process}/fd/{fd}")
                        self.assertTrue(target in ("/dev/null", self.folder + "/log"), (process, fd, target))
                self.serves(self.path)
                self.end()

    def test_nobody_waits_for_its_descriptors(self):
        """Neither a shell that takes the command's output nor whoever handed down a pipe waits for the daemon."""
        read, write = os.pipe()
        os.dup2(write, 9)
        os.close(write)
        os.set_inheritable(9, True)
        command = daemons.subprocess.Popen(
            ["sh", "-c", 'x=$("$@" 2>/dev/null); echo "got <$x>"', "sh"]
            + [daemons.SCAND, "--device", "cpu", "--socket", self.path, "--pool", "16M"],
            stdout=daemons.subprocess.PIPE,
            pass_fds=[9],
        )
        os.close(9)
        self.assertEqual(command.communicate(timeout=daemons.TIMEOUT_S)[0], b"got <>\n")
        self.assertEqual(os.read(read, 1), b"")
        os.close(read)
        self.serves(self.path)
        self.end()

    def test_pool_larger_than_memory(self):
        """A pool larger than memory is refused, with the size that is there, before the kernel ends processes for it."""
        with open("/proc/meminfo") as file:
            kib = {line.split(":")[0]: int(line.split()[1]) for line in file}
        if kib["MemAvailable"] >= 256 << 20:
            self.skipTest("there is more memory than a pool may have")
        for options in (["--foreground"], []):
            self.refused(
                69,
                r"^scand: error: pool is 262144M, and the (available|memory).* suffices for \d+M; give a smaller --pool, at most",
                "--device", "cpu", "--pool", "256G", "--socket", self.path, *options,
            )  # fmt: skip
            self.assertEqual(os.listdir(self.folder), [])

    def test_pool_larger_than_the_control_group(self):
        """The limit is that of the group that the daemon is put into, of whatever version."""
        for base, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
            group = f"{base}/scand-test-{os.getpid()}"
            try:
                if not os.path.exists(f"{base}/cgroup.procs"):
                    continue
                os.mkdir(group)
                self.addCleanup(os.rmdir, group)
                with open(f"{group}/{limit}", "w") as file:
                    file.write(str(256 * MIB))
                break
            except OSError:
                continue
        else:
            self.skipTest("control groups of memory cannot be made here")

        def enter():
            with open(f"{group}/cgroup.procs", "w") as file:
                file.write("0")

        command = ["--device", "cpu", "--foreground", "--socket", self.path, "--pool"]
        result = scand(*command, "1G", preexec_fn=enter)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, r"pool is 1024M, and the memory left to this control group .* at most 1\d\dM")

    def test_files_for_the_pool(self):
        """A pool that would leave no descriptors for clients is refused, since nobody could be served."""

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))

        result = scand("--device", "cpu", "--socket", self.path, "--pool", "64M", preexec_fn=few)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, "the limit of open files is 80; needed: 1[01][0-9], of these 68 for the pool")
        self.assertEqual(os.listdir(self.folder), [])

    def test_stacks(self):
        """With small stacks no worker would live for long."""

        def small():
            resource.setrlimit(resource.RLIMIT_STACK, (512 << 10, 512 << 10))

        result = scand("--device", "cpu", "--socket", self.path, "--pool", "16M", preexec_fn=small)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, "the limit of stacks is 512 KiB; needed: 1024; raise it")
        self.assertEqual(os.listdir(self.folder), [])

    def test_file_sizes(self):
        """Memory counts as a file where the sizes of files are limited, and so does a log."""

        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        command = ["--device", "cpu", "--socket", self.path, "--pool"]
        result = scand(*command, "64M", preexec_fn=small)
        self.assertEqual(result.returncode, 69)
        self.assertRegex(result.stderr, "a pool of 64 MiB: File too large; the limit of files' sizes .* raise that")
        self.assertEqual(os.listdir(self.folder), [])

    def test_without_a_pool(self):
        with Daemon("--pool", "0") as daemon, daemon.client() as client:
            with self.assertRaises(Failure) as caught:
                client.create(1)
            self.assertEqual(caught.exception.name, "quota")
            memory = client.adopt(400, 400)
            memory.write(pack_f32([1] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))


if __name__ == "__main__":
    main()
