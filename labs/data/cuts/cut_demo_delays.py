"""Count arrival delays by day: python cut_demo_delays.py flights-3m.parquet delays_2001_03.csv.bz2."""

import bz2
import sys

import numpy as np
import pyarrow.parquet as pq

first, after = np.datetime64("2001-02-14"), np.datetime64("2001-03-17")
table = pq.read_table(sys.argv[1], columns=["delay", "date"])
dates, delays = table["date"].to_numpy(), table["delay"].to_numpy()
used = (dates >= first) & (dates < after)
days, minutes = np.arange(first, after), np.arange(-60, 100, 5)
counts = np.zeros((len(minutes), len(days)), int)
row = np.searchsorted(minutes, np.clip(delays[used], -60, 95), side="right") - 1
np.add.at(counts, (row, (dates[used] - first) // np.timedelta64(1, "D")), 1)
lines = [["minutes", *days], *([minute, *of] for minute, of in zip(minutes, counts))]
with open(sys.argv[2], "wb") as file:
    file.write(bz2.compress("".join(",".join(map(str, line)) + "\n" for line in lines).encode("ascii")))
