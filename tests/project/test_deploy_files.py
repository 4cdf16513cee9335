"""Images, compose file and manifests: valid by their schemas, and of one mind with the program and each other."""

from __future__ import annotations

import copy
import fnmatch
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.project.documents import ROOT
from tests.rigs.flink.processes import OPENED
from tests.rigs.kubernetes import __main__ as operator
from tests.support.project.deployed import (
    COMPOSE,
    CONTAINER,
    JOBS,
    KUBERNETES,
    KUSTOMIZATION,
    RESOURCES,
    SERVICES,
    Document,
    arguments,
    containers,
    here,
    load,
    pods,
)
from tests.support.project.shipped import FILES, NAME, SHIPPED
from uldp_transforms.jobs import check, workers
from uldp_transforms.jobs.estimate.options import read_arguments
from uldp_transforms.windows import milliseconds

VERSION = "1.30"
"""Of Kubernetes, whose schemas hold; later ones have all of these fields too."""

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
needs_definition = pytest.mark.skipif(operator.missing() is not None, reason=str(operator.missing()))
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: apt-get install prometheus)"
)


(FLINK,) = (found for found in RESOURCES if found["kind"] == "FlinkDeployment")


# ---------------------------------------------------------------------- images


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, with what follows each."""
    lines = [line for line in (CONTAINER / name).read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def copied(name: str) -> list[str]:
    """What is copied from the repository."""
    sources = [rest.split()[:-1] for word, rest in instructions(name) if word == "COPY" and "--from=" not in rest]
    return [source for group in sources for source in group]


IMAGES = ("Dockerfile", "flink.Dockerfile")


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_copies_what_is_there_and_nothing_else(name: str) -> None:
    first, *allowed = (CONTAINER / f"{name}.dockerignore").read_text("utf-8").splitlines()
    assert first == "*"
    patterns = [pattern.removeprefix("!") for pattern in allowed]
    for source in copied(name):
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(pattern, f"{source}*") for pattern in patterns), source
    assert len(patterns) == len(copied(name))


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_runs_as_the_user_of_flink(name: str) -> None:
    assert [rest for word, rest in instructions(name) if word == "USER"] == ["9999"]
    last = max(place for place, (word, _) in enumerate(instructions(name)) if word in ("RUN", "COPY"))
    assert instructions(name).index(("USER", "9999")) > last


def test_the_image_has_the_package_and_the_versions_of_the_locks() -> None:
    assert set(copied("Dockerfile")) == {"requirements", "packages", *FILES, *SHIPPED, NAME}
    installs = [
        each
        for word, rest in instructions("Dockerfile")
        if word == "RUN"
        for each in re.findall(r"pip install [^&]+", rest)
    ]
    assert [each.split()[-1] for each in installs] == [
        "requirements/build.txt",
        "requirements/gateway.txt",
        "./packages/tables",
    ]
    assert ["--require-hashes" in each for each in installs] == [True, True, False]
    assert all("--no-deps" in each for each in installs)
    assert ("ENTRYPOINT", '["uldp"]') in instructions("Dockerfile")


def test_what_the_image_copies_is_enough_for_the_package(tmp_path: Path) -> None:
    """Built from these files alone, it has the command that is the entry point."""
    for source in copied("Dockerfile"):
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, tmp_path / source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    built = subprocess.run(
        [
            *command,
            "--target",
            str(tmp_path / "to"),
            ".",
            "./packages/compare",
            "./packages/follow",
            "./packages/gateway",
            "./packages/tables",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "to" / "bin" / "uldp").exists()
    for program in ("uldp_transforms_compare/compare", "uldp_transforms_gateway", "uldp_transforms_tables/simulate"):
        assert (tmp_path / "to" / program / "__main__.py").exists()
    assert (tmp_path / "to" / "uldp_transforms_follow" / "engine.py").exists()


def test_flinks_image_has_the_versions_that_were_run() -> None:
    pom = (CONTAINER / "pom.xml").read_text("utf-8")
    (flink,) = set(re.findall(r"<artifactId>beam-runners-flink-([\d.]+)</artifactId>", pom))
    (worker,) = re.findall(r"<artifactId>beam-sdks-java-harness</artifactId>\s*<version>([\d.]+)", pom)
    bases = [rest.split()[0] for word, rest in instructions("flink.Dockerfile") if word == "FROM"]
    assert bases[1:] == [f"apache/beam_java17_sdk:{worker}", f"flink:{flink}.0-java17"]
    assert f" flink-runtime-{flink}.0.jar\n" in PINNED
    assert FLINK["spec"]["flinkVersion"] == f"v{flink.replace('.', '_')}"
    (options,) = (rest for word, rest in instructions("flink.Dockerfile") if word == "ENV")
    assert options.removeprefix("JAVA_TOOL_OPTIONS=").strip('"').split() == OPENED


PINNED = (CONTAINER / "jars.sha256").read_text("utf-8")


def test_jobs_take_no_second_scala_to_flink() -> None:
    """A job takes the jars of the job server along, and Flink has a Scala of its own."""
    (removed,) = (rest.split()[1:] for word, rest in instructions("flink.Dockerfile") if rest.startswith("rm "))
    names = [line.split()[1] for line in PINNED.splitlines()]
    left = [name for name in names if not any(fnmatch.fnmatch(f"jars/{name}", pattern) for pattern in removed)]
    assert not [name for name in left if "_2.13" in name or name.startswith("scala-")]
    assert len(names) - len(left) == 7  # as many as were needed, and of Kafka only the broker
    assert any(name.startswith("kafka-clients-") for name in left)


def test_a_java_worker_has_a_heap_of_its_own() -> None:
    """Without it Beam's worker takes 70 % of the machine, whatever the container may have."""
    assert "deploy/container/option-heap.json" in copied("flink.Dockerfile")
    option = json.loads((CONTAINER / "option-heap.json").read_text("utf-8"))
    assert option["enabled"] is True
    (heap,) = (re.fullmatch(r"-Xmx(\d+)m", text) for text in option["options"]["java_arguments"])
    assert heap is not None
    settings = of_flink("Kubernetes")
    slots = settings["taskmanager.numberOfTaskSlots"]
    assert settings["taskmanager.memory.jvm-overhead.min"] == settings["taskmanager.memory.jvm-overhead.max"]
    assert int(settings["taskmanager.memory.jvm-overhead.min"].removesuffix("m")) > int(slots) * int(heap[1])


