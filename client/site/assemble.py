"""The pages of the site, out of those that stand beside what they describe: README.md and its like, manual pages,
PROTOCOL.md, scand.h, docstrings. Links to files of the source lead to pages that show them."""

import html
import pathlib
import re
import shutil
import subprocess

import picture
import reference
from examples import in_c, in_python, in_shell
from operations import EXAMPLES, PROTOCOL, TOP, sections

MANUALS = ["client/scanctl/scanctl.1", "daemon/scand.8", "client/lib/scand.3"]
LANGUAGES = {".c": "c", ".h": "c", ".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "bash", ".f90": "fortran",
             ".cmake": "cmake", ".json": "json", ".yml": "yaml", ".conf": "ini"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Site:
    """Pages in a folder, by their paths there, and the navigation to them."""

    def __init__(self, folder):
        self.folder = folder
        self.documents = [path for path in tracked() if path.endswith(".md")]
        self.shown = set()  # files of the source that have pages

    def write(self, path, text):
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def source_page(self, path):
        """The page that shows a file of the source, or lists a folder."""
        page = f"source/{path}.md"
        if path in self.shown:
            return page
        self.shown.add(path)
        file = TOP / path
        if file.is_dir():
            names = sorted(name for name in tracked() if name.startswith(f"{path}/"))
            lines = [f"- [{name}](/{self.source_page(name)})" if (TOP / name).suffix in LANGUAGES else f"- {name}" for name in names]
            self.write(page, self.absolute_links(f"# {path}/\n\n" + "\n".join(lines) + "\n", page))
        else:
            fence = "`" * 4
            text = f"# {file.name}\n\n`{path}`\n\n{fence}{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}\n{fence}\n"
            self.write(page, text)
        return page

    def absolute_links(self, text, page):
        """Links that begin with / are from the site's top."""
        up = "../" * page.count("/")
        return re.sub(r"\]\(/", f"]({up}", text)

    def target(self, document, link):
        """The page of the site, or the address, that a document's link leads to."""
        name, hash_, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or not name:
            return link
        path = ((TOP / document).parent / name).resolve().relative_to(TOP).as_posix()
        if path == ".":
            path = "README.md"
        if (TOP / path).is_dir() and f"{path}/README.md" in self.documents:
            path = f"{path}/README.md"
        if path not in self.documents:
            if (TOP / path).suffix in (".svg", ".png"):
                self.folder.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(TOP / path, self.folder / path)
            elif path in MANUALS:
                path = manual_page(path)
            else:
                path = self.source_page(path)
        return "/" + path + hash_ + anchor

    def add_document(self, document, text=None, page=None):
        text = (TOP / document).read_text() if text is None else text
        page = page or document
        linked = LINK.sub(lambda found: f"{found[1]}[{found[2]}]({self.target(document, found[3])})", text)
        self.write(page, self.absolute_links(linked, page))


def tracked():
    """The files of the project."""
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
        return sorted(path for path in listing.split("\0") if path and (TOP / path).exists())
    except (OSError, subprocess.CalledProcessError):  # a release's archive
        files = (path.relative_to(TOP) for path in TOP.rglob("*") if path.is_file())
        return sorted(path.as_posix() for path in files if path.parts[0] != "build")


def formulas(text):
    """Formulas as MathML, where there is what makes it, which browsers set themselves; else as they are written."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return text
    return FENCE.sub(lambda found: f'<div class="formula">{convert(" ".join(found[1].split()), display="block")}</div>', text)


def tab(title, language, code):
    body = "\n".join("    " + line if line else "" for line in [f"```{language}", *code.split("\n"), "```"])
    return f'=== "{title}"\n\n{body}\n'


def operation_page(example, text, output):
    dtype, shape, values = output
    parts = [
        f"# {example.operation}",
        formulas(text),
        "## Example",
        picture.draw(example, shape, values),
        f'<p class="caption">{html.escape(example.see)}</p>',
        tab("Shell", "sh", in_shell(example)) + "\n" + tab("Python", "python", in_python(example, dtype)) + "\n" + tab("C", "c", in_c(example)),
        "All three have been run to make this page, with the same bits as a result. `x.npy` and the other arrays are NumPy's; in C they are tensors "
        "in buffers, as in [double_integral.c](../client/examples/double_integral.c).",
    ]
    return "\n\n".join(parts) + "\n"


def add_operations(site, outputs):
    texts, rows = sections(), []
    for example in EXAMPLES:
        text = texts[example.operation]
        page = operation_page(example, text, outputs[example.operation])
        site.add_document(PROTOCOL, page, f"operations/{example.operation}.md")
        rows.append(f"| [{example.operation}]({example.operation}.md) | {text.split('. ')[0]} |")
    table = "\n".join(["# Operations", "", "What a step of a job may do. A job has up to nine of them, and what is between them stays on the device.", "",
                       "| operation | what it does |", "|---|---|", *rows, ""])
    site.write("operations/index.md", table)
    return ["operations/index.md"] + [f"operations/{example.operation}.md" for example in EXAMPLES]


def manual_page(path):
    return f"manual/{pathlib.PurePosixPath(path).name}.md"


def add_manuals(site):
    """Adds the manual pages as mandoc writes them; their links to each other are those of manual_page."""
    for path in MANUALS:
        words = ["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", str(TOP / path)]
        made = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        made = re.sub(r"<(/?)h1\b", r"<\1h2", made)
        site.write(manual_page(path), f"---\ntitle: {pathlib.Path(path).name}\n---\n\n<div class=\"man\">\n{made}\n</div>\n")
    return [manual_page(path) for path in MANUALS]


def add_examples(site, folder, suffix):
    return [site.source_page(path) for path in tracked() if path.startswith(folder) and path.endswith(suffix)]


def assemble(folder, outputs):
    """Writes the pages into a folder. Returns the navigation, as MkDocs has it."""
    shutil.rmtree(folder, ignore_errors=True)
    site = Site(folder)
    for document in site.documents:
        text = formulas((TOP / document).read_text())
        site.add_document(document, text)
    site.write("reference/c.md", reference.c_reference())
    site.write("reference/python.md", reference.python_reference())
    shutil.copy(pathlib.Path(__file__).parent / "site.css", folder / "site.css")
    operations = add_operations(site, outputs)
    manuals = add_manuals(site)
    inside = ["ARCHITECTURE.md", *(path for path in site.documents if path.endswith("/README.md") and path != "client/python/README.md" and "results" not in path)]
    return [
        {"scand": "README.md"},
        {"Operations": operations},
        {"C": [{"Reference": "reference/c.md"}, *add_examples(site, "client/examples/", ".c"), *add_examples(site, "client/fortran/", ".f90")]},
        {"Python": [{"Guide": "client/python/README.md"}, {"Reference": "reference/python.md"}, *add_examples(site, "client/python/examples/", ".py")]},
        {"Programs": manuals},
        {"Protocol": PROTOCOL},
        {"Measured": "tests/bench/results/README.md"},
        {"Inside": [*inside, "SECURITY.md", "CHANGELOG.md"]},
    ]
