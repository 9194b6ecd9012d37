"""Labels events with their windows, in SQL on whole ticks: no loop over windows, exact before 1970 too.

Events without a time, and events in a gap between windows, belong to no window and get no row.
"""

from __future__ import annotations

from penstock.errors import UserError
from penstock.kernels.duck import OFF_GRID, quote
from penstock.kernels.ticks import calendar
from penstock.plan.window import CountWindow, LandmarkWindow, SessionWindow, TimeWindow, Window
from penstock.plan.window.on_attribute import LABEL_TYPES
from penstock.sql.fallible import Fallible

_EPOCH_DATE = "DATE '1970-01-01'"


def bucket_sql(input_sql: str, window: Window) -> str:
    """SQL that appends the label to the rows of `input_sql`: one row per event and window.

    >>> import pyarrow as pa
    >>> from penstock.pattern.schema import Schema
    >>> from penstock.kernels.duck import query
    >>> w = Window.sliding(10, 5).resolve(Schema.parse("t int", time="t"))
    >>> query(bucket_sql("SELECT * FROM events", w), events=pa.table({"t": [-1, 7]})).to_pydict()
    {'t': [-1, -1, 7, 7], 'window_start': [-10, -5, 0, 5]}
    """
    if not isinstance(window, TimeWindow):
        raise UserError(
            f"{window!r} has no labels of its own: an event's windows depend on the events around it",
            hint="follow it by group_by(…).agg(…)",
        )
    tick = tick_sql(window)
    label = label_sql(window, '"__window"')
    # Not by name: of the attributes, only those that somebody needs may be there.
    numbers = f"SELECT *, {number_sql(window, tick)} AS __window FROM ({input_sql})"
    labelled = f"SELECT * EXCLUDE (__window), {label} AS {quote(window.label)}"
    return f"{labelled} FROM ({numbers} WHERE {member_sql(window, tick)})"


def tick_sql(window: TimeWindow | LandmarkWindow | SessionWindow) -> str:
    """The tick of an event's time. One that lies off the declared grid is an error.

    Punctuation is translated on the word that there is none: such an event could come after its window was closed.
    """
    assert window.on is not None
    column = quote(window.on)
    if window.unit == "us":
        tick = f"epoch_us({column})"
    else:
        tick = f"({column} - {_EPOCH_DATE})" if window.unit == "day" else f"CAST({column} AS BIGINT)"
    if window.granularity == 1:
        return tick
    said = f"{OFF_GRID}: '{window.on}' of an event is not a multiple of the granularity of {window!r}".replace(
        "'", "''"
    )
    return f"CASE WHEN {tick} % {window.granularity} <> 0 THEN CAST(error('{said}') AS BIGINT) ELSE {tick} END"


def tried(window: Window) -> tuple[Fallible, ...]:
    """What may fail when an event is put into its windows: a time off the grid, or too near the end of all time."""
    if isinstance(window, CountWindow):
        return ()
    assert isinstance(window, TimeWindow | LandmarkWindow | SessionWindow)
    tick = tick_sql(window)
    text = f"the window of '{window.on}'"
    if isinstance(window, SessionWindow):
        return (Fallible(text, end_sql(window, tick)),)
    if isinstance(window, LandmarkWindow):
        return (Fallible(text, label_sql(window, f"(({tick} - {window.origin}) // {window.every} + 1)")),)
    shifts = {0, window.size} if window.size > window.slide else {0}
    numbers = (f"({floor_sql(_since(window, tick, shift), window.slide)} + {int(shift > 0)})" for shift in shifts)
    return tuple(Fallible(text, label_sql(window, number)) for number in numbers)


def members_sql(input_sql: str, window: Window) -> str:
    """SQL for those rows of `input_sql` that are in some window: nothing is asked of the others.

    >>> members_sql("FROM events", Window.landmark(10, on="t"))
    'SELECT * FROM (FROM events) WHERE (CAST("t" AS BIGINT) - 0) >= 0'
    """
    if isinstance(window, CountWindow):
        return input_sql
    assert isinstance(window, TimeWindow | LandmarkWindow | SessionWindow)
    tick = tick_sql(window)
    if isinstance(window, SessionWindow):
        return f"SELECT * FROM ({input_sql}) WHERE {tick} IS NOT NULL"
    inside = f"({tick} - {window.origin}) >= 0" if isinstance(window, LandmarkWindow) else member_sql(window, tick)
    return f"SELECT * FROM ({input_sql}) WHERE {inside}"


def floor_sql(dividend: str, divisor: int) -> str:
    """Division rounded down: DuckDB's // rounds towards zero."""
    return f"CASE WHEN {dividend} >= 0 THEN {dividend} // {divisor} ELSE ({dividend} + 1) // {divisor} - 1 END"


def number_sql(window: TimeWindow | CountWindow, tick: str) -> str:
    """The numbers of a tick's windows, as many rows as there are windows."""
    if window.size <= window.slide:
        return floor_sql(_since(window, tick), window.slide)
    last = floor_sql(_since(window, tick), window.slide)
    first = f"{floor_sql(_since(window, tick, window.size), window.slide)} + 1"
    if isinstance(window, CountWindow):
        first = f"greatest(0, {first})"
    return f"unnest(range({first}, {last} + 1))"


def member_sql(window: TimeWindow | CountWindow, tick: str) -> str:
    """Whether a tick is in any window: it has a time, and it lies in no gap."""
    if window.size >= window.slide:
        return f"{tick} IS NOT NULL"
    since = _since(window, tick)
    return f"{since} - ({floor_sql(since, window.slide)}) * {window.slide} < {window.size}"


def pane_sql(window: TimeWindow | CountWindow, tick: str) -> str:
    """The number of the pane of a tick: panes are the stretches that no window cuts."""
    return floor_sql(_since(window, tick), window.pane)


def pane_tick_sql(window: TimeWindow | CountWindow, pane: str) -> str:
    """The first tick of a pane."""
    return f"({_origin(window)} + {pane} * {window.pane})"


def label_sql(window: Window, number: str) -> str:
    """The label of a window by its number."""
    if isinstance(window, CountWindow):
        return f"{number} * {window.slide}"
    assert isinstance(window, TimeWindow | LandmarkWindow)
    step = window.every if isinstance(window, LandmarkWindow) else window.slide
    return moment_sql(window, f"({window.origin} + {number} * {step})")


def moment_sql(window: TimeWindow | LandmarkWindow | SessionWindow, tick: str) -> str:
    """The value of a tick."""
    if window.unit == "us":
        return f"make_timestamp({tick})"
    return f"({_EPOCH_DATE} + CAST({tick} AS INTEGER))" if window.unit == "day" else f"CAST({tick} AS BIGINT)"


def end_sql(window: SessionWindow, tick: str) -> str:
    """The end of a session whose last event has this tick. One beyond the calendar is an error."""
    end = f"({tick} + {window.gap})"
    if window.unit != "unit":
        _, last = calendar(LABEL_TYPES[window.unit])
        said = f"the end of {window!r} is out of range: it lies behind the year 9999".replace("'", "''")
        end = f"CASE WHEN {end} > {last} THEN CAST(error('{said}') AS BIGINT) ELSE {end} END"
    return moment_sql(window, f"({end})")


def _origin(window: TimeWindow | CountWindow) -> int:
    return window.origin if isinstance(window, TimeWindow) else 0


def _since(window: TimeWindow | CountWindow, tick: str, earlier: int = 0) -> str:
    shift = _origin(window) + earlier
    return f"({tick} - {shift})" if shift else tick
