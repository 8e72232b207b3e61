#!/usr/bin/env python3
"""Ctrl-C at every moment at which Python looks for signals: when a function begins, and behind each call of C.

Afterwards nothing waits for ever, and no job works on memory that others have.
"""

import gc
import os
import signal
import sys
import threading
import unittest.mock

import numpy as np

import scand
from rig import PackageTest, main, whole_numbers
from scand import client, connection

PACKAGE = os.path.dirname(scand.__file__)
LIMIT_S = 120  # for all moments of one program: Python would wait for a minute, again and again


class Interrupt(BaseException):
    """A handler's."""


class Library:
    """libscand, whose functions a profile sees: "return" is the moment behind the call."""

    def __init__(self, lib):
        self._lib = lib

    def __getattr__(self, name):
        value = getattr(self._lib, name)
        if not name.startswith("scand_"):
            return value

        def called(*arguments):
            return value(*arguments)

        setattr(self, name, called)
        return called


WATCHED = PACKAGE, threading.__file__  # files in which moments are counted


class Moments:
    """Counts moments, and raises at one of them."""

    def __init__(self, chosen=0):
        self.chosen = chosen
        self.count = 0

    def __call__(self, frame, event, argument):
        code = frame.f_code
        begins = event == "call" and code.co_name[0] != "<" and code.co_filename.startswith(WATCHED)
        ends = event == "c_return" and code.co_filename.startswith(WATCHED) or event == "return" and code is CALLED
        self.count += begins or ends
        if (begins or ends) and self.count == self.chosen:
            sys.setprofile(None)
            raise Interrupt


CALLED = Library(connection.lib).scand_fd.__code__


def run(program, moments):
    sys.setprofile(moments)
    try:
        program()
    except Interrupt:
        pass
    finally:
        sys.setprofile(None)


class Interrupts(PackageTest):
    def setUp(self):
        for module in client, connection:
            self.enterContext(unittest.mock.patch.object(module, "lib", Library(module.lib)))
        self.enterContext(unittest.mock.patch("sys.unraisablehook"))  # what is raised in __del__ is printed there
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        self.addCleanup(signal.alarm, 0)
        self.ordinary = whole_numbers(3000)
        self.x, self.y = (scand.asarray(whole_numbers((4, 500))) for _ in range(2))

    def interrupted(self, program):
        for _ in range(3):
            program()
        all_of_them = Moments()
        run(program, all_of_them)
        self.assertGreater(all_of_them.count, 20)
        for moment in range(1, all_of_them.count + 1):
            run(program, Moments(moment))
            self.same(scand.cumsum(self.ordinary), np.cumsum(self.ordinary))
            for job in scand.submit_many([self.x, self.ordinary]):
                job.result(30)
            scand.submit(self.x, out=self.y).result(30)
            self.same(self.y, np.cumsum(self.x, -1))
        gc.collect()

    def test_calls(self):
        self.interrupted(lambda: scand.cumsum(self.ordinary))

    def test_jobs(self):
        self.interrupted(lambda: (scand.submit(self.x, out=self.y), scand.submit(self.y, out=self.y).result()))

    def test_batches(self):
        self.interrupted(lambda: [job.result() for job in scand.submit_many([self.ordinary] * 3)])

    def test_beside_another_thread(self):
        """Which polls, so that this one waits for it."""
        user, over = scand.default_client(), []
        other = threading.Thread(target=user.until, args=(lambda: over, None))
        other.start()
        try:
            self.interrupted(lambda: scand.submit(self.x, out=self.y).result())
        finally:
            over.append(True)
            user.nudge()
            other.join()

    def test_callbacks(self):
        self.interrupted(lambda: scand.submit(self.x, out=self.y).add_done_callback(lambda job: None))

    def test_memory(self):
        def program():
            scand.cumsum(scand.empty(100_000, "u1").view("f8"))
            scand.trim()

        self.interrupted(program)


if __name__ == "__main__":
    main()
