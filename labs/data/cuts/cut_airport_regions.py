"""The region of each airport and its departures of half a year.

python cut_airport_regions.py airports.csv flights_2001_daily.csv.gz airport_regions.csv
"""

import csv
import gzip
import sys

REGIONS = {
    "New England": "CT ME MA NH RI VT",
    "Middle Atlantic": "NJ NY PA",
    "East North Central": "IL IN MI OH WI",
    "West North Central": "IA KS MN MO NE ND SD",
    "South Atlantic": "DE DC FL GA MD NC SC VA WV PR VI",
    "East South Central": "AL KY MS TN",
    "West South Central": "AR LA OK TX",
    "Mountain": "AZ CO ID MT NV NM UT WY",
    "Pacific": "AK CA HI OR WA",
}
"""Divisions of the US Census Bureau by state; the airports of Puerto Rico and the Virgin Islands are counted south."""

MISSING = {"MQT": "MI"}
"""Airports whose state is missing in the file."""

with open(sys.argv[1], encoding="utf-8") as file:
    states = {row["iata"]: row["state"] for row in csv.DictReader(file)} | MISSING
with gzip.open(sys.argv[2], "rt", encoding="ascii") as file:
    rows = list(csv.reader(file))
region_of = {state: region for region, own in REGIONS.items() for state in own.split()}
with open(sys.argv[3], "w", encoding="utf-8") as out:
    out.write("airport,region,departures\n")
    for place, airport in enumerate(rows[0][1:], 1):
        out.write(f"{airport},{region_of[states[airport]]},{sum(int(row[place]) for row in rows[1:])}\n")
