#include "jinja/template.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::string rendered(std::string_view source, std::string_view json = "{}") {
  return JinjaTemplate("t", source).render(value_of_json(json).dict()).text;
}

std::string error_of(std::string_view source, std::string_view json = "{}") {
  try {
    rendered(source, json);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Jinja, TagsTakeTheirLinesWithThem) {
  EXPECT_EQ(rendered("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("a\n  {{ 'x' }}\nb"), "a\n  x\nb");
  EXPECT_EQ(rendered("a {%- if true -%}  b  {%- endif %} c"), "ab c");
  EXPECT_EQ(rendered("a\n  {%+ if true %}b{% endif %}"), "a\n  b");
  EXPECT_EQ(rendered("a {#- note -#} b\n  {# x #}\nc"), "ab\nc");
  EXPECT_EQ(rendered("{% raw %}{{ a }}{% endraw %}"), "{{ a }}");
}

TEST(Jinja, LoopsHaveTheirOwnNames) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = i %}{{ x }}{% endfor %}{{ x }}"), "121");
  EXPECT_EQ(rendered("{% set n = namespace(x=0) %}{% for i in range(4) %}{% set n.x = n.x + i %}{% endfor %}"
                     "{{ n.x }}"),
            "6");
  EXPECT_EQ(rendered("{% for m in l if m > 1 %}{{ loop.index0 }}{{ m }}{{ ',' if not loop.last }}{% else %}-"
                     "{% endfor %}",
                     R"({"l": [1, 2, 3]})"),
            "02,13");
  EXPECT_EQ(rendered("{% for m in [] %}{{ m }}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(
      rendered("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}"
               "{% endif %}{{ i }}{% endfor %}"),
      "023");
  EXPECT_EQ(
      rendered("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", R"({"d": {"a": 1, "b": "x"}})"),
      "a=1;b=x;");
}

TEST(Jinja, ExpressionsAreThoseOfPython) {
  EXPECT_EQ(rendered("{{ 1 + 2 * 3 - 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}"),
            "4 -4 2 3.5 1024");
  EXPECT_EQ(rendered("{{ true }} {{ none }} {{ nothing }} {{ [1, 'a', true] }} {{ {'k': 1.0} }}"),
            "True None  [1, 'a', True] {'k': 1.0}");
  EXPECT_EQ(rendered("{{ 'a' ~ 1 ~ none }} {{ 'ab' * 2 }} {{ 'b' in 'abc' }} {{ 3 not in [1, 2] }}"),
            "a1None abab True True");
  EXPECT_EQ(rendered("{{ 1 < 2 <= 2 }} {{ not 1 == 2 }} {{ 1 == true }} {{ x is defined }} {{ '' or 'y' }}"),
            "True True True False y");
  EXPECT_EQ(rendered("{{ 'h\u00e9llo'[1:3] }} {{ 'h\u00e9llo'|length }} {{ l[::-1] }} {{ l[-1] }}",
                     R"({"l": [1, 2, 3]})"),
            "\u00e9l 5 [3, 2, 1] 3");
  EXPECT_EQ(rendered("{{ (x if x is defined else 'none') + '!' }}"), "none!");
}

TEST(Jinja, FiltersAndMethods) {
  EXPECT_EQ(
      rendered(
          "{{ '  a '|trim }}|{{ ' \u3000a'.strip() }}|{{ 'xxa'.lstrip('x') }}|{{ 'a,b'.split(',')[1] }}"),
      "a|a|a|b");
  EXPECT_EQ(rendered(R"({{ v|tojson }} {{ v|tojson(indent=2) }})", R"({"v": {"a": [1, "é\n\"", null]}})"),
            "{\"a\": [1, \"é\\n\\\"\", null]} {\n  \"a\": [\n    1,\n    \"é\\n\\\"\",\n    null\n  ]\n}");
  EXPECT_EQ(rendered("{{ m|selectattr('role', 'equalto', 'user')|map(attribute='n')|join('-') }}",
                     R"({"m": [{"role": "user", "n": 1}, {"role": "a", "n": 2}, {"role": "user", "n": 3}]})"),
            "1-3");
  EXPECT_EQ(rendered("{{ 'user'|capitalize }} {{ x|default('d') }} {{ 'a b'.title() }} {{ "
                     "'abc'.endswith(('x', 'c')) }}"),
            "User d A B True");
  EXPECT_EQ(rendered("{% macro f(a, b='2') %}<{{ a }}{{ b }}>{% endmacro %}{{ f('1') }}{{ f('1', b='3') }}"),
            "<12><13>");
  EXPECT_EQ(rendered("{% set x %}a{{ 1 }}{% endset %}{{ x|upper }}"), "A1");
}

TEST(Jinja, GenerationIsMarked) {
  const JinjaTemplate text("t", "u: x a: {% generation %}yes.{% endgeneration %} end");
  EXPECT_TRUE(text.has_generation());
  const JinjaOutput output = text.render({});
  ASSERT_EQ(output.generated.size(), 1u);
  EXPECT_EQ(
      output.text.substr(output.generated[0].first, output.generated[0].second - output.generated[0].first),
      "yes.");
}

TEST(Jinja, WhatIsNotThereIsRefusedByLine) {
  EXPECT_EQ(
      error_of("a\n{% include 'x' %}"),
      "t, line 2: 'include' is not supported; there are if, for, set, macro, generation, raw, break and "
      "continue");
  EXPECT_EQ(error_of("{{ 1|urlize }}"), "t, line 1: the filter 'urlize' is not supported");
  EXPECT_EQ(error_of("{% if x %}"), "t, line 1: endif is missing");
  EXPECT_EQ(error_of("\n{{ x.y }}"), "t, line 2: 'x' is undefined");
  EXPECT_EQ(error_of("{{ raise_exception('roles must alternate') }}"), "t, line 1: roles must alternate");
  EXPECT_EQ(error_of("{{ strftime_now('%d') }}"),
            "t, line 1: 'strftime_now' is undefined, or not supported, and cannot be called");
}

TEST(Jinja, NothingGrowsWithoutBound) {
  EXPECT_NE(error_of("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"), "");
  std::string doubled = "{% set a = ['x'] %}";
  for (int i = 0; i < 60; ++i) doubled += "{% set a = [a, a] %}";
  EXPECT_NE(error_of(doubled + "{{ a }}"), "");
  EXPECT_NE(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "");
  EXPECT_NE(error_of("{{ " + std::string(100000, '(')), "");
  std::string chain = "{{ a";
  for (int i = 0; i < 100000; ++i) chain += ".a";
  EXPECT_NE(error_of(chain + " }}"), "");
  EXPECT_NE(error_of("{% set n = namespace() %}{% set n.n = n %}"), "");
}

}  // namespace
}  // namespace lockstep
