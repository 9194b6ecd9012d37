"""What all windows have in common, and the factories that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from penstock.errors import UserError
from penstock.pattern.arguments import worded
from penstock.pattern.restriction import Restriction
from penstock.pattern.schema import Schema
from penstock.plan.window.extent import Extent

if TYPE_CHECKING:
    from penstock.plan.window.count_window import CountWindow
    from penstock.plan.window.landmark_window import LandmarkWindow
    from penstock.plan.window.session_window import SessionWindow
    from penstock.plan.window.time_window import TimeWindow


@worded
class Window(ABC):
    """How events are gathered into windows. Make one with a factory:

    >>> Window.tumbling("10 s", on="ts")
    Window.tumbling('10 s', on='ts')
    >>> Window.sliding("2 min", "0 s")
    Traceback (most recent call last):
    penstock.errors.UserError: window slide: '0 s' is not positive. Hint: write a positive duration such as '30 s'
    """

    on: str | None

    @staticmethod
    def tumbling(size: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1) -> TimeWindow:
        """Windows side by side: every event is in exactly one."""
        from penstock.plan.window.time_window import time_window

        return time_window(size, size, on, origin, granularity)

    @staticmethod
    def sliding(
        size: Extent, slide: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1
    ) -> TimeWindow:
        """A window of `size` every `slide`. With a slide longer than the size there are gaps: see `hopping`."""
        from penstock.plan.window.time_window import time_window

        return time_window(size, slide, on, origin, granularity)

    @staticmethod
    def hopping(
        size: Extent, slide: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1
    ) -> TimeWindow:
        """The same as `sliding`; the name says that gaps are meant."""
        from penstock.plan.window.time_window import time_window

        return time_window(size, slide, on, origin, granularity)

    @staticmethod
    def landmark(every: Extent, *, on: str | None = None, origin: Any = 0, granularity: Extent = 1) -> LandmarkWindow:
        """Windows that all begin at the origin and end one period after the other; named by their ends.

        >>> Window.landmark("1 h", on="ts", origin="2026-01-01 00:00:00")
        Window.landmark('1 h', on='ts', origin='2026-01-01 00:00:00')
        """
        from penstock.plan.window.landmark_window import landmark_window

        return landmark_window(every, on, origin, granularity)

    @staticmethod
    def count(size: int, slide: int | None = None) -> CountWindow:
        """Windows of `size` successive events of a group, a new one every `slide` events.

        >>> Window.count(100, 10)
        Window.count(100, 10)
        """
        from penstock.plan.window.count_window import count_window

        return count_window(size, slide)

    @staticmethod
    def session(gap: Extent, *, on: str | None = None, granularity: Extent = 1) -> SessionWindow:
        """Windows that last as long as no two successive events of a group are more than `gap` apart.

        >>> Window.session("10 min", on="ts")
        Window.session('10 min', on='ts')
        """
        from penstock.plan.window.session_window import session_window

        return session_window(gap, on, granularity)

    @property
    def label(self) -> str:
        """The name of the attribute that holds the label."""
        return "window_start"

    @abstractmethod
    def resolve(self, schema: Schema) -> Window:
        """This window in the ticks of a stream's attribute; a window that does not fit the stream is a UserError."""

    @abstractmethod
    def label_type(self, schema: Schema) -> pa.DataType:
        """The type of the label."""

    @abstractmethod
    def closed_by(self, *times: Restriction, of: pa.DataType | None = None) -> tuple[Restriction, ...]:
        """The labels of the windows all of whose possible events match one of the restrictions, in pieces.

        Of a type that has a least and a greatest value, no event lies beyond.
        """

    def on_grid(self, step: int, phase: int) -> Self:
        """The same over an attribute of which only every so many ticks occur, where that says more than is declared."""
        return self

    @abstractmethod
    def confined_to(self, label: Restriction) -> tuple[Restriction, ...]:
        """The times of events that belong to no window but those whose labels match, in pieces.

        Nobody misses such an event when nobody wants these windows. That holds for events of no window at all too;
        of gaps between windows, the pieces have those that they touch.
        """

    def _check_label(self, schema: Schema, label: str | None = None) -> None:
        name = label or self.label
        if schema.resolve(name) is not None:
            raise UserError(
                f"{self!r}: the stream already has an attribute '{name}'", hint="rename it before the window"
            )
