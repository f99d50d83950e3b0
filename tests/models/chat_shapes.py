"""Chat templates of the shapes that families of models have, written for these tests."""

from __future__ import annotations

# Every message between marks; the answer follows a line break. A thought of the last answer is shown, and
# enable_thinking=False closes an empty one in front of the answer.
QWEN3 = """\
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.role == "assistant" and loop.last %}<think>

</think>

{% endif %}{{ m.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}
{%- endif -%}
"""
# Two line breaks behind each role; the system message tells the day.
LLAMA3 = """\
{{- bos_token -}}
{%- if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{% endif -%}
<|start_header_id|>system<|end_header_id|>

Today: {{ date_string }}

{% if messages[0].role == "system" %}{{ messages[0].content }}{% set messages = messages[1:] %}{% endif -%}
<|eot_id|>
{%- for m in messages -%}
<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content }}<|eot_id|>
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start_header_id|>assistant<|end_header_id|>

{% endif -%}
"""
# No role for the system: its message leads that of the user. The assistant is called model.
GEMMA3 = """\
{{- bos_token -}}
{%- set first = "" -%}
{%- if messages[0].role == "system" -%}
{%- set first = messages[0].content + "\n\n" -%}{%- set messages = messages[1:] -%}
{%- endif -%}
{%- for m in messages -%}
<start_of_turn>{{ "model" if m.role == "assistant" else m.role }}
{{ first if loop.first else "" }}{{ m.content | trim }}<end_of_turn>
{% endfor -%}
{%- if add_generation_prompt -%}
<start_of_turn>model
{% endif -%}
"""
# The template itself opens the thought, and leaves those of earlier answers out.
DEEPSEEK_R1 = """\
{{- bos_token -}}
{%- for m in messages -%}
{%- if m.role == "user" -%}<|User|>{{ m.content }}
{%- elif m.role == "assistant" -%}<|Assistant|>{{ m.content.split("</think>")[-1] }}{{ eos_token }}
{%- else -%}{{ m.content }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|Assistant|><think>
{% endif -%}
"""
# As R1's, but the model opens the thought, and nothing in the template can close it.
WRITES_ITS_OWN = DEEPSEEK_R1.replace(
    "<|Assistant|><think>\n{% endif", "<|Assistant|>{% endif"
)
# A blank leads the answer.
LLAMA2 = """\
{%- for m in messages -%}
{%- if m.role == "user" -%}{{ bos_token }}[INST] {{ m.content }} [/INST]
{%- elif m.role == "assistant" -%}{{ " " + m.content + " " + eos_token }}
{%- else -%}{{ raise_exception("no system messages") }}{%- endif -%}
{%- endfor -%}
"""
# Text in front of each answer that only the answer has: its channel.
CHANNELS = """\
{%- for m in messages -%}
<|start|>{{ m.role }}{{ "<|channel|>final" if m.role == "assistant" else "" }}<|message|>
{{- m.content }}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{% endif -%}
"""
SHAPES = {
    "qwen3": QWEN3,
    "llama3": LLAMA3,
    "gemma3": GEMMA3,
    "deepseek-r1": DEEPSEEK_R1,
    "writes-its-own": WRITES_ITS_OWN,
    "llama2": LLAMA2,
    "channels": CHANNELS,
}
