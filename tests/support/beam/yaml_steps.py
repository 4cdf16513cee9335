"""Providers of the transforms of Beam YAML, and pipelines of some steps."""

from collections.abc import Sequence
from typing import Any

import yaml

from tests.support.named_outputs import (
    OUTPUTS,
)
from uldp_transforms.yaml import EstimateReports

PROVIDERS = {"EstimateReports": EstimateReports}


def steps(*before: dict[str, Any], **config: Any) -> str:
    """YAML of EstimateReports behind other steps, and all its outputs."""
    own = {"type": "EstimateReports", "config": config} | ({"input": before[-1].get("name", "input")} if before else {})
    outputs = {name: f"EstimateReports.{name}" for name in OUTPUTS}
    transforms = [step for step in before if "type" in step]
    return yaml.safe_dump({"type": "composite", "transforms": [*transforms, own], "output": outputs} | _inputs(before))


def _inputs(before: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"input": "input"} if {} in before else {}
