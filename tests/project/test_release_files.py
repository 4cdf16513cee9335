"""What a published project states about itself: versions, dates, addresses, how to install, how to cite."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from requirements import audit
from tests.project.documents import OUTSIDE, ROOT, pages
from uldp_transforms.version import __version__

CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
JAVASCRIPT = json.loads((ROOT / "clients" / "javascript" / "package.json").read_text("utf-8"))


# ---------------------------------------------------------------------- versions and dates


def releases(changelog: str) -> list[tuple[Version, datetime.date | None]]:
    """Versions and dates of the headings of a changelog; no date stands for "unreleased"."""
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    found = []
    for heading in headings:
        match = re.fullmatch(r"(\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)", heading)
        assert match, f"a heading must be 'X.Y.Z (YYYY-MM-DD)' or 'X.Y.Z (unreleased)', got {heading!r}"
        day = None if match[2] == "unreleased" else datetime.date.fromisoformat(match[2])
        found.append((Version(match[1]), day))
    return found


def test_releases_have_dates_in_order() -> None:
    (newest, *older) = releases(CHANGELOG)
    assert newest[0] == Version(__version__)
    assert [version for version, _ in [newest, *older]] == sorted({version for version, _ in [newest, *older]})[::-1]
    days = [day for _, day in older if day is not None]
    assert len(days) == len(older), "only the newest version may be unreleased"
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize("heading", ["1.0.0", "1.0 (2026-01-01)", "1.0.0 - 2026-01-01", "1.0.0 (soon)"])
def test_headings_of_another_form_are_refused(heading: str) -> None:
    with pytest.raises(AssertionError, match="a heading must be"):
        releases(f"# Changes\n\n## {heading}\n")


def test_one_version_everywhere() -> None:
    assert CITATION["version"] == JAVASCRIPT["version"] == __version__
    (_, day), *_ = releases(CHANGELOG)
    assert CITATION.get("date-released") == day


def test_python_versions_are_those_that_are_locked(package: dict[str, Any]) -> None:
    """Those of the classifiers, of ``python_requires``, of mypy and of ruff."""
    named = re.findall(r"Python :: (3\.\d+)", " ".join(package["classifiers"]))
    assert named == sorted(named, key=Version)
    assert package["python_requires"] == f">={named[0]}"
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'python_version = "{named[0]}"' in settings
    assert f'target-version = "py{named[0].replace(".", "")}"' in settings
    text = f"Python {named[0]} to {named[-1]}, Apache Beam"
    assert all(text in (ROOT / page).read_text("utf-8") for page in ("README.md", "docs/versions.md"))


def test_the_oldest_beam_is_locked_and_documented(package: dict[str, Any]) -> None:
    """``setup.py`` allows it, ``make oldest`` has exactly it, and the other lock has a newer one."""
    extras = [text for texts in package["extras_require"].values() for text in texts]
    needs = [Requirement(text) for text in [*package["install_requires"], *extras]]
    ranges = [spec for need in needs if need.name == "apache-beam" for spec in need.specifier]
    (floor,) = {spec.version for spec in ranges if spec.operator == ">="}
    locked = {name: audit.expected([name])["apache-beam"] for name in ("oldest", "test")}
    assert Version(locked["oldest"]) == Version(floor) < Version(locked["test"])
    text = f"Apache Beam {floor} or newer"
    assert all(text in (ROOT / page).read_text("utf-8") for page in ("README.md", "docs/versions.md"))


# ---------------------------------------------------------------------- addresses and names


def homes(package: dict[str, Any]) -> dict[str, str]:
    """Addresses of the repository, by the file that names them."""
    repository = JAVASCRIPT.get("repository", {})
    found = {
        "setup.py": package.get("project_urls", {}).get("Source"),
        "CITATION.cff": CITATION.get("repository-code"),
        "package.json": repository if isinstance(repository, str) else repository.get("url"),
    }
    return {file: re.sub(r"^git\+|(\.git)?/?$", "", address) for file, address in found.items() if address}


def test_all_files_name_the_same_home_or_none(package: dict[str, Any]) -> None:
    found = homes(package)
    assert len(found) in (0, 3), f"all three files must name the repository, or none, got {sorted(found)}"
    assert len(set(found.values())) <= 1, found


OWN = ("uldp-transforms", "uldp_transforms", "uldp-client")
INSTALLS = re.compile(r"(?:pip[3x]? (?:install|download)|uv add|npm (?:install|i|add)|npx) ([^`\n&|#]*)")


def from_an_index(text: str) -> list[str]:
    """Arguments of installations that name a package of this project, which no index has."""
    words = [word.strip("'\"") for arguments in INSTALLS.findall(text) for word in arguments.split()]
    return [word for word in words if word.startswith(OWN) and not word.endswith((".whl", ".tar.gz", ".tgz"))]


def told() -> Iterator[Path]:
    """Files that tell people what to type."""
    yield from pages()
    for pattern in ("*.md", "*.yaml", "*.yml", "*.py", "*Dockerfile"):
        for folder in ("clients", "deploy", ".github", "docs", "labs", "packages", "pipelines", "uldp_transforms"):
            yield from (path for path in (ROOT / folder).rglob(pattern) if "node_modules" not in path.parts)


def test_nobody_is_told_to_install_what_is_not_published() -> None:
    found = {str(path.relative_to(ROOT)): from_an_index(path.read_text("utf-8")) for path in told()}
    assert not {path: words for path, words in found.items() if words}


def test_installations_from_an_index_are_found() -> None:
    bad = "`pip install 'uldp-transforms[kafka]'`\nnpm install uldp-client\npip install -U uldp_transforms==1.0"
    assert from_an_index(bad) == ["uldp-transforms[kafka]", "uldp-client", "uldp_transforms==1.0"]
    assert not from_an_index(
        "pip install '.[kafka]'\npip install uldp_transforms-1.0-py3-none-any.whl  # uldp-transforms"
    )


# ---------------------------------------------------------------------- files of the forge


def test_the_citation_is_valid() -> None:
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format", str(ROOT / "CITATION.cff")]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert CITATION["license"] == "Apache-2.0" == JAVASCRIPT["license"]


def test_owned_areas_exist() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text("utf-8").splitlines()
    entries = [line.split() for line in lines if line and line[0] != "#"]
    assert entries
    for pattern, *owners in entries:
        assert pattern.startswith("/")
        path = ROOT / pattern.strip("/")
        assert path.is_dir() if pattern.endswith("/") else path.is_file(), pattern
        assert all(re.fullmatch(r"@[\w-]+(/[\w-]+)?", owner) for owner in owners), owners


def test_the_steps_of_a_release_exist() -> None:
    """Each ``make`` target in RELEASING.md is one of the Makefile, and the steps are numbered from 1."""
    text = (ROOT / "RELEASING.md").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"lock", "test", "slow", "oldest", "packages", "smoke", "sbom"} <= targets
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
    for section in text.split("\n## ")[1:]:
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_pages_of_the_project_are_pages_of_the_site() -> None:
    assert {"SECURITY.md", "RELEASING.md"} <= set(OUTSIDE)