# ---------------------------------------------------------------------- schemas


def test_the_compose_file_is_one() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, str(COMPOSE / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_one_service_builds_each_image() -> None:
    """Each that builds labels an image of its own; the last takes the name, and others' containers are replaced."""
    assert sorted(service["image"] for service in SERVICES.values() if "build" in service) == ["uldp", "uldp-flink"]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda found: f"{found['kind']} {found['metadata']['name']}")
def test_a_manifest_is_one(resource: Document) -> None:
    if resource["kind"] != "FlinkDeployment":
        kubernetes_validate.validate(resource, VERSION, strict=True)


@pytest.mark.parametrize("part", ["jobManager", "taskManager"])
def test_a_pod_of_flink_is_one(part: str) -> None:
    pod = copy.deepcopy(dict(pods())[part])
    pod["spec"]["containers"][0] |= {"image": "flink"}  # the operator's
    kubernetes_validate.validate({"metadata": {"name": "pod"}} | pod, VERSION, strict=True)
    assert pod["spec"]["containers"][0]["name"] == "flink-main-container"


def test_lists_of_flinks_templates_stand_in_one_of_them() -> None:
    """The operator merges lists by position."""
    assert not [value for value in FLINK["spec"]["podTemplate"]["spec"].values() if isinstance(value, list)]


@needs_definition
def test_flinks_operator_knows_all_fields() -> None:
    assert operator.faults(FLINK) == []
    wrong = copy.deepcopy(FLINK)
    wrong["spec"]["taskManager"]["replica"] = 2
    wrong["spec"]["flinkVersion"] = "v9_9"
    first, second = sorted(operator.faults(wrong))
    assert first.startswith("$.spec.flinkVersion: 'v9_9' is not one of")
    assert second.startswith("$.spec.taskManager: Additional properties are not allowed ('replica' was unexpected)")


