"""The operators: one room each, with all that is known of it. Who imports one knows them all."""

from importlib import import_module

from penstock.plan.spec import register

ROOMS = (
    "source", "sink", "changes", "select", "project", "map", "lookup", "union", "pace", "instrument", "window", "align",
    "aggregate", "revised_aggregate", "latest", "settle", "fold",
    "count_aggregate", "landmark_aggregate", "session_aggregate", "snapshot", "distinct", "order_by", "limit", "top",
    "revised_top", "alter_lifetime", "impute", "process", "join", "revised_join", "rows_join", "lifetime_join",
    "multijoin",
)  # fmt: skip

for _room in ROOMS:
    register(import_module(f"{__name__}.{_room}").SPEC)
