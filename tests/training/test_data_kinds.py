"""What the generators promise: right answers, growing thoughts, and a split that holds."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from localglm.text.toolcalls import ToolCall, parse_calls
from training.data.conversation import EFFORTS, Conversation
from training.data.kinds import BY_NAME, KINDS, Kind
from training.data.pick import Pick, Split, Want, is_held_out
from training.data.topics import TOPICS
from training.data.vocabulary import Encoder

ENCODER = Encoder()


def make(kind: Kind, seed: str, *, effort="high", split=Split.TRAIN, room=200, topic=0):
    want = Want(split, effort, TOPICS[topic], room, ENCODER.count)
    return kind.make(Pick(seed), want)


def many(kind: Kind, count: int, split: Split = Split.TRAIN, room: int = 200):
    for place in range(count):
        yield make(
            kind, f"{split}{place}", effort=EFFORTS[place % 4], split=split, room=room,
            topic=place % len(TOPICS),
        )  # fmt: skip


def asked(split: Split, count: int) -> set[str]:
    found: set[str] = set()
    for kind in KINDS:
        for made in many(kind, count, split):
            found.update(made.questions)
    return found


def check_disjoint(count: int) -> None:
    trained = asked(Split.TRAIN, count // len(KINDS))
    held = asked(Split.HELD_OUT, 60)
    assert len(held) > 400
    assert not trained & held
    assert not any(map(is_held_out, trained))
    assert all(map(is_held_out, held))


def test_training_never_asks_a_held_out_question():
    check_disjoint(12_000)


@pytest.mark.long
def test_two_hundred_thousand_training_samples_ask_no_held_out_question():
    check_disjoint(200_000)


def test_a_twentieth_of_all_questions_is_held_out():
    pairs = [f"arithmetic add {a} {b}" for a in range(200) for b in range(200)]
    share = sum(map(is_held_out, pairs)) / len(pairs)
    assert 0.045 < share < 0.055
    by_first = Counter(p.split()[2] for p in pairs if is_held_out(p))
    assert len(by_first) == 200


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_same_seed_gives_the_same_conversation(kind: Kind):
    assert make(kind, "one") == make(kind, "one")
    assert any(make(kind, f"a{n}") != make(kind, f"b{n}") for n in range(3))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_thoughts_grow_with_the_level_for_the_same_questions(kind: Kind):
    totals = Counter[str]()
    for place in range(30):
        made = {e: make(kind, f"levels {place}", effort=e) for e in ("low", "high", "max")}
        same = [[t.content for t in c.turns] for c in made.values()]
        if kind.fills:
            # The room decides how much is asked, and thoughts take room.
            totals.update({e: _mean_thought(c) for e, c in made.items()})
            continue
        assert same[0] == same[1] == same[2]
        totals.update({e: _thought_tokens(c) for e, c in made.items()})
    assert 0 < totals["low"] < totals["high"] < totals["max"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_off_has_no_thought_and_every_other_level_has_one(kind: Kind):
    for place in range(20):
        off = make(kind, f"off {place}", effort="off")
        assert all(turn.thought is None for turn in off.turns)
        low = make(kind, f"off {place}", effort="low", split=Split.HELD_OUT)
        assert low.turns[-1].thought


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_texts_stand_as_the_template_writes_them(kind: Kind):
    for made in many(kind, 60):
        assert made.turns[-1].role == "assistant"
        for turn in made.turns:
            if turn.role == "assistant":
                assert turn.content == turn.content.strip()
                assert turn.thought is None or turn.thought == turn.thought.strip() != ""


@pytest.mark.parametrize("room", [200, 1000, 8000, 16_000])
def test_a_lookup_fills_its_room_and_holds_the_value(room: int):
    kind, sizes = BY_NAME["lookup"], []
    for place in range(12):
        made = make(kind, f"room {place}", effort="off", split=Split.HELD_OUT, room=room)
        text = made.turns[-2].content
        sizes.append(ENCODER.count(text))
        key, value = re.fullmatch(r"The \S+ of (.+) is (.+)\.", made.answer).groups()
        assert _entries(text, key) == [value]
    assert max(sizes) <= 1.1 * room
    assert sorted(sizes)[len(sizes) // 2] > 0.75 * (room - 60)


def test_needles_lie_at_all_depths():
    depths = []
    for place in range(40):
        made = make(BY_NAME["lookup"], f"depth {place}", effort="off", split=Split.HELD_OUT)
        text, answer = made.turns[-2].content, made.answer
        key = re.fullmatch(r"The \S+ of (.+) is .+\.", answer).group(1)
        body = text.split("\n\n")[1]
        depths.append(body.index(key) / len(body))
    assert min(depths) < 0.2
    assert max(depths) > 0.8


def test_arithmetic_answers_are_right():
    signs = {"+": int.__add__, "-": int.__sub__, "x": int.__mul__}
    checked = 0
    for made in many(BY_NAME["arithmetic"], 200):
        for turn in made.turns:
            found = re.fullmatch(r"(\d+) ([-+x]) (\d+) = (\d+)\.", turn.content)
            if turn.role == "assistant" and found:
                a, sign, b, result = found.groups()
                assert signs[sign](int(a), int(b)) == int(result)
                checked += 1
            for a, sign, b, result in re.findall(
                r"(?<![-+x] )\b(\d+) ([-+x]) (\d+) = (\d+)", turn.thought or ""
            ):
                assert signs[sign](int(a), int(b)) == int(result)
    assert checked > 100


def test_memory_answers_with_the_last_value_told():
    checked = 0
    for made in many(BY_NAME["memory"], 60, room=900):
        told: dict[str, str] = {}
        for turn in made.turns:
            if fact := re.match(r"Noted: the (.+) (?:is now|is) (.+)\.$", turn.content):
                told[fact.group(1)] = fact.group(2)
            elif turn.role == "assistant" and (
                said := re.match(r"The (.+ of .+) is (.+)\.$", turn.content)
            ):
                assert told[said.group(1)] == said.group(2)
                checked += 1
    assert checked > 60


def test_tool_calls_are_well_formed_and_fit_a_tool_on_offer():
    for made in many(BY_NAME["tools"], 80):
        specs = [tool.spec for tool in made.tools]
        for turn in made.turns:
            for call in turn.calls:
                written = "".join(
                    f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"
                    for key, value in call.arguments
                )
                parsed = parse_calls(f"<tool_call>{call.name}{written}</tool_call>", specs)
                assert [type(event) for event in parsed] == [ToolCall]
                assert parsed[0].arguments == dict(call.arguments)
                assert call.name in {spec["function"]["name"] for spec in specs}


def test_a_conversation_keeps_to_the_things_of_its_topic():
    things = {t.name: set(t.things) - {"order", "index", "record", "scale"} for t in TOPICS}
    for kind in KINDS:
        for made in many(kind, 24):
            if made.kind in {"about", "mixed", "memory", "writing", "chinese", "tools"}:
                continue
            words = set(re.findall(r"[a-z]+", " ".join(turn.content for turn in made.turns)))
            own = words & things[made.topic]
            others = {w for name, t in things.items() if name != made.topic for w in t}
            foreign = (words & others) - _common(things[made.topic])
            assert len(foreign) <= 3, (made, foreign, own)


def _common(own: set[str]) -> set[str]:
    """Words of the wordings themselves that happen to be things elsewhere."""
    return own | {"word", "text", "page", "file", "key", "back", "time", "model", "story"}


def _entries(text: str, key: str) -> list[str]:
    return re.findall(
        rf'(?:- |"|\| |\s|of ){re.escape(key)}(?:: |": "?| \| | \w+=| is )(\w+)', text
    )


def _thought_tokens(made: Conversation) -> int:
    return sum(ENCODER.count(turn.thought or "") for turn in made.turns)


def _mean_thought(made: Conversation) -> int:
    thoughts = [ENCODER.count(turn.thought) for turn in made.turns if turn.thought]
    return 100 * sum(thoughts) // len(thoughts)
