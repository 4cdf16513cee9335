"""People's tables and simulated clients, beside uldp-transforms: ``pip install . ./packages/tables`` in a checkout."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "uldp_transforms" / "version.py"
NAME = "uldp_transforms_tables"


def version() -> str:
    """The version of the core in the same checkout; an sdist carries its own."""
    if CORE.is_file():
        return str(runpy.run_path(str(CORE))["__version__"])
    return re.findall(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)[0]


setup(
    name="uldp-transforms-tables",
    version=version(),
    description="People's values for uldp-transforms from CSV, JSON and Parquet, and simulated reports of them",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Information Analysis",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[f"{NAME}*"]),
    package_dir={"": "."},  # an editable installation is then a plain path, which type checkers follow
    package_data={NAME: ["py.typed"]},
    entry_points={"uldp_transforms.programs": [f"simulate = {NAME}.simulate:main"]},
    install_requires=[f"uldp-transforms=={version()}"],  # with numpy and pyarrow
)
