"""Flags that ask, chat and bench share, and the settings and messages they become.

A flag that is not given leaves the setting of the file or the environment in force.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from localglm import paths
from localglm.errors import UsageError
from localglm.settings.load import Loaded, environment, load
from localglm.settings.schema import Settings, shown, spec_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from localglm.engine.protocol import Generate, OpenModel, Prompt

_ENGINE = {
    "backend": ("engine.backend", "What computes."),
    "device": ("engine.device", "Which card computes."),
    "threads": ("engine.threads", "Worker threads."),
    "context": ("engine.context", "Tokens the conversation may hold."),
    "chunk": ("engine.chunk", "Prompt tokens per pass; never changes the answer."),
    "cache-type": ("engine.cache_type", "Type of the caches."),
    "memory": ("engine.memory", "Memory the engine may take."),
}
_ANSWER = {
    "think": ("thinking.level", "How much to think first."),
    "max-tokens": ("answer.max_tokens", "Longest answer in tokens."),
    "temperature": ("sampling.temperature", "Spread of the choice; 0 takes the likeliest token."),
    "top-p": ("sampling.top_p", "Keep the likeliest tokens up to this share."),
    "top-k": ("sampling.top_k", "Keep this many of the likeliest tokens."),
    "min-p": ("sampling.min_p", "Drop tokens less likely than this share of the best."),
    "seed": ("sampling.seed", "Start of the random choice."),
}
_KEYS = {name.replace("-", "_"): key for name, (key, _) in (_ENGINE | _ANSWER).items()}


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of the engine."""
    return _decorated(function, _ENGINE)


def answer_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of an answer, and those no setting stands behind."""
    function = click.option(
        "--repetition-penalty",
        type=float,
        default=1.0,
        help="Above 1: repeat less. [0.1 to 10; default: 1]",
    )(function)
    function = click.option(
        "--presence-penalty",
        type=float,
        default=0.0,
        help="Above 0: prefer new tokens. [-2 to 2; default: 0]",
    )(function)
    function = click.option(
        "--frequency-penalty",
        type=float,
        default=0.0,
        help="Above 0: avoid frequent tokens. [-2 to 2; default: 0]",
    )(function)
    function = click.option(
        "--stop", multiple=True, metavar="TEXT", help="End the answer before TEXT; repeatable."
    )(function)
    function = click.option(
        "--thinking-budget",
        type=click.IntRange(min=0),
        metavar="N",
        help="End the thinking after N tokens; the answer follows.",
    )(function)
    function = click.option("--system", metavar="TEXT", help="System message.")(function)
    return _decorated(function, _ANSWER)


def _decorated(
    function: Callable[..., Any], options: Mapping[str, tuple[str, str]]
) -> Callable[..., Any]:
    for name, (key, text) in reversed(list(options.items())):
        spec = spec_of(key)
        default = shown(spec, getattr(Settings(), spec.field))
        accepts = f"[{spec.accepts}; default: {default}]"
        function = click.option(f"--{name}", metavar="VALUE", help=f"{text} {accepts}")(function)
    return function


@dataclass(frozen=True, slots=True)
class Chosen:
    """The settings in force for one command, and the penalties and stops of its flags."""

    loaded: Loaded
    flags: Mapping[str, Any]

    @classmethod
    def of(cls, flags: Mapping[str, Any]) -> Chosen:
        """Merge the settings with the flags of a command.

        Raises: SettingsError for a bad value, wherever it comes from.
        """
        variables = environment()
        given = {key: flags[name] for name, key in _KEYS.items() if flags.get(name) is not None}
        return cls(load(paths.settings_file(variables), variables, given), flags)

    def open_model(self, model: Path, context: int | None = None) -> OpenModel:
        """Return the request that opens ``model``.

        ``context`` is used where nobody asked for another.
        Raises: UsageError when the path is not readable.
        """
        from localglm.engine.protocol import OpenModel  # noqa: PLC0415 - keeps --help light

        settings = self.loaded.settings
        return OpenModel(
            request=0,
            path=readable("the path of MODEL", str(model.absolute())),
            backend=backend_in_force(settings),
            threads=settings.threads,
            context=context if settings.context is None else settings.context,
            memory=settings.memory,
            chunk=settings.chunk,
            cache_type="f32" if settings.cache_type == "f32" else "f16",
        )

    def system(self) -> str | None:
        """Return the system message of the flags.

        Raises: UsageError when it is not readable.
        """
        text: str | None = self.flags["system"]
        return readable("--system", text) if text else None

    def generate(self, prompt: Prompt) -> Generate:
        """Return the request for an answer to ``prompt``.

        Raises: UsageError for a value or text that no model could obey.
        """
        from localglm.engine.checks import check_generate  # noqa: PLC0415 - keeps --help light
        from localglm.engine.protocol import Generate, Sampling  # noqa: PLC0415

        settings, flags = self.loaded.settings, self.flags
        sampling = Sampling(
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p,
            repetition_penalty=flags["repetition_penalty"],
            presence_penalty=flags["presence_penalty"],
            frequency_penalty=flags["frequency_penalty"],
            seed=settings.seed,
        )
        request = Generate(
            request=0,
            prompt=prompt,
            sampling=sampling,
            max_tokens=settings.max_tokens,
            stop=tuple(readable("--stop", text) for text in flags["stop"]),
            thinking_budget=flags["thinking_budget"],
        )
        check_generate(request, lambda name: "--" + name.replace("_", "-"))
        return request


def backend_in_force(settings: Settings) -> str:
    """Return the back end that computes, by name or by what suits this computer.

    The computer is asked only where the answer depends on it.
    Raises: DeviceError when what the settings name cannot be used.
    """
    from localglm.engine.devices import BACKENDS  # noqa: PLC0415 - keeps --help light

    has_cards = any(name not in {"cpu", "reference"} for name in BACKENDS)
    if settings.device == "auto":
        if settings.backend in {"cpu", "reference"}:
            return settings.backend
        if settings.backend == "auto" and not has_cards:
            return "cpu"
    from localglm.devices.match import choose  # noqa: PLC0415
    from localglm.devices.merge import machine_of  # noqa: PLC0415
    from localglm.devices.survey import survey  # noqa: PLC0415

    machine = machine_of(survey(environment()))
    return choose(machine, BACKENDS, settings.backend, settings.device).backend


def readable(name: str, text: str) -> str:
    """Return ``text`` of the command line when every byte of it could be read.

    Raises: UsageError naming the argument.
    """
    bad = next((i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
    if bad is not None:
        raise UsageError(
            f"{name} cannot be read as text",
            why=f"character {bad + 1} is no {sys.getfilesystemencoding()}, the encoding here",
            try_="use UTF-8, in the text and in the language settings of this system",
        )
    return text
