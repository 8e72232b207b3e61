"""libscand, which lies beside this file, and the words of its lists."""

from __future__ import annotations

import functools
import os

from ._ffi import ffi

# The library stays to the end of the process: arrays may outlive the interpreter's modules, and the library gives back
# their memory.
lib = ffi.dlopen(os.path.join(os.path.dirname(__file__), "libscand.so"), os.RTLD_NOW | os.RTLD_NODELETE)


def string(text: object) -> str:
    """A C string as Python's; NULL is empty."""
    return ffi.string(text).decode("utf-8", "replace") if text != ffi.NULL else ""


def words(what: str) -> list[str]:
    """All words of a list of scand/types.h: words("pass") are forward and backward."""
    numbered = getattr(lib, f"SCAND_LIST_{what.upper()}")
    found: list[str] = []
    while (word := lib.scand_word(numbered, len(found))) != ffi.NULL:
        found.append(string(word))
    return found


# Arguments whose words are of a list of another name.
_ARGUMENTS = {"pass": "passes", "operator": "op", "reduction": "op", "dtype": "form"}


@functools.lru_cache(maxsize=256)
def number(what: str, word: str) -> int:
    """The enumerator of a word: number("dtype", "f32")."""
    if isinstance(word, str):
        found: int = lib.scand_word_find(getattr(lib, f"SCAND_LIST_{what.upper()}"), word.encode())
        if found >= 0:
            return found
    allowed = [other for other in words(what) if (what, other) != ("reduction", "none")]
    raise ValueError(f"{_ARGUMENTS.get(what, what)}: {word!r} is not one of {', '.join(allowed)}")