def test_a_fault_in_a_manifest_is_found() -> None:
    (job,) = (copy.deepcopy(found) for found in RESOURCES if found["kind"] == "Job")
    job["spec"]["template"]["spec"]["containers"][0]["arguments"] = ["--none"]
    with pytest.raises(kubernetes_validate.ValidationError, match="'arguments' was unexpected"):
        kubernetes_validate.validate(job, VERSION, strict=True)


@needs_kubectl
def test_kustomize_makes_all_of_it() -> None:
    done = subprocess.run(["kubectl", "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(RESOURCES) + 1  # and the collections
    assert {found["metadata"]["namespace"] for found in made} == {KUSTOMIZATION["namespace"]}
    chosen = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in KUSTOMIZATION["images"]}
    assert set(re.findall(r"image: (.*)", done.stdout)) == set(chosen.values())


def test_kustomize_knows_all_files() -> None:
    others = {"kustomization.yaml", *KUSTOMIZATION["configurations"]}
    assert {path.name for path in KUBERNETES.glob("*.yaml")} - others == set(KUSTOMIZATION["resources"])


def test_grafana_finds_the_dashboards_of_job_and_gateway_in_one_folder() -> None:
    (provider,) = load(COMPOSE / "grafana_folder.yml")[0]["providers"]
    (source,) = load(COMPOSE / "grafana_source.yml")[0]["datasources"]
    address = urlsplit(source["url"])
    assert (source["type"], address.port) == ("prometheus", 9090) and address.hostname in SERVICES
    files = {config: it["file"] for config, it in load(COMPOSE / "compose.yaml")[0]["configs"].items()}
    mounted = {it["target"]: files[it["source"]] for it in SERVICES["grafana"]["configs"]}
    shown = [file for target, file in mounted.items() if target.startswith(provider["options"]["path"])]
    assert shown == ["../monitoring/grafana.json", "../monitoring/gateway_grafana.json"]
    assert [target for target in mounted if "/provisioning/" in target] == [
        "/etc/grafana/provisioning/datasources/uldp.yml",
        "/etc/grafana/provisioning/dashboards/uldp.yml",
    ]
    assert all((COMPOSE / file).is_file() for file in mounted.values())


@needs_promtool
def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    text = (COMPOSE / "prometheus.yml").read_text("utf-8")
    rules = ROOT / "deploy" / "monitoring"
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", f"{rules}/"), "utf-8")
    command = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------------- what refers to what


def test_manifests_name_what_is_there() -> None:
    """Claims, config maps, secrets and volumes; one secret is made by hand."""
    there = {(found["kind"], found["metadata"]["name"]) for found in RESOURCES} | {("Secret", "uldp-kafka")}
    there |= {("ConfigMap", generated["name"]) for generated in KUSTOMIZATION["configMapGenerator"]}
    for _, pod in pods():
        for volume in pod["spec"]["volumes"]:
            claim, text, secret = (volume.get(kind) for kind in ("persistentVolumeClaim", "configMap", "secret"))
            assert claim is None or ("PersistentVolumeClaim", claim["claimName"]) in there
            assert text is None or ("ConfigMap", text["name"]) in there
            assert secret is None or ("Secret", secret["secretName"]) in there
            assert sum(kind is not None for kind in (claim, text, secret)) == 1
        volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
        for container in containers(pod):
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes
            for variable in container.get("env", ()):
                assert "value" in variable or ("Secret", variable["valueFrom"]["secretKeyRef"]["name"]) in there
    for generated in KUSTOMIZATION["configMapGenerator"]:
        assert all((KUBERNETES / name).is_file() for name in generated["files"])


@pytest.mark.parametrize(("name", "pod"), list(pods()), ids=[name for name, _ in pods()])
def test_pods_may_do_no_more_than_they_must(name: str, pod: Document) -> None:
    assert pod["spec"]["securityContext"] == {
        "runAsUser": 9999,
        "runAsGroup": 9999,
        "fsGroup": 9999,
        "runAsNonRoot": True,
    }
    of_flink = name in ("jobManager", "taskManager")
    assert pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "uldp"
    assert of_flink or pod["spec"]["automountServiceAccountToken"] is False
    for container in containers(pod):
        if container["name"] != "flink-main-container":
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }


