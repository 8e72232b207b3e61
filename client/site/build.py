#!/usr/bin/env python3
"""Builds the documentation site: assembles its pages, runs the examples that they show, and has MkDocs lay them out.

Usage: build.py BUILD_FOLDER OUT_FOLDER, with what was built, and where the site goes: its first page is
OUT_FOLDER/html/index.html. It needs mandoc, and MkDocs with its theme "material" and latex2mathml for this Python. Ends
with 77 where they are missing.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import assemble  # noqa: E402
import examples  # noqa: E402

SKIPPED = 77


def missing():
    modules = [name for name in ("mkdocs", "material", "latex2mathml") if importlib.util.find_spec(name) is None]
    return modules + ([] if shutil.which("mandoc") else ["mandoc"])


def settings(pages, html, navigation):
    """MkDocs' own file; YAML takes JSON."""
    return {
        "site_name": "scand",
        "site_description": "Prefix sums and what is built on them, on one GPU for all programs of a machine",
        "docs_dir": str(pages),
        "site_dir": str(html),
        "use_directory_urls": False,  # pages can be read from a disk, without a server; searching takes one
        "theme": {
            "name": "material",
            "font": False,  # nothing is fetched by readers
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "content.tabs.link", "toc.follow"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "indigo",
                 "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "indigo",
                 "toggle": {"icon": "material/weather-sunny", "name": "Light"}},
            ],
        },
        "extra_css": ["site.css"],
        "extra": {"generator": False},
        "plugins": ["search"],
        "markdown_extensions": ["tables", "attr_list", "md_in_html", "pymdownx.highlight", "pymdownx.superfences",
                                {"pymdownx.tabbed": {"alternate_style": True}}, {"toc": {"permalink": True}}],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn"}, "omitted_files": "ignore"},
        "nav": navigation,
    }


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    lacking = missing()
    if lacking:
        print(f"skipped: the documentation site; there is no {', '.join(lacking)} for {sys.executable}: ./dev site installs them")
        raise SystemExit(SKIPPED)
    out = pathlib.Path(sys.argv[2]).resolve()
    pages, html = out / "pages", out / "html"
    navigation = assemble.assemble(pages, examples.run_all(examples.Build(sys.argv[1])))
    configuration = out / "mkdocs.yml"
    configuration.write_text(json.dumps(settings(pages, html, navigation), indent=1))
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean", "-f", str(configuration)]
    result = subprocess.run(words, env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))  # it is about a version that is not used here
    if result.returncode == 0:
        print(f"site: {html / 'index.html'}")
    raise SystemExit(result.returncode)


if __name__ == "__main__":
    main()
