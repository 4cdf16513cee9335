"""The numeric layer stands alone: it loads no Beam. ``test_layers`` has the order inside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from uldp_transforms import ldp

PACKAGE = "uldp_transforms.ldp"
FOLDER = Path(ldp.__file__).parent
FORBIDDEN = ("apache_beam", "fastavro", "google")

SOURCES = {".".join(path.relative_to(FOLDER).with_suffix("").parts): path for path in sorted(FOLDER.rglob("*.py"))}


def test_the_numeric_layer_loads_no_beam():
    modules = [f"{PACKAGE}.{name}".removesuffix(".__init__") for name in SOURCES]
    program = f"""
import importlib, sys
before = set(sys.modules)  # installed packages may load namespaces when Python starts
for name in {modules!r}:
    importlib.import_module(name)
print(*set(sys.modules) - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parents[1], capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert set(modules) <= set(loaded)
    assert not [name for name in loaded if name.split(".")[0] in FORBIDDEN]


def test_a_job_needs_no_package_of_the_extra_plot():
    program = """
import sys
sys.modules.update(dict.fromkeys(("altair", "jinja2", "markupsafe", "vl_convert")))  # as if not installed
import uldp_transforms.jobs.estimate.run
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=FOLDER.parents[1], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
