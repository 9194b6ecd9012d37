"""Departures and mean delay per airport and day, over the files that `penstock demo` leaves behind.

penstock demo
penstock run examples/flights.py --trigger available_now
penstock run examples/flights.py:long_delays --trigger available_now
"""

import penstock as ps

flights = (
    ps.stream("flights", "sched timestamp, origin string, carrier string, flight int, dep_delay int", time="sched")
    .read_parquet("demo-out/input", order="name")
    .disorder("24 h")  # nobody left more than a day late, so nothing goes to the dead letters
    .ends()
)

query = (
    flights.window("1 day")
    .group_by("origin")
    .agg(departures="count(dep_delay)", cancelled="count(*) - count(dep_delay)", mean_delay="avg(dep_delay)")
)

long_delays = flights.where("dep_delay > 600").select("sched", "carrier", "flight", "origin", hours="dep_delay / 60.0")

settings = {"max_rows": 50_000}
