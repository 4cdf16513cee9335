"""The gateway as a package of its own beside uldp-transforms: ``pip install ./packages/gateway`` in a checkout."""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "uldp_transforms" / "version.py"
NAME = "uldp_transforms_gateway"


def version() -> str:
    """The version of the core in the same checkout; an sdist carries its own."""
    if CORE.is_file():
        return str(runpy.run_path(str(CORE))["__version__"])
    return re.findall(r"^Version: (.+)$", (HERE / "PKG-INFO").read_text(encoding="utf-8"), re.M)[0]


setup(
    name="uldp-transforms-gateway",
    version=version(),
    description="The HTTP gateway of uldp-transforms: accepts locally private reports and packs them for a stream",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Topic :: Internet :: WWW/HTTP :: HTTP Servers",
        "Topic :: Security",
        "Typing :: Typed",
    ],
    python_requires=">=3.10",
    packages=find_packages(include=[f"{NAME}*"]),
    package_dir={"": "."},  # an editable installation is then a plain path, which type checkers follow
    package_data={NAME: ["py.typed", "*.json"]},
    entry_points={"uldp_transforms.programs": [f"gateway = {NAME}:main"]},
    install_requires=[
        f"uldp-transforms=={version()}",
        "confluent-kafka>=2.8,<3",
        "google-cloud-pubsub>=2.21,<3",
        "starlette>=1,<2",
        "uvicorn>=0.34,<1",
        "httptools>=0.6,<1",
        "uvloop>=0.21,<1; sys_platform != 'win32'",
        "prometheus-client>=0.21,<1",
    ],
)
