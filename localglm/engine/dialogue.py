"""The text side of one model file: tokenizer, template, splitter and tool-call parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.engine.model_port import Piece as OutPiece
from localglm.engine.model_port import Prepared
from localglm.engine.protocol import ChatPrompt, IdsPrompt, Message, TextPrompt
from localglm.errors import RequestError, UsageError
from localglm.text.markers import ASSISTANT, OBSERVATION, THINK_CLOSE, USER
from localglm.text.prompt import Prompt as RenderedPrompt
from localglm.text.thinking import Effort, Part, ThinkingSplitter
from localglm.text.toolcalls import BrokenCall, ToolCall, ToolCallParser

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from localglm.engine.model_port import FreshPrompt, Known, MarkedText, OutputPort
    from localglm.engine.protocol import RandomPrompt
    from localglm.text.detokeniser import Detokeniser
    from localglm.text.markers import Piece
    from localglm.text.template import ChatTemplate
    from localglm.text.tokenizer import Tokenizer

_MOST_BYTES_PER_CHARACTER = 4
_PIECE_CHARACTERS = 16384
_ROLES = (USER, ASSISTANT, OBSERVATION, "<|system|>")


class Dialogue:
    """The text side of one model."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template = template
        # A model that writes a role marker has begun somebody's turn; the answer ends before it.
        roles = (tokenizer.marker_id(text) for text in _ROLES)
        self.end_of_turn = tokenizer.end_of_turn | {i for i in roles if i is not None}
        close = tokenizer.marker_id(THINK_CLOSE)
        self.close_thinking = () if close is None else (close,)

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return self._tokenizer.vocabulary_size

    def prepare(self, prompt: FreshPrompt, known: Sequence[Known], limit: int) -> Prepared:
        """Render and encode. A chat that begins with a known text keeps the ids of that.

        Raises: RequestError, SettingsError for a conversation or level that cannot be rendered, and
        early for a prompt that is far beyond ``limit`` tokens.
        """
        match prompt:
            case ChatPrompt():
                self._refuse_far_beyond(limit, [m.content.strip() for m in prompt.messages])
                return self._chat(prompt, known)
            case TextPrompt():
                self._refuse_far_beyond(limit, [prompt.text])
                return Prepared(self._tokenizer.encode(prompt.text, special=prompt.special))
            case IdsPrompt():
                return Prepared(list(prompt.ids))
        if prompt.count > limit:
            raise _too_long(f"{prompt.count}", limit)
        return Prepared(self._random(prompt))

    def _refuse_far_beyond(self, limit: int, texts: Sequence[str]) -> None:
        """Refuse texts of more than twice ``limit`` tokens without encoding all of them.

        Cutting a text may add or take a token per cut, and a template may trim; twice the limit is
        beyond both. What lies between is counted exactly later.
        """
        most = 2 * limit
        if sum(map(len, texts)) * _MOST_BYTES_PER_CHARACTER <= most:
            return
        count = 0
        for text in texts:
            for start in range(0, len(text), _PIECE_CHARACTERS):
                count += len(self._tokenizer.encode(text[start : start + _PIECE_CHARACTERS]))
                if count > most:
                    raise _too_long(f"more than {limit}", limit)

    def _chat(self, prompt: ChatPrompt, known: Sequence[Known]) -> Prepared:
        rendered = self._template.prompt(
            [_as_mapping(message) for message in prompt.messages],
            effort=Effort.parse(prompt.effort),
            tools=prompt.tools or None,
            effort_when_off=Effort.parse(prompt.off_effort),
        )
        pieces = tuple((piece.text, piece.is_marker) for piece in rendered.pieces)
        for text, ids in known:
            if text and pieces[: len(text)] == text:
                rest = RenderedPrompt(rendered.pieces[len(text) :])
                encoded = [*ids, *self._tokenizer.encode_prompt(rest)]
                break
        else:
            encoded = self._tokenizer.encode_prompt(rendered)
        return Prepared(encoded, is_chat=True, is_thinking=rendered.is_thinking, tools=prompt.tools)

    def _random(self, prompt: RandomPrompt) -> list[int]:
        """Return ids of ordinary tokens drawn evenly."""
        if prompt.count < 1:
            raise UsageError(
                f"a prompt of {prompt.count} random tokens was asked for",
                why="accepted: 1 or more",
                try_="ask for at least one token",
            )
        special = {self._tokenizer.marker_id(text) for text in self._tokenizer.markers.texts}
        ordinary = [i for i in range(self.vocabulary_size) if i not in special]
        places = np.random.default_rng(prompt.seed).integers(0, len(ordinary), prompt.count)
        return [ordinary[place] for place in places]

    def marked(self, ids: Sequence[int]) -> MarkedText:
        """Return the text of ids in runs."""
        stream = self._tokenizer.stream()
        pieces = [piece for token in ids for piece in stream.push_pieces(token)]
        return _merged([*pieces, *stream.finish_pieces()])

    def output(self, prepared: Prepared) -> OutputPort:
        """Return a fresh reader of the ids that follow."""
        stream = self._tokenizer.stream()
        return ChatOutput(stream, prepared) if prepared.is_chat else PlainOutput(stream)


