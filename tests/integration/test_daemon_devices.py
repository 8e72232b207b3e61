#!/usr/bin/env python3
"""Several devices in one daemon: two on the processor, or those of SCAND_TEST_DEVICE where they are several; and the
processor beside others.

test_daemon_devices.py SCAND [unittest's arguments]
"""

import os
import random
import time
import unittest

from daemons import DEVICE, Daemon, DaemonTest, children, main
from wire import Closed, eventually, pack_f32, scan, tensor, unpack_f32

MIB = 1 << 20
SEVERAL = DEVICE if DEVICE not in ("cpu", "cuda") else "cpu:2"
BACKEND = "cpu" if SEVERAL.startswith("cpu") else "cuda"
ONE = "cpu"  # whose bits are everybody's
HELPED = (DEVICE if "," not in DEVICE else "cpu") + ",cpu"
SHAPE = [3000, 2003]  # 24 MB: several chunks on any device


def summed(daemon, data, shape, **rule):
    """The bytes after a scan of data in host memory, out of place."""
    with daemon.client() as client:
        source, target = client.create(len(data)), client.create(len(data))
        source.write(data)
        client.call("job.submit", scan(tensor(source.buffer, shape), tensor(target.buffer, shape), **rule))
        return target.read()


class Devices(DaemonTest):
    options = ("--device", SEVERAL, "--pool", "128M")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.devices = cls.neighbour.call("server.devices")["devices"]

    def test_there_are_several(self):
        self.assertGreater(len(self.devices), 1)
        self.assertEqual({device["backend"] for device in self.devices}, {BACKEND})

    def test_same_bits_as_of_one(self):
        noise = random.Random(1)
        data = pack_f32([noise.uniform(-1, 1) for _ in range(2003 * 30)]) * 100
        with Daemon("--device", ONE, "--pool", "128M") as other:
            for rule in (
                {"passes": ["forward", "backward"], "accumulator": "f64"},
                {"passes": ["forward"], "accumulator": "f2", "kind": "exclusive"},
                {"passes": ["backward"], "axis": 0},
            ):
                with self.subTest(**rule):
                    self.assertTrue(summed(self.daemon, data, SHAPE, **rule) == summed(other, data, SHAPE, **rule))

    def test_a_job_runs_on_all(self):
        client = self.client()
        memory = client.create(24 * MIB)
        first = len(self.trace())
        for _ in range(100):  # a device may be done with all of a job before another's thread wakes
            client.call("job.submit", scan(tensor(memory.buffer, [6 * 1024, 1024]), accumulator="f2"))
            used = {event.get("device", 0) for event in self.trace()[first:] if event["kind"] == "chunk"}
            if len(used) == len(self.devices) or len(used) > 1 and BACKEND == "cpu":
                return
        self.fail(f"only devices {used} had work")

    def trace(self):
        events, page = [], {"next": 0}
        while "next" in page:
            page = self.neighbour.call("server.trace", {"from": page["next"]})
            events += page["events"]
        return events

    def made_on(self, client, size, device):
        made = client.call("buffer.create", size=size, place="device", device=device)
        self.assertEqual(made["device"], device)
        return made["buffer"]

    def test_buffers_are_where_they_are_wanted(self):
        for number in range(len(self.devices)):
            client = self.client()
            buffer, used = self.made_on(client, MIB, number), self.used()
            host = client.create(4000)
            host.write(pack_f32([1] * 1000))
            both = client.call("buffer.create", size=MIB, place="device")
            self.assertEqual(both["device"], number)  # beside the other
            self.assertEqual([n - o for n, o in zip(self.used(), used)], [MIB * (i == number) for i in range(len(used))])
            rows, there, back = (tensor(memory, [10, 100]) for memory in (host.buffer, buffer, both["buffer"]))
            for job in (scan(rows, there), scan(there, back), scan(back, rows)):
                client.call("job.submit", job)
            self.assertEqual(unpack_f32(host.read())[:4], [1, 4, 10, 20])
            chunks = [event for event in self.trace() if event["kind"] == "chunk"][-3:]
            self.assertEqual([event.get("device", 0) for event in chunks], [number] * 3)
            client.call("buffer.release", buffer=buffer)
            client.call("buffer.release", buffer=both["buffer"])
            self.assertTrue(eventually(lambda: self.used()[number] <= used[number] - MIB))

    def used(self):
        return [device["memory_used_bytes"] for device in self.neighbour.call("server.devices")["devices"]]

    def test_jobs_on_two(self):
        client = self.client()
        here, there = (tensor(self.made_on(client, 4000, number), [10, 100]) for number in (0, 1))
        self.refused(
            client,
            "invalid",
            '"input" is in the memory of device 0 and "output" in that of device 1',
            "job.submit",
            scan(here, there),
        )
        client.call("job.submit", scan(here))
        client.call("job.submit", scan(there))

    def test_devices_that_are_not_there(self):
        client, count = self.client(), len(self.devices)
        size = {"size": 1, "place": "device"}
        for device, name, message in (
            (count, "not_found", f'"device" is {count}; allowed: 0 to {count - 1}; server.devices lists'),
            (32, "invalid", 'field "device" is 32; allowed: 0 to 31'),
            (-1, "invalid", 'field "device" is -1'),
            ("gpu", "invalid", 'field "device"'),
        ):
            self.refused(client, name, message, "buffer.create", {**size, "device": device})
        self.refused(client, "invalid", '"place" is "host"', "buffer.create", {"size": 1, "place": "host", "device": 0})

    def test_time_of_each_is_told(self):
        client = self.client()
        memory = client.create(24 * MIB)
        before = self.neighbour.call("server.stats")["device_busy_us"]
        began = time.monotonic()
        for _ in range(3):
            client.call("job.submit", scan(tensor(memory.buffer, [6 * 1024, 1024]), accumulator="f2"))
        passed_us = (time.monotonic() - began) * 1e6
        devices = self.neighbour.call("server.devices")["devices"]
        after = self.neighbour.call("server.stats")["device_busy_us"]
        self.assertEqual(sum(device["busy_us"] for device in devices), after)
        self.assertTrue(0 < after - before <= passed_us * len(devices))


