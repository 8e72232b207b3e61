#!/usr/bin/env python3
"""Jobs: waiting in threads and event loops, cancelling, full and dying daemons, forks, Ctrl-C."""

import asyncio
import concurrent.futures
import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import unittest
from unittest import mock

import numpy as np

import scand
from rig import ON_CPU, Daemon, PackageTest, eventually, main, whole_numbers
from scand import errors
from scand._library import ffi, lib

# A row that takes a processor some tenths of a second, in next to no memory. Cancelling ends it in between. A GPU has
# done it before anybody could cancel it, or see it running, so all daemons of this file are on the processor.
LONG = 1 << 27
LONGER = 8  # so many times as long: of jobs that have to be seen running, also on a busy machine, and end
ENDLESS = 64  # of jobs that are to be cancelled; rows cannot be longer
ONE = scand.asarray(np.ones(1, "f4"))


class OnCpu(PackageTest):
    options = ON_CPU


def long_job(client=None, times=1):
    return scand.submit_reduce(np.broadcast_to(ONE, times * LONG), client=client)


def impatient(socket, name, patience_s, small_jobs):
    """Connects with calls that wait 0.2 s for a daemon to come back, and jobs that wait for a minute."""
    options, out = ffi.new("struct scand_options **"), ffi.new("struct scand **")
    lib.scand_options_create(options)
    for option, value in ((b"small_jobs", small_jobs), (b"reconnect_ms", 200), (b"give_up_ms", 60000)):
        assert lib.scand_options_set(options[0], option, value) == 0
    assert lib.scand_connect_with(options[0], socket.encode(), ffi.NULL, out) == 0
    lib.scand_options_destroy(options[0])
    return out[0]


