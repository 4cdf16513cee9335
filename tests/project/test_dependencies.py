"""What is installed for demo, tests, pages and images is locked; users of the wheel have the ranges of setup.py."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements import audit

ROOT = Path(__file__).parents[2]
LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
PYTHONS = ("3.10.18", "3.11.7", "3.12.11", "3.13.5")
PLATFORMS = (
    {"sys_platform": "linux", "platform_system": "Linux"},
    {"sys_platform": "darwin"},
    {"sys_platform": "win32"},
)


def environments() -> Iterator[dict[str, str]]:
    for python in PYTHONS:
        for platform in PLATFORMS:
            minor = python.rpartition(".")[0]
            # default_environment() is a TypedDict, which does not take a platform's keys
            yield {**default_environment(), **platform, "python_full_version": python, "python_version": minor}  # type: ignore[dict-item]


# ---------------------------------------------------------------------- the locks


def test_what_make_installs_is_locked() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"build", "envoy", "oldest", "peers", "run", "tools"} | set(
        re.findall(r"\$\(VENV\)/\.(\w+)-installed", makefile)
    ) == set(LOCKS)
    for name in LOCKS:
        assert f"--output-file requirements/{name}.txt\n" in makefile


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_versions_and_hashes_only(lock: str) -> None:
    """No place where packages come from, and nothing that pip would take without a hash."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^ *-(?!-hash=sha256:[0-9a-f]{64}(?: \\)?$)", text, re.M)
    entries = re.findall(r"^[a-z0-9](?:.*\\\n)*.*", text, re.M)
    assert len(entries) == len(audit.pins(ROOT / "requirements" / f"{lock}.txt"))
    assert all(re.match(r"[a-z0-9-]+==[^ ]+( ; [^\\]+)? \\\n +--hash=", entry) for entry in entries)


@pytest.mark.parametrize("extra", ["run", "plot", "kafka", "gateway", "yaml", "docs", "lint", "test", "oldest"])
def test_locks_are_within_the_ranges_of_the_package(
    extra: str, package: dict[str, Any], needs_of_companions: dict[str, list[str]]
) -> None:
    """For every version of Python and platform; linters and Beam YAML come with the tests."""
    assert set(package["extras_require"]) == {
        "gcp",
        "plot",
        "notebook",
        "kafka",
        "gateway",
        "yaml",
        "docs",
        "lint",
        "test",
    }
    needed = [Requirement(text) for text in (*package["install_requires"], *package["extras_require"]["gcp"])]
    needed += [Requirement(text) for text in package["extras_require"].get("test" if extra == "oldest" else extra, ())]
    with_them = {
        "gateway": ("gateway",),
        "plot": ("report",),
        "test": needs_of_companions,
        "oldest": needs_of_companions,
    }
    needed += [Requirement(text) for folder in with_them.get(extra, ()) for text in needs_of_companions[folder]]
    needed = [requirement for requirement in needed if not requirement.name.startswith("uldp-transforms")]
    for environment in environments():
        locked = audit.expected([extra if extra in LOCKS else "test"], environment)
        for requirement in needed:
            if requirement.marker is not None and not requirement.marker.evaluate(environment):
                continue
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


def test_locks_agree() -> None:
    """What was installed for one purpose need not be changed for another."""
    for environment in environments():
        versions: dict[str, set[str]] = {}
        for lock in set(LOCKS) - {"oldest", "tools"}:
            for name, version in audit.expected([lock], environment).items():
                versions.setdefault(name, set()).add(version)
        assert not [name for name, found in versions.items() if len(found) > 1]


