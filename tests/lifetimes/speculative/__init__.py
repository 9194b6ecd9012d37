"""Operators on speculative streams, one event at a time: answers now, corrections later.

Tuples have lifetimes, retractions shorten them, CTIs say what is final. The operators answer each event at once and
repair what they said when a later one contradicts it; the tests compare what they come to with the definitions.

- `stream_class`: what kind of stream it is; its events and what they say are in `penstock.reference.lifetimes`
- `snapshot` with `state`: aggregates of what holds at each moment; `grouped`: one for each group
- `filter`, `alter_lifetime`, `equijoin`: the other operators
- `align`, `finalize`: how long to wait, and how long to remember
- `trace`: what an engine holds and says, event by event

>>> from penstock.reference.lifetimes.event import events
>>> from penstock.reference.lifetimes.history import fold
>>> from speculative.operator import feed
>>> from penstock.reference.lifetimes.oracle import COMBINE, snapshot
>>> from speculative.snapshot import MinimumLatency
>>> from speculative.state import STATES
>>> stream = events("I(1,10,5) I(4,8,3) R(4,8,5,3)")
>>> early = feed(MinimumLatency(STATES["sum"], cti="strict"), stream)
>>> early
[I(1,10,5), R(1,10,4,5), I(4,8,8), I(8,10,5), R(4,8,5,8), R(8,10,8,5), I(5,10,5)]
>>> fold(early) == snapshot(fold(stream), COMBINE["sum"])
True
"""
