"""Templates that attack: each ends in our error in under 2 seconds and 200 MB; nothing hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import psutil
import pytest

from localglm.errors import LocalGlmError, RequestError
from localglm.text.render_process import Failure, Limits, RenderProcess
from localglm.text.template import ChatTemplate
from localglm.text.thinking import Effort

HI = [{"role": "user", "content": "Hi"}]
LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = (
    "{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
)

# Expressions that must fail wherever they stand.
EXPRESSIONS = {
    "text times a number": '"a" * 10**10',
    "list times a number": "[0] * 10**10",
    "power": "(7 ** (7 ** 9)) % 2",
    "shifted sum": "(range(99999) | sum) ** (10 ** 7) % 3",
    "huge range": "range(10 ** 12) | list",
    "centred": "'a' | center(10 ** 10)",
    "padded": "'%10000000000d' | format(1)",
    "format field": "'{:>10000000000}'.format(1)",
    "indented": "'a\nb' | indent(10 ** 10)",
    "filled batch": "[1] | batch(10 ** 10, 'x') | list",
    "replace twice": "('a' * 9999).replace('a', 'b' * 9999).replace('b', 'c' * 9999)",
    "joined": "([('a' * 99999)] * 99999) | join('b' * 99)",
    "JSON indent": "messages | tojson(indent=10 ** 9)",
    "class": "''.__class__.__mro__[1].__subclasses__()",
    "globals": "raise_exception.__globals__['sys'].modules['os'].system('id')",
    "format attribute": "'{0.__class__.__mro__}'.format('').x.y",
    "changed list": "messages.append(1)",
    "digits": "(10 ** 9999) | string",
}
# Statements that must fail wherever a statement may stand.
STATEMENTS = {
    "nested loops": LOOP,
    "doubled text": DOUBLING + "{{ n.s }}",
    "much output": "{% for a in range(99999) %}{{ 'a' * 9999 }}{% endfor %}",
    "macro without end": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "loop into itself": "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import 'os' as os %}{{ os.getcwd() }}",
    "extends": "{% from 'os' import system %}{{ system('id') }}",
}
# Sources that must fail before they run.
SOURCES = {
    "parentheses": "{{ " + "(" * 9999 + "1" + ")" * 9999 + " }}",
    "brackets": "{{ " + "[" * 99999 + " }}",
    "signs": "{{ " + "-" * 99999 + "1 }}",
    "nested ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "elifs": "{% if 0 %}" + "{% elif 0 %}" * 9999 + "{% endif %}",
    "cut off": "{% for m in messages %}",
    "unknown tag": "{% system 'id' %}",
    "long": "{% set a = 1 %}" * 99999,
}
WRAPPINGS = {
    "plain": "%s",
    "in a macro": "{%% macro m() %%}%s{%% endmacro %%}{{ m() }}",
    "in a loop": "{%% for m in messages %%}%s{%% endfor %%}",
    "in a block": "{%% block b %%}%s{%% endblock %%}",
    "in a filter": "{%% filter upper %%}%s{%% endfilter %%}",
    "in a variable": "{%% set v %%}%s{%% endset %%}{{ v }}",
}
STATED = {name: "{{ " + text + " }}" for name, text in EXPRESSIONS.items()} | STATEMENTS
WRAPPED = {
    f"{name}, {where}": wrapping % text
    for (name, text), (where, wrapping) in product(STATED.items(), WRAPPINGS.items())
}
IN_EVERY_RUN = (
    "text times a number", "power", "padded", "class", "globals", "nested loops", "doubled text",
    "much output", "macro without end", "include", "parentheses", "nested ifs",
)  # fmt: skip
EVERY = STATED | SOURCES


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """Collect the resident bytes of this process's children."""
    seen, done, me = [0], threading.Event(), psutil.Process()

    def watch():
        while not done.wait(0.005):
            for child in me.children(recursive=True):
                try:
                    seen.append(child.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch, name="watched-memory")
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def attack(source):
    started = time.monotonic()
    with (
        watched_memory() as seen,
        pytest.raises(LocalGlmError) as caught,
        ChatTemplate(source) as made,
    ):
        made.render(HI, effort=Effort.LOW)
    assert time.monotonic() - started < 2.0
    assert max(seen) < 200e6
    assert caught.value.why
    assert all(line.isprintable() for line in caught.value.lines())


@pytest.mark.parametrize("name", IN_EVERY_RUN)
def test_a_hostile_template_ends_in_our_error(name):
    attack(EVERY[name])


@pytest.mark.long
@pytest.mark.parametrize("source", [*WRAPPED.values(), *SOURCES.values()], ids=[*WRAPPED, *SOURCES])
def test_every_hostile_template_ends_in_our_error(source):
    attack(source)


def test_the_grammar_makes_more_than_a_hundred_templates():
    assert len(set(WRAPPED.values())) + len(SOURCES) > 100
    assert set(IN_EVERY_RUN) <= set(EVERY)


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
def test_the_wrappings_themselves_are_harmless(wrapping):
    with ChatTemplate(wrapping % "{{ 1 + 1 }}") as made:
        assert made.render(HI, effort=Effort.LOW) == "2"


def test_a_template_that_attacks_later_costs_one_request_only():
    source = "{% if messages[0].content == 'go' %}" + LOOP + "{% else %}fine{% endif %}"
    with ChatTemplate(source) as made:
        assert made.render(HI, effort=Effort.LOW) == "fine"
        with pytest.raises(RequestError, match="template"):
            made.render([{"role": "user", "content": "go"}], effort=Effort.LOW)
        assert made.render(HI, effort=Effort.LOW) == "fine"


def test_it_is_the_limits_that_stop_it():
    doubled = DOUBLING.replace("60", "18") + "{{ n.s }}"
    wide = RenderProcess(Limits())
    tight = RenderProcess(Limits(output_characters=1000))
    small = RenderProcess(Limits(memory_bytes=16 * 2**20))
    try:
        assert wide.render(doubled, {}) == "ab" * 2**18
        assert tight.render(doubled, {}) == Failure("output", "")
        failure = small.render("{{ ('a' * 30000000) | length }}", {})
        assert isinstance(failure, Failure)
        assert failure.kind == "memory"
        assert wide.render("{{ ('a' * 30000000) | length }}", {}) == "30000000"
    finally:
        for process in (wide, tight, small):
            process.close()


def test_a_process_that_dies_is_replaced():
    process = RenderProcess(Limits())
    assert process.render("a", {}) == "a"
    assert process._child is not None
    first = process._child._process
    first.kill()
    first.wait()
    assert process.render("b", {}) == "b"
    assert process._child._process.pid != first.pid
    process.close()


def test_closing_ends_the_process_and_a_later_request_starts_one():
    with ChatTemplate("a") as made:
        assert made.render(HI, effort=Effort.LOW) == "a"
        assert made._process._child is not None
        child = made._process._child._process
        made.close()
        assert child.poll() is not None
        assert made.render(HI, effort=Effort.LOW) == "a"


def test_the_process_ends_by_itself_when_its_parent_is_gone():
    process = RenderProcess(Limits())
    assert process.render("a", {}) == "a"
    assert process._child is not None
    child = process._child._process
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(timeout=10) == 0
    process.close()
