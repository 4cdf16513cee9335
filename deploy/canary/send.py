"""Send 1,000 reports of nobody, all of the value "up", to a gateway: python send.py canary.json URL [KEY_FILE].

They take the way of all reports: client, proxy, gateway, queue, job. The last one, check.py, tells whether it works.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path

from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

REPORTS = 1_000
PATIENCE = 60  # seconds


def main(form: str, url: str, key_file: str | None = None) -> None:
    """Send one message; raises HTTPError if the gateway does not accept it."""
    collection = Collection.from_json(json.loads(Path(form).read_text("utf-8")))
    message = wire.encode_batch(collection.perturb(["up"] * REPORTS))
    headers = {"Content-Type": "application/octet-stream"}
    if key_file is not None:
        headers["Authorization"] = f"Bearer {Path(key_file).read_text('utf-8').split()[0]}"
    with urllib.request.urlopen(urllib.request.Request(url, message, headers), timeout=PATIENCE) as answer:
        print(answer.status, answer.read().decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