def _too_long(count: str, limit: int) -> RequestError:
    return RequestError(
        f"the prompt has {count} tokens and the context holds {limit}",
        why="no room is left for an answer",
        try_="shorten the prompt, start a new conversation, or use a larger --context",
    )


class PlainOutput:
    """Everything is answer: for text that is continued outside a chat."""

    is_thinking = False

    def __init__(self, stream: Detokeniser) -> None:
        self._stream = stream

    def push(self, token: int) -> list[OutPiece]:
        """Take one token."""
        return [OutPiece("answer", self._stream.push(token))]

    def finish(self) -> list[OutPiece]:
        """Return what was held back."""
        return [OutPiece("answer", self._stream.finish())]


class ChatOutput:
    """Thinking is split off the answer; so are tool calls, where tools were offered."""

    def __init__(self, stream: Detokeniser, prepared: Prepared) -> None:
        self._stream = stream
        opened = "<|assistant|><think>" if prepared.is_thinking else "<|assistant|>"
        self._splitter = ThinkingSplitter(opened)
        self._calls = ToolCallParser(prepared.tools) if prepared.tools else None

    @property
    def is_thinking(self) -> bool:
        """Whether the next token belongs to a thinking block."""
        return self._splitter.is_thinking

    def push(self, token: int) -> list[OutPiece]:
        """Take one token."""
        return self._split(self._stream.push_pieces(token))

    def finish(self) -> list[OutPiece]:
        """Return what was held back; a tool call the output ended in comes as text."""
        out = self._split(self._stream.finish_pieces())
        return out if self._calls is None else [*out, *_from_calls(self._calls.finish())]

    def _split(self, pieces: Iterable[Piece]) -> list[OutPiece]:
        out: list[OutPiece] = []
        for piece in pieces:
            for span in self._splitter.push(piece):
                if span.part is Part.THOUGHT:
                    out.append(OutPiece("thinking", span.text))
                elif self._calls is None:
                    out.append(OutPiece("answer", span.text))
                else:
                    out += _from_calls(self._calls.push(type(piece)(span.text, span.is_marker)))
        return out


def _from_calls(events: Iterable[str | ToolCall | BrokenCall]) -> list[OutPiece]:
    out: list[OutPiece] = []
    for event in events:
        if isinstance(event, ToolCall):
            out.append(OutPiece("tool_call", "", event.name, dict(event.arguments)))
        else:
            out.append(OutPiece("answer", event if isinstance(event, str) else event.text))
    return out


def _as_mapping(message: Message) -> Mapping[str, object]:
    out: dict[str, object] = {"role": message.role, "content": message.content}
    if message.reasoning is not None:
        out["reasoning_content"] = message.reasoning
    if message.tool_calls:
        out["tool_calls"] = list(message.tool_calls)
    return out


def _merged(pieces: Iterable[Piece]) -> MarkedText:
    out: list[tuple[str, bool]] = []
    run: list[str] = []
    for piece in pieces:
        if not piece.is_marker:
            run.append(piece.text)
            continue
        if run:
            out.append(("".join(run), False))
            run = []
        out.append((piece.text, True))
    if run:
        out.append(("".join(run), False))
    return tuple(out)
