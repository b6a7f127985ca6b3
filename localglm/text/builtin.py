"""The GLM rendering used when a model file brings no chat template."""

from __future__ import annotations

BUILT_IN_TEMPLATE = """\
[gMASK]<sop>
{%- set level = reasoning_effort if reasoning_effort in ['low', 'high'] else 'max' -%}
<|system|>Reasoning Effort: {{ level | capitalize }}
{%- if tools -%}
<|system|># Tools

These functions can be called. Each line between the tags describes one of them in JSON.
<tools>
{% for tool in tools %}
{{ tool | tojson }}
{% endfor %}
</tools>

Write a call in exactly this form, with one key and one value for each argument:
<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}<|system|>{{ message.content }}
{%- elif message.role == 'user' -%}<|user|>{{ message.content }}
{%- elif message.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}<|observation|>{%- endif -%}
<tool_response>{{ message.content }}</tool_response>
{%- elif message.role == 'assistant' -%}<|assistant|><think>
{{- message.reasoning_content.strip() if message.reasoning_content is string }}</think>
{{- message.content.strip() }}
{%- for call in message.tool_calls or [] -%}
{%- set function = call.function if call.function else call -%}
<tool_call>{{ function.name }}
{%- for key, value in function.arguments.items() -%}
<arg_key>{{ key }}</arg_key><arg_value>
{{- value if value is string else value | tojson }}</arg_value>
{%- endfor -%}
</tool_call>
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|><think>{%- endif -%}
"""
