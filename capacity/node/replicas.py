"""The replicas of this host: what is known of them, in memory and on disk alike."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from capacity.node import logs, processes
from capacity.node.inventory import Hardware, Inventory
from capacity.node.lifecycle import Watch
from capacity.node.record import Record, Store
from capacity.ports import Fence, Order

log = logging.getLogger(__name__)


class Replicas:
    """Not safe by itself: whoever reads or changes it holds `lock`."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self.lock = threading.RLock()
        self.now = clock
        self._store = store
        self._watches: dict[str, Watch] = {}
        self._fences = store.fences()
        self._records = self._adopted(store.load())

    # What is known

    def get(self, name: str) -> Record | None:
        """The replica of that name, exited ones too."""
        return self._records.get(name)

    def all(self) -> list[Record]:
        """All replicas by name, exited ones too."""
        return [record for _, record in sorted(self._records.items())]

    def holding(self) -> list[Record]:
        """Those that hold hardware."""
        return [record for record in self.all() if record.holds]

    def watch(self, name: str) -> Watch:
        """What the last few looks at it said."""
        return self._watches.get(name, Watch())

    def fence(self, pool: str) -> Fence:
        """Whose orders for a pool are done, and from which generation on."""
        return self._fences.get(pool, Fence())

    def log_path(self, name: str) -> Path:
        """Where a replica's output goes."""
        return self._store.log_path(name)

    def take_stock(self, hardware: Hardware) -> Inventory:
        """The host's inventory, with devices that our engines use told from foreign ones."""
        holding = self.holding()
        return hardware.take_stock(
            ours={record.pid for record in holding if record.pid},
            assigned={device for record in holding for device in record.devices},
        )

    # What changes

    def let_through(self, order: Order) -> None:
        """Remember whose order it was; on return that survives a power cut. OSError where it cannot be written."""
        fence = self.fence(order.pool).after(order)
        if fence != self.fence(order.pool):
            self._store.save_fences({**self._fences, order.pool: fence})
            self._fences[order.pool] = fence

    def intend(self, record: Record) -> None:
        """Write a start down before it is done. OSError where that fails, and then nothing may be started."""
        self._store.save(record)
        self._watches.pop(record.name, None)

    def keep(self, record: Record) -> None:
        """Replace what is known of a replica."""
        self._records[record.name] = record
        try:
            self._store.save(record)
        except OSError:  # a full disk must not stop the looking; what is known stays in memory
            log.exception("The state of %s cannot be written.", record.name)

    def keep_watch(self, name: str, watch: Watch) -> None:
        """Replace what the last few looks said."""
        self._watches[name] = watch

    def end(self, record: Record) -> None:
        """Ask its processes to end, from which nothing takes it back."""
        self.keep(replace(record, ending_since=self.now()))
        if record.pid:
            processes.end(record.pid, record.birth, force=False)

    def bury(self, record: Record, exit_code: int | None) -> None:
        """Keep a replica that ended without being asked to as exited, with its last words."""
        processes.end_leftovers(record.token)
        words = logs.last_words(self._store.log_path(record.name))
        log.warning("%s exited by itself with code %s.", record.name, exit_code)
        self.keep(replace(record, state="exited", since=self.now(), exit_code=exit_code, message=words, devices=(), pid=None))

    def forget(self, record: Record) -> None:
        """Drop a replica that is gone."""
        processes.end_leftovers(record.token)
        self._store.forget(record.name)
        self._records.pop(record.name, None)
        self._watches.pop(record.name, None)

    def close(self) -> None:
        """Give the state folder free for another worker. Engines run on."""
        self._store.close()

    # After a restart of the worker

    def _adopted(self, records: dict[str, Record]) -> dict[str, Record]:
        adopted = (self._adopt(record) for record in records.values())
        return {record.name: record for record in adopted if record is not None}

    def _adopt(self, record: Record) -> Record | None:
        """A start that was done but whose pid was not written is found by its token; one that was not done is dropped."""
        if not record.holds or record.pid is not None:
            return record
        pid = processes.find_by_token(record.token)
        if pid is None:
            log.warning("The start of %s was written down but never done; it is dropped.", record.name)
            self._store.forget(record.name)
            return None
        found = replace(record, pid=pid, birth=processes.birth_of(pid) or "")
        self._store.save(found)
        return found


def urls(records: Iterable[Record]) -> list[str]:
    """Where these replicas listen."""
    return [record.url for record in records if record.url]
