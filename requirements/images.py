"""Pins the images of deploy/ by digest: ``python -m requirements.images [FOLDER]`` (``make images``).

Asks the registries through ``docker buildx imagetools`` and writes the digest of each image after its tag, in
Dockerfiles and in files of Compose and Kubernetes. An image that has a digest is left alone; remove it to pin the
current one. The project's own images, which have no tag, have none.

``python -m requirements.images --check [FOLDER]`` asks nobody: it lists the images without a digest, and ends with 1 if
there are any. The release workflow runs it, because a tag may name another image tomorrow.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGE = re.compile(r"^(FROM(?: --platform=\S+)? |\s*(?:- )?image: *)([\w./-]+:[\w.-]+)(?=\s|$)", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def files(folder: Path) -> list[Path]:
    """The files that name images."""
    found = [*folder.rglob("*Dockerfile"), *folder.rglob("*.yaml")]
    return sorted(path for path in found if path.is_file())


def digest_of(image: str) -> str:
    """The digest of the index of an image, for all platforms; raises SystemExit without one."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit("images: docker with buildx must be installed, got none") from None
    digest = done.stdout.strip()
    if done.returncode or not DIGEST.fullmatch(digest):
        raise SystemExit(f"images: the registry must give a digest of {image}, got {done.stderr.strip() or digest!r}")
    return digest


def unpinned(folder: Path) -> list[str]:
    """File and name of each image that has a tag and no digest."""
    found = ((path, image) for path in files(folder) for _, image in IMAGE.findall(path.read_text("utf-8")))
    return [f"{path.relative_to(folder)}: {image}" for path, image in found]


def check(folder: Path) -> int:
    """Print what has no digest; returns the exit code."""
    found = unpinned(folder)
    print("".join(f"{line}\n" for line in found), end="")
    if found:
        print(f"images: a release needs images with digests (make images), got {len(found)} without", file=sys.stderr)
    return 1 if found else 0


def pin(folder: Path) -> int:
    """Write the digests, and print the images with them; returns the exit code. Raises SystemExit without one."""
    texts = {path: path.read_text("utf-8") for path in files(folder)}
    images = sorted({image for text in texts.values() for _, image in IMAGE.findall(text)})
    pinned = {image: f"{image}@{digest_of(image)}" for image in images}  # all of them before anything is written
    for path, text in texts.items():
        new = IMAGE.sub(lambda match: match[1] + pinned[match[2]], text)
        if new != text:
            path.write_text(new, encoding="utf-8")
    print("".join(f"{name}\n" for name in pinned.values()), end="")
    return 0


def main(argv: Sequence[str]) -> int:
    act = check if "--check" in argv else pin
    folders = [word for word in argv if word != "--check"]
    return act(Path(folders[0]) if folders else ROOT / "deploy")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
