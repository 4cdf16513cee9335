"""The console script: which programs there are, and what it says where one cannot start."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import TextIO

import pytest

from tests.support import forked
from tests.support.commands import programs
from tests.support.companions import companion
from tests.support.live import PATIENCE
from uldp_transforms.jobs import uldp
from uldp_transforms.messages.native_module import decoder_name
from uldp_transforms.version import __version__

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("program", uldp.LABORATORY)
@pytest.mark.parametrize("foreign", [False, True])
def test_a_program_of_the_laboratory_needs_a_checkout(
    program: str, foreign: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where another package has the name of its folder."""
    monkeypatch.setitem(sys.modules, "labs", types.ModuleType("labs") if foreign else None)
    monkeypatch.delitem(sys.modules, f"labs.{module_of(program)}", raising=False)
    assert uldp.main([program, "--list"]) == uldp.WRONG_CONFIGURATION
    said = f"uldp: {program} runs in a checkout of the repository, not from an installed package: "
    assert capsys.readouterr() == ("", f"{said}python -m pipelines.{module_of(program)} in its folder\n")


def test_a_program_of_the_laboratory_whose_packages_are_missing_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "labs.experiments", None)
    monkeypatch.delitem(sys.modules, "labs.reproduce", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"labs\.experiments"):
        uldp.main(["reproduce", "--list"])


def test_an_unknown_program_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["estimat"]) == uldp.WRONG_CONFIGURATION
    said = "uldp: no program 'estimat'; did you mean estimate? uldp --help lists all programs\n"
    assert capsys.readouterr() == ("", said)
    assert uldp.main(["xyzzy"]) == uldp.WRONG_CONFIGURATION
    assert capsys.readouterr() == ("", f"uldp: PROGRAM must be one of {', '.join(programs())}, got 'xyzzy'\n")