class Jobs(OnCpu):
    def test_words_of_futures(self):
        x = whole_numbers((50, 1000))
        job = scand.submit(x)
        self.same(job.result(timeout=30), np.cumsum(x, -1))
        self.assertIs(job.result(), job.result())
        self.assertEqual((job.done(), job.running(), job.cancelled(), job.cancel()), (True, False, False, False))
        self.assertIsNone(job.exception())

    def test_what_is_wrong_is_raised(self):
        """The submission raises what the package sees, the job what the daemon does."""
        with self.assertRaisesRegex(ValueError, "not one of"):
            scand.submit(np.zeros(4), kind="quarter")
        job = scand.submit(np.zeros(4), kind="half", op="max")
        with self.assertRaisesRegex(scand.InvalidError, "half"):
            job.result()
        self.assertIs(job.exception(), job.exception())
        self.assertRegex(repr(job), '^<scand.Job: failed, InvalidError: .*half')

    def test_timeout(self):
        job = long_job()
        with self.assertRaisesRegex(TimeoutError, "0 seconds: wait again, or cancel"):
            job.result(timeout=0)
        self.assertEqual(job.result(), LONG)

    def test_cancel(self):
        first, second = long_job(), long_job(times=ENDLESS)
        self.assertTrue(second.cancel())
        with self.assertRaises(concurrent.futures.CancelledError):
            second.result()
        self.assertTrue(second.cancelled())
        self.assertEqual(repr(second), "<scand.Job: cancelled>")
        self.assertIsInstance(second.exception(), concurrent.futures.CancelledError)
        self.assertEqual(first.result(), LONG)
        self.assertFalse(first.cancelled())
        self.assertEqual(repr(first), "<scand.Job: done>")

    def test_callbacks(self):
        """Callbacks are called once, in their order; one that fails is logged, and the others are called all the
        same."""
        told, all_told = [], threading.Event()
        job = long_job()
        with self.assertLogs("scand"):
            job.add_done_callback(lambda job: 1 / 0)
            job.add_done_callback(told.append)
            job.add_done_callback(lambda job: all_told.set())
            self.assertTrue(all_told.wait(60))
        job.add_done_callback(told.append)
        self.assertEqual(told, [job, job])

    def test_callbacks_of_jobs_that_are_over(self):
        """They are called although the thread that calls them waits for another job."""
        other = long_job(times=ENDLESS)
        other.add_done_callback(lambda job: None)
        job, called = scand.submit(np.ones(10)), threading.Event()
        self.assertTrue(eventually(job.done))
        time.sleep(0.3)  # until the thread waits again
        job.add_done_callback(lambda job: called.set())
        self.assertTrue(called.wait(5))  # after 10 libscand looks whether the daemon is there
        other.cancel()
        self.assertIsNotNone(other.exception(30))

    def test_callbacks_that_end_a_thread(self):
        """Only Exceptions are logged. Others, such as sys.exit()'s, are the thread's, after all callbacks of the job; the
        next job's are called all the same."""
        told, all_told = [], threading.Event()
        first = long_job()
        with mock.patch("threading.excepthook", lambda about: told.append(about.exc_type)):
            first.add_done_callback(lambda job: sys.exit(3))
            first.add_done_callback(told.append)
            self.assertTrue(eventually(lambda: len(told) == 2), told)
        self.assertEqual(told, [first, SystemExit])
        long_job().add_done_callback(lambda job: all_told.set())
        self.assertTrue(all_told.wait(60))
        with mock.patch.object(scand.default_client().watcher, "add"):  # so that the job ends in this thread
            third = long_job()
            third.add_done_callback(sys.exit)
            with self.assertRaises(SystemExit):
                third.result()
        self.assertEqual(third.result(), LONG)

    def test_results_that_cannot_be_given(self):
        """What fails once the daemon is done, as where there is no memory, is the job's error, also for an event loop."""

        async def waited(job):
            return await job

        for place in ("scand.plans.Part.after", "scand.plans.Plan.result"):
            job = scand.submit(np.ones((2, 3)), out=np.zeros((2, 3), "f4"))
            with mock.patch(place, side_effect=MemoryError("none left")), self.assertRaisesRegex(MemoryError, "^none left$"):
                asyncio.run(asyncio.wait_for(waited(job), 60))
            self.assertIsInstance(job.exception(), MemoryError)

    def test_many(self):
        arrays = [whole_numbers(n, seed=n) for n in range(1, 500)]
        for x, job in zip(arrays, scand.submit_many(arrays, "forward,backward")):
            self.same(job.result(), np.flip(np.cumsum(np.flip(np.cumsum(x)))))
        self.assertEqual(scand.submit_many([]), [])
        steps = [("map", {"op": "mul", "by": 2}), ("scan", {"passes": "forward"}), ("map", {"op": "add", "other": np.arange(50.0)})]
        chained = [whole_numbers((3, 50), seed=i) for i in range(40)]
        for x, job in zip(chained, scand.submit_run_many(chained, steps)):
            self.same(job.result(), np.cumsum(2 * x, -1) + np.arange(50.0))
        self.same(scand.submit_run_many([chained[0]], [("reduce", {"reduction": "max"})])[0].result(), chained[0].max(-1))
        self.assertEqual(scand.submit_run_many([], steps), [])
        for job in scand.submit_many([np.zeros(3), np.zeros(3)], kind="half", op="max"):
            self.assertIsInstance(job.exception(), ValueError)

    def test_many_of_more_memory_than_is_imported_at_a_time(self):
        """What a batch has placed stays imported until it is sent: its buffers are no others' meanwhile."""
        with scand.allocator():
            arrays = [np.full(1 << 18, n, "f4") for n in range(20)]  # of a memfd each
        steps = [("scan", {"passes": "forward"}), ("map", {"op": "mul", "by": 2})]
        with scand.Client() as client, mock.patch("scand.connection.IMPORTS_MOST", 5):
            for factor, jobs in ((1, scand.submit_many(arrays, client=client)), (2, scand.submit_run_many(arrays, steps, client=client))):
                self.assertEqual([job.result()[-1] for job in jobs], [factor * n * (1 << 18) for n in range(20)])

    def test_a_job_like_one_that_waits_for_its_import(self):
        """Jobs of one pattern share its description: what was filled in for one that waits is not the next one's."""
        ones, twos = (np.broadcast_to(scand.asarray(np.full(1, n, "f4")), 1 << 18) for n in (1, 2))
        first, results = scand.empty(1 << 18, "f4"), scand.empty(1 << 18, "f4")
        with scand.allocator():
            apart = np.empty(1 << 18, "f4")  # of a memfd of its own
        with scand.Client() as client:
            scand.scan(ones, out=first, client=client)
            with mock.patch("scand.arrays.ArrayBlock.import_to", return_value=lib.SCAND_BUSY):
                job = scand.submit(twos, out=apart, client=client)
                scand.scan(ones, out=first, client=client)
                scand.scan(ones, out=results, client=client)
            self.assertEqual((first[-1], results[-1], job.result()[-1]), (1 << 18, 1 << 18, 1 << 19))

    def test_jobs_of_shared_arrays_run_in_order(self):
        x = scand.asarray(np.ones(2000))
        jobs = [scand.submit(x, out=x) for _ in range(4)]
        jobs.append(scand.submit(x))
        expected = np.ones(2000)
        for _ in jobs:
            expected = np.cumsum(expected)
        self.same(jobs[-1].result(), expected)

    def test_what_jobs_are_to_write_is_not_read_before(self):
        """Nor copied, converted or put in order by this process."""
        ones = scand.asarray(np.ones((20, 30), "f4"))
        for dtype, of in (
            ("f4", lambda y: scand.submit(y, dtype="f8")),
            ("f4", lambda y: scand.submit(y.T, axis=None)),
            ("f4", lambda y: scand.submit_many([y.T], axis=None)[0]),
            ("f4", lambda y: scand.submit_reduce(y.T.reshape(3, 10, 20), axis=(0, 2))),
            ("f4", lambda y: scand.submit_reduce(y, "max", dtype=bool)),
            ("f8", lambda y: scand.submit(ones, op="affine", coefficient=y)),
            ("f8", lambda y: scand.submit_run(ones, [("map", {"op": "add", "other": y})])),
        ):
            y = scand.empty((20, 30), dtype)
            y[...] = 0
            with mock.patch("scand.connection.Connection.submit", return_value=None):  # the daemon is busy
                scand.submit(ones.astype(y.dtype), out=y)
            self.same(of(y).result(), of(y.copy()).result())
        offsets = scand.empty(31, "i8")
        with mock.patch("scand.connection.Connection.submit", return_value=None):
            scand.submit(np.append(0, np.ones(30, "i8")), out=offsets)
        self.same(scand.reduce(ones[0], offsets=offsets), ones[0])

    def test_what_jobs_are_to_write_is_not_computed_with_before(self):
        """By functions that compute in this process before their jobs, or are given lists and single numbers."""
        ones = scand.asarray(np.ones((20, 30)))
        for shape, dtype, of in (
            ((20, 30), "f8", lambda y: scand.lfilter([1, 0.5], [1, -0.5], y)),
            ((2,), "f8", lambda y: scand.lfilter(y, [1, -0.5], ones)),
            ((2,), "f8", lambda y: scand.lfilter([1, 0.5], y, ones)),
            ((20, 1), "f8", lambda y: scand.lfilter([1, 0.5], [1, -0.5], ones, zi=y)[0]),
            ((20, 30), "i8", scand.cumulative_trapezoid),
            ((20, 30), "f8", lambda y: scand.cumulative_trapezoid(y, np.arange(30.0))),
            ((30,), "f8", lambda y: scand.cumulative_trapezoid(ones, y)),
            ((30,), "f8", lambda y: scand.cumsum([y, y])),
            ((30,), "f8", lambda y: scand.cumulative_sum([y, y], axis=1)),
            ((), "f8", lambda y: scand.scan(ones, op="affine", coefficient=y)),
            ((), "f8", lambda y: scand.run(ones, [("map", {"op": "clip", "low": y, "high": 5})])),
            ((), "f8", lambda y: scand.run(ones, [("map", {"op": "add", "other": [y] * 30})])),
        ):
            whole = scand.empty(shape or 1, dtype)
            whole[...] = 2
            y = whole.reshape(shape)
            with mock.patch("scand.connection.Connection.submit", return_value=None):  # the daemon is busy
                job = scand.submit(scand.asarray(np.ones(whole.shape, dtype)), op="max", out=whole)
            made = of(y)
            job.result()
            self.same(made, of(y.copy()))

    def test_what_jobs_are_to_read_or_write_is_not_written_before(self):
        """By a result that this process converts."""
        fives = scand.asarray(np.full((20, 30), 5, "f4"))
        for out in False, True:
            x, y = (scand.asarray(np.ones((20, 30), "f4")) for _ in range(2))
            with mock.patch("scand.connection.Connection.submit", return_value=None):  # the daemon is busy
                first = scand.submit(x, out=y) if out else scand.submit(y)
            scand.submit(fives, dtype="f8", out=y).result()
            self.same(first.result(), y if out else np.cumsum(x, -1))
            self.same(y, np.cumsum(fives, -1))

    def test_more_jobs_than_a_connection_may_have(self):
        x = scand.asarray(whole_numbers(100))
        jobs = [scand.submit(x) for _ in range(1000)]
        for job in jobs:
            self.same(job.result(), np.cumsum(x))