@pytest.mark.parametrize("where", JOBS)
def test_the_program_takes_the_options_of_the_job(where: str, tmp_path: Path) -> None:
    first, *argv = here(JOBS[where], tmp_path)
    assert first == "estimate"
    job = read_arguments(argv)
    job.directory.close()
    assert job.source_name == "reports"
    assert [collection.id for collection in job.spec.collections] == ["example"]


def test_the_program_takes_the_options_of_gateway_and_check(tmp_path: Path) -> None:
    first, *argv = here(arguments(SERVICES["gateway"]), tmp_path)
    assert first == "gateway"
    gateway_options = pytest.importorskip("uldp_transforms_gateway.gateway_options")
    assert gateway_options.configure(argv).port == 8080
    (pod,) = (pod for name, pod in pods() if name == "uldp-check")
    first, *argv = arguments(containers(pod)[0])
    assert first == "check"
    assert argv[0] == option(JOBS["Kubernetes"], "output")
    assert check.configure([str(tmp_path), *argv[1:]]).max_age == 4 * 3_600_000


def option(argv: list[str], name: str) -> str:
    (found,) = (text.partition("=")[2] for text in argv if text.startswith(f"--{name}="))
    return found


def of_flink(where: str) -> dict[str, str]:
    """Flink's settings, as texts."""
    if where == "Kubernetes":
        return dict(FLINK["spec"]["flinkConfiguration"])
    (text,) = {SERVICES[name]["environment"]["FLINK_PROPERTIES"] for name in ("jobmanager", "taskmanager-1")}
    return dict(line.split(": ", 1) for line in text.splitlines())


def of_job_server(where: str) -> dict[str, str]:
    """Flink's settings that jobs take from the job server."""
    if where == "Kubernetes":
        (pod,) = (pod for name, pod in pods() if name == "uldp-job-server")
        (text,) = (each["value"] for each in containers(pod)[0]["env"])
    else:
        text = SERVICES["job-server"]["environment"]["FLINK_PROPERTIES"]
    return dict(line.split(": ", 1) for line in text.splitlines())


@pytest.mark.parametrize("where", JOBS)
def test_flink_has_room_to_send_java_workers_their_jars(where: str) -> None:
    """They go through memory outside of the heap; with Flink's default no worker started."""
    assert of_flink(where)["taskmanager.memory.task.off-heap.size"] == "512m"


@pytest.mark.parametrize("where", JOBS)
def test_jobs_have_checkpoints(where: str) -> None:
    """Flink takes these settings from who submits a job: the job server, which must be told where they are written."""
    settings = of_job_server(where)
    assert milliseconds(settings["execution.checkpointing.interval"], "the interval") == 10_000
    assert settings["execution.checkpointing.externalized-checkpoint-retention"] == "RETAIN_ON_CANCELLATION"
    (pod,) = (pod for name, pod in pods() if name == "uldp-job-server")
    server = containers(pod)[0] if where == "Kubernetes" else SERVICES["job-server"]
    assert option(arguments(server), "flink-conf-dir") == "/opt/flink/conf"
    assert "entrypoint" not in server  # that of Flink writes them
    assert ("command" in server) == (where == "compose")


def test_a_check_of_health_sends_nothing() -> None:
    """A byte that is no request is an error with a stack trace in the log of each Java service, every few seconds."""
    checks = [service["healthcheck"]["test"][-1] for service in SERVICES.values() if "healthcheck" in service]
    assert len(checks) == 4
    assert all(re.fullmatch(r"true > /dev/tcp/localhost/\d+", check) for check in checks)


@pytest.mark.parametrize("where", JOBS)
def test_settings_that_belong_together_fit(where: str) -> None:
    argv, settings = JOBS[where], of_flink(where)
    slots = int(settings["taskmanager.numberOfTaskSlots"])
    assert int(option(argv, "sdk_worker_parallelism")) == slots
    assert int(option(argv, "parallelism")) == 2 * slots
    delay = milliseconds(settings["restart-strategy.exponential-delay.initial-backoff"], "the delay")
    assert delay > int(option(argv, "environment_cache_millis"))
    assert option(argv, "environment_config") == "localhost:50000"


