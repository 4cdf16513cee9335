"""Messages by cell and kind: python cut_homelocator.py test_sample.csv homelocator_cells.csv."""

import collections
import csv
import datetime
import sys

SINGAPORE = datetime.timezone(datetime.timedelta(hours=8))


def modal(counter):
    return min(counter, key=lambda cell: (-counter[cell], int(cell)), default=None)


checkins, night, day = (collections.defaultdict(collections.Counter) for _ in range(3))
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        person, cell = row["u_id"], row["grid_id"]
        time = datetime.datetime.fromtimestamp(float(row["created_at"]), SINGAPORE)
        checkins[person][cell] += 1
        if time.hour >= 22 or time.hour < 6:
            night[person][cell] += 1
        elif time.weekday() < 5 and 9 <= time.hour < 18:
            day[person][cell] += 1
table = collections.defaultdict(collections.Counter)
for person, cells in checkins.items():
    home = modal(night[person])
    work = modal(collections.Counter({cell: n for cell, n in day[person].items() if cell != home}))
    for cell, number in cells.items():
        table[cell]["home" if cell == home else "work" if cell == work else "elsewhere"] += number
with open(sys.argv[2], "w") as file:
    file.write("cell,elsewhere,home,work\n")
    for cell in sorted(table, key=int):
        file.write(f"{cell},{table[cell]['elsewhere']},{table[cell]['home']},{table[cell]['work']}\n")
