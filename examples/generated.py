"""A query over generated events: nothing to download, nothing to prepare.

penstock explain examples/generated.py
penstock trace   examples/generated.py --rows 5
penstock run     examples/generated.py --trigger available_now --max-rows 100000
"""

import penstock as ps

events = ps.generate("events", rate=10_000, rows=500_000, seed=7, disorder="2 s")

query = events.window("10 s").group_by("key").agg(n="count(*)", mean="avg(value)").where("n > 0")
