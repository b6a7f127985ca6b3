"""A toy language model behind the engine's model port: bytes and a few markers, seeded, cheap.

Its file is JSON. ``pause_s`` slows every token. ``script`` makes it say a text (markers included)
after every assistant marker; without a script it says random ordinary bytes. ``nan_at``,
``fault_at``, ``hang_at``, ``die_at``, ``raise_at`` and ``memory_at`` are positions at which reading
a token goes wrong in that way; ``context_length`` is the limit of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from localglm.backends.base import MemoryReport
from localglm.engine.checks import check_context
from localglm.engine.file_watch import FileMark, FileWatch
from localglm.engine.model_port import ModelFacts, Piece, Prepared
from localglm.engine.process import WorkerCommand
from localglm.engine.protocol import ChatPrompt, IdsPrompt, TextPrompt
from localglm.errors import ModelFileError, NumericFaultError, RequestError

COMMAND = WorkerCommand("engine_toy:open_toy", (str(Path(__file__).parent),))
MARKERS = ("<|user|>", "<|assistant|>", "<think>", "</think>", "<|system|>")
FIRST = 256
SIZE = FIRST + len(MARKERS)
USER, ASSISTANT, OPEN, CLOSE = (FIRST + i for i in range(4))


def encode(text: str) -> list[int]:
    """Encode text whose markers are meant as such."""
    ids: list[int] = []
    while text:
        found = next((m for m in MARKERS if text.startswith(m)), None)
        ids += text[:1].encode() if found is None else [FIRST + MARKERS.index(found)]
        text = text[len(found) if found else 1 :]
    return ids


def decode(ids: Any) -> str:
    """Return the text of ids."""
    return "".join(MARKERS[i - FIRST] if i >= FIRST else chr(i) for i in ids)


@dataclass(frozen=True)
class ToySnapshot:
    tokens: tuple[int, ...]

    @property
    def position(self) -> int:
        return len(self.tokens)


@dataclass
class ToyState:
    """Tokens, and the same broken/journal rules as the real state."""

    context: int
    seen: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    is_broken: bool = False

    @property
    def position(self) -> int:
        return len(self.seen)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self.seen)

    @property
    def nbytes(self) -> int:
        return 8 * len(self.seen)

    def snapshot(self) -> ToySnapshot:
        if self.is_broken:
            raise RequestError("the sequence cannot be saved")
        return ToySnapshot(self.tokens)

    def can_restore(self, snapshot: ToySnapshot) -> bool:
        return tuple(self.rows[: snapshot.position]) == snapshot.tokens

    def restore(self, snapshot: ToySnapshot) -> None:
        if not self.can_restore(snapshot):
            raise RequestError("the snapshot is no longer valid")
        self.seen = list(snapshot.tokens)
        self.is_broken = False

    def fork(self) -> ToyState:
        return ToyState(self.context, list(self.seen), list(self.rows))


class ToyModel:
    """Logits from a hash of every token so far; ``fed`` counts the tokens it was given."""

    def __init__(self, behaviour: dict[str, Any]) -> None:
        self.behaviour = behaviour
        self.fed: list[int] = []
        self.cache_types: set[str] = set()

    def new_state(self, *, context: int, cache_type: str = "f16") -> ToyState:
        self.cache_types.add(cache_type)
        return ToyState(context)

    def forward(self, state: ToyState, ids: Any, *, logits: str = "last", probe: Any = None) -> Any:
        if state.is_broken:
            raise RequestError("the sequence cannot go on")
        state.is_broken = True
        del state.rows[state.position :]
        self.fed += list(ids)
        bad = False
        for token in ids:
            bad = self._go_wrong(state.position) or bad
            if probe is not None:
                probe.record("l0.attn_out", np.array([np.nan if bad else 0.0]))
            if state.position == self.behaviour.get("fault_at"):
                raise NumericFaultError("route failed", why="a value is not a number")
            state.seen.append(int(token))
            state.rows.append(int(token))
        state.is_broken = False
        if logits == "none":
            return None
        row = self._row(state.seen)
        row[3 if bad else 0] = np.nan if bad else row[0]
        return row[None]

    def _go_wrong(self, position: int) -> bool:
        wish = self.behaviour
        if wish.get("hang_at") == position:
            threading.Event().wait()
        if "pause_s" in wish:
            threading.Event().wait(wish["pause_s"])
        if wish.get("die_at") == position:
            os.kill(os.getpid(), getattr(signal, wish.get("signal", "SIGKILL")))
        if wish.get("exit_at") == position:
            print("the last words", file=sys.stderr, flush=True)
            os._exit(wish.get("code", 3))
        if wish.get("raise_at") == position:
            raise KeyError("a fault of the toy")
        if wish.get("memory_at") == position:
            raise MemoryError
        return wish.get("nan_at") is not None and position >= wish["nan_at"]

    def _row(self, seen: list[int]) -> Any:
        digest = hashlib.blake2b(np.asarray(seen, np.int32).tobytes(), digest_size=8).digest()
        row = np.random.default_rng(int.from_bytes(digest, "little")).normal(size=SIZE)
        script = self.behaviour.get("script")
        if script is None:
            row[:32] = row[127:] = -30.0
        else:
            said = len(seen) - 1 - max((i for i, t in enumerate(seen) if t == ASSISTANT), default=0)
            row[(encode(script) * 99)[said]] = 60.0
        return row.astype(np.float32)


class ToyOutput:
    """Splits thinking at its markers."""

    def __init__(self, *, is_thinking: bool) -> None:
        self.is_thinking = is_thinking

    def push(self, token: int) -> list[Piece]:
        if token in {OPEN, CLOSE}:
            self.is_thinking = token == OPEN
            return []
        return [Piece("thinking" if self.is_thinking else "answer", decode([token]))]

    def finish(self) -> list[Piece]:
        return []


class ToyText:
    """The template of the GLM family without its first line."""

    vocabulary_size = SIZE
    end_of_turn = frozenset({USER})
    close_thinking = (CLOSE,)

    def prepare(self, prompt: Any, known: Any, limit: int) -> Prepared:
        match prompt:
            case ChatPrompt():
                return self._chat(prompt)
            case TextPrompt():
                return Prepared(encode(prompt.text))
            case IdsPrompt():
                return Prepared(list(prompt.ids))
        return Prepared([int(i) % 90 + 32 for i in range(prompt.count)])

    def _chat(self, prompt: ChatPrompt) -> Prepared:
        ids: list[int] = []
        for message in prompt.messages:
            if message.role == "assistant":
                thought = message.reasoning or ""
                ids += encode(f"<|assistant|><think>{thought}</think>{message.content}")
            else:
                ids += encode(f"<|{message.role}|>{message.content}")
        ids += encode("<|assistant|><think>")
        is_off = prompt.effort == "off"
        return Prepared(ids + [CLOSE] * is_off, is_chat=True, is_thinking=not is_off)

    def marked(self, ids: Any) -> Any:
        return ((decode(ids), False),)

    def output(self, prepared: Prepared) -> ToyOutput:
        return ToyOutput(is_thinking=prepared.is_thinking)


class ToyOpened:
    """An open toy file."""

    def __init__(self, path: Path, context: int | None) -> None:
        try:
            behaviour = json.loads(path.read_text())
        except FileNotFoundError:
            raise ModelFileError(f"there is no file {path}") from None
        except ValueError:
            raise ModelFileError(f"{path} is truncated") from None
        self.watch = FileWatch({path: FileMark.of(path)})
        self.model = ToyModel(behaviour)
        self.text = ToyText()
        length = behaviour.get("context_length", 100_000)
        check_context(context, length)
        self.facts = ModelFacts("toy", 1, "toy", length, SIZE, 1000, 500)

    expert_cache = None

    def expert_counts(self) -> None:
        return None

    def begin_pass(self, tokens: int) -> None:
        pass

    def verify(self, *, at_once: bool = False) -> None:
        self.watch.verify(at_once=at_once)

    def memory(self) -> MemoryReport:
        return MemoryReport(1000, 0, 0)

    def is_finite(self, buffer: Any) -> bool:
        return bool(np.isfinite(buffer).all())

    def close(self) -> None:
        self.model.behaviour = {}


def open_toy(request: Any, progress: Any) -> ToyOpened:
    """Open a toy file."""
    progress("opening the file", 0, 1)
    return ToyOpened(Path(request.path), request.context)


def open_noisy(request: Any, progress: Any) -> ToyOpened:
    """Open a toy file while a library prints."""
    print("noise on standard output", flush=True)
    os.write(1, b"more of it\n")
    return open_toy(request, progress)
