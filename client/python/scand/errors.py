"""Errors, each derived from the builtin exception that programs expect."""

from __future__ import annotations

import re

from ._library import lib, string


class ScandError(Exception):
    """The daemon, or libscand, refused or failed. `status` is the word of scand/types.h."""

    status: str = "internal"

    def __init__(self, message: str, status: str | None = None):
        super().__init__(message)
        self.status = status or self.status

    def __reduce__(self) -> tuple[type[ScandError], tuple[str, str]]:
        return type(self), (str(self), self.status)


class InvalidError(ScandError, ValueError):
    """An argument is wrong; the message names it, its value and what is allowed."""

    status = "invalid"


class BusyError(ScandError, TimeoutError):
    """The daemon was full for longer than the client's patience."""

    status = "busy"


class OutOfMemoryError(ScandError, MemoryError):
    """There is no memory for the job or the buffer."""

    status = "no_memory"


class UnavailableError(ScandError, ConnectionError):
    """No daemon answers, or the daemon is about to stop."""

    status = "unavailable"


class LostError(ScandError, ConnectionError):
    """The daemon's worker was lost with the job, and repeating the job could have changed its result. Its output holds
    anything; so does its input where that is the same memory."""

    status = "lost"


class DeadlineError(ScandError, TimeoutError):
    """The job could not start in the time that it had."""

    status = "deadline"


class UnsupportedError(ScandError, NotImplementedError):
    """The daemon or the device cannot do what was asked."""

    status = "unsupported"


class ForbiddenError(ScandError, PermissionError):
    """The user may not do what was asked, or asks for more than its whole quota."""

    status = "permission"


class FileError(ScandError, OSError):
    """A file or memory that the daemon was to read is not what it was, as one that has become shorter, or cannot be read."""

    status = "descriptor"


class StaleError(ScandError, RuntimeError):
    """The job's input was to be written by a job that failed or was cancelled."""

    status = "stale"


_CLASSES: dict[str, type[ScandError]] = {
    "invalid": InvalidError,
    "not_found": InvalidError,
    "too_large": InvalidError,
    "busy": BusyError,
    "quota": BusyError,
    "no_memory": OutOfMemoryError,
    "unavailable": UnavailableError,
    "draining": UnavailableError,
    "version": UnavailableError,
    "forked": UnavailableError,
    "disconnected": UnavailableError,
    "timed_out": UnavailableError,
    "lost": LostError,
    "deadline": DeadlineError,
    "unsupported": UnsupportedError,
    "unknown_method": UnsupportedError,
    "permission": ForbiddenError,
    "descriptor": FileError,
    "stale": StaleError,
}


# What libscand's messages tell programs in C to do, and what it is here.
_WORDS_OF_C = (
    (r": give it with scand_task_\w+$", "; give it in the dictionary of its step"),
    (r" \(reconnect_ms\); the library goes on trying: call again, or scand_dispatch$", "; call again when it is there"),
    (r" \(drain_ms\)", " (a client's patience_s)"),
    (
        r'or give f32 or f64 as "output.dtype", and a step before with "operation" "map", "op" "cast"$',
        "or take dtype=numpy.float64, with which integers become floats",
    ),
    (r'take a step before with "operation" "map", "op" "cast"$', 'take a step before, ("map", {"op": "cast"})'),
)


def error_of(status: int, message: str) -> ScandError:
    """The exception of an enum scand_status."""
    word = string(lib.scand_status_word(status))
    for words, own in _WORDS_OF_C:
        message = re.sub(words, own, message)
    return _CLASSES.get(word, ScandError)(message or string(lib.scand_status_text(status)), word)