class Helped(DaemonTest):
    """The processor beside the device."""

    options = ("--device", HELPED, "--pool", "128M")

    def test_its_threads_run_when_nobody_else_does(self):
        worker = self.daemon.worker()
        policies = {os.sched_getscheduler(int(task)) for task in os.listdir(f"/proc/{worker}/task")}
        self.assertEqual(policies, {os.SCHED_OTHER, os.SCHED_IDLE})

    def test_same_bits(self):
        noise = random.Random(2)
        data = pack_f32([noise.uniform(-1, 1) for _ in range(2003 * 30)]) * 100
        with Daemon("--device", ONE, "--pool", "128M") as other:
            for rule in ({"passes": ["forward", "backward"], "accumulator": "f64"}, {"passes": ["backward"], "axis": 0}):
                with self.subTest(**rule):
                    self.assertTrue(summed(self.daemon, data, SHAPE, **rule) == summed(other, data, SHAPE, **rule))

    def test_many_small_jobs(self):
        client = self.client()
        memory = client.create(400)
        for i in range(300):
            memory.write(pack_f32([i] * 100))
            client.call("job.submit", scan(tensor(memory.buffer, [100])))
            self.assertEqual(unpack_f32(memory.read()), [i * k for k in range(1, 101)])

    def test_has_no_memory_for_buffers(self):
        client = self.client()
        helper = len(client.greeting["devices"]) - 1
        create = {"size": MIB, "place": "device"}
        self.refused(client, "invalid", "which has no memory of its own", "buffer.create", {**create, "device": helper})
        for _ in range(3):
            self.assertNotEqual(client.call("buffer.create", **create)["device"], helper)

    def test_rows_of_device_memory(self):
        client = self.client()
        made = client.call("buffer.create", size=24 * MIB, place="device")
        client.call("job.submit", scan(tensor(made["buffer"], [6 * 1024, 1024]), accumulator="f2"))


class Losses(unittest.TestCase):
    """One of several devices is lost: the worker goes, and another follows with all of them."""

    def test_device_is_lost(self):
        with Daemon("--device", SEVERAL, "--fail-chunk", "3", "--pool", "128M") as daemon:
            worker = daemon.worker()
            with self.assertRaises((Closed, OSError)), daemon.client() as client:
                count = len(client.greeting["devices"])
                memory = client.create(48 * MIB)
                for _ in range(1000):
                    client.call("job.submit", scan(tensor(memory.buffer, [12 * 1024, 1024])))
            self.assertTrue(eventually(lambda: children(daemon.process.pid) not in ([], [worker])))
            with daemon.client() as client:
                self.assertEqual(len(client.greeting["devices"]), count)
                memory = client.create(400)
                memory.write(pack_f32([1] * 100))
                client.call("job.submit", scan(tensor(memory.buffer, [100])))
                self.assertEqual(unpack_f32(memory.read()), list(range(1, 101)))


if __name__ == "__main__":
    main()
