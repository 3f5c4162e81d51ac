#include "launch/node_list.h"

#include <charconv>

#include "base/error.h"
#include "launch/variables.h"

namespace lockstep {
namespace {

constexpr size_t kMostDigits = 9;
constexpr size_t kMostNameLength = 255;

[[noreturn]] void refuse(std::string_view list, std::string_view name, std::string_view why) {
  throw UserError("{}={}: {}; it should read like gpu[001-004,007],login1", name, in_quotes(list), why);
}

int64_t number(std::string_view digits, std::string_view list, std::string_view name) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && value >= 0;
  if (digits.empty() || digits.size() > kMostDigits || !whole || digits.front() == '-')
    refuse(list, name, fmt::format("{} is not a number", in_quotes(digits)));
  return value;
}

// "001-004,007" -> 001 002 003 004 007: numbers keep the width in which the range starts.
std::vector<std::string> expand_ranges(std::string_view ranges, std::string_view list,
                                       std::string_view name) {
  std::vector<std::string> expanded;
  while (true) {
    const size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const int64_t first = number(low, list, name);
    const int64_t last = number(high, list, name);
    if (last < first) refuse(list, name, fmt::format("{} goes down", in_quotes(range)));
    if (static_cast<size_t>(last - first) >= kMostNodes - expanded.size())
      refuse(list, name, fmt::format("it has more than {} hosts", kMostNodes));
    for (int64_t i = first; i <= last; ++i) expanded.push_back(fmt::format("{:0{}}", i, low.size()));
    if (comma == std::string_view::npos) return expanded;
    ranges.remove_prefix(comma + 1);
  }
}

// Every name so far continued by every ending.
std::vector<std::string> product(const std::vector<std::string>& names,
                                 const std::vector<std::string>& endings, std::string_view list,
                                 std::string_view name) {
  if (names.size() * endings.size() > kMostNodes)
    refuse(list, name, fmt::format("it has more than {} hosts", kMostNodes));
  std::vector<std::string> longer;
  longer.reserve(names.size() * endings.size());
  for (const std::string& front : names)
    for (const std::string& ending : endings) longer.push_back(front + ending);
  return longer;
}

// One entry of the list up to its comma, which is taken off `rest` too.
std::vector<std::string> take_entry(std::string_view& rest, std::string_view list, std::string_view name) {
  std::vector<std::string> names = {""};
  size_t at = 0;
  while (at < rest.size() && rest[at] != ',') {
    if (rest[at] == '[') {
      const size_t close = rest.find(']', at);
      if (close == std::string_view::npos) refuse(list, name, "a [ is not closed");
      names = product(names, expand_ranges(rest.substr(at + 1, close - at - 1), list, name), list, name);
      at = close + 1;
    } else {
      const size_t end = std::min(rest.find_first_of("[,", at), rest.size());
      const std::string_view literal = rest.substr(at, end - at);
      if (literal.find_first_of("] \t\r\n") != std::string_view::npos)
        refuse(list, name, fmt::format("{} is not a part of a host's name", in_quotes(literal)));
      names = product(names, {std::string(literal)}, list, name);
      at = end;
    }
    if (names.front().size() > kMostNameLength) refuse(list, name, "a host's name is too long");
  }
  if (at == 0) refuse(list, name, "a host's name is empty");
  rest.remove_prefix(at);
  return names;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list, std::string_view name) {
  std::vector<std::string> nodes;
  std::string_view rest = list;
  while (true) {
    std::vector<std::string> entry = take_entry(rest, list, name);
    if (nodes.size() + entry.size() > kMostNodes)
      refuse(list, name, fmt::format("it has more than {} hosts", kMostNodes));
    nodes.insert(nodes.end(), std::make_move_iterator(entry.begin()), std::make_move_iterator(entry.end()));
    if (rest.empty()) return nodes;
    rest.remove_prefix(1);  // the comma
  }
}

std::vector<int64_t> expand_tasks_per_node(std::string_view list, std::string_view name) {
  const auto refuse_tasks = [&](std::string_view why) {
    throw UserError("{}={}: {}; it should read like 4(x2),3", name, in_quotes(list), why);
  };
  const auto read = [&](std::string_view digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1 ||
        value > static_cast<int64_t>(kMostNodes))
      refuse_tasks(fmt::format("{} is not a number from 1 to {}", in_quotes(digits), kMostNodes));
    return value;
  };
  std::vector<int64_t> tasks;
  std::string_view rest = list;
  while (true) {
    const size_t comma = rest.find(',');
    std::string_view entry = rest.substr(0, comma);
    int64_t times = 1;
    if (const size_t open = entry.find("(x"); open != std::string_view::npos) {
      if (entry.back() != ')') refuse_tasks("a ( is not closed");
      times = read(entry.substr(open + 2, entry.size() - open - 3));
      entry = entry.substr(0, open);
    }
    const int64_t count = read(entry);
    if (tasks.size() + static_cast<size_t>(times) > kMostNodes)
      refuse_tasks(fmt::format("it has more than {} hosts", kMostNodes));
    tasks.insert(tasks.end(), static_cast<size_t>(times), count);
    if (comma == std::string_view::npos) return tasks;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep
