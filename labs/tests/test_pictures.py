"""Each picture of the documents has a command that makes it anew, and a page that shows it."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest

from labs.demo import shots
from labs.experiments import EXPERIMENTS
from tests.project.documents import ROOT, pages

PICTURES = sorted(shots.IMAGES.glob("*.png"))
OF_DEMO = {shot.name: shot for shot in shots.SHOTS}
MOST_BYTES = 2_700_000
"""Of all pictures together: they come with each checkout."""


def test_each_picture_is_made_by_a_command() -> None:
    """``make shots`` or ``uldp reproduce NAME``."""
    names = {path.stem for path in PICTURES}
    assert set(OF_DEMO) <= names <= {*OF_DEMO, *(experiment.id for experiment in EXPERIMENTS)}
    assert {path.suffix for path in shots.IMAGES.iterdir()} == {".png", ".txt"}
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("\nshots:")[2].partition("\n\n")[0]
    assert all(f"-m {program}\n" in f"{recipe}\n" for program in ("labs.demo.shots", "labs.notebooks"))


def test_each_picture_is_shown_on_a_page_that_names_its_command() -> None:
    texts = {page: page.read_text("utf-8") for page in pages()}
    for path in PICTURES:
        [page] = [page for page, text in texts.items() if f"images/{path.name}" in text]
        assert ("make demo" if path.stem in OF_DEMO else "uldp reproduce ") in texts[page], path.name


def test_pictures_are_small() -> None:
    assert sum(path.stat().st_size for path in PICTURES) < MOST_BYTES


@pytest.mark.parametrize("shot", shots.SHOTS, ids=lambda shot: shot.name)
def test_pictures_of_the_demo_have_their_sizes(shot: shots.Shot) -> None:
    content = (shots.IMAGES / f"{shot.name}.png").read_bytes()
    assert struct.unpack(">2I", content[16:24]) == (shot.width * shot.scale, shot.height * shot.scale)
    assert len(content) < 120_000


def test_the_readme_has_a_picture_for_each_screen() -> None:
    """Wide and narrow, light and dark, as the host of the repository and the site choose."""
    [block] = re.findall(r"<picture>(.*?)</picture>", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    sources = dict(re.findall(r'media="([^"]+)" srcset="docs/images/([^"]+)\.png"', block))
    assert list(sources.items()) == [
        ("(max-width:500px) and (prefers-color-scheme:dark)", "demo-page-narrow-dark"),
        ("(max-width:500px)", "demo-page-narrow"),
        ("(prefers-color-scheme:dark)", "demo-page-dark"),
    ]
    assert {*sources.values(), "demo-page"} == set(OF_DEMO) and 'src="docs/images/demo-page.png"' in block


@pytest.mark.skipif(shots.CHROMIUM is None, reason="there is no chromium or google-chrome here")
def test_a_shot_has_the_colours_and_the_size_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image  # noqa: PLC0415  # comes with matplotlib

    monkeypatch.setattr(shots, "IMAGES", tmp_path)
    page = tmp_path / "page.html"
    style = "body { background: white } @media (prefers-color-scheme: dark) { body { background: black } }"
    page.write_text(f"<!doctype html><style>{style}</style>", encoding="utf-8")
    for dark, colour in ((False, (255, 255, 255)), (True, (0, 0, 0))):
        shot = shots.Shot(f"dark-{dark}", 390, 200, 2, dark)
        shots.take(shot, page.as_uri(), str(shots.CHROMIUM))
        image = Image.open(tmp_path / f"{shot.name}.png")
        assert (image.size, image.convert("RGB").getpixel((9, 9))) == ((780, 400), colour)


def test_without_the_page_of_the_demo_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shots.main([str(tmp_path)]) == 2
    missing = "chromium" if shutil.which("chromium") is None else str(tmp_path / "index.html")
    assert missing in capsys.readouterr().out
