"""Every setting: its key, its type and range, its default and what it does.

Knows nothing of files or the environment. One frozen ``Settings`` object is built per command and
passed down by argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from localglm.errors import SettingsError, UsageError
from localglm.settings.sizes import parse_size, write_size

DEFAULT_CONTEXT = 32768
"""Tokens a conversation may hold where nobody asked for a number; less when the file holds less."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force. ``None`` stands for "auto" (threads, context...) or "no limit"."""

    backend: str = "auto"
    device: str = "auto"
    threads: int | None = None
    context: int | None = None
    chunk: int = 256
    memory: int | None = None
    cache_type: str = "f16"
    think: str = "high"
    off_effort: str = "low"
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int | None = None
    min_p: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """One setting as the user meets it. ``parse`` turns text or a TOML value into the typed one."""

    key: str
    field: str
    parse: Callable[[Any], Any]
    accepts: str
    help: str

    @property
    def flag(self) -> str:
        """Command-line flag that sets it."""
        return "--" + self.field.replace("_", "-")

    @property
    def variable(self) -> str:
        """Environment variable that sets it."""
        return "LOCALGLM_" + self.key.replace(".", "_").upper()


def _whole(low: int, high: int, *, auto: str | None = None) -> Callable[[Any], Any]:
    def parse(value: Any) -> int | None:
        if auto is not None and value == auto:
            return None
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        number = int(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return parse


def _real(low: float, high: float, *, above: bool = False) -> Callable[[Any], Any]:
    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        number = float(value)
        if not low <= number <= high or (above and number == low):
            raise ValueError
        return number

    return parse


def _choice(*names: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> str:
        if value not in names:
            raise ValueError
        return str(value)

    return parse


def _size(low: int, high: int) -> Callable[[Any], Any]:
    def parse(value: Any) -> int | None:
        if value == "auto":
            return None
        if not isinstance(value, str):
            raise TypeError
        size = parse_size(value)
        if not low <= size <= high:
            raise ValueError
        return size

    return parse


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not value.strip() or not value.isprintable():
        raise ValueError
    return value.strip()


SPECS: tuple[Spec, ...] = (
    Spec("engine.backend", "backend", _choice("auto", "cuda", "hip", "wgpu", "cpu", "reference"),
         "auto, cuda, hip, wgpu, cpu or reference",
         "what computes; auto: what suits this computer, of what this version has"),
    Spec("engine.device", "device", _text, "auto, or the PCI address, uuid or name of a card",
         "which card computes; localglm backends lists them"),
    Spec("engine.threads", "threads", _whole(1, 1024, auto="auto"), "auto, or 1 to 1024",
         "worker threads; auto: the fast physical cores, at most the quota"),
    Spec("engine.context", "context", _whole(16, 1 << 20, auto="auto"), "auto, or 16 to 1048576",
         f"tokens a conversation may hold; auto: {DEFAULT_CONTEXT}, or what the file holds"),
    Spec("engine.chunk", "chunk", _whole(1, 65536), "1 to 65536",
         "prompt tokens per pass; never changes the answer"),
    Spec("engine.cache_type", "cache_type", _choice("f16", "f32"), "f16 or f32",
         "type of the latent and pool-key caches"),
    Spec("engine.memory", "memory", _size(1 << 20, 1 << 50),
         "auto, or a size with its unit from 1MiB, such as 12GiB",
         "memory the engine may take, pages of the file included; auto: what other programs leave"),
    Spec("thinking.level", "think", _choice("off", "low", "high", "max"), "off, low, high or max",
         "how much the model thinks before it answers"),
    Spec("thinking.off_effort", "off_effort", _choice("low", "high", "max"), "low, high or max",
         "effort line of the prompt while thinking is off"),
    Spec("answer.max_tokens", "max_tokens", _whole(1, 1 << 20, auto="none"),
         "none, or 1 to 1048576",
         "longest answer; none: until the context is full"),
    Spec("sampling.temperature", "temperature", _real(0.0, 10.0), "0 to 10",
         "spread of the choice; 0 always takes the likeliest token"),
    Spec("sampling.top_p", "top_p", _real(0.0, 1.0, above=True), "above 0, to 1",
         "keep the likeliest tokens up to this share"),
    Spec("sampling.top_k", "top_k", _whole(1, 1 << 20, auto="all"), "all, or 1 to 1048576",
         "keep this many of the likeliest tokens"),
    Spec("sampling.min_p", "min_p", _real(0.0, 1.0), "0 to 1",
         "drop tokens less likely than this share of the best"),
    Spec("sampling.seed", "seed", _whole(0, (1 << 63) - 1, auto="random"), "random, or a number",
         "start of the random choice; the same seed gives the same answer"),
)  # fmt: skip

SECTIONS = tuple(dict.fromkeys(spec.key.split(".")[0] for spec in SPECS))

_AUTO = {
    "threads": "auto",
    "context": "auto",
    "memory": "auto",
    "max_tokens": "none",
    "top_k": "all",
    "seed": "random",
}


def spec_of(key: str) -> Spec:
    """Return the spec of a key.

    Raises: SettingsError naming the nearest key when there is none.
    """
    for spec in SPECS:
        if spec.key == key:
            return spec
    from difflib import get_close_matches  # noqa: PLC0415 - only on a mistake

    near = get_close_matches(key, [s.key for s in SPECS], n=1)
    hint = f"did you mean {near[0]}?" if near else "see localglm config show"
    raise SettingsError(f"there is no setting {key!r}", why="the name is not known", try_=hint)


COMMAND_LINE = "command line"


def parse_value(spec: Spec, value: Any, origin: str) -> Any:
    """Return the typed value.

    Raises: UsageError for a flag and SettingsError for anything else, with what is accepted.
    """
    try:
        return spec.parse(value)
    except (ValueError, TypeError, OverflowError) as err:
        if origin == COMMAND_LINE:
            raise UsageError(
                f"{spec.flag} cannot be {value!r}",
                why=f"{spec.help}; accepted: {spec.accepts}",
                try_=f"{spec.flag} {shown(spec, getattr(Settings(), spec.field))}",
            ) from err
        raise SettingsError(
            f"{spec.key} cannot be {_written(value)}",
            why=f"it was set by {origin}; accepted: {spec.accepts}",
            try_=f"localglm config set {spec.key} VALUE, or unset it where it was set",
        ) from err


def _written(value: Any) -> str:
    """Return a value of a settings file the way TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else str(value)


def shown(spec: Spec, value: Any) -> str | int | float:
    """Return a value as the user would write it."""
    if value is None:
        return _AUTO[spec.field]
    if spec.field == "memory":
        return write_size(value)
    return value  # type: ignore[no-any-return]