class Threads(OnCpu):
    def test_many_threads_share_a_client(self):
        """Small jobs, long ones, and callbacks at once."""
        failed = []

        def work(seed):
            try:
                for n in range(60):
                    x = whole_numbers((1 + n % 7, 300), seed=seed * 100 + n)
                    if not (scand.cumsum(x) == np.cumsum(x, -1)).all():
                        raise AssertionError(n)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        long_one = scand.submit(np.ones((4, 1 << 20), "f4"))
        done = threading.Event()
        long_one.add_done_callback(lambda job: done.set())
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual(failed, [])
        self.assertTrue(done.wait(60))
        self.assertEqual(long_one.result()[0, -1], 1 << 20)

    def test_cancel_from_another_thread(self):
        job = long_job(times=ENDLESS)
        threading.Timer(0.01, job.cancel).start()
        with self.assertRaises(concurrent.futures.CancelledError):
            job.result()

    def test_close_while_others_wait(self):
        client = scand.Client(self.daemon.socket)
        jobs = [long_job(client, times) for times in (1, 1, ENDLESS)]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(job.exception) for job in jobs]
            client.close()
            for one in waiting:
                self.assertIsInstance(one.result(30), (ConnectionError, type(None)))
        self.assertIsInstance(jobs[-1].exception(), scand.UnavailableError)
        self.assertEqual(scand.cumsum([1, 2], client=client).tolist(), [1, 3])
        client.close()

    def test_daemon_dies_while_eight_threads_wait(self):
        """Each gets an exception, and arrays stay readable."""
        x = scand.asarray(np.ones(1000))
        daemon = Daemon(*ON_CPU, "--threads", "1")
        self.addCleanup(self.assertRaises, AssertionError, daemon.stop)  # it has not ended well
        with scand.Client(daemon.socket) as client:
            jobs = [long_job(client, ENDLESS) for _ in range(8)]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                waiting = [pool.submit(job.exception) for job in jobs]
                daemon.process.send_signal(signal.SIGKILL)
                daemon.process.wait()
                for one in waiting:
                    self.assertIsInstance(one.result(60), ConnectionError)
        self.assertEqual(float(x.sum()), x.size)


