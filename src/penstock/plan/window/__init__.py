"""Windows: which stretches of a stream an answer is about.

Time counts in whole *ticks*: microseconds for a timestamp, days for a date, units for an integer attribute. A window
is half open, [start, start + size), and number w starts at `origin + w * slide`; w may be negative. All mathematics
here is closed form on integers and works on NumPy arrays alike, so nobody ever loops over windows.
"""

from penstock.plan.window.base import Window
from penstock.plan.window.count_window import CountWindow
from penstock.plan.window.extent import OVERLAPPING, Extent
from penstock.plan.window.landmark_window import LandmarkWindow
from penstock.plan.window.session_window import SessionWindow
from penstock.plan.window.ticks import Ticks, Unit, from_tick, to_tick
from penstock.plan.window.time_window import TimeWindow

__all__ = [
    "OVERLAPPING", "CountWindow", "Extent", "GatheredWindow", "LandmarkWindow", "SessionWindow", "Ticks", "TimeWindow",
    "Unit", "Window", "from_tick", "to_tick",
]  # fmt: skip

#: Windows that only their aggregate can tell: an event's windows depend on the events around it, or are endless.
GatheredWindow = CountWindow | LandmarkWindow | SessionWindow