def test_the_help_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main([]) == uldp.DONE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == programs()
    assert [line for line in lines if line.endswith(":") and line[:2] != "  "] == [
        *(f"{group}:" for group in uldp.GROUPS),
        "in a checkout:",
    ]


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_the_help_is_printed_and_is_no_fault(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: uldp PROGRAM [options]\n") and err == ""
    assert out.endswith("\nuldp PROGRAM --help explains one of them.\n")
    described = uldp.PROGRAMS | uldp.LABORATORY
    every = {name: described[name] for name in programs()}
    width = max(map(len, every))
    assert all(f"\n  {name:{width}}  {what}\n" in out for name, what in every.items())


@pytest.mark.parametrize("words", [["estimate"], ["estimate", "all"]])
def test_help_of_a_program(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for given in (["help", *words], [words[0], "--help", *words[1:]]):
        with pytest.raises(SystemExit) as ended:
            uldp.main(given)
        assert ended.value.code == 0
        helps.append(capsys.readouterr())
    assert helps[0] == helps[1]
    assert ("--job_server" in helps[0].out or len(helps[0].out) > 10_000) is (len(words) > 1)


def test_the_version_names_the_decoder_that_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["--version"]) == 0
    assert capsys.readouterr().out == f"uldp_transforms {__version__}, decoder: {decoder_name()}\n"


def test_a_program_has_the_words_after_its_name_and_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    program = types.SimpleNamespace(main=lambda words: given.append(words) or 7)
    monkeypatch.setitem(sys.modules, "labs.dev_queue", program)
    assert uldp.main(["dev-queue", "--port", "0"]) == 7
    monkeypatch.setattr(sys, "argv", ["uldp", "dev-queue"])
    assert uldp.main() == 7
    assert given == [["--port", "0"], []]


# ---------------------------------------------------------------------- programs of other packages


def test_a_program_of_another_package_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    companion(tmp_path, monkeypatch, "more = more_programs:main")
    assert uldp.main(["more", "--x", "1"]) == 7
    assert capsys.readouterr() == ("['--x', '1']\n", "")
    assert uldp.main(["--help"]) == 0
    assert capsys.readouterr().out.split("\nof other packages:\n")[1].split()[:3] == ["more", "of", "uldp-more"]
    assert uldp.main(["moer"]) == 2
    assert capsys.readouterr().err == "uldp: no program 'moer'; did you mean more? uldp --help lists all programs\n"


def test_a_program_of_this_package_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    companion(tmp_path, monkeypatch, "describe = more_programs:main")
    assert uldp.main(["describe"]) == 2
    assert capsys.readouterr() == ("", "describe: the following arguments are required: C.json\n")


def test_a_program_that_cannot_be_imported_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    companion(tmp_path, monkeypatch, "more = not_there:main")
    assert uldp.main(["more"]) == 2
    said = "uldp: program 'more' of the package uldp-more cannot be started: No module named 'not_there'\n"
    assert capsys.readouterr() == ("", said)


def test_an_absent_companion_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(uldp.COMPANIONS, "more", "others")
    assert uldp.main(["more"]) == 2
    said = "uldp: more needs the package uldp-transforms-others, which is not installed "
    said += "(in a checkout: pip install ./packages/others)\n"
    assert capsys.readouterr() == ("", said)
    assert uldp.main(["--help"]) == 0
    [absent] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not installed: ")]
    assert "more (package uldp-transforms-others)" in absent


def test_programs_of_this_package_read_no_entry_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr(uldp, "programs_of_others", refused)
    assert uldp.main(["describe"]) == 2
    assert capsys.readouterr().err == "describe: the following arguments are required: C.json\n"


# ---------------------------------------------------------------------- python -m


def module_of(program: str) -> str:
    return program.replace("-", "_")


@pytest.mark.parametrize("program", programs())
@pytest.mark.parametrize("package", ["uldp_transforms.jobs", "pipelines"])
@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_every_program_runs_as_a_module(
    package: str, program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a checkout also from ``pipelines``, which has a file for each."""
    if package != "pipelines" and program in (*uldp.LABORATORY, *uldp.COMPANIONS):
        return
    monkeypatch.setattr(sys, "argv", [module_of(program), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"{package}.{module_of(program)}", run_name="__main__")
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert said.out.startswith("usage: ") and "options:" in said.out


def test_pipelines_has_a_file_for_each_program_and_no_other() -> None:
    names = (*uldp.PROGRAMS, *uldp.LABORATORY)
    assert {path.stem for path in (ROOT / "pipelines").glob("*.py")} == {"__init__", *map(module_of, names)}


@pytest.mark.parametrize("module", ["uldp_transforms.jobs", "uldp_transforms.jobs.uldp"])
def test_the_list_of_programs_is_a_module_too(module: str) -> None:
    """It prints, and has the exit code of what it runs."""
    words = [sys.executable, "-m", module]
    done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "uldp_transforms", "")
    done = subprocess.run([*words, "describe"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "describe: the following arguments are required: C.json\n"


# ---------------------------------------------------------------------- closed and full outputs


def commands(folder: Path) -> dict[str, list[str]]:
    """Command lines that print a result."""
    spec = {"id": "a", "version": 1, "alphabet": {"id": "closed", "values": ["x", "y"]}}
    (folder / "C.json").write_text(json.dumps(spec | {"mechanism": {"id": "krr", "epsilon": 1.0}}), encoding="utf-8")
    (folder / "answers.csv").write_text("answer,age\n" + "1,3\n0,4\n1,5\n0,3\n" * 50, encoding="utf-8")
    navigation = {"confidence": "high", "rate": 0.5, "duration": 10}
    (folder / "n.jsonl").write_text("\n".join([json.dumps(navigation)] * 20), encoding="utf-8")
    table, collection = str(folder / "answers.csv"), str(folder / "C.json")
    return {
        "survey": [table, "--design", "direct"],
        "regress": [table, "--design", "direct", "--covariates", "age"],
        "navigations": [str(folder / "n.jsonl")],
        "describe": [collection],
        "audit": [collection],
        "export": [collection],
        "sql": [collection, "--dialect", "duckdb"],
        "plan": ["--num_values", "4", "--epsilon", "1", "--reports", "1000"],
        "evaluate": ["--values", table, "--value_column", "age", "--repetitions", "1", "--mechanisms", "krr"],
        "check": [str(folder)],
        "completion": ["bash"],
        "--help": [],
    }


PRINTING = ("survey", "regress", "navigations", "describe", "audit", "export", "sql", "plan", "evaluate", "check")
PROGRAM = "import sys; from uldp_transforms.jobs.uldp import main; sys.exit(main())"


@pytest.mark.parametrize("program", ["--help", "completion", "survey", "navigations", "check"])
def test_a_reader_that_ends_first_is_no_fault(program: str, tmp_path: Path) -> None:
    """As ``head -1`` does; the reader has ended before the program starts."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output, tempfile.TemporaryFile("w+") as errors:
        done = forked.start(PROGRAM, [program, *commands(tmp_path)[program]], output, errors)
        assert done.wait(PATIENCE) == uldp.NO_READER
        errors.seek(0)
        assert errors.read() == ""


def output_of(kind: str, *, at_once: bool) -> TextIO:
    """An output that takes nothing: a pipe that nobody reads, or a file on a disk that is full.

    Args:
        kind: ``unread`` or ``full``.
        at_once: each line is written when it is printed, not at the end, as with results that are long.
    """
    buffering = 1 if at_once else -1
    if kind == "full":
        return open("/dev/full", "w", encoding="utf-8", buffering=buffering)
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8", buffering=buffering)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("kind", "code"), [("unread", uldp.NO_READER), ("full", uldp.DISK_FULL)])
@pytest.mark.parametrize("program", PRINTING)
def test_every_program_ends_alike_on_an_output_that_takes_nothing(
    program: str,
    kind: str,
    code: int,
    at_once: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = commands(tmp_path)[program]
    with output_of(kind, at_once=at_once) as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        assert uldp.main([program, *words]) == code
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("form_fingerprint")]
    assert said == ["uldp: a disk is full: [Errno 28] No space left on device"] * (kind == "full")


def test_a_closed_output_is_no_fault(tmp_path: Path) -> None:
    """As after ``>&-``: the program has no standard output at all."""
    words = [sys.executable, "-c", PROGRAM, "describe", *commands(tmp_path)["describe"]]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_another_broken_pipe_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: object) -> int:
        raise BrokenPipeError("of a socket")

    monkeypatch.setattr(uldp, "_run", broken)
    with pytest.raises(BrokenPipeError, match="of a socket"):
        uldp.main([])