class Loops(OnCpu):
    def test_await(self):
        async def work(n):
            x = whole_numbers(n, seed=n)
            self.same(await scand.submit(x), np.cumsum(x))

        async def everything():
            await asyncio.gather(*(work(n) for n in range(1, 200)))

        asyncio.run(everything())

    def test_functions_of_asyncio(self):
        """Jobs may be given to what takes futures."""

        async def everything():
            jobs = [long_job(), scand.submit(np.ones(3)), long_job()]
            done, waiting = await asyncio.wait_for(asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED), 60)
            self.assertTrue(done)
            self.assertEqual(len(done) + len(waiting), 3)
            done, waiting = await asyncio.wait_for(asyncio.wait(jobs), 60)
            self.assertEqual((len(done), len(waiting)), (3, 0))
            jobs = [scand.submit(np.ones(n)) for n in range(1, 4)]
            self.assertEqual(sorted([float((await job)[-1]) for job in asyncio.as_completed(jobs)]), [1, 2, 3])
            self.same(await asyncio.shield(scand.submit(np.ones(3))), np.cumsum(np.ones(3)))

        asyncio.run(everything())

    def test_callbacks_are_called_by_the_loop(self):
        async def everything():
            job, told, all_told = long_job(), [], asyncio.Event()

            def tell(job):
                told.append(threading.current_thread())
                all_told.set()

            def never(job):
                told.append("never")

            job.add_done_callback(never)
            job.add_done_callback(never)
            job.add_done_callback(tell)
            self.assertEqual(job.remove_done_callback(never), 2)
            self.assertEqual(job.remove_done_callback(never), 0)
            for _ in range(2):  # the second time the job is over before
                await asyncio.wait_for(all_told.wait(), 60)
                all_told.clear()
                job.add_done_callback(tell)
            await asyncio.wait_for(all_told.wait(), 60)
            self.assertEqual(told, [threading.current_thread()] * 3)

        asyncio.run(everything())

    def test_the_loop_goes_on(self):
        """Other coroutines have their turns while a job runs."""

        async def everything():
            job = long_job(times=ENDLESS)
            waiting = asyncio.ensure_future(wait_for(job))
            for _ in range(10):
                await asyncio.sleep(0.001)
                self.assertFalse(waiting.done())
            self.assertTrue(job.cancel())
            with self.assertRaises(concurrent.futures.CancelledError):
                await waiting

        async def wait_for(job):
            return await job

        asyncio.run(everything())

    def test_worker_that_dies(self):
        """Jobs that read what nobody has written to are repeated, and awaited on."""
        with Daemon(*ON_CPU) as daemon, scand.Client(daemon.socket) as client:

            async def everything():
                jobs = [long_job(client) for _ in range(4)]
                os.kill(daemon.worker(), signal.SIGKILL)
                return [await job for job in jobs]

            self.assertEqual(asyncio.run(everything()), [LONG] * 4)

    def test_cancelled_tasks_cancel_jobs(self):
        async def everything():
            job = long_job(times=ENDLESS)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(wait_for(job), 0.01)
            return job

        async def wait_for(job):
            return await job

        job = asyncio.run(everything())
        self.assertIsInstance(job.exception(), concurrent.futures.CancelledError)

    def test_cancelled_tasks_do_not_wait_for_the_daemon(self):
        """It may hang, and what it fails to answer is no error of a task that is cancelled."""
        asked, goes_on = threading.Event(), threading.Event()

        def slow(client, flight):
            asked.set()
            goes_on.wait(5)
            raise scand.UnavailableError("the daemon has not answered", "unavailable")

        async def everything():
            job = long_job()
            task = asyncio.ensure_future(wait_for(job))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertFalse(goes_on.is_set())
            return job

        async def wait_for(job):
            return await job

        with mock.patch("scand.client.Client.cancel", slow):
            job = asyncio.run(everything())
            self.assertTrue(asked.wait(60))
            goes_on.set()
            self.assertTrue(eventually(lambda: scand.default_client().watcher._canceller is None))
        self.assertEqual(job.result(), LONG)


