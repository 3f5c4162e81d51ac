"""Writes chat/rendered.json, what chat_golden_test.cc compares with: conversations as the engine that transformers
uses renders them, with the templates that Lockstep knows by name (read from src/chat/named_templates.cc) and with
those beside this file; and chat/messages.parquet, conversations as lists of structs.
Run: python tests/golden/make_chat_golden.py   (needs transformers, jinja2, pyarrow)
"""

import json
import pathlib
import re

import pyarrow
import pyarrow.parquet
from transformers.utils.chat_template_utils import render_jinja_template

HERE = pathlib.Path(__file__).parent
NAMED = HERE.parents[1] / "src/chat/named_templates.cc"
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Wie ist es in \"Köln\"?",
                                         "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}}


def turns(*said):
    return [{"role": role, "content": content} for role, content in said]


CONVERSATIONS = {
    "one": turns(("user", "Hi"), ("assistant", "Hello.")),
    "system": turns(("system", " Be brief.\n"), ("user", "  What is 2+2? "), ("assistant", "4\n"), ("user", "Sure?\nReally?"),
                    ("assistant", "Yes — ça va 😀")),
    "question": turns(("user", "Une question: \"où\"?")),
    "thought": turns(("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"),
                     ("assistant", "<think>\noh\n</think>\n\nd")),
    "two users": turns(("user", "a"), ("user", "b")),
    "stranger": turns(("user", "a"), ("narrator", "b")),
    "tools": [{"role": "user", "content": "Rain?"},
              {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {
                  "name": "weather", "arguments": {"days": 2, "where": "Köln", "exact": None, "share": 0.5}}}]},
              {"role": "tool", "content": "no"}, {"role": "tool", "content": "{\"a\": 1}"},
              {"role": "assistant", "content": "No rain."}],
}


def write_parquet():
    messages = pyarrow.list_(pyarrow.struct([("content", pyarrow.string()), ("role", pyarrow.string())]))
    conversations = [CONVERSATIONS["one"], [], CONVERSATIONS["system"], None, CONVERSATIONS["thought"]]
    table = pyarrow.table({"id": list(range(5)), "talk": pyarrow.array(conversations, type=messages)})
    pyarrow.parquet.write_table(table, HERE / "chat/messages.parquet")


def main():
    write_parquet()
    text = NAMED.read_text()
    sources = {name: re.search(rf'{variable} = R"jinja\((.*?)\)jinja"', text, re.S).group(1)
               for name, variable in re.findall(r'\{"([a-z0-9-]+)", (k\w+)\}', text)}
    for path in sorted((HERE / "chat").glob("*.jinja")):
        sources["file " + path.stem] = path.read_text()
    cases = []
    for template, source in sources.items():
        for name, messages in CONVERSATIONS.items():
            for prompt in (False, True):
                tools = [TOOL] if name == "tools" else None
                case = {"template": template, "conversation": name, "prompt": prompt, "tools": tools}
                try:
                    rendered, generated = render_jinja_template(
                        conversations=[messages], tools=tools, documents=None, chat_template=source,
                        add_generation_prompt=prompt, return_assistant_tokens_mask="{% generation" in source,
                        begin_token="<s>", **TOKENS)
                    case["text"] = rendered[0]
                    # Of characters; the test has bytes.
                    spans = generated[0] if generated else []
                    case["generated"] = [[len(rendered[0][:i].encode()) for i in span] for span in spans]
                except Exception as error:  # what a template raises, and what is undefined
                    case["error"] = str(error)
                cases.append(case)
    out = {"variables": TOKENS | {"begin_token": "<s>"}, "conversations": CONVERSATIONS, "cases": cases}
    (HERE / "chat/rendered.json").write_text(json.dumps(out, ensure_ascii=False, indent=0) + "\n")
    print(len(cases), "cases,", sum("error" in case for case in cases), "of them errors")


main()
