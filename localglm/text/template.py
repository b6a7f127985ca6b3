"""The chat template of a model file: messages in, a prompt out.

Renders in a separate process and marks which markers are the template's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from localglm.errors import LocalGlmError, ModelFileError, RequestError
from localglm.text.builtin import BUILT_IN_TEMPLATE
from localglm.text.conversation import plain_messages
from localglm.text.markers import GLM_MARKERS, MarkerSet
from localglm.text.prompt import Prompt, choose_wedge
from localglm.text.render_process import Failure, Limits, RenderProcess
from localglm.text.thinking import Effort
from localglm.text.vocabulary import marker_texts

_KEY = "tokenizer.chat_template"
_BUILT_IN_NOTE = f"the file has no chat template ({_KEY}); the built-in GLM rendering is used"
_LEVEL_NOTE = "the chat template of this file does not tell the levels low, high and max apart"
_SLOW_NOTE = (
    "rendering the chat template takes long here; whether it knows the levels was not tried"
)
_LEVEL_SECONDS = 0.6
_LONGEST_SOURCE = 256 * 1024
_SHORT_TALK = {
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": None,
    "add_generation_prompt": True,
    "enable_thinking": True,
}
_WHY = {
    "time": "it ran longer than it may",
    "memory": "it asked for more memory than it may use",
    "output": "it wrote more text than it may",
    "depth": "it is nested too deeply",
    "crash": "it ended the process it ran in",
    "syntax": "it does not parse",
}


class ChatTemplate:
    """Renders conversations with one template; close it to end its process."""

    def __init__(
        self,
        source: str | None,
        *,
        markers: frozenset[str] = frozenset(GLM_MARKERS),
        limits: Limits | None = None,
    ) -> None:
        self.is_built_in = source is None
        self._source = BUILT_IN_TEMPLATE if source is None else source
        self._markers = MarkerSet.of(markers | frozenset(GLM_MARKERS))
        self._process = RenderProcess(limits or Limits())
        notes = [_BUILT_IN_NOTE] if source is None else []
        try:
            self._spelling, level_notes = self._try_levels()
        except LocalGlmError:
            self.close()
            raise
        self.notes: tuple[str, ...] = (*notes, *level_notes)

    @classmethod
    def from_metadata(
        cls, metadata: Mapping[str, object], *, limits: Limits | None = None
    ) -> ChatTemplate:
        """Open the template of a model file, or the built-in one, with a note, when it has none.

        Raises: ModelFileError when the template is no text, does not parse or breaks a limit.
        """
        source = metadata.get(_KEY)
        if source is not None and not isinstance(source, str):
            raise _file_error(f"{_KEY} is {type(source).__name__}, not text")
        return cls(source or None, markers=marker_texts(metadata), limits=limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that renders."""
        self._process.close()

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        effort: Effort,
        tools: Sequence[Mapping[str, object]] | None = None,
    ) -> str:
        """Return the prompt as text; see ``prompt`` for the form to encode."""
        return self.prompt(messages, effort=effort, tools=tools).text

    def prompt(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        effort: Effort,
        tools: Sequence[Mapping[str, object]] | None = None,
        effort_when_off: Effort = Effort.LOW,
        add_generation_prompt: bool = True,
    ) -> Prompt:
        """Render a conversation.

        With effort off the effort line says ``effort_when_off`` and an open thinking block at the
        end is closed empty, which is the form the model knows from past turns.

        Raises: RequestError when the template refuses the conversation or breaks a limit.
        """
        level = effort_when_off if effort is Effort.OFF else effort
        if level is Effort.OFF:
            raise RequestError(
                "the effort line cannot say off",
                why="with thinking off the line still names a level: low, high or max",
                try_="choose one of them for it",
            )
        given = {
            "messages": plain_messages(messages),
            "tools": list(tools) if tools else None,
        }
        written = _as_json(given)
        wedge = choose_wedge(written, self._source)
        variables = {
            **{key: wedge.break_all(value, self._markers) for key, value in given.items()},
            "add_generation_prompt": add_generation_prompt,
            "reasoning_effort": self._spelling(level.value),
            "enable_thinking": effort is not Effort.OFF,
        }
        result = self._process.render(self._source, variables)
        if isinstance(result, Failure):
            raise _request_error(result)
        prompt = Prompt(wedge.pieces(result, self._markers))
        if effort is Effort.OFF and add_generation_prompt and prompt.ends_in_open_block:
            return prompt.closed()
        return prompt

    def _try_levels(self) -> tuple[Callable[[str], str], list[str]]:
        """Render a short conversation at each level, before anything else is loaded.

        A template that takes a level it does not know for another one would change the effort in
        silence, so the spelling that tells the levels apart is found out.

        Raises: ModelFileError when the template does not parse or breaks a limit.
        """
        if len(self._source) > _LONGEST_SOURCE:
            raise _file_error(f"it has {len(self._source)} characters, at most {_LONGEST_SOURCE}")
        # Starting a process takes longer than the levels on some systems.
        self._process.start()
        end = time.monotonic() + _LEVEL_SECONDS
        for spelling in (str.lower, str.capitalize):
            texts: set[str] = set()
            for level in (Effort.LOW, Effort.HIGH, Effort.MAX):
                variables = {**_SHORT_TALK, "reasoning_effort": spelling(level.value)}
                result = self._process.render(self._source, variables)
                if isinstance(result, Failure):
                    if result.kind in _WHY:
                        raise _file_error(_reason(result))
                    # It may want another conversation; a real one will tell.
                    return str.lower, []
                texts.add(result)
                if time.monotonic() > end:
                    return str.lower, [_SLOW_NOTE]
            if len(texts) == 3:
                return spelling, []
        return str.lower, [_LEVEL_NOTE]


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(
            "the conversation cannot be rendered",
            why=f"messages and tools must be JSON values ({error})",
            try_="send texts, numbers, lists and objects only",
        ) from None


def _file_error(why: str) -> ModelFileError:
    return ModelFileError(
        "the chat template of this file cannot be used",
        why=why,
        try_="use a file with a working template, or report it to the file's author",
    )


def _reason(failure: Failure) -> str:
    known = _WHY.get(failure.kind)
    message = _printable(failure.message)
    if known is None:
        return message or "it failed"
    return f"{known} ({message})" if message else known


def _request_error(failure: Failure) -> LocalGlmError:
    if failure.kind == "refused":
        return RequestError(
            "the chat template refuses this conversation",
            why=_printable(failure.message),
            try_="change the messages as the template asks",
        )
    return RequestError(
        "the chat template could not render this conversation",
        why=_reason(failure),
        try_="shorten or correct the messages, or use another file of this model",
    )


def _printable(text: str) -> str:
    """Keep what an untrusted template says from reaching the terminal as control characters."""
    return "".join(character if character.isprintable() else " " for character in text).strip()