class MemoryQuota(OnCpu):
    options = (*ON_CPU, "--quota-host-memory", "96M", "--quota-device-memory", "8M")

    def test_what_is_never_granted_is_not_waited_for(self):
        client = scand.Client(patience_s=3600)
        self.addCleanup(client.close)
        x = scand.empty((120, 1 << 18), "f4")
        with self.assertRaisesRegex(scand.ForbiddenError, 'its quota "host-memory" is 100663296; that is never granted: ask'):
            scand.scan(x, client=client)
        with self.assertRaisesRegex(scand.ForbiddenError, 'its quota "device-memory" is 8388608; that is never granted: ask'):
            scand.device_empty((3, 1 << 20), "f4", client=client)
        x = scand.empty((9, 1 << 18), "f4")
        x[...] = 1
        self.assertEqual(scand.scan(x, client=client, out=x)[8, -1], 1 << 18)


    def test_imports_make_room_for_others(self):
        """A program may have more shared memory than its quota: what no job is about to use is given up."""
        blocks = [scand.empty((20, 1 << 18), "f4") for _ in range(6)]
        for n, block in enumerate(blocks):
            block[...] = n
        with scand.Client(patience_s=0) as client:
            for _ in range(2):
                for n, block in enumerate(blocks):
                    self.assertEqual(scand.reduce(block, "max", client=client)[19], n)
        with scand.Client(patience_s=60) as client:
            for n, job in enumerate(scand.submit_many(blocks, op="max", client=client)):
                self.assertEqual(job.result()[19, -1], n)


    def test_jobs_that_wait_for_memory_are_not_in_the_way(self):
        """Submitting does not wait for room in a quota: the job does."""
        ready, large = scand.asarray(np.ones(9)), [scand.empty((20, 1 << 18), "f4") for _ in range(5)]
        for block in large:
            block[...] = 1
        with scand.Client(patience_s=20) as client, scand.Client() as other:
            scand.scan(ready, out=ready, client=client)
            for block in large[:4]:
                scand.reduce(block, client=other)
            jobs = [scand.submit_reduce(large[4], client=client), *scand.submit_many([large[4]], client=client)]
            for _ in range(20):
                scand.scan(ready, out=ready, client=client)
            self.assertEqual([job.done() for job in jobs], [False, False])
            other.close()
            self.assertEqual([job.result().shape for job in jobs], [(20,), (20, 1 << 18)])


