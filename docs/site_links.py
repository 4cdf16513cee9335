"""Hooks of mkdocs: add pages and files from outside docs/ to the site, and expand the comments of the reference.

The pages are written for the repository, so their links are relative to their place in it. README.md becomes the first
page of the site; other files that a page links to are copied to ``repository/``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "RELEASING.md": "releasing.md",
    "SECURITY.md": "security.md",
    "labs/data/README.md": "data.md",
    "labs/demo/data/README.md": "demo-data.md",
}
"""Pages outside docs/, and their places on the site."""

NOTEBOOKS = "notebooks/"
"""Folder of the pages that show notebooks."""

LOOKS = re.compile(r"<style.*?</style>|\s(?:border|class|style)=\"[^\"]*\"", flags=re.DOTALL)
"""What tables of a notebook say of their own looks."""

LINK = re.compile(r"(\]\(|\b(?:src|srcset)=\")([^)\"#:\s]+)(#[^)\s]*)?(\)|\")")
"""A link of Markdown, or the address of a picture in HTML."""

NAMES = re.compile(r"^<!-- reference: ([\w.]+) -->$", flags=re.MULTILINE)


def place_in_repository(src_uri: str) -> str:
    """Path, in the repository, of a page of the site."""
    origins = {on_site: path for path, on_site in PAGES.items()}
    copied = src_uri.removeprefix("repository/")
    return origins.get(src_uri, copied if copied != src_uri else f"docs/{src_uri}")


def place_on_site(path: str) -> str:
    """Path, on the site, of a file of the repository."""
    return PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}")


def linked(text: str, path: str) -> list[str]:
    """Files of the repository that a page, itself at this path, links to."""
    targets = (posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2])) for match in LINK.finditer(text))
    return [target for target in targets if (ROOT / target).is_file()]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/, and the files that pages link to."""
    for path, src_uri in PAGES.items():
        files.append(File.generated(config, src_uri, abs_src_path=str(ROOT / path)))
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page_of_notebook(notebook)))
    for page in files.documentation_pages():
        path = place_in_repository(page.src_uri)
        if page.src_uri.startswith(NOTEBOOKS):
            continue
        for target in linked((ROOT / path).read_text(encoding="utf-8"), path):
            if files.get_file_from_path(place_on_site(target)) is None:
                files.append(File.generated(config, place_on_site(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links of the repository for the site, and expand ``<!-- reference: NAME -->``."""
    if page.file.src_uri.startswith(NOTEBOOKS):
        return markdown
    path = place_in_repository(page.file.src_uri)
    if page.file.src_uri == PAGES["README.md"]:
        page.meta["hide"] = ["navigation"]  # the first page has no neighbours: its side bar would be empty

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2]))
        if not (ROOT / target).is_file():
            return match[0]
        here = posixpath.dirname(page.file.src_uri) or "."
        return match[1] + posixpath.relpath(place_on_site(target), here) + (match[3] or "") + match[4]

    return NAMES.sub(lambda match: reference(match[1]), LINK.sub(moved, markdown))


def page_of_notebook(path: Path) -> str:
    """The cells of a notebook and what they show as a page, with a link to the file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, *parts = [text for cell in cells for text in parts_of_cell(cell)]
    name, _, begin = title.partition("\n")
    link = f"This page shows the notebook [{path.name}]({path.name}), which you can open in Jupyter."
    return "\n\n".join([name, link, begin.strip(), *parts]) + "\n"


def parts_of_cell(cell: dict[str, Any]) -> Iterator[str]:
    """Markdown of a cell: its text, or its code and what the code prints and shows."""
    source = "".join(cell["source"])
    yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = "".join(output.get("text") or data.get("text/plain", ""))
        if "image/png" in data:
            yield f'<img class="figure" alt="What this cell draws" src="data:image/png;base64,{data["image/png"]}">'
        elif "text/html" in data:
            yield f'<div class="shown">{LOOKS.sub("", "".join(data["text/html"]))}</div>'
        else:
            yield f"```text\n{text.rstrip()}\n```"


def reference(name: str) -> str:
    """Directives for the public names of a module, the classes of a registry, or one name, in their own order."""
    return "\n".join(f"::: {value.__module__}.{value.__qualname__}\n" for value in dict.fromkeys(public(name)))


def public(name: str) -> Iterator[Any]:
    """Classes and functions of a module, the classes of a registry, or one class or function."""
    module, _, attribute = name.rpartition(".")
    one = getattr(importlib.import_module(module), attribute, None) if module else None
    if one is not None and not inspect.ismodule(one):
        yield from (one[id] for id in one) if attribute.isupper() else (one,)
        return
    found = importlib.import_module(name)
    own = (key for key, value in vars(found).items() if key[0] != "_" and getattr(value, "__module__", None) == name)
    for key in getattr(found, "__all__", None) or own:
        value = getattr(found, key)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield value
