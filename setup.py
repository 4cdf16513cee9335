"""Package definition; Dataflow workers install from it too (``--setup_file ./setup.py``).

What is installed stands in ``uldp_transforms/``. The contract with other systems has folders of its own in a checkout;
the wheel gets copies of them, which ``uldp_transforms.schemas.shipped`` finds.
"""

import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
NAME = "uldp_transforms"
SHIPPED = {
    "schemas": ["*.avsc", "*.json", "sql/*.sql"],
}
"""Folders of a checkout and the files of them that the wheel has too."""

PYTHONS = ("3", "3.10", "3.11", "3.12", "3.13")

MATPLOTLIB = "matplotlib>=3.8,<4"
GCP = ["apache-beam[gcp]>=2.74,<3", "google-cloud-pubsub>=2.21,<3"]
KAFKA = ["confluent-kafka>=2.8,<3"]
YAML = ["apache-beam[yaml]>=2.74,<3"]
DOCS = ["mkdocs>=1.6,<2", "mkdocs-material>=9.5,<10", "mkdocstrings[python]>=1,<2"]
LINT = ["ruff>=0.6", "mypy>=1.11"]
TEST = [
    "apache-beam[dataframe]>=2.74,<3",
    "check-jsonschema>=0.30,<1",
    "duckdb>=1.1,<3",
    "pytest>=9,<10",
    "pytest-xdist>=3.5,<4",
    "hypothesis>=6.100,<7",
    "jsonschema>=4.20,<5",
    "kubernetes-validate>=1.30,<2",
    MATPLOTLIB,
    "packaging>=23.2",
    "polars>=1,<3",
    "pyiceberg[sql-sqlite]>=0.9,<1",
    "pyyaml>=6,<7",
]


class BuildWithContract(build_py):
    """Builds the package, and copies the contract into it."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for source, target in self._contract():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._contract())]

    def _contract(self) -> list[tuple[Path, Path]]:
        inside = Path(self.build_lib, NAME, "_shipped")
        return [
            (path, inside / path.relative_to(HERE))
            for folder, patterns in SHIPPED.items()
            for pattern in patterns
            for path in sorted((HERE / folder).glob(pattern))
        ]


VERSION = runpy.run_path(str(HERE / NAME / "version.py"))["__version__"]
PLOT = [MATPLOTLIB, f"uldp-transforms-report=={VERSION}"]

setup(
    name="uldp-transforms",
    version=VERSION,
    description="Apache Beam transforms that turn locally private reports into windowed distribution estimates",
    long_description=(HERE / "README.md").read_text(encoding="utf-8").partition("\n## On a stream")[0],
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        *(f"Programming Language :: Python :: {version}" for version in PYTHONS),
        "Topic :: Scientific/Engineering :: Information Analysis",
        "Topic :: Security",
        "Typing :: Typed",
    ],
    keywords=["local differential privacy", "frequency estimation", "Apache Beam", "streaming"],
    python_requires=">=3.10",
    cmdclass={"build_py": BuildWithContract},
    packages=find_packages(include=[f"{NAME}*"]),
    package_dir={"": "."},  # an editable installation is then a plain path, which type checkers follow
    package_data={NAME: ["py.typed"]},
    entry_points={"console_scripts": [f"uldp = {NAME}.jobs.uldp:main"]},
    install_requires=[
        "apache-beam>=2.74,<3",
        "numpy>=2.0,<3",
        "scipy>=1.11,<2",
        "fastavro>=1.9,<2",
        "orjson>=3.9.7,<4",
        "pyarrow>=16",
        "shtab>=1.13,<2",
        "tqdm>=4.60,<5",
        "tzdata",
    ],
    extras_require={
        "gcp": GCP,
        "plot": PLOT,
        "notebook": [*PLOT, "pandas>=2,<4"],
        "kafka": KAFKA,
        "gateway": [f"uldp-transforms-gateway=={VERSION}"],  # the former extra; 0.6.0 removes it
        "yaml": YAML,
        "docs": DOCS,
        "lint": LINT,
        "test": [*GCP, *KAFKA, *YAML, *LINT, *TEST],
    },
)
