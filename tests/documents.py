#!/usr/bin/env python3
"""Checks the project's Markdown files: what they name exists, and lines fit a screen.

- A link to a file, and to a heading of one, leads there.
- A name of a source file in `backticks` exists: beside the document, below its folder, from the top, or as programs include it.
- A heading begins its line.
- Lines have at most 160 columns; ARCHITECTURE.md has at most 150 lines of at most 100.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 160
LIMITS = {"ARCHITECTURE.md": (150, 100)}  # lines, columns
LINK = re.compile(r"\]\(([^)\s]+)\)")
# `folder/file.c` and `file.h`; not `NAME.cu`, which stands for any, and nothing with blanks.
SOURCE = re.compile(r"`([\w./-]+\.(?:c|h|inc|cu|cuh|py|sh|md|txt|csv|map|conf))`|`((?:[\w.-]+/)+)`")


def tracked():
    """The files of the project, by their paths from its top."""
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return {path for path in listing.split("\0") if path and (ROOT / path).exists()}
    except (OSError, subprocess.CalledProcessError):  # no repository: a release's archive
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return {path.as_posix() for path in found if path.parts[0] != "build"}


def anchors(path):
    """The headings of a file as links have them."""
    headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def link_is_wrong(document, target, places):
    if "://" in target or target.startswith("mailto:"):
        return False
    name, _, anchor = target.partition("#")
    path = (ROOT / document).parent / name if name else ROOT / document
    path = path.resolve()
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else None
    return place not in places or (anchor != "" and anchor not in anchors(place))


def name_is_wrong(document, name, places):
    """True when no file or folder of this name is where a reader would look."""
    name = name.rstrip("/")
    if name.startswith(("/", "build/")) or re.search(r"[A-Z]{2}", pathlib.PurePosixPath(name).stem) and not name.endswith(".md"):
        return False
    folder = pathlib.PurePosixPath(document).parent.as_posix() + "/"
    return not any(
        place == name
        or place.endswith("/include/" + name)
        or place.endswith("/" + name) and (folder == "./" or place.startswith(folder) or "/" not in name)
        for place in places
    )


def with_folders(files):
    """The files and all folders that they are in."""
    return files | {folder.as_posix() for file in files for folder in pathlib.PurePosixPath(file).parents}


def check(document, places):
    lines = (ROOT / document).read_text().splitlines()
    most_lines, most_columns = LIMITS.get(document, (None, COLUMNS))
    if most_lines and len(lines) > most_lines:
        yield f"{document}: {len(lines)} lines, at most {most_lines}"
    fenced = False
    for number, line in enumerate(lines, 1):
        if len(line) > most_columns:
            yield f"{document}:{number}: {len(line)} columns, at most {most_columns}"
        fenced ^= line.startswith("```")
        if fenced:
            continue
        if re.search(r"\S\s+#{2,} \w", line) and not line.startswith("#"):
            yield f"{document}:{number}: a heading in the middle of the line"
        for match in LINK.finditer(line):
            if link_is_wrong(document, match[1], places):
                yield f"{document}:{number}: nothing is at the link {match[1]}"
        for match in SOURCE.finditer(line):
            if name_is_wrong(document, match[1] or match[2], places):
                yield f"{document}:{number}: there is no {match[1] or match[2]}"


def main():
    files = tracked()
    places = with_folders(files)
    documents = sorted(file for file in files if file.endswith(".md"))
    wrong = [line for document in documents for line in check(document, places)]
    print("\n".join(wrong) if wrong else f"documents: what {len(documents)} of them name exists, and lines fit")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