def test_the_image_installs_from_the_lock() -> None:
    folder = ROOT / "deploy" / "dataflow"
    commands = re.sub(r"\\\n", "", (folder / "Dockerfile").read_text(encoding="utf-8"))
    installs = re.findall(r"pip install (.+?)(?:&&|\n)", commands)
    assert [install.split()[-1] for install in installs] == ["requirements/build.txt", "requirements/run.txt", "."]
    assert ["--require-hashes" in install for install in installs] == [True, True, False]
    assert all("--no-deps" in install for install in installs), "a resolver may choose what no lock names"
    assert "!requirements/*.txt" in (folder / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()


# ---------------------------------------------------------------------- the audit


def install(folder: Path, name: str, version: str = "1.0", says: str = "License-Expression: MIT") -> None:
    """A package of one file, as pip leaves it."""
    content = f"version = '{version}'\n".encode()
    (folder / f"{name}.py").write_bytes(content)
    of = folder / f"{name}-{version}.dist-info"
    of.mkdir()
    (of / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{says}\n", encoding="utf-8")
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    (of / "RECORD").write_text(f"{name}.py,sha256={digest},{len(content)}\n{of.name}/RECORD,,\n", encoding="utf-8")


def test_other_versions_are_found(tmp_path: Path) -> None:
    for name in ("same", "other", "stranger", "pip"):
        install(tmp_path, name)
    found = audit.other_versions({"same": "1.0", "other": "2.0", "missing": "3.0"}, audit.installed([str(tmp_path)]))
    assert sorted(found) == [
        "missing 3.0 is in the lock, but not installed",
        "other 2.0 is in the lock, but 1.0 is installed",
        "stranger 1.0 is installed, but in no lock",
    ]


@pytest.mark.parametrize(
    ("says", "licence", "allowed"),
    [
        ("License-Expression: MIT", "MIT", True),
        ("License-Expression: GPL-3.0-only", "GPL-3.0-only", False),
        ("License-Expression: MPL-2.0 AND (Apache-2.0 OR MIT)", "MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("License-Expression: GPL-2.0-only OR MIT", "GPL-2.0-only OR MIT", True),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT", True),
        ("Classifier: License :: OSI Approved :: GNU Affero", "GNU Affero", False),
        ("License: Apache 2.0", "Apache-2.0", True),
        ("License: as you like it", "as you like it", False),
        ("Summary: no word of it", "", False),
    ],
)
def test_licences_that_are_unknown_or_ask_for_more_are_found(
    says: str, licence: str, allowed: bool, tmp_path: Path
) -> None:
    install(tmp_path, "package", says=says)
    found = audit.installed([str(tmp_path)])
    assert audit.licence(found["package"]) == licence
    sentence = f"package 1.0 has the licence {licence!r}, which is neither allowed nor an exception"
    assert list(audit.other_licences(found)) == [sentence] * (not allowed)


def test_exceptions_are_for_the_licence_that_was_read(tmp_path: Path) -> None:
    install(tmp_path, "certifi", says="License-Expression: MPL-2.0")
    install(tmp_path, "pathspec", says="License-Expression: GPL-3.0-only")
    [fault] = audit.other_licences(audit.installed([str(tmp_path)]))
    assert fault.startswith("pathspec 1.0 has the licence 'GPL-3.0-only'")


def test_every_exception_is_locked() -> None:
    assert set(audit.EXCEPTIONS) <= set(audit.expected(["test", "docs"]))


def test_licences_of_what_is_installed_are_known() -> None:
    locked = audit.expected(["build", "test"])
    assert not list(audit.other_licences({name: of for name, of in audit.installed().items() if name in locked}))


@pytest.mark.parametrize("change", ["edit", "delete"])
def test_files_that_were_changed_are_found(change: str, tmp_path: Path) -> None:
    for name in ("whole", "changed"):
        install(tmp_path, name)
    assert not list(audit.other_files(audit.installed([str(tmp_path)])))
    path = tmp_path / "changed.py"
    path.write_text("version = '1.1'\n") if change == "edit" else path.unlink()
    found = audit.installed([str(tmp_path)])
    assert list(audit.other_files(found)) == ["changed 1.0 has another changed.py, or none, where pip wrote one down"]


def test_an_audit_with_faults_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a part of what is installed here, by a lock with all of it."""
    part = {name: importlib.metadata.distribution(name) for name in ("pytest", "setuptools")}
    monkeypatch.setattr(audit, "installed", lambda: part)
    monkeypatch.setattr(audit, "unmet_needs", lambda: iter(["pytest 1 requires nothing, which is not installed."]))
    assert audit.main(["test"]) == 1
    printed = capsys.readouterr().out
    assert "FAULT: pytest 1 requires nothing" in printed
    assert f"FAULT: numpy {importlib.metadata.version('numpy')} is in the lock, but not installed" in printed
    locked = {name: of.version for name, of in part.items()}
    monkeypatch.setattr(audit, "expected", lambda locks: locked)
    monkeypatch.setattr(audit, "unmet_needs", lambda: iter(()))
    assert audit.main(["test"]) == 0
    assert capsys.readouterr().out.endswith("2 installed, locks test: 0 faults\n")
