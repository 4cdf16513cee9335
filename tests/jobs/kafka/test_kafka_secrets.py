"""Secrets of Kafka's clients stand on no command line, and in no job's graph; on Flink they are found nowhere."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.flink import cached, secrets
from tests.rigs.flink.processes import java
from tests.rigs.flink.secrets import Refused, Search
from tests.support.refusals.kafka_secrets import FILE, JAVA, LOGIN, SECRET, WRONG, config, source_of
from uldp_transforms.jobs.kafka.secrets import references_to, refuse_secrets
from uldp_transforms.jobs.sources.kafka_topic import ReadKafka
from uldp_transforms.ldp.errors import SpecError

needs_flink = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))


# ---------------------------------------------------------------------- what is secret

OF_LIBRDKAFKA = (
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.assertion.private.key.passphrase",
)
OF_JAVA = ("ssl.key.password", "ssl.keystore.key", "ssl.keystore.password", "ssl.truststore.password")
CERTIFICATES = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}
"""Kafka's consumer hides these too, but everybody who connects gets them."""


@pytest.mark.parametrize("references", [False, True])
@pytest.mark.parametrize("name", sorted({*OF_LIBRDKAFKA, *OF_JAVA}))
def test_a_secret_in_clear_is_refused_by_its_name(name: str, references: bool) -> None:
    with pytest.raises(SpecError) as caught:
        refuse_secrets([("client.id", "a"), (name, SECRET)], FILE, references)
    assert (
        str(caught.value)
        == f"--kafka_property must not contain secrets, which belong in the file of {FILE}, got {name}"
    )


@pytest.mark.parametrize(
    "value",
    [
        f'{LOGIN} password="{SECRET}";',
        f"{LOGIN} password = {SECRET};",
        f'a required clientId="i" clientSecret="{SECRET}";',
        f'a required keyStorePassword="{SECRET}";',
        f'{LOGIN} password="{SECRET}" other="${{file:/p:k}}";',
    ],
)
def test_a_login_with_a_secret_is_refused(value: str) -> None:
    with pytest.raises(SpecError, match=r"got sasl\.jaas\.config$"):
        refuse_secrets([("sasl.jaas.config", value)], FILE, references=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.jaas.config", "${file:/etc/kafka/consumer.properties:jaas}"),
        ("sasl.jaas.config", f'{LOGIN} password="${{file:/p:password}}";'),
        ("sasl.jaas.config", f"{LOGIN} password=${{env:PASSWORD}};"),
        ("sasl.jaas.config", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"),
        ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true;"),
        ("ssl.keystore.password", "${env:PASSWORD}"),
        ("ssl.key.location", "/etc/kafka/key.pem"),
        ("ssl.truststore.location", "/etc/kafka/ca.pem"),
        ("security.protocol", "SASL_SSL"),
    ],
)
def test_what_is_no_secret_is_taken(name: str, value: str) -> None:
    refuse_secrets([(name, value)], FILE, references=True)


@pytest.mark.slow
@needs_flink
def test_the_consumer_in_java_hides_no_setting_that_is_not_refused(tmp_path: Path) -> None:
    """Kafka's own word on what is secret: settings of the type PASSWORD."""
    source = tmp_path / "Names.java"
    source.write_text(
        "import org.apache.kafka.clients.consumer.ConsumerConfig;\n"
        "public class Names { public static void main(String[] args) {\n"
        'ConsumerConfig.configDef().configKeys().values().stream().filter(key -> key.type.name() == "PASSWORD")\n'
        ".forEach(key -> System.out.println(key.name)); } }\n",
        "utf-8",
    )
    command = [*java(cached.JARS.class_path, str(source))]
    names = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert names == {*OF_JAVA, *CERTIFICATES, "sasl.jaas.config"}


# ---------------------------------------------------------------------- the file of a consumer in Java


PROVIDER = "org.apache.kafka.common.config.provider"


