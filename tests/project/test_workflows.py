"""Workflows, forms and hooks of the forge: valid by their schemas, and what they run exists."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import uldp_transforms
from requirements import audit, tag
from tests.project.documents import ROOT

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
SCHEMAS = {
    "workflows/*.yml": ["vendor.github-workflows", "custom.github-workflows-require-timeout"],
    "dependabot.yml": ["vendor.dependabot"],
    "ISSUE_TEMPLATE/[!c]*.yml": ["vendor.github-issue-forms"],
    "ISSUE_TEMPLATE/config.yml": ["vendor.github-issue-config"],
}

Job = dict[str, Any]


def load(path: Path) -> dict[str, Any]:
    """A file of YAML 1.2, in which ``on`` is a word."""
    loaded: dict[str, Any] = yaml.load(path.read_text("utf-8"), Loader=yaml.CBaseLoader)
    return loaded


def jobs() -> Iterator[tuple[str, Job]]:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield f"{path.stem}.{name}", job


JOBS = dict(jobs())


def runs(job: Job) -> Iterator[dict[str, str]]:
    """Values of the matrix for each run of a job, those of ``include`` added as the forge does it."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", [])
    for values in itertools.product(*matrix.values()):
        run = dict(zip(matrix, values, strict=True))
        for more in included:
            if all(run[key] == value for key, value in more.items() if key in matrix):
                run |= more
        yield run


def commands(job: Job) -> set[str]:
    """What the steps of a job run, for all values of its matrix."""
    found = set()
    for run in runs(job):
        for step in job["steps"]:
            text = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match, run=run: run[match[1]], step.get("run", ""))
            found |= set(text.splitlines())
    return found


# ---------------------------------------------------------------------- valid


@pytest.mark.parametrize(("files", "schema"), [(files, each) for files, names in SCHEMAS.items() for each in names])
def test_files_are_valid_by_their_schemas(files: str, schema: str) -> None:
    paths = [str(path) for path in sorted(FORGE.glob(files))]
    assert paths
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_has_a_schema() -> None:
    assert {path for files in SCHEMAS for path in FORGE.glob(files)} == set(FORGE.rglob("*.yml"))


# ---------------------------------------------------------------------- what runs


def missing(command: str) -> str | None:
    """What a command needs and the checkout does not have: a target of the Makefile, or a program in Python."""
    match shlex.split(command):
        case ["make", target]:
            done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False)
            return None if done.returncode == 0 else done.stderr.strip()
        case ["python3", path, *_]:
            return None if (ROOT / path).is_file() else path
    return command


@pytest.mark.parametrize("name", JOBS)
def test_what_a_job_runs_exists(name: str) -> None:
    assert commands(JOBS[name]) or name == "release.attest", "what signs runs nothing of the repository"
    assert not [fault for command in commands(JOBS[name]) if (fault := missing(command))]


@pytest.mark.parametrize("command", ["make none", "python3 tests/none.py", "curl --head x"])
def test_commands_that_do_not_exist_are_found(command: str) -> None:
    assert missing(command)


def test_the_matrix_is_what_the_package_claims() -> None:
    """Every supported version of Python, with the oldest and the newest Beam."""
    setup = (ROOT / "setup.py").read_text("utf-8")
    (listed,) = re.findall(r"^PYTHONS = \((.*)\)$", setup, re.MULTILINE)
    pythons = re.findall(r'"(3\.\d+)"', listed)
    assert [(run["python"], run["target"]) for run in runs(JOBS["checks.matrix"])] == [
        (python, target) for python in pythons for target in ("oldest", "quick")
    ]


def test_jobs_run_what_must_hold() -> None:
    everything = set().union(*(commands(job) for name, job in JOBS.items() if name.startswith("checks.")))
    assert everything >= {
        f"make {name}" for name in ("lint", "quick", "test", "oldest", "javascript", "docs", "packages", "smoke")
    }
    assert {"make lint", "make quick"} == commands(JOBS["checks.quick"])
    assert int(JOBS["checks.quick"]["timeout-minutes"]) <= 10
    assert "make slow" in commands(JOBS["nightly.slow"])
    assert load(FORGE / "workflows" / "nightly.yml")["on"]["schedule"]


def test_the_site_and_the_page_of_the_demo_are_kept() -> None:
    """Each after the command that makes it."""
    steps = [step.get("run") or step["with"].get("path") for step in JOBS["checks.docs"]["steps"]]
    assert [step for step in steps if step] == ["make docs", "site", "make demo", "demo-output/index.html"]


# ---------------------------------------------------------------------- what it may do


WRITES = {
    "release.attest": {"contents": "read", "id-token": "write", "attestations": "write"},
    "release.publish": {"contents": "read", "id-token": "write"},
}
"""Jobs that can prove to others which repository, commit and workflow they are."""


def test_workflows_can_only_read() -> None:
    """No job can write to the repository, none keeps its token, and none gets a secret."""
    for path in WORKFLOWS:
        assert load(path)["permissions"] == {"contents": "read"}
        assert "secrets." not in path.read_text("utf-8")
        assert "pull_request_target" not in load(path)["on"]
    for name, job in JOBS.items():
        assert job.get("permissions") == WRITES.get(name)
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert [step["with"]["persist-credentials"] for step in checkouts] == ["false"] * (name != "release.attest")


