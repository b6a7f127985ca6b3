"""Sums, differences, products and comparisons. Thoughts work digit by digit, units first."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "arithmetic"
_COLUMNS = ("Units", "Tens", "Hundreds", "Thousands")
_SIGNS = {"add": "+", "subtract": "-", "multiply": "x"}
_WORDS = {"add": "plus", "subtract": "minus", "multiply": "times"}


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one result."""
    easy = want.effort == "off"

    def draw() -> tuple[str, tuple[str, int, int]]:
        task = pick.weighted(("add", "subtract", "multiply", "compare"), (4, 3, 2, 2))
        a, b = _operands(pick, task, easy=easy)
        return f"arithmetic {task} {a} {b}", (task, a, b)

    question, (task, a, b) = admitted(want, draw)
    if task == "compare":
        return _compare(pick, want, question, a, b)
    made = {"add": _add, "subtract": _subtract, "multiply": _multiply}[task](a, b)
    result, low, high, check = made
    user, answer = _wording(pick, want, task, (a, b, result))
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)


def _operands(pick: Pick, task: str, *, easy: bool) -> tuple[int, int]:
    if task == "compare":
        return pick.within(0, 999), pick.within(0, 999)
    if task == "multiply":
        return (pick.within(2, 10), pick.within(2, 10)) if easy else (
            pick.within(2, 99), pick.within(2, 9),
        )  # fmt: skip
    top = 100 if easy or pick.chance(0.35) else 999
    whole, part = sorted((pick.within(1, top), pick.within(1, top)), reverse=True)
    if task == "subtract":
        return whole, part
    return (part, whole - part) if whole > part else (part, part if 2 * part <= top else 1)


def _wording(pick: Pick, want: Want, task: str, numbers: tuple[int, int, int]) -> tuple[str, str]:
    a, b, result = numbers
    if pick.chance(0.25):
        return _story(pick, want, task, numbers)
    asked = pick.of((
        f"What is {a} {_SIGNS[task]} {b}?", f"{a} {_SIGNS[task]} {b} = ?",
        f"Calculate {a} {_SIGNS[task]} {b}.",
        f"What is {a} {_WORDS[task]} {b}?", f"How much is {a} {_WORDS[task]} {b}?",
        *_typed(pick, task, a, b),
    ))  # fmt: skip
    return asked, f"{a} {_SIGNS[task]} {b} = {result}."


def _typed(pick: Pick, task: str, a: int, b: int) -> tuple[str, ...]:
    """Return the same question as people type it."""
    sign = pick.of((_SIGNS[task], "*")) if task == "multiply" else _SIGNS[task]
    named = {"add": f"Add {a} and {b}", "subtract": f"Subtract {b} from {a}",
             "multiply": f"Multiply {a} by {b}"}[task]  # fmt: skip
    noun = {"add": "sum", "subtract": "difference", "multiply": "product"}[task]
    tight = f"{a}{sign}{b}"
    return (
        f"what is {tight}", f"What's {a} {sign} {b}?", f"{tight}", f"{tight}=", f"{a} {sign} {b}",
        f"what is {a} {_WORDS[task]} {b}", f"{named}.", named.lower(), f"compute {tight}",
        f"The {noun} of {a} and {b}?", f"Can you tell me what {a} {sign} {b} is?",
        f"please calculate {a} {sign} {b}", f"What does {a} {_WORDS[task]} {b} make?",
    )  # fmt: skip


def _story(pick: Pick, want: Want, task: str, numbers: tuple[int, int, int]) -> tuple[str, str]:
    a, b, result = numbers
    thing, other = pick.some(want.topic.things, 2)
    place = pick.of(want.topic.places)
    if task == "add":
        user = (
            f"In the {place} there are {a} pieces of {thing} and {b} of {other}. How many in all?"
        )
        return user, f"There are {result} in all."
    if task == "subtract":
        user = (
            f"There are {a} pieces of {thing} in the {place}. We take {b} away. How many are left?"
        )
        return user, f"There are {result} left."
    user = f"There are {a} boxes with {b} pieces of {thing} each. How many pieces are there?"
    return user, f"There are {result} pieces."


