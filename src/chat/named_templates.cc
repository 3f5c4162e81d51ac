// Each is the shape that models of its kind were trained with, and refuses roles that they do not know. A
// system message that a kind has no place for is joined to the first turn of the user.
//
// tests/golden/make_chat_golden.py reads the templates from this file, so that what they give is compared
// with what the engine in Python makes of them.
#include "chat/named_templates.h"

#include <array>

namespace lockstep {
namespace {

constexpr std::string_view kChatml = R"jinja(
{%- for message in messages %}
    {%- if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception("there is no role '" ~ message['role'] ~ "'; write system, user, assistant or tool") }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
)jinja";

constexpr std::string_view kLlama3 = R"jinja(
{{- bos_token }}
{%- for message in messages %}
    {%- if message['role'] not in ['system', 'user', 'assistant', 'tool', 'ipython'] %}
        {{- raise_exception("there is no role '" ~ message['role'] ~ "'; write system, user, assistant or tool") }}
    {%- endif %}
    {%- set role = 'ipython' if message['role'] == 'tool' else message['role'] %}
    {{- '<|start_header_id|>' + role + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
)jinja";

constexpr std::string_view kLlama2 = R"jinja(
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] not in ['user', 'assistant'] %}
        {{- raise_exception("turns of user and assistant alternate, and a system message comes first; turn " ~ loop.index ~ " is of '" ~ message['role'] ~ "'") }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- bos_token + '[INST] ' + ((system if loop.first else '') + message['content']) | trim + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message['content'] | trim + ' ' + eos_token }}
    {%- endif %}
{%- endfor %}
)jinja";

constexpr std::string_view kMistral = R"jinja(
{{- bos_token }}
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] + '\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] not in ['user', 'assistant'] %}
        {{- raise_exception("turns of user and assistant alternate, and a system message comes first; turn " ~ loop.index ~ " is of '" ~ message['role'] ~ "'") }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- ' [INST] ' + (system if loop.first else '') + message['content'] + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}
)jinja";

constexpr std::string_view kMistralV3 = R"jinja(
{{- bos_token }}
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] + '\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] not in ['user', 'assistant'] %}
        {{- raise_exception("turns of user and assistant alternate, and a system message comes first; turn " ~ loop.index ~ " is of '" ~ message['role'] ~ "'") }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' + (system if loop.first else '') + message['content'] + '[/INST]' }}
    {%- else %}
        {{- ' ' + message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}
)jinja";

constexpr std::string_view kMistralTekken = R"jinja(
{{- bos_token }}
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] + '\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] not in ['user', 'assistant'] %}
        {{- raise_exception("turns of user and assistant alternate, and a system message comes first; turn " ~ loop.index ~ " is of '" ~ message['role'] ~ "'") }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- '[INST]' + (system if loop.first else '') + message['content'] + '[/INST]' }}
    {%- else %}
        {{- message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}
)jinja";

constexpr std::string_view kGemma = R"jinja(
{{- bos_token }}
{%- set system = '' %}
{%- set turns = messages %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] + '\n\n' %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- for message in turns %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] not in ['user', 'assistant'] %}
        {{- raise_exception("turns of user and assistant alternate, and a system message comes first; turn " ~ loop.index ~ " is of '" ~ message['role'] ~ "'") }}
    {%- endif %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
    {{- '<start_of_turn>' + role + '\n' + (system if loop.first else '') + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\n' }}
{%- endif %}
)jinja";

constexpr std::string_view kZephyr = R"jinja(
{%- for message in messages %}
    {%- if message['role'] not in ['system', 'user', 'assistant'] %}
        {{- raise_exception("there is no role '" ~ message['role'] ~ "'; write system, user or assistant") }}
    {%- endif %}
    {{- '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\n' }}
{%- endif %}
)jinja";

constexpr std::string_view kPhi3 = R"jinja(
{%- for message in messages %}
    {%- if message['role'] not in ['system', 'user', 'assistant'] %}
        {{- raise_exception("there is no role '" ~ message['role'] ~ "'; write system, user or assistant") }}
    {%- endif %}
    {{- '<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\n' }}
{%- endif %}
)jinja";

// What models take that were never taught to chat: texts one after the other, each response ended.
constexpr std::string_view kPlain = R"jinja(
{{- begin_token }}
{%- for message in messages %}
    {%- if message['role'] not in ['system', 'user', 'assistant'] %}
        {{- raise_exception("there is no role '" ~ message['role'] ~ "'; write system, user or assistant") }}
    {%- endif %}
    {{- message['content'] }}
    {%- if message['role'] == 'assistant' %}
        {{- eos_token }}
    {%- endif %}
{%- endfor %}
)jinja";

constexpr auto kTemplates = std::to_array<NamedChatTemplate>({
    {"chatml", kChatml},
    {"llama3", kLlama3},
    {"llama2", kLlama2},
    {"mistral", kMistral},
    {"mistral-v3", kMistralV3},
    {"mistral-tekken", kMistralTekken},
    {"gemma", kGemma},
    {"zephyr", kZephyr},
    {"phi3", kPhi3},
    {"plain", kPlain},
});

}  // namespace

std::span<const NamedChatTemplate> named_chat_templates() { return kTemplates; }

}  // namespace lockstep
