"""Compares ``flink.yaml`` with the definition of FlinkDeployment of Flink's operator, which Maven fetches once."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.rigs import cache

FOLDER = Path(__file__).parent
JARS = cache.Jars(source=FOLDER, folder=cache.CACHE / "flink-kubernetes-operator-api-1.10.0")
DEFINITION = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"


def missing() -> str | None:
    """Why this cannot run here; None if it can."""
    return None if JARS.folder.exists() else f"{JARS.folder} not there: python -m tests.rigs.kubernetes fetches it"


def definition() -> dict[str, Any]:
    """The schema of a FlinkDeployment, in which objects have no other fields than those that are named.

    The operator's own lets Kubernetes drop unknown fields without a word.
    """
    (jar,) = JARS.folder.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(DEFINITION).decode()
    schema = yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return {"type": "object", "properties": {"spec": _closed(schema["properties"]["spec"])}}


def _closed(part: Any) -> Any:
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    named = {name: _closed(value) for name, value in part.items()}
    is_object = part.get("type") == "object" and isinstance(part.get("properties"), dict)
    return {"additionalProperties": False, **named} if is_object else named


def faults(deployment: dict[str, Any]) -> list[str]:
    """What the definition does not allow, each with its place."""
    found = jsonschema.Draft202012Validator(definition()).iter_errors(deployment)
    return [f"{fault.json_path}: {fault.message}" for fault in found]


def main() -> int:
    JARS.fetch()
    found = faults(yaml.safe_load((cache.ROOT / "deploy" / "kubernetes" / "flink.yaml").read_text("utf-8")))
    print(*(found or [f"flink.yaml is a FlinkDeployment of {JARS.folder.name}"]), sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