def _digits(number: int, columns: int) -> list[int]:
    """Return the digits of a number, units first."""
    return [number // 10**place % 10 for place in range(columns)]


def _spaced(number: int) -> str:
    return " ".join(str(number))


def _add(a: int, b: int) -> tuple[int, str, str, str]:
    columns = len(str(max(a, b)))
    carry, short, steps = 0, [], [f"{a} is {_spaced(a)} and {b} is {_spaced(b)}."]
    for name, x, y in zip(_COLUMNS, _digits(a, columns), _digits(b, columns), strict=False):
        total = x + y + carry
        extra = f" + {carry}" if carry else ""
        short.append(f"{x} + {y}{extra} = {total}")
        carry = total // 10
        steps.append(f"{name}: {short[-1]}, write {total % 10}, carry {carry}.")
    result = a + b
    end = f"Digits: {_spaced(result)}"
    low = f"{_spaced(a)} + {_spaced(b)}: {', '.join(short)}. {end}"
    back, _ = _columns_down(result, b)
    return result, low, "\n".join((*steps, end)), f"Check: {result} - {b}: {', '.join(back)}: {a}."


def _columns_down(a: int, b: int) -> tuple[list[str], list[str]]:
    """Return the columns of a - b: short, and as sentences."""
    columns = len(str(a))
    borrow, short, steps = 0, [], []
    for name, x, y in zip(_COLUMNS, _digits(a, columns), _digits(b, columns), strict=False):
        taken = y + borrow
        left = x - y - borrow
        due = f" - {borrow}" if borrow else ""
        borrow = int(x < taken)
        lent = "10 + " if borrow else ""
        digit = left + 10 * borrow
        short.append(f"{lent}{x} - {y}{due} = {digit}")
        steps.append(f"{name}: {short[-1]}, write {digit}, borrow {borrow}.")
    return short, steps


def _subtract(a: int, b: int) -> tuple[int, str, str, str]:
    short, steps = _columns_down(a, b)
    result = a - b
    end = f"Digits: {_spaced(result)}"
    low = f"{_spaced(a)} - {_spaced(b)}: {', '.join(short)}. {end}"
    high = "\n".join((f"{a} is {_spaced(a)} and {b} is {_spaced(b)}.", *steps, end))
    back = _add(result, b)[1].split(": ", 1)[1]
    return result, low, high, f"Check: {result} + {b}: {back}: {a}."


def _multiply(a: int, b: int) -> tuple[int, str, str, str]:
    carry, short, steps = 0, [], [f"{a} is {_spaced(a)}, times {b}."]
    for name, x in zip(_COLUMNS, _digits(a, len(str(a))), strict=False):
        total = x * b + carry
        extra = f" + {carry}" if carry else ""
        short.append(f"{x} x {b}{extra} = {total}")
        carry = total // 10
        steps.append(f"{name}: {short[-1]}, write {total % 10}, carry {carry}.")
    result = a * b
    end = f"Digits: {_spaced(result)}"
    low = f"{_spaced(a)} x {b}: {', '.join(short)}. {end}"
    tens, units = 10 * (a // 10), a % 10
    check = (
        f"Check: {tens} x {b} = {tens * b}, {units} x {b} = {units * b},"
        f" {tens * b} + {units * b} = {result}."
    )
    return result, low, "\n".join((*steps, end)), check


def _compare(pick: Pick, want: Want, question: str, a: int, b: int) -> Exchange:
    word = "larger than" if a > b else "smaller than" if a < b else "equal to"
    sign = ">" if a > b else "<" if a < b else "="
    user = pick.of((
        f"Which is larger, {a} or {b}?", f"Compare {a} and {b}.", f"Is {a} larger than {b}?",
        f"Is {a} less than {b}, or more?",
    ))  # fmt: skip
    columns = len(str(max(a, b)))
    first, second = (list(reversed(_digits(n, columns))) for n in (a, b))
    place = next((i for i in range(columns) if first[i] != second[i]), columns - 1)
    low = f"{a} {sign} {b}."
    high = (
        f"{a} is {' '.join(map(str, first))}, {b} is {' '.join(map(str, second))}."
        f" At place {place + 1}: {first[place]} {sign} {second[place]}. So {a} {sign} {b}."
    )
    turned = {">": "<", "<": ">", "=": "="}[sign]
    check = f"Check the other way: {b} {turned} {a}."
    answer = f"{a} is {word} {b}."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)
