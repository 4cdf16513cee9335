"""Topics of a broker, and what is in them."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic


def config(folder: Path, servers: str, *more: str) -> Path:
    path = folder / "kafka.properties"
    path.write_text("\n".join(["# of the job", "", f"bootstrap.servers = {servers}", *more, ""]), encoding="utf-8")
    return path


SECRET = "correct horse battery staple"


def create(settings: dict[str, str], topics: list[str]) -> None:
    client = AdminClient(settings)  # must outlive its futures
    made = client.create_topics([NewTopic(topic, 2, 1) for topic in topics])
    for future in made.values():
        future.result(60)


def lines_of(settings: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items() if name != "bootstrap.servers"]
