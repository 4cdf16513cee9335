"""Count departures by airline and month: python cut_carriers.py flights.csv.zip flights_2013_carriers.csv."""

import collections
import csv
import io
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as packed, packed.open("flights.csv") as file:
    rows = csv.DictReader(io.TextIOWrapper(file, "ascii"))
    counts = collections.Counter((row["carrier"], int(row["month"])) for row in rows)
months = range(1, 13)
with open(sys.argv[2], "w") as file:
    file.write(",".join(["carrier", *map(str, months)]) + "\n")
    for carrier in sorted({carrier for carrier, _ in counts}):
        file.write(",".join([carrier, *(str(counts[carrier, month]) for month in months)]) + "\n")
