"""The spool of a simulated gateway: kills at any byte, and files that are late, copied or spoiled."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from packages.gateway.tests.campaigns.simulated import SPOILED, Faults
from uldp_transforms import JobSpec
from uldp_transforms.ldp import ReportBatch
from uldp_transforms.messages.files import spool_names
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms_follow.spool_reading import SpoolSource
from uldp_transforms_follow.state import FollowState
from uldp_transforms_gateway import spool_file
from uldp_transforms_gateway.spool_file import SpoolFile


class SpoolWay:
    """A folder of files.

    Args:
        folder: empty.
        faults: what happens.
    """

    def __init__(self, folder: Path, faults: Faults):
        self._spool, self._faults = folder / "spool", faults
        self._spool.mkdir()
        self._files: list[SpoolFile] = []  # of this gateway, and of earlier ones that were killed
        self._on_disk: dict[Path, list[ReportBatch]] = {}
        self._held_back: list[Path] = []

    def carry(self, packed: Sequence[bytes], parts: Sequence[list[ReportBatch]]) -> tuple[list[ReportBatch], bool]:
        """Write messages, which have these reports; what is on disk then, and whether the gateway could answer."""
        batches = [batch for part in parts for batch in part]
        file = self._file()
        if self._faults.happens(0.15, "kills of the gateway in a block"):
            whole = self._write_part(file, packed)
            if whole:
                self._on_disk.setdefault(file.path, []).extend(batches)
            self.killed()
            return batches if whole else [], False
        file.append(packed)
        self._on_disk.setdefault(file.path, []).extend(batches)
        return batches, True

    def _file(self) -> SpoolFile:
        if not self._files or self._files[-1]._file.closed:
            self._files.append(SpoolFile(self._spool))
        return self._files[-1]

    def _write_part(self, file: SpoolFile, packed: Sequence[bytes]) -> bool:
        """Write a block up to any of its bytes; whether it was all of them."""
        before = file.path.stat().st_size
        file.append(packed)
        size = file.path.stat().st_size
        cut = int(self._faults.rng.integers(before, size + 1))
        with file.path.open("r+b") as there:
            there.truncate(cut)
        return cut == size

    def killed(self) -> None:
        """The gateway ends; the next one finishes its files when it begins."""
        self._file()._file.close()
        for part in sorted(self._spool.glob(f"*{spool_names.PART}")):
            self._finished(part)

    def rest(self) -> None:
        """Files are finished, held back, copied and spoiled."""
        rng = self._faults.rng
        if self._files and not self._files[-1]._file.closed and rng.random() < 0.7:
            file = self._files[-1]
            file._file.close()
            self._finished(file.path)
        whole = sorted(self._spool.glob(f"reports-*{spool_names.WHOLE}"))
        if whole and self._faults.happens(0.2, "copies under another name"):
            self._copy(whole[int(rng.integers(len(whole)))])

    @staticmethod
    def _copy(whole: Path) -> None:
        """Copy a file with its manifest, as an operator may who moves a spool."""
        copy = whole.with_name(f"copy-{whole.name}")
        shutil.copy(whole, copy)
        text = manifest_path(whole).read_text("utf-8").replace(whole.name, copy.name)
        manifest_path(copy).write_text(text, encoding="utf-8")

    def _finished(self, part: Path) -> None:
        """Finish a file, with what may happen to it before the job looks."""
        batches, faults = self._on_disk.pop(part, []), self._faults
        whole = spool_file.finish(part)
        if whole is None:
            assert not batches
            return
        self._on_disk[whole] = batches
        if faults.happens(0.1, "spoiled files"):
            content = bytearray(whole.read_bytes())
            at = int(faults.rng.integers(len(spool_file._header(bytes(16))), len(content)))
            content[at] ^= int(faults.rng.integers(1, 256))
            whole.write_bytes(content)
            faults.numbers[SPOILED] += sum(map(len, self._on_disk.pop(whole)))
        elif faults.happens(0.2, "files that come late"):
            late = whole.with_name(f"{whole.name}.late")
            whole.rename(late)
            self._held_back.append(late)

    def end(self) -> None:
        """Everything that was held back comes."""
        if self._files:
            self.killed()
        for part in self._held_back:
            part.rename(part.with_suffix(""))

    def source(self, spec: JobSpec, state: FollowState) -> SpoolSource:
        """What the job follows."""
        return SpoolSource(str(self._spool), spec, state)

    def kept(self) -> list[ReportBatch]:
        """The reports that must be counted."""
        return [batch for batches in self._on_disk.values() for batch in batches]
