"""Sort delays by size: python cut_flight_delays.py flights-3m.parquet flight_delays_2001_03.csv.gz."""

import datetime
import gzip
import sys

import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

first, after = datetime.datetime(2001, 3, 4), datetime.datetime(2001, 3, 8)
table = pq.read_table(sys.argv[1], columns=["delay", "date"])
table = table.filter(pc.and_(pc.greater_equal(table["date"], first), pc.less(table["date"], after)))
days = pc.strftime(pc.floor_temporal(table["date"], unit="day"), "%Y-%m-%dT%H:%M:%SZ")
days = pc.replace_substring_regex(days, r"\.[0-9]+Z", "Z")
table = table.drop_columns(["date"]).rename_columns(["value"]).append_column("event_time", days)
table = table.sort_by([("event_time", "ascending"), ("value", "ascending")])
with open(sys.argv[2], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as file:
    pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(quoting_style="none"))