class DeviceMemory(OnCpu):
    options = (*ON_CPU, "--device-memory", "8M")

    @contextlib.contextmanager
    def waiting(self, shape, dtype="f8", client=None):
        """The future of an array that waits for memory."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            array = pool.submit(scand.device_empty, shape, dtype, client=client)
            with self.assertRaises(concurrent.futures.TimeoutError):
                array.result(0.2)
            yield array

    def test_what_others_give_back_is_waited_for(self):
        client = scand.Client(patience_s=60)
        self.addCleanup(client.close)
        first = scand.device_empty((6, 1 << 18), "f4")
        with self.waiting((6, 1 << 18), "f4", client=client) as second:
            del first
            scand.trim()
            self.assertEqual(second.result(60).shape, (6, 1 << 18))

    def test_what_was_waited_for_goes_with_its_last_reference(self):
        """The exceptions of the time of waiting keep no frame of those who called."""
        gc.disable()
        self.addCleanup(gc.enable)
        client = scand.Client(patience_s=20)
        self.addCleanup(client.close)
        first = scand.device_empty((6, 1 << 18), "f4")
        with self.waiting((6, 1 << 18), "f4", client=client) as second:
            del first
            scand.trim()
            memory = weakref.ref(second.result(60).memory)
        del second
        self.assertIsNone(memory())

    def test_who_waits_for_memory_sees_its_jobs_end(self):
        """A job keeps its arrays until somebody has seen its end."""
        client = scand.Client(patience_s=20)
        self.addCleanup(client.close)
        scand.submit_reduce(scand.device_empty((6, 1 << 18), "f4", client=client), client=client)
        self.assertEqual(scand.device_empty((6, 1 << 18), "f4", client=client).shape, (6, 1 << 18))

    def test_who_waits_for_memory_of_small_arrays_is_not_in_the_way(self):
        client = scand.Client(patience_s=20)
        self.addCleanup(client.close)
        kept = [scand.device_empty((6, 1 << 18), "f4"), scand.device_empty(9)]
        with self.waiting(9, client=client) as second:
            scand.trim()
            self.assertFalse(second.done())
            kept.clear()
            self.assertEqual(second.result(60).shape, (9,))
        with self.assertRaisesRegex(scand.ForbiddenError, "8388608 that scand may take are taken; start scand with a larger"):
            scand.device_empty((9, 1 << 18), "f4", client=client)

    def test_who_waits_for_memory_is_not_in_the_way(self):
        """Other threads use the client meanwhile, and may be those who give the memory back."""
        client = scand.Client(patience_s=20)
        self.addCleanup(client.close)
        first = scand.device_empty((6, 1 << 18), "f4", client=client)
        with self.waiting((6, 1 << 18), "f4", client=client) as second:
            self.same(scand.cumsum(np.ones(9), client=client), np.arange(1.0, 10))
            self.assertFalse(second.done())
            del first
            scand.trim()
            self.assertEqual(second.result(60).shape, (6, 1 << 18))


class Drain(unittest.TestCase):
    def test_the_next_daemon(self):
        """Jobs that a daemon refuses since it is about to stop are the next daemon's; without one they end."""
        first = Daemon(*ON_CPU)
        self.addCleanup(first.forget)
        client = scand.Client(first.socket)
        self.addCleanup(client.close)
        before = [long_job(client, LONGER) for _ in range(4)]
        with first.client() as watcher:
            self.assertTrue(eventually(lambda: watcher.call("server.stats")["jobs_open"] == 4))
        first.process.terminate()
        self.assertTrue(eventually(lambda: "draining: no more jobs are taken" in first.log_text()))
        jobs = [scand.submit(np.full(20, n), client=client) for n in range(3)]
        y = scand.asarray(np.ones(20))
        in_place = scand.submit(y, out=y, client=client)
        with scand.Client(first.socket, patience_s=0) as impatient_one:
            with self.assertRaisesRegex(scand.UnavailableError, "takes no more jobs, it is about to stop"):
                scand.scan(np.ones(20), client=impatient_one)
        self.assertEqual(first.process.wait(60), 0)
        self.assertEqual([job.exception() for job in before], [None] * 4)
        with Daemon(*ON_CPU, folder=first.folder):
            for n, job in enumerate(jobs):
                np.testing.assert_array_equal(job.result(30), n * np.arange(1, 21))
            np.testing.assert_array_equal(in_place.result(30), np.arange(1, 21))
        with self.assertRaisesRegex(scand.UnavailableError, "no daemon came back"):
            scand.scan(np.ones(20), client=client)


