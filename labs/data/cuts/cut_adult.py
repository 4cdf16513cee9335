"""Count the people of Adult by category: python cut_adult.py adult.data adult.test adult_12800.csv."""

import collections
import csv
import sys

AGES, HOURS = (20, 25, 30, 35, 40, 50, 60), (41,)  # lower ends of all bands but the first
SCHOOLING = (9, 10, 13, 14)  # of education-num: no diploma | high school | some college | bachelor | more
MARITAL = {"Married-civ-spouse": 0, "Married-AF-spouse": 0, "Never-married": 1, "Divorced": 2, "Widowed": 4}


def band(number, ends):
    return sum(int(number) >= end for end in ends)


def attributes(row):
    yield 8, band(row[0], AGES)
    yield 5, band(row[4], SCHOOLING)
    yield 5, MARITAL.get(row[5], 3)  # 3: separated, or the spouse is absent
    yield 2, row[9] == "Male"
    yield 2, row[14].startswith(">50K")
    yield 2, band(row[12], HOURS)
    yield 2, row[13] == "United-States"
    yield 2, row[8] == "White"
    yield 2, row[1] == "Private"


cells = collections.Counter()
for name in sys.argv[1:3]:
    with open(name, newline="") as file:
        for row in csv.reader(file, skipinitialspace=True):
            if len(row) == 15:
                cell = 0
                for size, category in attributes(row):
                    cell = cell * size + int(category)
                cells[cell] += 1
with open(sys.argv[3], "w") as file:
    file.write("cell,people\n" + "".join(f"{cell},{cells[cell]}\n" for cell in sorted(cells)))
