"""The tasks that stay, as the driver sees them: one job of Spark's, orders out, reports in.

Spark places the tasks, one per core, starts them and ends them; the manifest of the checkpoint stays the only truth. So
whatever becomes of them, `LostResidentError` is all there is to say: the epoch is run again, as an ordinary job, and
the next one by new tasks. They hold slots of the session all the time, therefore

- they are given back when no epoch was run for a while, and when other jobs wait for them;
- a session that Penstock starts itself has twice as many slots as cores, so that nobody need wait.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import secrets
import shutil
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from penstock.engine.spark.session import is_local, unix_sockets_work
from penstock.engine.tasks.exchange import Parcel
from penstock.engine.tasks.job import Job
from penstock.engine.tasks.merge import Merge, merge
from penstock.engine.tasks.report import TaskReport
from penstock.engine.tasks.resident import Address, Done, Door, Order, Shelf, reside
from penstock.engine.tasks.scan import scan

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Seconds that tasks have to come; where slots are scarce, the ordinary way is better.
PATIENCE = 20.0
#: Seconds without an order after which the slots are given back.
IDLE = 10.0
#: Seconds after a failed start, or after slots were given back to others, until the next try.
REST = 10.0
_LOCAL = re.compile(r"local\[(\d+|\*)")


class LostResidentError(Exception):
    """A task that stays has died, does not answer, or has failed: the epoch is to be run again."""


@dataclass
class Seat:
    """One task that stays. One order at a time: whoever has the lock may talk to it."""

    line: Connection
    pid: int
    address: Address
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: What its shelf need not keep any more.
    forget: list[str] = field(default_factory=list)

    def hang_up(self) -> None:
        """Let go of the task; who waits for its answer is told at once, which closing the line alone would not do."""
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.line.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
        # While somebody waits, only they may close it: the number of a closed file may soon belong to another one.
        if self.lock.acquire(blocking=False):
            self.line.close()
            self.lock.release()


class Residents:
    """The tasks of one session that stay, shared by all its queries."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self.size = context.defaultParallelism
        self.key = secrets.token_bytes(32)
        self.group = f"penstock-resident-{secrets.token_hex(4)}"
        self.seats: dict[int, Seat] = {}
        self.ready, self.over = threading.Event(), threading.Event()
        self.used = time.monotonic()
        self.busy = 0
        self._counter = 0
        self._lock = threading.Lock()
        local = is_local(context.master or "")
        self._folder = tempfile.mkdtemp(prefix="penstock-") if local and unix_sockets_work() else None
        host = "127.0.0.1" if local else context.getConf().get("spark.driver.host", "127.0.0.1")
        self._door = Door(os.path.join(self._folder, "hub") if self._folder else (host or "", 0), self.key, self._seat)
        self._thread = threading.Thread(target=self._job, name="penstock-residents", daemon=True)
        self._thread.start()

    def _job(self) -> None:
        """The job that does not end; when it does, for whatever reason, nobody is there any more."""
        # Whoever waits for an answer finds out how it ended.
        with contextlib.suppress(Exception):
            self.context.setJobGroup(self.group, "Penstock: tasks that stay", interruptOnCancel=True)
            work = partial(reside, self._door.address, self.key)
            self.context.parallelize(range(self.size), self.size).mapPartitionsWithIndex(work).count()
        self.close()

    def _seat(self, line: Connection) -> None:
        try:
            index, pid, address = line.recv()
        except (EOFError, OSError):
            return
        with self._lock:
            if self.over.is_set() or index in self.seats:
                line.close()  # A second copy of a task, as Spark makes them of slow ones.
                return
            self.seats[index] = Seat(line, pid, address)
            if len(self.seats) == self.size:
                self.ready.set()

    def wait(self) -> bool:
        """Whether all of them are there; if they do not come, they are not waited for again."""
        deadline = time.monotonic() + PATIENCE
        while not self.ready.wait(0.05):
            if self.over.is_set() or time.monotonic() > deadline:
                self.close(lost=True)
                return False
        return not self.over.is_set()

    # --- work ---------------------------------------------------------------------------------------------------

    def scan_alone(self, job: Job, assignments: Sequence[str], patience: float) -> tuple[list[Shelf], list[TaskReport]]:
        """Run the scan; its parcels stay with the tasks until the merge fetches them."""
        name = self._name()
        # From the last on, since merging begins with the first: then a small scan runs beside a small merge.
        orders = [
            (
                self.size - 1 - i % self.size,
                Order(partial(scan, job, i), (a,), name=f"{name}-{i}", buckets=job.buckets, groups=job.groups),
            )
            for i, a in enumerate(assignments)
        ]
        return self._give(orders, patience)

    def merge_alone(
        self, job: Job, merging: Merge, shelves: Sequence[Shelf], levels: int, patience: float
    ) -> list[TaskReport]:
        """Run the merge, level by level."""
        found: list[TaskReport] = []
        for level in range(1, levels + 1):
            name = self._name()
            orders = [
                (
                    group % self.size,
                    Order(
                        partial(merge, job, merging, level, group),
                        shelves=tuple(shelves),
                        group=group,
                        name=f"{name}-{group}",
                        buckets=job.buckets,
                        groups=job.groups,
                    ),
                )
                for group in range(job.groups)
            ]
            fetched = shelves
            shelves, reports = self._give(orders, patience)
            self._forget(fetched)
            found += reports
            if any(r.error is not None for r in reports):
                self._forget(shelves)
                break
        return found

    def scan_and_merge(
        self, job: Job, merging: Merge, assignments: Sequence[str], patience: float
    ) -> tuple[list[TaskReport], list[TaskReport]]:
        """Have one of them do all of an epoch; no parcel leaves it."""
        order = Order(partial(_all_of_it, job, merging), tuple(assignments), buckets=job.buckets, groups=job.groups)
        _, found = self._give([(0, order)], patience)
        return [r for r in found if r.scanned], [r for r in found if not r.scanned]

    def _name(self) -> str:
        with self._lock:
            self._counter += 1
            return str(self._counter)

    def _forget(self, shelves: Sequence[Shelf]) -> None:
        for shelf in shelves:
            for seat in self.seats.values():
                if seat.address == shelf.address:
                    seat.forget.append(shelf.name)

    def _give(self, orders: Sequence[tuple[int, Order]], patience: float) -> tuple[list[Shelf], list[TaskReport]]:
        """Give orders to tasks, one at a time to each, and wait for all; in the order they were given."""
        by_seat: dict[int, list[tuple[int, Order]]] = {}
        for at, (index, order) in enumerate(orders):
            by_seat.setdefault(index, []).append((at, order))
        answers: dict[int, tuple[Shelf, Done]] = {}
        held = [self.seats[i] for i in sorted(by_seat)]  # Always in this order: two who wait for each other would wait.
        deadline = time.monotonic() + patience
        for seat in held:
            seat.lock.acquire()
        with self._lock:
            self.busy += 1
        try:
            waiting = {self.seats[i].line: (self.seats[i], todo) for i, todo in by_seat.items()}
            for seat, todo in waiting.values():
                self._send(seat, todo[0][1])
            while waiting:
                ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise LostResidentError(f"a task has not answered for {patience:.0f} s")
                for line in ready:
                    assert isinstance(line, Connection)
                    seat, todo = waiting[line]
                    at, order = todo.pop(0)
                    done: Done = line.recv()
                    if done.failed is not None:
                        raise LostResidentError(done.failed)
                    answers[at] = Shelf(seat.address, order.name), done
                    if todo:
                        self._send(seat, todo[0][1])
                    else:
                        del waiting[line]
        except (LostResidentError, EOFError, OSError) as error:
            self.close(lost=True)
            if isinstance(error, LostResidentError):
                raise
            raise LostResidentError("a task that stays has died") from error
        finally:
            with self._lock:
                self.busy -= 1
                self.used = time.monotonic()
            for seat in held:
                if self.over.is_set():
                    seat.line.close()
                seat.lock.release()
        done_in_order = [answers[i] for i in range(len(orders))]
        reports = [pickle.loads(r) for _, done in done_in_order for r in done.reports]
        return [shelf for shelf, done in done_in_order if done.parcels], reports

    def _send(self, seat: Seat, order: Order) -> None:
        forget, seat.forget = tuple(seat.forget), []
        seat.line.send(Order(**{**vars(order), "forget": forget}) if forget else order)

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self, *, lost: bool = False) -> None:
        """Give the slots back. Tasks end when their line does; those that are lost may not hear it."""
        with self._lock:
            if self.over.is_set():
                return
            self.over.set()
            seats = list(self.seats.values())
        self._door.close()
        for seat in seats:
            seat.hang_up()
        if lost and self._thread.is_alive():
            with contextlib.suppress(Exception):
                self.context.cancelJobGroup(self.group)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _all_of_it(job: Job, merging: Merge, assignments: Iterable[str]) -> Iterator[tuple[int, Parcel]]:
    scanned = [record for i, a in enumerate(assignments) for record in scan(job, i, (a,))]
    yield from merge(job, merging, 1, 0, scanned)


