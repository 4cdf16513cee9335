"""Images of deploy/ can be pinned by digest; a program in the place of docker answers for the registries."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import yaml

from requirements import images

ROOT = Path(__file__).parents[2]
DOCKER = """#!/bin/sh
test "$1 $2 $3 $4 $5" = "buildx imagetools inspect --format {{.Manifest.Digest}}" || exit 2
case "$6" in
  *nowhere*) echo "not found: $6" >&2; exit 1 ;;
  *) printf 'sha256:%s\\n' "$(printf '%s' "$6" | sha256sum | cut -d ' ' -f 1)" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of deploy/."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(DOCKER, encoding="utf-8")
    (tmp_path / "bin" / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return Path(shutil.copytree(ROOT / "deploy", tmp_path / "deploy"))


def test_each_foreign_image_gets_its_digest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert images.main([str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(said) >= 8
    for line in said:
        image, digest = line.split("@")
        assert digest == f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"
    for path in images.files(folder):
        text = path.read_text("utf-8")
        assert not images.IMAGE.findall(text)
        if path.suffix == ".yaml":
            assert list(yaml.safe_load_all(text))
    services = yaml.safe_load((folder / "compose/compose.yaml").read_text("utf-8"))["services"]
    assert services["kafka"]["image"] in said
    dockerfile = (folder / "container/Dockerfile").read_text("utf-8")
    assert f"FROM {said[[line.split('@')[0] for line in said].index('python:3.11')]} AS build\n" in dockerfile
    before = {path: path.read_bytes() for path in images.files(folder)}
    assert images.main([str(folder)]) == 0, "what is pinned is left alone"
    assert before == {path: path.read_bytes() for path in images.files(folder)}
    assert capsys.readouterr().out == ""


def test_without_a_digest_nothing_is_written(folder: Path) -> None:
    path = folder / "container/Dockerfile"
    path.write_text(path.read_text("utf-8") + "FROM registry/nowhere:1\n", encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="must give a digest of registry/nowhere:1, got 'not found: "):
        images.main([str(folder)])
    assert path.read_bytes() == before


def test_without_docker_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(SystemExit, match="docker with buildx must be installed, got none"):
        images.main([str(folder)])


def test_a_release_is_refused_while_an_image_has_a_tag_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in a checkout; after ``make images`` nothing is left to name, and one new tag is enough to refuse it again."""
    assert images.main(["--check", str(folder)]) == 1
    said = capsys.readouterr()
    assert "container/Dockerfile: python:3.11" in said.out.splitlines()
    number = len(said.out.splitlines())
    assert said.err == f"images: a release needs images with digests (make images), got {number} without\n"
    assert images.main([str(folder)]) == 0
    capsys.readouterr()
    assert images.main(["--check", str(folder)]) == 0
    assert capsys.readouterr() == ("", "")
    path = folder / "compose" / "compose.yaml"
    path.write_text(path.read_text("utf-8") + "\n# one more\nx:\n  image: prom/prometheus:v3\n", encoding="utf-8")
    assert images.main(["--check", str(folder)]) == 1
    assert capsys.readouterr().out == "compose/compose.yaml: prom/prometheus:v3\n"


def test_the_release_workflow_checks_the_images_before_it_builds() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "run" in step]
    assert commands.index("python3 requirements/images.py --check") < commands.index("make packages")