class Quota(OnCpu):
    options = (*ON_CPU, "--quota-jobs", "2")

    def test_connections(self):
        for most, error in (1, scand.BusyError), (0, scand.ForbiddenError):
            with Daemon(*ON_CPU, "--quota-connections", str(most)) as daemon, scand.Client(daemon.socket) as first:
                if most:
                    self.same(scand.cumsum(np.ones(3), client=first), np.arange(1.0, 4))
                with scand.Client(daemon.socket) as second, self.assertRaisesRegex(error, 'its quota "connections" is ') as refused:
                    scand.cumsum(np.ones(3), client=second)
                self.assertEqual(type(refused.exception), error)

    def test_busy_is_waited_for(self):
        x = whole_numbers((2000, 4000), "f4")
        self.same(scand.cumsum(x), np.cumsum(x, -1, dtype="f8").astype("f4"))
        jobs = [scand.submit(x[:9]) for _ in range(20)]
        for job in jobs:
            self.same(job.result(), np.cumsum(x[:9], -1))
        y = scand.asarray(np.ones(500))
        last = [scand.submit(y, out=y) for _ in range(6)][-1].result()
        expected = np.ones(500)
        for _ in range(6):
            expected = np.cumsum(expected)
        self.same(last, expected)

    def test_refused_neighbours(self):
        """Jobs in the memory between two that were refused for now are none the worse for it: pieces of arrays, whose
        neighbours in a block are others' in four threads, and small arrays of one block."""
        x = np.full((2, 1000, 2000), 3, "f4")
        last = 3 * np.arange(1, 2001, dtype="f4")
        small = [np.full(100 + n % 50, n % 9, "f4") for n in range(300)]

        def work(turn):
            for _ in range(12):
                self.same(scand.cumsum(x)[1, 999], last)
            for given, job in zip(small, scand.submit_many(small)):
                self.same(job.result(), np.cumsum(given))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))

    def test_many_in_one_place(self):
        """Jobs run in the order in which they were submitted, however often they are refused."""
        y = scand.asarray(np.ones(20))  # whose sums are exact
        expected = np.ones(20)
        for _ in range(12):
            expected = np.cumsum(expected)
        jobs = scand.submit_many([y] * 12, out=y)
        self.same(jobs[-1].result(), expected)

    def test_patience_ends(self):
        with scand.Client(self.daemon.socket, patience_s=0) as client:
            jobs = [long_job(client, LONGER) for _ in range(6)]
            ends = [job.exception() for job in jobs]
        self.assertIn(None, ends)
        self.assertIn(scand.BusyError, list(map(type, ends)))
        refused = next(end for end in ends if end)
        self.assertIsInstance(refused, TimeoutError)
        self.assertRegex(str(refused), r"jobs.*\(asked for 0 seconds: a client's patience_s\)")


