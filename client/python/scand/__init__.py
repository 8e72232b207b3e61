"""Scans and reductions of NumPy arrays by the scand daemon: cumulative sums, products, extremes and recurrences of
many rows at once, on the machine's GPU or its processor, with the same bits."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._library import lib as _lib, string as _string
from .arrays import allocator
from .chains import operations, parameters_of as _parameters_of
from .client import Client, default_client, trim
from .device import DeviceArray, device_array, device_empty
from .errors import (
    BusyError,
    DeadlineError,
    FileError,
    ForbiddenError,
    InvalidError,
    LostError,
    OutOfMemoryError,
    ScandError,
    StaleError,
    UnavailableError,
    UnsupportedError,
)
from .files import open_file
from .functions import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    cumulative_trapezoid,
    lfilter,
    maximum_accumulate,
    minimum_accumulate,
    reduce,
    run,
    scan,
    submit,
    submit_many,
    submit_reduce,
    submit_run,
    submit_run_many,
)
from .jobs import Job
from .memory import asarray, empty, is_shared

__version__ = _string(_lib.scand_version())

__all__ = [
    "BusyError",
    "Client",
    "DeadlineError",
    "DeviceArray",
    "FileError",
    "ForbiddenError",
    "InvalidError",
    "Job",
    "LostError",
    "OutOfMemoryError",
    "ScandError",
    "StaleError",
    "UnavailableError",
    "UnsupportedError",
    "allocator",
    "asarray",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "cumulative_trapezoid",
    "default_client",
    "device_array",
    "device_empty",
    "empty",
    "is_shared",
    "lfilter",
    "maximum_accumulate",
    "minimum_accumulate",
    "open_file",
    "operations",
    "reduce",
    "run",
    "scan",
    "submit",
    "submit_many",
    "submit_reduce",
    "submit_run",
    "submit_run_many",
    "trim",
]

if not _TYPE_CHECKING:  # checkers would take any name to be there

    def __getattr__(name: str) -> object:
        """Modules that only some programs use are imported when these name them."""
        if name in ("dask", "pylops", "segy"):
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        word = name.replace("_", "-")
        hint = f'; it is an operation: scand.run(x, [("{word}", {{...}})])' if _parameters_of(word) is not None else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
