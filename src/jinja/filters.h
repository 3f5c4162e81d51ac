// The filters, tests and methods that templates may use, by the names and with the results that Jinja and
// Python have for them.
#pragma once
#include <string_view>

#include "jinja/value.h"

namespace lockstep {

bool is_jinja_filter(std::string_view name);
bool is_jinja_test(std::string_view name);

// value|name(arguments). Throws UserError.
JinjaValue apply_filter(std::string_view name, const JinjaValue& value, const JinjaArguments& arguments);
// value is name(arguments).
bool apply_test(std::string_view name, const JinjaValue& value, const JinjaArguments& arguments);
// value.name, where the value itself has no such member: a method of a text, list or mapping. Undefined where
// there is none.
JinjaValue method_of(const JinjaValue& value, std::string_view name);

// A member of a mapping, an element of a list or a text; undefined where it is not there.
JinjaValue member_of(const JinjaValue& value, const JinjaValue& key);

}  // namespace lockstep
