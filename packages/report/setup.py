"""Pages and pictures of results, beside uldp-transforms: ``pip install . ./packages/tables ./packages/report``."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "uldp_transforms" / "version.py"
NAME = "uldp_transforms_report"


def version() -> str:
    """The version of the core in the same checkout; an sdist carries its own."""
    if CORE.is_file():
        return str(runpy.run_path(str(CORE))["__version__"])
    return re.findall(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)[0]


setup(
    name="uldp-transforms-report",
    version=version(),
    description="Pages and pictures of uldp-transforms: windows of locally private estimates as one HTML file",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Visualization",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[f"{NAME}*"]),
    package_dir={"": "."},  # an editable installation is then a plain path, which type checkers follow
    package_data={
        NAME: ["py.typed", "*.jinja", "*.css", "*.js"],
        f"{NAME}.compared": ["*.jinja"],
        f"{NAME}.groups": ["*.jinja"],
        f"{NAME}.numbers": ["*.jinja"],
        f"{NAME}.tables": ["*.jinja"],
        f"{NAME}.trends": ["*.jinja"],
    },
    entry_points={
        "uldp_transforms.programs": [f"report = {NAME}:main"],
        "uldp_transforms.pictures": [
            f"report = {NAME}.written_report:write_report_into",
            f"plan = {NAME}.error_charts:picture_of_plan",
            f"trials = {NAME}.error_charts:picture_of_trials",
        ],
    },
    install_requires=[
        f"uldp-transforms=={version()}",
        f"uldp-transforms-tables=={version()}",
        "altair>=6,<7",
        "jinja2>=3.1,<4",
        "vl-convert-python>=1.9,<2",
    ],
)