def test_what_is_released_was_built_by_a_job_that_can_only_read() -> None:
    """Build, sign, publish, in this order; the files of the first are those of the others."""
    workflow = load(FORGE / "workflows" / "release.yml")
    assert list(workflow["on"]) == ["push"] and list(workflow["on"]["push"]) == ["tags"]
    build, attest, publish = (workflow["jobs"][name] for name in ("build", "attest", "publish"))
    assert (attest["needs"], publish["needs"]) == ("build", "attest")
    assert {"make packages", "make smoke"} < commands(build)
    assert commands(publish) == {"make publish"} and publish["environment"] == "pypi"
    for job, verb in ((build, "upload"), (attest, "download"), (publish, "download")):
        [moved] = [
            step["with"] for step in job["steps"] if step.get("uses", "").startswith(f"actions/{verb}-artifact@")
        ]
        assert moved == {"name": "packages", "path": "dist"}
    [signed] = [step["with"] for step in attest["steps"] if "attest-build-provenance@" in step.get("uses", "")]
    assert signed == {"subject-path": "dist/*"}
    recipe = subprocess.run(["make", "--dry-run", "publish"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = recipe.stdout.splitlines()  # make within make also says which folder it leaves
    assert "build/tools/bin/twine upload --non-interactive dist/*.tar.gz dist/*.whl" in lines


def test_only_the_tag_of_a_dated_version_is_released(tmp_path: Path) -> None:
    version = uldp_transforms.__version__
    (tmp_path / "uldp_transforms").mkdir()
    shutil.copy(ROOT / "uldp_transforms/version.py", tmp_path / "uldp_transforms")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    dated = re.sub(rf"^## {re.escape(version)} \(.*\)$", f"## {version} (2026-12-01)", changes, flags=re.MULTILINE)
    (tmp_path / "CHANGELOG.md").write_text(dated, encoding="utf-8")
    assert tag.fault(f"v{version}", tmp_path) is None
    wrong = f"the tag must be v{version}, as uldp_transforms/version.py says, got 'v9.9.9'"
    assert tag.fault("v9.9.9", tmp_path) == wrong
    (tmp_path / "CHANGELOG.md").write_text(dated.replace("(2026-12-01)", "(unreleased)"), encoding="utf-8")
    undated = f"CHANGELOG.md must have a heading of {version} with its date, got none"
    assert tag.fault(f"v{version}", tmp_path) == undated
    command = [sys.executable, str(ROOT / "requirements/tag.py"), "v9.9.9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"tag: {wrong}\n")


IMAGE = re.compile(r"^FROM (?:--platform=\S+ )?(\S+)", re.MULTILINE)


def test_the_page_of_releases_names_every_base_image() -> None:
    """Their digests cannot be learned from the checkout, so that a release has to look them up."""
    page = (ROOT / "RELEASING.md").read_text("utf-8")
    files = [path for path in (ROOT / "deploy").rglob("*Dockerfile") if path.is_file()]
    stages = {name for path in files for name in re.findall(r" AS (\w+)", path.read_text("utf-8"))}
    bases = {image for path in files for image in IMAGE.findall(path.read_text("utf-8"))} - stages
    assert len(bases) >= 5
    assert not [image for image in bases if "@sha256:" not in image and f"`{image}`" not in page]


def test_actions_are_pinned_by_their_commits() -> None:
    """With the version beside it, and the same one everywhere."""
    lines = [line for path in WORKFLOWS for line in path.read_text("utf-8").splitlines() if "uses:" in line]
    pinned = [re.fullmatch(r" +- uses: ([\w/-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line) for line in lines]
    assert all(pinned), [line for line, match in zip(lines, pinned, strict=True) if match is None]
    pins = {match.groups() for match in pinned if match}
    assert len({name for name, *_ in pins}) == len(pins)


def test_no_command_contains_what_somebody_else_wrote() -> None:
    """Titles and names of branches reach a shell only through variables."""
    for job in JOBS.values():
        for step in job["steps"]:
            assert set(re.findall(r"\$\{\{ (\w+)\.", step.get("run", ""))) <= {"matrix"}


# ---------------------------------------------------------------------- hooks

HOOKS = {
    hook["id"]: hook
    for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    for hook in repo["hooks"]
}


def test_hooks_run_what_is_locked_or_pinned() -> None:
    """ruff is that of the tests; what pre-commit installs has one version."""
    locked = audit.expected(["test"])
    for hook in HOOKS.values():
        program, *words = shlex.split(hook["entry"])
        if hook["language"] == "python":
            assert all(re.fullmatch(r"[\w-]+==[\d.]+", package) for package in hook["additional_dependencies"])
        elif program == "python3":
            assert (ROOT / words[0]).is_file()
        else:
            assert program.removeprefix(".venv/bin/") in locked, program


def test_the_hooks_check_what_make_lint_checks() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for name in ("ruff-check", "ruff-format"):
        entry = HOOKS[name]["entry"].removeprefix(".venv/bin/").removesuffix(" --force-exclude")
        assert f"$(BIN)/{entry} .\n" in makefile
    assert HOOKS["commit-title"]["stages"] == ["commit-msg"]


def test_pre_commit_takes_its_configuration() -> None:
    program = ROOT / "build" / "tools" / "bin" / "pre-commit"
    if not program.is_file():
        pytest.skip("make hooks installs pre-commit, which reads the configuration")
    done = subprocess.run([str(program), "validate-config"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
