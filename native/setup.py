"""The compiled part of uldp-transforms as a package of its own: ``pip install ./native`` needs a C compiler."""

import runpy
from pathlib import Path

from setuptools import Extension, setup

VERSION = Path(__file__).resolve().parents[1] / "uldp_transforms" / "version.py"

setup(
    name="uldp-transforms-native",
    version=runpy.run_path(str(VERSION))["__version__"],
    description="The compiled decoder of uldp-transforms, which is several times faster for messages of single reports",
    license="Apache-2.0",
    python_requires=">=3.10",
    ext_modules=[
        Extension(
            "uldp_transforms_native",
            ["module.c", "report_ends.c", "split_reports.c"],
            depends=["functions.h", "reading.h"],
            extra_compile_args=["-O3"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
