"""The documents below ``deploy/``, and what their containers start."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.project.documents import ROOT

CONTAINER, COMPOSE, KUBERNETES = (ROOT / "deploy" / name for name in ("container", "compose", "kubernetes"))
Document = dict[str, Any]


def load(path: Path) -> list[Document]:
    return list(yaml.load_all(path.read_text("utf-8"), Loader=yaml.CSafeLoader))


SERVICES: Document = load(COMPOSE / "compose.yaml")[0]["services"]
KUSTOMIZATION = load(KUBERNETES / "kustomization.yaml")[0]
RESOURCES = [found for name in KUSTOMIZATION["resources"] for found in load(KUBERNETES / name)]


def pods() -> Iterator[tuple[str, Document]]:
    """The pods of the manifests; each one of Flink with what its two templates say together."""
    for found in RESOURCES:
        if found["kind"] == "FlinkDeployment":
            for part in ("jobManager", "taskManager"):
                pod = copy.deepcopy(found["spec"]["podTemplate"])
                pod["spec"] |= found["spec"][part]["podTemplate"]["spec"]
                yield part, pod
        elif found["kind"] in ("Deployment", "Job"):
            yield found["metadata"]["name"], found["spec"]["template"]
        elif found["kind"] == "CronJob":
            yield found["metadata"]["name"], found["spec"]["jobTemplate"]["spec"]["template"]


def containers(pod: Document) -> list[Document]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def arguments(of: Document) -> list[str]:
    """The arguments of a program of ours, in a service of compose or a container of Kubernetes."""
    return of.get("command", []) if "args" not in of else of["args"]


(JOB,) = (containers(pod)[-1] for name, pod in pods() if name == "uldp-estimate")
JOBS = {"compose": arguments(SERVICES["job"]), "Kubernetes": arguments(JOB)}


def here(argv: list[str], folder: Path) -> list[str]:
    """The command line with folders of this machine; the collection is that beside the compose file."""
    texts = [re.sub(r"/etc/uldp/collections?/?[\w*]*\.json", str(COMPOSE / "collection.json"), text) for text in argv]
    return [text.replace("/uldp/results", str(folder / "results")) for text in texts]
