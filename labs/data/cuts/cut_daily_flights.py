"""Count departures by day: python cut_daily_flights.py flights-3m.parquet flights_2001_daily.csv.gz."""

import gzip
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq

table = pq.read_table(sys.argv[1], columns=["origin", "date"])
days = pc.strftime(table["date"], format="%Y-%m-%d")
table = table.set_column(1, "date", days).group_by(["date", "origin"]).aggregate([([], "count_all")]).to_pydict()
counts = dict(zip(zip(table["date"], table["origin"]), table["count_all"]))
airports, dates = sorted(set(table["origin"])), sorted(set(table["date"]))[:-1]  # of the last day there are 6
lines = [
    ",".join(["date", *airports]),
    *(",".join([d, *(str(counts.get((d, a), 0)) for a in airports)]) for d in dates),
]
with open(sys.argv[2], "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
    packed.write("".join(f"{line}\n" for line in lines).encode("ascii"))
