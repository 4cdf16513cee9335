"""Package definition; Dataflow workers install from it (``--setup_file ./setup.py``)."""

from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="uldp-transforms",
    version="0.1.0",
    description="Apache Beam transforms that turn locally private reports into windowed distribution estimates",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["uldp_transforms*", "pipelines*", "schemas*"]),
    package_data={"schemas": ["*.avsc", "*.json"], "pipelines": ["data/*"]},
    install_requires=[
        "apache-beam[gcp]>=2.77,<3",
        "numpy>=2.0,<3",
        "scipy>=1.11,<2",
        "fastavro>=1.9,<2",
        "google-cloud-pubsub>=2.21,<3",
    ],
    extras_require={
        "plot": ["matplotlib>=3.8,<4"],
        "test": [
            "matplotlib>=3.8,<4",
            "pytest>=8,<10",
            "pytest-xdist>=3.5,<4",
            "hypothesis>=6.100,<7",
            "jsonschema>=4.20,<5",
            "pyyaml>=6,<7",
        ],
        "docs": ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=1,<2"],
        "lint": ["ruff>=0.6", "mypy>=1.11"],
    },
)
