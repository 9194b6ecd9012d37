"""A running query: started, watched, stopped.

The epochs run in a thread of their own. Ctrl-C, or leaving the `with` block, lets the epoch under way finish.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.checkpoint.checkpoint import Checkpoint
from penstock.checkpoint.storage import Storage, below
from penstock.engine.admission import Admission
from penstock.engine.epoch.driver import Driver
from penstock.engine.epoch.shedding import SheddingWish
from penstock.engine.progress import Progress
from penstock.engine.reservation import reserve
from penstock.engine.settings import TUNABLE, Settings, check_setting
from penstock.engine.source.letter import DEAD_LETTER_SCHEMA
from penstock.engine.spark.failure import explain_failure, is_spark_failure
from penstock.engine.unread import check_unread
from penstock.engine.watch_bounds import watching
from penstock.errors import UserError, did_you_mean
from penstock.feedback.contract_record import record_contract
from penstock.feedback.handle import Talking
from penstock.pattern.duration import parse_duration
from penstock.plan.plan import Plan
from penstock.plan.promise import Inbox

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TriggerName = Literal["once", "available_now"]


@dataclass(frozen=True)
class Trigger:
    """When epochs start.

    >>> Trigger.available_now(), Trigger.every("500 ms")
    (Trigger.available_now(), Trigger.every('500 ms'))
    """

    kind: Literal["once", "available_now", "every"]
    period: str = ""

    @classmethod
    def once(cls) -> Trigger:
        """One epoch with everything there is, then stop."""
        return cls("once")

    @classmethod
    def available_now(cls) -> Trigger:
        """As many epochs as it takes to read everything there is, then stop."""
        return cls("available_now")

    @classmethod
    def every(cls, period: str) -> Trigger:
        """An epoch every period (at once again if it took longer), until stopped."""
        parse_duration(period, where="trigger")
        return cls("every", period)

    @property
    def bounded(self) -> bool:
        return self.kind != "every"

    @property
    def text(self) -> str:
        return self.period if self.kind == "every" else self.kind

    @property
    def seconds(self) -> float:
        return parse_duration(self.period, where="trigger") / 1e6 if self.kind == "every" else 0.0

    def __repr__(self) -> str:
        return f"Trigger.{self.kind}({repr(self.period) if self.period else ''})"


class Run(Talking):
    """The handle of a running query."""

    def __init__(
        self,
        plan: Plan,
        *,
        trigger: Trigger,
        checkpoint: str | None,
        dead_letters: str | None,
        settings: Settings,
        spark: SparkSession | Callable[[], SparkSession],
        listener: Callable[[Progress], None] | None = None,
        admission: Admission | None = None,
        feedback: Sequence[str] = (),
        wish: SheddingWish | None = None,
    ) -> None:
        self.trigger = trigger
        self.history: deque[Progress] = deque(maxlen=10_000)
        self._listener = listener
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._letters: pa.Table | None = None
        self._held = reserve(plan, checkpoint=checkpoint, dead_letters=dead_letters, settings=settings)
        # Under the names that its checkpoint has for operators and sinks.
        self._plan = plan = self._held.plan
        self._watch = watching(plan)
        self._targets, storage = self._held.targets, self._held.storage
        self.checkpoint = storage
        self._inboxes: list[Any] = []
        try:
            # Only now: whoever is refused should not have to wait for Spark.
            self.spark = spark = spark() if callable(spark) else spark
            if trigger.kind == "once":
                settings = Settings(**{**vars(settings), "max_rows": None, "max_bytes": None})
            paths = self._open_inboxes(storage)
            self.driver = Driver(
                self._plan,
                spark,
                Checkpoint(storage, self._held.lock.records, self._held.lock.check),
                self._targets,
                settings,
                bounded=trigger.bounded,
                inboxes=paths,
                listener=self._progress,
                wish=wish,
            )
            self.driver.hurried = trigger.kind != "once"
            self.driver.every = trigger.seconds
            self.driver.recover()
            #: Where an earlier run has left off; its epoch is 0 if there was none.
            self.resumed = self.driver.manifest
            record_contract(storage, self._plan)
            for text in feedback:
                self.feedback(text)
            if admission is not None:
                admission.record(storage)
                self.warnings.extend(admission.warnings)
        except BaseException as error:
            cause = self._held.lock.cause_of(error)
            self._release()
            if cause is error and is_spark_failure(error):
                raise explain_failure(error) from error
            if cause is not error:
                raise cause from error
            raise
        self._thread = threading.Thread(target=self._loop, name="penstock-epochs", daemon=True)
        self._thread.start()

    def _open_inboxes(self, storage: Storage) -> dict[str, str]:
        paths: dict[str, str] = {}
        for node in self._plan.sources:
            reader = getattr(node.operator, "reader", None)
            if isinstance(reader, Inbox):
                from penstock.engine.source.inbox import start_inbox

                name = f"inbox/{node.id.replace(':', '_')}"
                folder = below(storage.url, name)
                place = storage.spark_path(f"{name}-spark")
                self._inboxes.append(start_inbox(reader.frame, folder, place, self.trigger.text, storage.durable))
                paths[node.id] = folder
        return paths

    # --- the loop -----------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        try:
            if self.trigger.bounded:
                for inbox in self._inboxes:  # Everything there is has to be in before the first epoch.
                    inbox.wait()
            while not self._stop.is_set():
                for inbox in self._inboxes:
                    inbox.check()
                began = time.monotonic()
                self._held.lock.check()
                worked = self.driver.step()
                if self.trigger.kind == "once" or (self.trigger.bounded and not worked):
                    check_unread(self.driver.readers)
                    break
                if not self.trigger.bounded:
                    left = self.trigger.seconds - (time.monotonic() - began)
                    self.driver.hurried = left <= 0
                    self._stop.wait(max(0.0, left))
            self.driver.finish()
        except BaseException as error:
            self._error = self._held.lock.cause_of(error)
        finally:
            with contextlib.suppress(Exception):
                self.driver.close()
            self._release()

    def _progress(self, progress: Progress) -> None:
        self.history.append(progress)
        if self._watch is not None:
            self.warnings.extend(self._watch.see(progress, self.driver.manifest.units, self.driver.promises))
        if self._listener is not None:
            self._listener(progress)

    def _release(self) -> None:
        for inbox in self._inboxes:
            with contextlib.suppress(Exception):
                inbox.stop()
        self._held.release()
        if self._held.temporary:
            with contextlib.suppress(Exception):
                self._letters = self.dead_letters()  # The folder goes, the letters stay.
            self._held.discard()

    # --- for the user -------------------------------------------------------------------------------------------

    @property
    def sinks(self) -> dict[str, str]:
        """By name, as `to=` takes it, what each sink is."""
        return {n.id: n.operator.detail for n in self._plan.sinks}

    @property
    def active(self) -> bool:
        return self._thread.is_alive()

    @property
    def progress(self) -> Progress | None:
        """The last epoch, None before the first."""
        return self.history[-1] if self.history else None

    @property
    def final_up_to(self) -> dict[str, dict[str, str]]:
        """By sink and attribute the value below which all results are final; `end` where all of them are."""
        return {name: final.up_to for name, final in self.driver.final.items()}

    @property
    def warnings(self) -> list[str]:
        """What its user should know: state that is not released, tables that could not be read anew, repairs."""
        return self.driver.checkpoint.warnings

    @property
    def waiting(self) -> tuple[str, ...]:
        """The files that are not read yet because they are not whole or cannot be read, each with the reason."""
        return tuple(f"{name}: {why}" for r in self.driver.readers.values() for name, why in r.waiting)

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the run ends (or `timeout` seconds); an error of the run is raised here."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while self._thread.is_alive():
                left = 0.2 if deadline is None else min(0.2, deadline - time.monotonic())
                if left <= 0:
                    break
                self._thread.join(left)  # In small steps, so that Ctrl-C is heard.
        except KeyboardInterrupt:
            self.stop()
        self._raise()
        return self

    def tune(self, **settings: Any) -> None:
        """Change how the run goes about its work, from the next epoch on; none of it changes what it computes.

        `max_rows` and `max_bytes` of an epoch; `rewrite_above`, the share of dead rows at which a join rewrites a run
        of its state (0.5), and `merge_above`, the number of runs from which an operator merges some (8): less of either
        saves space and costs work.
        """
        for name, value in settings.items():
            if name not in TUNABLE:
                raise UserError(
                    f"tune({name}=…): it cannot be changed while the query runs", hint=did_you_mean(name, TUNABLE)
                )
            check_setting(name, value)
        self.driver.settings = replace(self.driver.settings, **settings)

    def stop(self) -> None:
        """Finish the epoch under way, then end."""
        self._stop.set()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None and not self._thread.is_alive():
            error, self._error = self._error, None
            raise error

    def dead_letters(self) -> pa.Table:
        """Everything that was not let in, with the reasons."""
        if self._letters is not None:
            return self._letters
        storage = self._targets["dead"].staging.storage
        tables = [
            pq.read_table(storage.path(n), filesystem=storage.filesystem)
            for n in storage.names()
            if n.startswith("part-")
        ]
        return pa.concat_tables(tables) if tables else DEAD_LETTER_SCHEMA.empty_table()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.trigger.bounded:
            self.wait()
            return
        try:
            self.stop()
        except BaseException:
            if error is None:
                raise


def parse_trigger(trigger: Trigger | TriggerName | None, every: str | None) -> Trigger:
    """What `start(trigger=…, every=…)` means; neither is an epoch every half second."""
    if trigger is not None and every is not None:
        raise UserError("both a trigger and a time between epochs (every) are given", hint="give one of them")
    if every is not None:
        return Trigger.every(every)
    if isinstance(trigger, Trigger):
        return trigger
    if trigger is None:
        return Trigger.every("500 ms")
    if trigger not in ("once", "available_now"):
        raise UserError(
            f"trigger '{trigger}' is not possible",
            hint="'once' or 'available_now'; to run until it is stopped, leave it out, or say every='500 ms'",
        )
    return Trigger(trigger)