class Lodging:
    """Who decides whether tasks of a session stay: started when a small epoch comes, given back when they hinder."""

    def __init__(self, context: SparkContext) -> None:
        self.context = context
        self.residents: Residents | None = None
        self.rest_until = 0.0
        conf = context.getConf()
        # A copy of a task that stays would never be done first, or take the place of the other.
        self.possible = conf.get("spark.speculation", "false") != "true"
        self.spare = slots(context.master or "") > context.defaultParallelism
        self._lock = threading.Lock()

    def at_hand(self) -> Residents | None:
        """The tasks that stay, started if need be; None if this session has no room for them now."""
        if not self.possible:
            return None
        with self._lock:
            found = self.residents
            if found is None or found.over.is_set():
                if time.monotonic() < self.rest_until:
                    return None
                found = self.residents = Residents(self.context)
                threading.Thread(target=self._watch, args=(found,), name="penstock-lodging", daemon=True).start()
            if found.ready.is_set() or found.wait():
                found.used = time.monotonic()
                return found
            self.rest_until = time.monotonic() + REST
            return None

    def make_room(self) -> None:
        """Before an ordinary job: where slots are scarce, it would wait for those of the tasks that stay."""
        with self._lock:
            if self.residents is not None and not self.spare:
                self.residents.close()

    def _watch(self, residents: Residents) -> None:
        waited = False
        while not residents.over.wait(0.5):
            with self._lock:
                idle = not residents.busy and time.monotonic() - residents.used > IDLE
                waits = not self.spare and residents.ready.is_set() and self._somebody_waits(residents.group)
                # What Spark says of its tasks comes late: a stage that has just begun looks as if it waited.
                hindering, waited = waits and waited, waits
                if hindering:
                    self.rest_until = time.monotonic() + REST
                if idle or hindering:
                    residents.close()

    def _somebody_waits(self, group: str) -> bool:
        """Whether a stage of the session, other than those of `group`, has tasks that have not been started."""
        try:
            tracker = self.context.statusTracker()
            jobs = [tracker.getJobInfo(i) for i in tracker.getJobIdsForGroup(group)]
            own = {stage for job in jobs if job for stage in job.stageIds}
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds() if i not in own]
        except Exception:  # The session has ended, or is about to.
            return True
        return any(s.numTasks > s.numActiveTasks + s.numCompletedTasks + s.numFailedTasks for s in stages if s)


def slots(master: str) -> int:
    """How many tasks run at once on this machine; 0 where only Spark knows.

    >>> slots("local"), slots("local[3]"), slots("spark://host:7077")
    (1, 3, 0)
    """
    if master == "local":
        return 1
    found = _LOCAL.match(master)
    return 0 if found is None else (os.cpu_count() or 1) if found[1] == "*" else int(found[1])


_lodgings: weakref.WeakKeyDictionary[SparkContext, Lodging] = weakref.WeakKeyDictionary()


def lodging_of(context: SparkContext) -> Lodging | None:
    """Who decides for a session; None for what only looks like one, as tests have it."""
    if not hasattr(context, "statusTracker"):
        return None
    if context not in _lodgings:
        _lodgings[context] = Lodging(context)
    return _lodgings[context]
