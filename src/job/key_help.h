// What the table of keys says about one of them, or about a section, for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace lockstep {

// `path` is a key (train.lr.base) or a section (train.lr). Empty for a path that is neither.
std::string key_help(std::string_view path);

}  // namespace lockstep
