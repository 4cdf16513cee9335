"""Which folders the package is made of; pyproject.toml has the rest. Dataflow workers install from it too.

Installed, everything has the one name ``uldp_transforms``: the folders ``pipelines`` and ``schemas`` of a checkout are
``uldp_transforms.pipelines`` and ``uldp_transforms.schemas``.
"""

from setuptools import find_packages, setup

NAME = "uldp_transforms"
MAPPED = ("pipelines", "schemas")

setup(
    packages=[
        *find_packages(include=[f"{NAME}*"]),
        *(f"{NAME}.{folder}" for folder in MAPPED),
        *(f"{NAME}.{folder}.{package}" for folder in MAPPED for package in find_packages(folder)),
    ],
    package_dir={f"{NAME}.{folder}": folder for folder in MAPPED},
    package_data={
        NAME: ["py.typed", "yaml/*.yaml"],
        f"{NAME}.schemas": ["*.avsc", "*.json"],
        f"{NAME}.pipelines": ["data/*"],
    },
)
