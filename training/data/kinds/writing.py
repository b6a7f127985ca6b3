"""Markdown: lists, tables, code blocks, headings."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "writing"


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one piece of Markdown."""
    form = pick.of((_bullets, _numbered, _table, _heading, _bold, _loop, _function, _list_code))
    question, (user, what, answer) = admitted(want, lambda: form(pick, want))
    lines = answer.split("\n")
    low = f"I write {what}."
    high = f"The user wants {what} with {len(lines)} lines. It begins with:\n{lines[0]}"
    check = f"The last line is:\n{lines[-1]}\nNothing else is asked for."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)


_Drawn = tuple[str, tuple[str, str, str]]


def _things(pick: Pick, want: Want) -> list[str]:
    return pick.some(want.topic.things, pick.within(2, 6))


def _bullets(pick: Pick, want: Want) -> _Drawn:
    things = _things(pick, want)
    given = ", ".join(things)
    user = pick.of((
        f"Make a list of these: {given}", f"Write as bullet points: {given}",
        f"Turn this into a Markdown list: {given}",
    ))  # fmt: skip
    return f"writing bullets {given}", (user, "a list", "\n".join(f"- {t}" for t in things))


def _numbered(pick: Pick, want: Want) -> _Drawn:
    things = _things(pick, want)
    given = ", ".join(things)
    user = pick.of((f"Make a numbered list of these: {given}", f"Number these: {given}"))
    answer = "\n".join(f"{place}. {thing}" for place, thing in enumerate(things, 1))
    return f"writing numbers {given}", (user, "a numbered list", answer)


def _table(pick: Pick, want: Want) -> _Drawn:
    name = pick.of(want.topic.numbers)
    rows = [(thing, pick.below(1000)) for thing in _things(pick, want)]
    given = ", ".join(f"{thing} {number}" for thing, number in rows)
    user = pick.of((
        f"Make a table with the {name} of each: {given}",
        f"Write a Markdown table of item and {name}: {given}",
    ))  # fmt: skip
    head = f"| item | {name} |\n| --- | --- |\n"
    answer = head + "\n".join(f"| {thing} | {number} |" for thing, number in rows)
    return f"writing table {name} {given}", (user, "a table", answer)


def _heading(pick: Pick, want: Want) -> _Drawn:
    title, things = pick.of(want.topic.places), _things(pick, want)[:3]
    given = ", ".join(things)
    user = f"Write the heading {title} with a list under it: {given}"
    answer = f"## {title}\n\n" + "\n".join(f"- {thing}" for thing in things)
    return f"writing heading {title} {given}", (user, "a heading and a list", answer)


def _bold(pick: Pick, want: Want) -> _Drawn:
    thing, other, place = *pick.some(want.topic.things, 2), pick.of(want.topic.places)
    text = f"The {thing} and the {other} are in the {place}."
    user = f"Make the word {thing} bold.\n{text}"
    answer = text.replace(f"The {thing}", f"The **{thing}**")
    return f"writing bold {thing} {text}", (user, "the sentence with a bold word", answer)


def _loop(pick: Pick, _want: Want) -> _Drawn:
    first = pick.within(0, 400)
    last = first + pick.within(1, 500)
    user = pick.of((
        f"Write Python code that prints the numbers from {first} to {last}.",
        f"Show me a Python loop from {first} to {last}.",
    ))  # fmt: skip
    code = f"# prints {first} to {last}\nn = {first}\nwhile n <= {last}:\n    print(n)\n    n += 1"
    return f"writing loop {first} {last}", (user, "a code block", f"```python\n{code}\n```")


def _function(pick: Pick, want: Want) -> _Drawn:
    name, number = pick.of(want.topic.things), pick.within(2, 999)
    verb, sign = pick.of((("adds", "+"), ("takes away", "-"), ("multiplies by", "*")))
    user = f"Write a Python function {name} that {verb} {number}."
    code = f"def {name}(x):\n    return x {sign} {number}"
    return f"writing function {name} {verb} {number}", (
        user, "a code block", f"```python\n{code}\n```",
    )  # fmt: skip


def _list_code(pick: Pick, want: Want) -> _Drawn:
    things, form = _things(pick, want), pick.of(("Python", "JSON"))
    given = ", ".join(things)
    user = f"Write these as a {form} list: {given}"
    quoted = ", ".join(f'"{thing}"' for thing in things)
    code = f"items = [{quoted}]" if form == "Python" else f"[{quoted}]"
    answer = f"```{form.lower()}\n{code}\n```"
    return f"writing {form} list {given}", (user, "a code block", answer)
