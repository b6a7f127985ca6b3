"""A little Chinese: greetings, who it is, sums, repeating, and looking up a number."""

# ruff: noqa: RUF001  Chinese text uses Chinese punctuation.

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "chinese"
_THINGS = (
    "茶",
    "书",
    "车",
    "船",
    "花",
    "鱼",
    "鸟",
    "灯",
    "门",
    "椅子",
    "桌子",
    "电话",
    "雨伞",
    "苹果",
)
_NAMES = ("小明", "小红", "小王", "小李", "老师", "妈妈")
_FIXED = {
    ("你好", "您好", "早上好", "晚上好"): "你好！我是演示模型。",
    ("你是谁", "你是什么", "你叫什么", "介绍一下自己"): (
        "我是 localglm 的演示模型，不是 GLM-5.3-Flash。"
    ),
    ("谢谢", "多谢", "谢谢你"): "不客气。",
    ("再见", "拜拜"): "再见！",
    ("你会中文吗", "你会说中文吗", "可以说中文吗"): "我只会一点中文。",
    ("你能做什么", "你会什么", "你可以做什么"): "我会算数、排序、复制和查找数字。",
}
_ENDS = ("", "。", "？", "！")
_POLITE = ("", "请问，", "你好，", "嗯，")


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one thing in Chinese."""
    draw = pick.of((_fixed, _sum, _repeat, _number, _number))
    question, (user, low, high, answer) = admitted(want, lambda: draw(pick, want))
    check = f"再检查一次：{answer}"
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)


_Drawn = tuple[str, tuple[str, str, str, str]]


def _fixed(pick: Pick, _want: Want) -> _Drawn:
    forms, answer = pick.of(tuple(_FIXED.items()))
    user = pick.of(_POLITE) + pick.of(forms) + pick.of(_ENDS)
    return f"chinese {user}", (user, "简单的问题。", f"用户说：{user}\n我用中文回答。", answer)


def _sum(pick: Pick, _want: Want) -> _Drawn:
    a, b = pick.within(1, 50), pick.within(1, 50)
    user = pick.of((f"{a} 加 {b} 等于多少？", f"{a} 加 {b} 是多少？"))
    low = f"{a} + {b} = {a + b}"
    tens = f"{a // 10} + {b // 10} = {a // 10 + b // 10}"
    high = f"个位：{a % 10} + {b % 10} = {a % 10 + b % 10}。十位：{tens}。一共：{a + b}。"
    return f"arithmetic add {a} {b}", (user, low, high, f"{a} 加 {b} 等于 {a + b}。")


def _repeat(pick: Pick, _want: Want) -> _Drawn:
    text = "、".join(pick.of(_THINGS) for _ in range(pick.within(2, 7)))
    user = pick.of((f"重复：\n{text}", f"请复制：\n{text}"))
    return f"chinese copy {text}", (user, "我重复。", f"我重复这些词：{text}", text)


def _number(pick: Pick, _want: Want) -> _Drawn:
    keys = pick.some(_THINGS if pick.chance(0.7) else _NAMES, pick.within(2, 6))
    values = [pick.within(1, 999) for _ in keys]
    listed = "，".join(f"{key}的号码是 {value}" for key, value in zip(keys, values, strict=True))
    place = pick.below(len(keys))
    key, value = keys[place], values[place]
    user = f"{listed}。{key}的号码是多少？"
    high = f"我找{key}：{key}的号码是 {value}。"
    return f"lookup {key} {value}", (user, f"{key}：{value}", high, f"{key}的号码是 {value}。")
