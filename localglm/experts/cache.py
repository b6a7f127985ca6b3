"""Slots of memory that experts are read into: who is where, and who makes room.

Knows keys (layer, expert) and memory; nothing of files or of reading.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from localglm.arrays import I64, U8
from localglm.errors import MemoryShortError
from localglm.experts.failures import Key
from localglm.experts.frequency import AgedFrequency
from localglm.experts.library import load
from localglm.units import size_text


class SlotState(enum.IntEnum):
    """What a slot is doing. GONE: its memory was given back."""

    GONE = 0
    VACANT = 1
    READING = 2
    HELD = 3
    LENT = 4


@dataclass(slots=True)
class _Slot:
    memory: U8 | None = field(default=None)
    owner: Key | None = field(default=None)


class ExpertCache:
    """A budget of equal slots. One thread uses it; others only write into slots being read."""

    def __init__(self, slot_bytes: int, memory: int, least: int, worth: AgedFrequency) -> None:
        self._library = load()
        self._worth = worth
        self._least = least
        self.slot_bytes = slot_bytes
        self._slots: list[_Slot] = []
        self._states: U8 = np.zeros(0, np.uint8)
        self._rows: I64 = np.zeros(0, np.int64)
        self._places: dict[Key, int] = {}
        self._vacant: list[int] = []
        self._gone: list[int] = []
        self._limit = 0
        self.resize(memory)

    @property
    def slots(self) -> int:
        """Slots the budget allows."""
        return self._limit

    def place(self, key: Key) -> int | None:
        """Return the slot of an expert, or None."""
        return self._places.get(key)

    def state(self, slot: int) -> SlotState:
        """Return what a slot is doing."""
        return SlotState(int(self._states[slot]))

    def owner(self, slot: int) -> Key | None:
        """Return whose slot it is, or None."""
        return self._slots[slot].owner

    def is_held(self, key: Key) -> bool:
        """Whether an expert is in memory, whole."""
        slot = self._places.get(key)
        return slot is not None and self._states[slot] >= SlotState.HELD

    def memory(self, slot: int) -> U8:
        """Return the page-aligned memory of a slot."""
        memory = self._slots[slot].memory
        assert memory is not None, f"slot {slot} has no memory"
        return memory

    def claim(self, key: Key, kept: Collection[Key]) -> tuple[int, Key | None] | None:
        """Take a slot to read ``key`` into: a vacant one, else the one worth least.

        Returns it with the expert that made room, or None when every slot is being read, is lent
        or belongs to ``kept``.
        """
        assert key not in self._places, f"{key} has a slot"
        evicted: Key | None = None
        self._trim(kept)
        if self._surplus() > 0:
            return None
        if not self._vacant:
            found = self._worth_least(kept)
            if found is None:
                return None
            evicted = self._slots[found].owner
            self._forget(found)
        slot = self._vacant[-1]
        if self._slots[slot].memory is None:
            self._slots[slot].memory = self._take()
        self._vacant.pop()
        self._slots[slot].owner = key
        self._places[key] = slot
        self._rows[slot] = self._worth.row(*key)
        self._set(slot, SlotState.READING)
        return slot, evicted

    def hold(self, slot: int) -> None:
        """Say that the reading of a slot has ended well."""
        assert self._states[slot] == SlotState.READING
        self._set(slot, SlotState.HELD)

    def lend(self, key: Key) -> U8:
        """Pin an expert and return the memory of its slot."""
        slot = self._places[key]
        assert self._states[slot] == SlotState.HELD, f"{key} is not there to be lent"
        self._set(slot, SlotState.LENT)
        return self.memory(slot)

    def give_back(self, key: Key) -> None:
        """End the lending of an expert."""
        slot = self._places[key]
        assert self._states[slot] == SlotState.LENT, f"{key} is not lent"
        self._set(slot, SlotState.HELD)
        if self._surplus() > 0:
            self.vacate(slot)

    def vacate(self, slot: int) -> None:
        """Forget who is in a slot that is not lent, and that nobody writes to any more."""
        assert self._states[slot] in {SlotState.READING, SlotState.HELD}, f"slot {slot} is in use"
        self._forget(slot)
        if self._surplus() > 0:
            self._drop(slot)

    def resize(self, memory: int) -> None:
        """Change the budget: memory above it goes back at once, or as soon as nobody uses it.

        Raises: MemoryShortError when the budget holds fewer slots than the least.
        """
        limit = memory // self.slot_bytes
        if limit < self._least:
            raise MemoryShortError(
                f"{size_text(memory)} are too little for the experts",
                why=f"at least {self._least} of them, {size_text(self.slot_bytes)} each, must be in"
                f" memory at once: {size_text(self._least * self.slot_bytes)}",
                try_="give the experts more memory, shorten the context or close other programs",
            )
        self._limit = limit
        self._trim(())
        while self._surplus() < 0:
            self._add()

    def close(self) -> None:
        """Give all memory back; nobody may read into it or use it any more."""
        for slot in self._slots:
            if slot.memory is not None:
                self._library.lg_memory_give(slot.memory.ctypes.data, self.slot_bytes)
                slot.memory = None

    def check(self) -> None:
        """Check every slot and every owner against each other."""
        for slot in range(len(self._slots)):
            self._check(slot)
        for key, slot in self._places.items():
            assert self._slots[slot].owner == key, f"slot {slot} is not of {key}"
        assert sorted(self._vacant) == np.flatnonzero(self._states == SlotState.VACANT).tolist()

    def _set(self, slot: int, state: SlotState) -> None:
        self._states[slot] = state
        self._check(slot)

    def _check(self, slot: int) -> None:
        """Check the invariant at one slot, and that no slot is lost."""
        owner, state = self._slots[slot].owner, self._states[slot]
        assert (owner is not None) == (state >= SlotState.READING), f"slot {slot}: {owner} {state}"
        if owner is not None:
            assert self._places.get(owner) == slot, f"{owner} is not in slot {slot}"
            assert self._rows[slot] == self._worth.row(*owner), f"slot {slot} has another's worth"
        count = len(self._places) + len(self._vacant) + len(self._gone)
        assert count == len(self._slots), f"{count} of {len(self._slots)} slots are known"

    def _worth_least(self, kept: Collection[Key]) -> int | None:
        free = self._states == SlotState.HELD
        pinned = [slot for key in kept if (slot := self._places.get(key)) is not None]
        free[pinned] = False
        slots = np.flatnonzero(free)
        if not len(slots):
            return None
        return int(slots[np.argmin(self._worth.of(self._rows[slots]))])

    def _surplus(self) -> int:
        return len(self._slots) - len(self._gone) - self._limit

    def _trim(self, kept: Collection[Key]) -> None:
        """Give back what the budget no longer allows, as far as nobody uses it."""
        while self._surplus() > 0:
            if not self._vacant:
                slot = self._worth_least(kept)
                if slot is None:
                    return
                self._forget(slot)
            self._drop(self._vacant[-1])

    def _forget(self, slot: int) -> None:
        owner = self._slots[slot].owner
        assert owner is not None, f"slot {slot} is vacant"
        del self._places[owner]
        self._slots[slot].owner = None
        self._vacant.append(slot)
        self._set(slot, SlotState.VACANT)

    def _drop(self, slot: int) -> None:
        memory = self._slots[slot].memory
        if memory is not None:
            self._library.lg_memory_give(memory.ctypes.data, self.slot_bytes)
            self._slots[slot].memory = None
        self._vacant.remove(slot)
        self._gone.append(slot)
        self._set(slot, SlotState.GONE)

    def _add(self) -> None:
        if self._gone:
            slot = self._gone.pop()
        else:
            slot = len(self._slots)
            self._slots.append(_Slot())
            self._states = np.append(self._states, np.uint8(SlotState.GONE))
            self._rows = np.append(self._rows, np.int64(0))
        self._vacant.append(slot)
        self._set(slot, SlotState.VACANT)

    def _take(self) -> U8:
        address = self._library.lg_memory_take(self.slot_bytes)
        if address is None:
            raise MemoryShortError(
                f"{size_text(self.slot_bytes)} for an expert are not to be had",
                why=f"{len(self._places)} of {self._limit} experts are in memory",
                try_="close other programs, or give the experts less memory",
            )
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.slot_bytes).from_address(address))
