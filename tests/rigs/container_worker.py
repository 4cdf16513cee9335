"""Python workers that Beam's own container entry point starts, as Dataflow's containers do.

The program ``boot`` asks the engine for the files that the job has staged, installs them with pip and starts Python.
Here it runs in a process instead of a container, in an environment that has Beam and what else this one has, but not
this package and its companions.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import apache_beam as beam

from tests.rigs.cache import CACHE, GoCommand

_VERSION = f"v{beam.__version__}"
BOOT = GoCommand(
    module="github.com/apache/beam/sdks/v2/python/container",
    version=_VERSION,
    folder=CACHE / f"boot-{_VERSION}",
    command="make prism",
)

_OURS = ("uldp", "__editable__")
"""How what belongs to this package begins, in a folder of installed packages."""


@dataclasses.dataclass(frozen=True)
class ContainerWorker:
    """An environment in a folder; its packages are links to those of this one, so that it is made in seconds.

    Attributes:
        folder: which does not exist yet.
    """

    folder: Path

    @property
    def packages(self) -> Path:
        """The folder into which pip installs."""
        scheme = {"base": str(self.folder), "platbase": str(self.folder)}
        return Path(sysconfig.get_path("purelib", "venv", scheme))

    @property
    def log(self) -> Path:
        """What ``boot`` and the workers print."""
        return self.folder / "log"

    def make(self) -> None:
        """Make the environment, and the command that an engine starts."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder)], check=True)
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            link = self.packages / path.name
            if not path.name.startswith(_OURS):
                link.symlink_to(path)
        (self.folder / "work").mkdir()
        program = f"exec {BOOT.binary} --semi_persist_dir={self.folder}"
        self._command.write_text(  # Prism quotes the id of a worker as if for a shell
            f'#!/bin/sh\ncd {self.folder / "work"}\neval "{program} $*" >>{self.log} 2>&1\n', encoding="utf-8"
        )
        self._command.chmod(0o755)

    @property
    def _command(self) -> Path:
        return self.folder / "start_worker"

    def options(self) -> list[str]:
        """Options of a job whose engine starts these workers as processes."""
        environment = {
            "PATH": os.pathsep.join((str(self.folder / "bin"), os.environ["PATH"])),
            "PYTHONPATH": "",
            "RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT": "1",  # the other one would be in /opt
        }
        config = {"command": str(self._command), "env": environment}
        return ["--environment_type=PROCESS", f"--environment_config={json.dumps(config)}"]

    def installed(self) -> bool:
        """Whether this package is in the environment."""
        return (self.packages / "uldp_transforms").is_dir()
