"""Impute, one event at a time: a map."""

from __future__ import annotations

from penstock.operators.map.reference import MapReference


class ImputeReference(MapReference):
    """Each event has its turn when it arrives. A budget spreads work over epochs, and here are none.

    So what leaves is what leaves the queue of the engine sooner or later, and nothing is ever held.
    """
