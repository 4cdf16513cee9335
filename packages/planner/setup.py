"""Plans of collections, beside uldp-transforms: ``pip install . ./packages/tables ./packages/planner``."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "uldp_transforms" / "version.py"
NAME = "uldp_transforms_planner"


def version() -> str:
    """The version of the core in the same checkout; an sdist carries its own."""
    if CORE.is_file():
        return str(runpy.run_path(str(CORE))["__version__"])
    return re.findall(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)[0]


setup(
    name="uldp-transforms-planner",
    version=version(),
    description="Plans of uldp-transforms: expected errors of locally private mechanisms before data are collected",
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
    entry_points={
        "uldp_transforms.programs": [
            f"plan = {NAME}.plan:main",
            f"evaluate = {NAME}.evaluate:main",
            f"tokens = {NAME}.plan.tokens:main",
        ],
    },
    install_requires=[  # with numpy and scipy
        f"uldp-transforms=={version()}",
        f"uldp-transforms-tables=={version()}",
    ],
)