class Processes(OnCpu):
    def test_fork(self):
        """A child has a connection of its own; its parent's goes on, and its parent's jobs are lost in it only."""
        job = scand.submit(np.ones((1, 1 << 22)))
        pid = os.fork()
        if pid == 0:
            try:
                right = isinstance(job.exception(10), scand.UnavailableError)
                right = right and scand.cumsum([1, 2, 3]).tolist() == [1, 3, 6]
            finally:
                os._exit(0 if right else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(job.result()[0, -1], 1 << 22)

    def test_small_jobs_here(self):
        """The daemon does not see small jobs of a client that computes them; larger ones it does."""
        x, client = whole_numbers((3, 500)), scand.Client(small_jobs="here")
        self.addCleanup(client.close)

        def daemon_jobs(shape):
            with self.daemon.client() as other:
                before = other.call("server.stats")["jobs_done"]
                given = np.resize(x, shape)
                self.same(scand.cumsum(given, client=client), np.cumsum(given, -1))
                self.same(scand.reduce(given, "max", client=client), given.max(-1))
                return other.call("server.stats")["jobs_done"] - before

        self.assertEqual(daemon_jobs((3, 500)), 0)
        self.assertEqual(daemon_jobs((3, 5000)), 2)
        again = pickle.loads(pickle.dumps(client))
        self.assertEqual(repr(again), "scand.Client(None, None, patience_s=60.0, small_jobs='here')")
        with self.assertRaisesRegex(ValueError, 'small_jobs: .there. is neither "here" nor "daemon"'):
            scand.Client(small_jobs="there")
        with self.assertRaisesRegex(TypeError, "^patience_s: '3' is no number of seconds$"):
            scand.Client(patience_s="3")
        for options in ({"socket": 3}, {"socket": "/a\0b"}, {"socket": b"\0"}, {"name": 3}, {"name": "a\0b"}, {"name": b"a"}):
            with self.subTest(options), self.assertRaisesRegex(TypeError, f"^{list(options)[0]}: .*; take a text without null"):
                scand.Client(**options)
        self.assertGreater(scand.Client(name="\udc80").ping(), 0)

    def test_pickle(self):
        client = scand.Client(self.daemon.socket, "pickled", patience_s=3)
        again = pickle.loads(pickle.dumps(client))
        self.assertEqual(repr(again), f"scand.Client({self.daemon.socket!r}, 'pickled', patience_s=3)")
        self.assertEqual(scand.cumsum([1, 2], client=again).tolist(), [1, 3])
        with self.assertRaisesRegex(TypeError, "^a job is this process's.*result"):
            pickle.dumps(scand.submit([1, 2], client=client))

    def test_interrupt(self):
        """Ctrl-C ends a wait; the job can be waited for again."""
        program = (
            "import numpy as np, scand, signal\n"
            "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
            f"job = scand.submit_reduce(np.broadcast_to(scand.asarray(np.ones(1, 'f4')), {LONGER * LONG}))\n"
            "try:\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
            "    job.result(); print('not interrupted')\n"
            "except KeyboardInterrupt: print('interrupted')\n"
            f"print(job.result() == {LONGER * LONG})\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), ("interrupted\nTrue\n", ""))

    def test_interrupt_while_others_have_the_client(self):
        """Ctrl-C that meets a thread which has waited, and waits for the lock, ends its wait alone. One thread at a time
        polls, the others wait for that one: either may be the main thread."""
        program = (
            "import numpy as np, os, scand, signal, threading, time\n"
            f"job = scand.submit_reduce(np.broadcast_to(scand.asarray(np.ones(1, 'f4')), {LONGER * LONG}))\n"
            "client, failed = scand.default_client(), []\n"
            "threading.excepthook = failed.append\n"
            "def disturb():\n"
            "    while not client._reading: time.sleep(0.001)\n"
            "    time.sleep(0.05)\n"
            "    with client._lock:\n"
            "        client._nudge(); client._notify()\n"
            "        time.sleep(0.05); os.kill(os.getpid(), signal.SIGINT); time.sleep(0.05)\n"
            "if POLLS: waiting = None\n"
            "else:\n"
            "    waiting = threading.Thread(target=job.result); waiting.start()\n"
            "    while not client._reading: time.sleep(0.001)\n"
            "disturbing = threading.Thread(target=disturb); disturbing.start()\n"
            "try: job.result(); print('not interrupted')\n"
            "except KeyboardInterrupt: print('interrupted')\n"
            "disturbing.join()\n"
            f"print(job.result(timeout=60) == {LONGER * LONG}, failed)\n"
            "if waiting: waiting.join(60); print(waiting.is_alive())\n"
        )
        for polls, end in (("True", ""), ("False", "False\n")):
            done = subprocess.run([sys.executable, "-c", program.replace("POLLS", polls)], capture_output=True, text=True, timeout=200)
            self.assertEqual((done.stdout, done.stderr), ("interrupted\nTrue []\n" + end, ""))

    def test_signals_that_raise_nothing(self):
        """Calls that a signal interrupts are made again."""
        seen = []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        x = whole_numbers(1000)
        while len(seen) < 100:
            self.same(scand.cumsum(x), np.cumsum(x))
            self.assertEqual(scand.submit_many([x, x])[1].result()[0], x[0])
            self.assertGreater(scand.default_client().ping(), 0)

    def test_no_daemon(self):
        with self.assertRaisesRegex(scand.UnavailableError, "no daemon at /nowhere"):
            scand.Client("/nowhere").ping()

    def test_daemon_that_went_away(self):
        """The message is told in Python's words. Calls fail long before the library gives up, which has another message."""
        daemon = Daemon(*ON_CPU)
        with scand.Client(daemon.socket) as client, mock.patch("scand.connection._connected", impatient):
            client.ping()
            daemon.stop()
            with self.assertRaisesRegex(scand.UnavailableError, "has not come back within 0.2 s; call again when it is there$"):
                scand.cumsum(np.ones(3), client=client)


class Errors(unittest.TestCase):
    def test_every_status_has_an_exception(self):
        for code in range(1, 64):
            word = errors.string(lib.scand_status_word(code))
            error = errors.error_of(code, "text")
            self.assertEqual((str(error), error.status), ("text", word))
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), again.status), (type(error), "text", word))
        self.assertIsInstance(errors.error_of(lib.SCAND_INVALID, ""), ValueError)
        self.assertIsInstance(errors.error_of(lib.SCAND_UNAVAILABLE, ""), ConnectionError)
        self.assertIsInstance(errors.error_of(lib.SCAND_DEADLINE, ""), TimeoutError)
        self.assertIsInstance(errors.error_of(lib.SCAND_PERMISSION, ""), PermissionError)
        self.assertIn("wrong", str(errors.error_of(lib.SCAND_INVALID, "")))


if __name__ == "__main__":
    main()
