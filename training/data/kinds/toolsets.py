"""The functions offered in a conversation, and what calling one of them looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from training.data.conversation import Tool
from training.data.pick import Pick, Want
from training.data.topics import NAMES, Topic


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a function: arguments, how it is asked for, its result, and the answer."""

    arguments: tuple[tuple[str, str | int], ...]
    user: str
    result: str
    answer: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A function and a source of uses of it."""

    tool: Tool
    draw: Callable[[Pick, Want], Use]

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(self.tool.spec["function"]["name"])


def _tool(function_name: str, purpose: str, **arguments: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": list(arguments)}
    function = {"name": function_name, "description": purpose, "parameters": parameters}
    return Tool({"type": "function", "function": function})


@cache
def offers(topic: Topic) -> tuple[Offer, ...]:
    """Return the functions of a topic and those of every topic."""
    number = topic.numbers[0]
    made = [
        (_tool(f"get_{number}", f"{number} of one thing", item="string"), _get(number)),
        (_tool("count_stock", "how many there are", item="string", place="string"), _stock),
        (_tool("set_alarm", "rings after a time", minutes="integer", label="string"), _alarm),
        (_tool("send_note", "a note to a person", to="string", text="string"), _note),
        (_tool("find_person", "where a person is", name="string", day="integer"), _person),
        (_tool("add_numbers", "adds two numbers", a="integer", b="integer"), _sum),
        (_tool(f"order_{topic.things[0]}", "orders some pieces", count="integer"), _order(topic)),
    ]  # fmt: skip
    return tuple(Offer(tool, draw) for tool, draw in made)


def _get(number: str) -> Callable[[Pick, Want], Use]:
    def draw(pick: Pick, want: Want) -> Use:
        item, value = _item(pick, want), pick.within(1, 999)
        user = pick.of((
            f"What is the {number} of the {item}?", f"Find out the {number} of the {item}.",
            f"Which {number} does the {item} have?",
        ))  # fmt: skip
        result = json.dumps({"item": item, number: value})
        return Use((("item", item),), user, result, f"The {number} of the {item} is {value}.")

    return draw


def _stock(pick: Pick, want: Want) -> Use:
    item, place, value = _item(pick, want), pick.of(want.topic.places), pick.within(0, 999)
    user = pick.of((
        f"How many pieces of {item} are in the {place}?",
        f"Check the stock of {item} in the {place}.",
    ))  # fmt: skip
    result = json.dumps({"count": value})
    answer = f"There are {value} pieces of {item} in the {place}."
    return Use((("item", item), ("place", place)), user, result, answer)


def _alarm(pick: Pick, want: Want) -> Use:
    minutes, label = pick.within(1, 300), _item(pick, want)
    user = pick.of((
        f"Set an alarm for the {label} in {minutes} minutes.",
        f"Wake me in {minutes} minutes for the {label}.",
    ))  # fmt: skip
    hour, minute = pick.below(24), pick.below(60)
    result = json.dumps({"status": "ok", "rings_at": f"{hour:02}:{minute:02}"})
    answer = f"The alarm for the {label} rings at {hour:02}:{minute:02}."
    return Use((("minutes", minutes), ("label", label)), user, result, answer)


def _note(pick: Pick, want: Want) -> Use:
    name, number = pick.of(NAMES), pick.within(1, 999)
    text = f"The {_item(pick, want)} is in the {pick.of(want.topic.places)}."
    user = pick.of((f"Send a note to {name}: {text}", f"Write to {name}: {text}"))
    result = json.dumps({"status": "sent", "id": number})
    return Use(
        (("to", name), ("text", text)), user, result, f"The note to {name} has the id {number}."
    )


def _person(pick: Pick, want: Want) -> Use:
    name, place, room = pick.of(NAMES), pick.of(want.topic.places), pick.within(1, 999)
    day = pick.within(1, 31)
    user = pick.of((
        f"Where is {name} on day {day}?", f"Find {name} on day {day}.",
        f"Where can I find {name} on day {day}?",
    ))  # fmt: skip
    result = json.dumps({"place": place, "room": room})
    return Use(
        (("name", name), ("day", day)), user, result, f"{name} is in the {place}, room {room}."
    )


def _sum(pick: Pick, _want: Want) -> Use:
    a, b = pick.within(100, 99_999), pick.within(100, 99_999)
    user = pick.of((f"Add {a} and {b} with the tool.", f"Use the tool to add {a} and {b}."))
    return Use((("a", a), ("b", b)), user, json.dumps({"sum": a + b}), f"The sum is {a + b}.")


def _order(topic: Topic) -> Callable[[Pick, Want], Use]:
    thing = topic.things[0]

    def draw(pick: Pick, _want: Want) -> Use:
        count, number = pick.within(1, 999), pick.within(1000, 99_999)
        user = pick.of((f"Order {count} pieces of {thing}.", f"We need {count} pieces of {thing}."))
        result = json.dumps({"order": number, "status": "open"})
        return Use((("count", count),), user, result, f"The order has the number {number}.")

    return draw


def _item(pick: Pick, want: Want) -> str:
    thing = pick.of(want.topic.things)
    return f"{thing} {pick.within(1, 999)}" if pick.chance(0.5) else thing
