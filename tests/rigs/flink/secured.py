"""A Kafka broker that lets nobody in without TLS and a password; its certificates are made for the run."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.rigs.flink.kafka import broker
from tests.rigs.flink.processes import free_port

USER = "uldp"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Secured(NamedTuple):
    """A running broker; made by ``secured_broker``.

    Attributes:
        server: HOST:PORT without TLS or a password, for what prepares a run.
        address: HOST:PORT of the listener that wants both.
        authority: file of the certificate that clients trust.
    """

    server: str
    address: str
    authority: Path

    def for_librdkafka(self, password: str) -> dict[str, str]:
        """Settings of librdkafka's clients."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
            "ssl.ca.location": str(self.authority),
        }

    def for_java(self, password: str) -> dict[str, str]:
        """Settings of Kafka's own clients, but for the brokers."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN} username="{USER}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
        }


@contextlib.contextmanager
def secured_broker(folder: Path, password: str) -> Iterator[Secured]:
    """Start a broker with SASL PLAIN over TLS and one user; it is killed on leaving.

    Args:
        folder: for its log, its data and the certificates.
        password: of the user.
    """
    port = free_port()
    certificate(folder, "broker", certificate(folder, "authority"))
    more: dict[str, str | int | Path] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "broker.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{password}";',
    }
    with broker(folder, port, more) as server:
        yield Secured(server, f"127.0.0.1:{port}", folder / "authority.pem")


def certificate(folder: Path, name: str, issuer: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """A key and a certificate for this machine, in NAME.pem; its own authority without an issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    authority = issuer is None
    issuer_name, issuer_key = (subject, key) if issuer is None else (issuer[0].subject, issuer[1])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = made.public_bytes(serialization.Encoding.PEM)
    (folder / f"{name}.pem").write_bytes(chain if authority else pem + chain)
    return made, key
