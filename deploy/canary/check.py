"""Compare the latest estimate of the canary with what was sent: python check.py DIR FILE.

DIR is the output directory of the job. FILE gets gauges for the textfile collector of Prometheus's node exporter. The
exit code is 1 if the share of "up" differs from 1 by more than 6 standard errors, of which noise alone makes less than
one in a million.
"""

from __future__ import annotations

import os
import sys

from uldp_transforms import read_rows

LIMIT = 6.0
"""Standard errors."""


def main(directory: str, file: str) -> int:
    """Write the gauges; returns the exit code."""
    rows = read_rows(directory, form="arrow").to_pylist()
    latest = max(
        (row for row in rows if (row["collection_id"], row["value"]) == ("canary", "up")),
        key=lambda row: row["window_end"],
    )
    gauges = {
        "frequency": latest["frequency"],
        "standard_error": latest["standard_error"],
        "reports": latest["num_reports"],
        "window_end_seconds": latest["window_end"].timestamp(),
    }
    lines = (f"# TYPE uldp_canary_{name} gauge\nuldp_canary_{name} {value:.15g}\n" for name, value in gauges.items())
    with open(f"{file}.new", "w", encoding="utf-8") as new:
        new.writelines(lines)
    os.replace(f"{file}.new", file)
    off = abs(latest["frequency"] - 1) / latest["standard_error"]
    number, share = latest["num_reports"], latest["frequency"]
    print(f"canary: {number} reports, share of up {share:.3f}, {off:.1f} standard errors off")
    return int(off > LIMIT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
