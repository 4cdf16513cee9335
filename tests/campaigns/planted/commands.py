"""Faults of the commands: their options, files, simulated reports, sinks and sources."""

from __future__ import annotations

from tests.campaigns.planted.plant import Plant

COMMANDS = (
    Plant(
        "files of rows are written over",
        "uldp_transforms/jobs/sinks/row_files.py",
        'self._identity.update(f"{window} {pane.index} {to_json(row)}\\n".encode())',
        'self._identity.update(f"{window} {pane.index}\\n".encode())',
        "two bundles of one window get one name, and the later one replaces the earlier",
        ("tests/beam/rows/test_row_file_names.py",),
    ),
)
