"""Survey answers and navigations, beside uldp-transforms: ``pip install . ./packages/tables ./packages/survey``."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "uldp_transforms" / "version.py"
NAME = "uldp_transforms_survey"


def version() -> str:
    """The version of the core in the same checkout; an sdist carries its own."""
    if CORE.is_file():
        return str(runpy.run_path(str(CORE))["__version__"])
    return re.findall(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)[0]


setup(
    name="uldp-transforms-survey",
    version=version(),
    description="Estimates of uldp-transforms from tables of randomized survey answers and of browsers' navigations",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 4 - Beta",
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
            f"survey = {NAME}.survey:main",
            f"regress = {NAME}.regress:main",
            f"navigations = {NAME}.navigations:main",
        ]
    },
    install_requires=[  # with numpy, scipy and pyarrow
        f"uldp-transforms=={version()}",
        f"uldp-transforms-tables=={version()}",
    ],
    extras_require={
        "kafka": [f"uldp-transforms[kafka]=={version()}"],
        "plot": [f"uldp-transforms-report=={version()}"],
    },
)
