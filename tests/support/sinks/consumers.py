"""The programs that the page for consumers prints."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs/consume.md").read_text(encoding="utf-8")
PROJECT = "projects/my-project"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


JSON_LINES, AVRO, PUBSUB, BIGQUERY, _ = blocks("python")  # the last one: test_parquet.py
ONE_VALUE, LEDGER, _ = blocks("sql")
_, GCLOUD = blocks("sh")  # the first one: test_total.py