def test_compose_and_kubernetes_set_flink_alike() -> None:
    compose, kubernetes = of_flink("compose"), of_flink("Kubernetes")
    assert set(compose.items()) ^ set(kubernetes.items()) == {
        ("jobmanager.rpc.address", "jobmanager"),
        ("taskmanager.memory.process.size", "2g"),
        ("taskmanager.memory.jvm-overhead.min", "1536m"),
        ("taskmanager.memory.jvm-overhead.max", "1536m"),
        *of_job_server("Kubernetes").items(),  # compose has one text for all
        ("high-availability.type", "kubernetes"),
        ("high-availability.storageDir", "file:///uldp/high-availability"),
    }


def test_services_listen_where_others_look_for_them() -> None:
    (service,) = (found for found in RESOURCES if found["kind"] == "Service")
    name, ports = service["metadata"]["name"], {port["name"]: port["port"] for port in service["spec"]["ports"]}
    (pod,) = (pod for name, pod in pods() if name == "uldp-job-server")
    opened = {port["name"]: port["containerPort"] for each in containers(pod) for port in each["ports"]}
    assert ports == opened
    assert pod["metadata"]["labels"].items() >= service["spec"]["selector"].items()
    argv, (server, expansion) = JOBS["Kubernetes"], containers(pod)
    assert option(argv, "job_endpoint") == f"{name}:{option(server['args'], 'job-port')}" == f"{name}:{ports['jobs']}"
    assert option(argv, "artifact_endpoint") == f"{name}:{option(server['args'], 'artifact-port')}"
    assert option(argv, "expansion_service") == f"{name}:{expansion['args'][0]}"
    assert option(server["args"], "flink-master") == f"{FLINK['metadata']['name']}-rest:8081"
    compose, of_compose = JOBS["compose"], SERVICES["job-server"]["command"]
    assert [text.replace("uldp-flink-rest", "jobmanager") for text in server["args"]] == of_compose
    assert expansion["args"] == SERVICES["expansion"]["command"]
    assert option(compose, "job_endpoint") == f"job-server:{option(of_compose, 'job-port')}"
    assert option(compose, "artifact_endpoint") == f"job-server:{option(of_compose, 'artifact-port')}"
    assert option(compose, "expansion_service") == f"expansion:{SERVICES['expansion']['command'][0]}"


def test_each_task_manager_has_a_pool_at_localhost() -> None:
    managers = {name for name, service in SERVICES.items() if service.get("command") == "taskmanager"}
    pools = {name: service for name, service in SERVICES.items() if "network_mode" in service}
    assert {service["network_mode"].removeprefix("service:") for service in pools.values()} == managers
    (in_kubernetes,) = (each for each in containers(dict(pods())["taskManager"]) if each["name"] == "worker-pool")
    for pool in (*pools.values(), {"entrypoint": in_kubernetes["command"]}):
        module, *options = pool["entrypoint"][2:]
        assert (pool["entrypoint"][1], module, options[0]) == ("-m", "uldp_transforms.jobs", "workers")
        host = (
            "0.0.0.0" if pool["entrypoint"] is in_kubernetes["command"] else "localhost"
        )  # probes ask the pod's address
        assert workers.configure(options[1:]).address == f"{host}:50000"
    assert len(pools) == len(managers) == 2


def test_nothing_of_the_trial_listens_to_other_machines() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_no_secret_is_in_a_file_or_on_a_command_line() -> None:
    for path in [*KUBERNETES.glob("*.yaml"), *COMPOSE.glob("*.y*ml")]:
        text = path.read_text("utf-8")
        assert "kind: Secret" not in text
        assert not re.search(r"password=(?!\$\{)", text), path
    assert option(JOBS["Kubernetes"], "kafka_config") == "/etc/uldp/kafka/producer.properties"
    jaas = "--kafka_property=sasl.jaas.config=${file:/etc/uldp/secret/consumer.properties:jaas}"
    assert jaas in JOBS["Kubernetes"]


def test_the_example_is_one_collection() -> None:
    texts = [(folder / "collection.json").read_text("utf-8") for folder in (COMPOSE, KUBERNETES)]
    assert texts[0] == texts[1]
    schema = json.loads((ROOT / "schemas" / "collection.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(texts[0]), schema)
