"""Count departures by destination: python cut_destinations.py flights.csv.zip flights_2013_destinations.csv."""

import collections
import csv
import io
import sys
import zipfile

NAMES = ("month", "hour", "origin", "carrier")
with zipfile.ZipFile(sys.argv[1]) as packed, packed.open("flights.csv") as file:
    rows = list(csv.DictReader(io.TextIOWrapper(file, "ascii")))
places = sorted({row["dest"] for row in rows})
with open(sys.argv[2], "w") as file:
    file.write(",".join(["dimension", "group", *places]) + "\n")
    for name in NAMES:
        counts = collections.Counter((row[name], row["dest"]) for row in rows)
        groups = sorted({group for group, _ in counts}, key=lambda text: (len(text), text))
        for group in groups:
            file.write(",".join([name, group, *(str(counts[group, place]) for place in places)]) + "\n")