def test_settings_become_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is that of the machine that starts the job, whatever its current directory; no value is shown."""
    path = config(tmp_path, f"sasl.jaas.config = {LOGIN} password={SECRET};", "ssl.truststore.location=${ULDP_NOT_SET}")
    monkeypatch.chdir(tmp_path)
    assert references_to("consumer.properties", FILE) == {
        "sasl.jaas.config": f"${{file:{path}:sasl.jaas.config}}",
        "ssl.truststore.location": "${env:ULDP_NOT_SET}",
        "config.providers": "file,env",
        "config.providers.file.class": f"{PROVIDER}.FileConfigProvider",
        "config.providers.env.class": f"{PROVIDER}.EnvVarConfigProvider",
    }
    config(tmp_path, "group.id=g")
    assert references_to(str(path), FILE) == {
        "group.id": f"${{file:{path}:group.id}}",
        "config.providers": "file",
        "config.providers.file.class": f"{PROVIDER}.FileConfigProvider",
    }


def test_a_job_that_reads_in_java_has_references_alone(tmp_path: Path) -> None:
    path = config(tmp_path, f"sasl.jaas.config={LOGIN} password={SECRET};", "client.id=of the file")
    source = source_of(f"{JAVA}|{FILE}={path}|--kafka_property=client.id=mine")()
    assert isinstance(source.records, ReadKafka)
    assert source.records._properties["client.id"] == "mine"
    assert source.records._properties["sasl.jaas.config"] == f"${{file:{path}:sasl.jaas.config}}"
    assert SECRET.encode() not in pickle.dumps(source.records._properties)


@pytest.mark.parametrize(("made", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_sentences(made: Callable[[Path], Callable[[], Any]], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        made(tmp_path)()
    assert str(caught.value) == sentence
    assert SECRET not in sentence


# ---------------------------------------------------------------------- on Flink


@pytest.mark.slow
@needs_flink
def test_on_flink_a_password_is_found_nowhere(tmp_path: Path) -> None:
    """``run`` raises unless counts are exact, nothing is shown, and a wrong password ends the job."""
    said = secrets.run(tmp_path, rate=200, seconds=10)
    assert "neither password in: process list" in said


def found(**words: str) -> Search:
    """A search that looked at one text in each place; by default at what must be there."""
    search = Search({"password": SECRET, "mark": "mark", "step": "step"})
    for place, word in secrets.PLACES.items():
        search.look(place, words.get(place.split()[-1], word).encode())
    return search


def test_what_the_search_would_find(tmp_path: Path) -> None:
    assert found().faults() == []
    assert found(logs=f"mark, {SECRET}").faults() == ["no password must be in the logs, got the password"]
    assert found(answers="nothing").faults() == ["the step must be found in the Flink's answers, got nothing"]
    blind = Search({"password": SECRET})
    assert len(blind.faults()) == len(secrets.PLACES)
    (tmp_path / "hidden").write_text(SECRET, "utf-8")
    (tmp_path / "a.log").write_text(SECRET, "utf-8")
    blind.look_at_files(tmp_path, {tmp_path / "hidden"})
    assert blind.found == {"logs": {"password"}}


@pytest.mark.parametrize(
    ("refused", "sentences"),
    [
        (Refused(1, f"estimate: the run failed: it is so: {secrets.REFUSED}", 1.0), 0),
        (Refused(1, "estimate: the run failed: something else", 1.0), 1),
        (Refused(None, f"estimate: the run failed: {secrets.REFUSED}", 1.0), 1),
    ],
)
def test_how_a_wrong_password_must_end(refused: Refused, sentences: int) -> None:
    assert len(refused.faults()) == sentences


def test_a_process_that_shows_a_secret_is_seen() -> None:
    search = Search({"password": SECRET})
    with search.watch_processes():
        subprocess.run(["sh", "-c", f"sleep 1; : {SECRET}"], check=True)
    assert "password" in search.found["process list"]
