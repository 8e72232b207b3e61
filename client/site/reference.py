"""References made of what stands beside the code: of scand.h's comments, of the Python package's docstrings."""

import ast
import pathlib
import re
import textwrap

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = TOP / "client/include/scand/scand.h"
PACKAGE = TOP / "client/python/scand"
# A comment, a struct, an enumeration, or a declaration that ends in a semicolon, with a comment behind it.
PART = re.compile(
    r"/\*(?P<comment>.*?)\*/\n|^(?P<block>(?:struct|enum) \w+ \{.*?^\};)|^(?P<line>(?:typedef |const |struct |int |void |uint|size_t |enum )[^;{]*?;)"
    r"[ ]*(?:/\*(?P<after>.*?)\*/)?",
    re.DOTALL | re.MULTILINE,
)


def comment_text(comment):
    """A comment as Markdown: paragraphs and lists stay, indented code is fenced by its indentation."""
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.strip("\n").split("\n")]
    lines = [line.strip() if i == 0 else line for i, line in enumerate(lines)]
    return textwrap.dedent("\n".join(lines)).strip().lstrip("*").strip()


def escaped(text):
    """Angle brackets and underscores of prose, left alone by Markdown."""
    return re.sub(r"(\b\w*_\w*\b(?:\(\))?)", r"`\1`", text.replace("<", "&lt;"))


def title(code):
    """The heading of some declarations: the first name that they declare."""
    block = re.match(r"(?:struct|enum) \w+(?= \{)", code[0])
    if block:
        return block[0]
    calls = re.findall(r"\b(scand_\w+)\(", "\n".join(code))
    return calls[0] if calls else None


def flush(out, text, code):
    """A comment and what it is about, under a heading where that has a name."""
    heading = title(code) if code else None
    if heading:
        out += [f"## `{heading}`", ""]
    out += [text, ""] if text else []
    if code:
        out += ["```c", *code, "```", ""]
        code.clear()


def c_reference():
    """The header, part by part: what a comment says, then what it is about."""
    header = HEADER.read_text()
    first = re.match(r"/\*(.*?)\*/", header, re.DOTALL)
    body = header[header.index('extern "C"') : header.rindex("#ifdef __cplusplus")]
    out, text, code = ["# The C library", "", intro(comment_text(first[1])), ""], "", []
    for match in PART.finditer(body):
        if match["comment"] is not None:
            flush(out, text, code)
            text = escaped(comment_text(match["comment"]))
        else:
            code.append(match[0])
    flush(out, text, code)
    return "\n".join(out)


def intro(text):
    """The header's first comment, whose indented lines are an example."""
    paragraphs = [part if part.startswith("    ") else escaped(part) for part in text.split("\n\n")]
    return "\n\n".join(paragraphs)


def signature(node, source):
    """A function's line as it is written, without its body."""
    head = source[node.lineno - 1 : node.body[0].lineno - 1] or [source[node.lineno - 1]]
    return textwrap.dedent("\n".join(head)).strip().removesuffix(":")


def python_functions(tree, source, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_") and ast.get_docstring(node):
            yield prefix + node.name, signature(node, source), ast.get_docstring(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_") and ast.get_docstring(node):
            yield prefix + node.name, f"class {node.name}", ast.get_docstring(node)
            yield from python_functions(node, source, f"{prefix}{node.name}.")


def exported():
    """The names that `import scand` gives, from __all__."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit("client/python/scand/__init__.py has no __all__")


def docstring_text(docstring):
    """A docstring as Markdown. NumPy's underlined sections become bold words, and what they define a list."""
    lines = docstring.replace("<", "&lt;").split("\n")
    out, defines = [], False
    for i, line in enumerate(lines):
        if re.fullmatch(r"-{3,}", line):
            out[-1:] = [f"**{out[-1]}**", ""]
            defines = True
        elif defines and re.match(r"\w.* : |\w[\w, ]*$", line) and i + 1 < len(lines) and lines[i + 1].startswith("    "):
            name, _, kind = line.partition(" : ")
            out.append(f"- `{name}`" + (f" ({kind}):" if kind else ":"))
        else:
            out.append(line)
    return "\n".join(out)


def module_part(path, wanted):
    text = path.read_text()
    lines = []
    for name, head, docstring in python_functions(ast.parse(text), text.split("\n")):
        if wanted is None or name.split(".")[0] in wanted:
            level = "####" if "." in name else "###"
            lines += [f"{level} `{name}`", "", "```python", head, "```", "", docstring_text(docstring), ""]
    return lines


def python_reference():
    """Docstrings of what the package exports, then of its further modules."""
    names, out = exported(), ["# The Python package", "", "## scand", ""]
    further = {"pylops", "dask", "segy"}
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem not in further and not path.stem.startswith("_"):
            out += module_part(path, names)
    for module in sorted(further):
        text = (PACKAGE / f"{module}.py").read_text()
        out += [f"## scand.{module}", "", ast.get_docstring(ast.parse(text)) or "", "", *module_part(PACKAGE / f"{module}.py", None)]
    return "\n".join(out)
