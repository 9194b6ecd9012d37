"""The operators: one room each, with all that is known of it. Who imports one knows them all."""

from penstock.operators import (
    aggregate,
    count_aggregate,
    distinct,
    impute,
    instrument,
    join,
    landmark_aggregate,
    limit,
    lookup,
    map,
    multijoin,
    order_by,
    pace,
    process,
    project,
    revised_aggregate,
    revised_join,
    rows_join,
    select,
    sink,
    source,
    top,
    union,
    window,
)
from penstock.plan.spec import register

ROOMS = (
    source,
    sink,
    select,
    project,
    map,
    lookup,
    union,
    pace,
    instrument,
    window,
    aggregate,
    revised_aggregate,
    count_aggregate,
    landmark_aggregate,
    distinct,
    order_by,
    limit,
    top,
    impute,
    process,
    join,
    revised_join,
    rows_join,
    multijoin,
)

for _room in ROOMS:
    register(_room.SPEC)
