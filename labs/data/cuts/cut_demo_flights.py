"""Count departures by airport and hour: python cut_demo_flights.py flights-3m.parquet flights_2001_03.csv.bz2."""

import bz2
import sys

import numpy as np
import pyarrow.parquet as pq

first, after = np.datetime64("2001-02-14"), np.datetime64("2001-03-17")
table = pq.read_table(sys.argv[1], columns=["origin", "date"])
dates, origins = table["date"].to_numpy(), table["origin"].to_numpy().astype(str)
used = (dates >= first) & (dates < after)
airports, row = np.unique(origins[used], return_inverse=True)
hours = np.arange(first, after, dtype="datetime64[h]").reshape(-1, 24).T.ravel()
column = np.argsort(hours)[(dates[used] - first) // np.timedelta64(1, "h")]
counts = np.zeros((len(airports), len(hours)), int)
np.add.at(counts, (row, column), 1)
lines = [["airport", *hours], *([name, *of] for name, of in zip(airports, counts))]
with open(sys.argv[2], "wb") as file:
    file.write(bz2.compress("".join(",".join(map(str, line)) + "\n" for line in lines).encode("ascii")))
