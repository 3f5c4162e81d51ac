// JinjaTemplate::render: the tree of a template walked with the variables of a call.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "jinja/filters.h"
#include "jinja/node.h"
#include "jinja/parser.h"
#include "jinja/template.h"

namespace lockstep {
namespace {

using Kind = JinjaKind;
using Node = JinjaNode;

constexpr size_t kMostOutput = size_t{64} << 20;
constexpr int64_t kMostSteps = 2'000'000;
constexpr int kMostCalls = 30;  // macros that call each other
constexpr int64_t kMostRange = 100'000;

enum class Flow : uint8_t { kOn, kBreak, kContinue };

// A scope of names: that of the template, of a turn of a loop, of a macro.
struct JinjaScope {
  const JinjaScope* parent = nullptr;
  std::map<std::string, JinjaValue, std::less<>> names = {};

  const JinjaValue* find(std::string_view name) const {
    for (const JinjaScope* scope = this; scope != nullptr; scope = scope->parent)
      if (const auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
    return nullptr;
  }
};

int64_t checked(__int128 value) {
  if (value > INT64_MAX || value < INT64_MIN) throw UserError("a number becomes too large");
  return static_cast<int64_t>(value);
}

JinjaValue range_of(const JinjaArguments& given) {
  const auto& numbers = given.positional;
  if (numbers.empty() || numbers.size() > 3) throw UserError("range() takes one to three numbers");
  const int64_t begin = numbers.size() == 1 ? 0 : numbers[0].whole();
  const int64_t end = numbers.size() == 1 ? numbers[0].whole() : numbers[1].whole();
  const int64_t step = numbers.size() == 3 ? numbers[2].whole() : 1;
  if (step == 0) throw UserError("range(): the step is 0");
  JinjaList list;
  for (__int128 at = begin; step > 0 ? at < end : at > end; at += step) {
    if (std::ssize(list) >= kMostRange) throw UserError("range() gives more than {} numbers", kMostRange);
    list.emplace_back(static_cast<int64_t>(at));
  }
  return {std::move(list)};
}

JinjaValue dict_of(const JinjaArguments& given, bool is_namespace) {
  JinjaDict dict;
  dict.is_namespace = is_namespace;
  for (const JinjaValue& other : given.positional)
    for (const auto& [key, value] : other.dict().members) dict.put(key, value);
  for (const auto& [key, value] : given.named) dict.put(key, value);
  return {std::move(dict)};
}

class JinjaRenderer {
 public:
  JinjaRenderer() {
    global("range", range_of);
    global("dict", [](const JinjaArguments& given) { return dict_of(given, false); });
    global("namespace", [](const JinjaArguments& given) { return dict_of(given, true); });
    global("raise_exception", [](const JinjaArguments& given) -> JinjaValue {
      throw UserError("{}", given.positional.empty() ? "the template refuses the conversation"
                                                     : given.positional[0].printed());
    });
  }

  JinjaOutput render(const Node& root, const JinjaDict& variables) {
    for (const auto& [name, value] : variables.members) globals_.names.insert_or_assign(name, value);
    JinjaScope scope{&globals_};
    run(root, scope);
    return std::move(output_);
  }

 private:
  void global(const char* name, JinjaCallable callable) {
    globals_.names.emplace(name, JinjaValue(std::move(callable)));
  }
  void step(const Node& node) {
    line_ = node.line;
    if (++steps_ > kMostSteps) throw UserError("the template takes too many steps");
  }

 public:
  int line() const { return line_; }

 private:
  void print(std::string_view text) {
    if (output_.text.size() + text.size() > kMostOutput) throw UserError("the output grows beyond 64 MiB");
    output_.text += text;
  }

  // What a block prints, as a text.
  std::string captured(const Node& block, JinjaScope& scope) {
    JinjaOutput outer = std::exchange(output_, {});
    run(block, scope);
    std::string text = std::move(output_.text);
    output_ = std::move(outer);
    return text;
  }

  Flow run(const Node& node, JinjaScope& scope) {
    step(node);
    switch (node.kind) {
      case Kind::kBlock:
        for (const auto& child : node.children)
          if (const Flow flow = run(*child, scope); flow != Flow::kOn) return flow;
        return Flow::kOn;
      case Kind::kText: print(node.text); return Flow::kOn;
      case Kind::kPrint: print(value(*node.children[0], scope).printed()); return Flow::kOn;
      case Kind::kIf: {
        size_t at = 0;
        for (; at + 1 < node.children.size(); at += 2)
          if (value(*node.children[at], scope).truth()) return run(*node.children[at + 1], scope);
        return at < node.children.size() ? run(*node.children[at], scope) : Flow::kOn;
      }
      case Kind::kFor: loop(node, scope); return Flow::kOn;
      case Kind::kSet: assign(node.text, value(*node.children[0], scope), scope); return Flow::kOn;
      case Kind::kSetMember: set_member(node, scope); return Flow::kOn;
      case Kind::kSetBlock: {
        JinjaScope inner{&scope};
        scope.names.insert_or_assign(node.text, JinjaValue(captured(*node.children[0], inner)));
        return Flow::kOn;
      }
      case Kind::kMacro: define(node, scope); return Flow::kOn;
      case Kind::kGeneration: {
        const size_t begin = output_.text.size();
        const Flow flow = run(*node.children[0], scope);
        output_.generated.emplace_back(begin, output_.text.size());
        return flow;
      }
      case Kind::kBreak: return Flow::kBreak;
      case Kind::kContinue: return Flow::kContinue;
      default: throw InternalError("no such statement");
    }
  }

  // Lists that hold lists that hold lists can stand for more than memory holds, and be nested deeper than
  // the stack is: what is given a name is counted. Gives the weight so far.
  int64_t weighed(const JinjaValue& value, int depth, int64_t weight) {
    weight += value.is_text() ? 1 + std::ssize(value.text()) / 1024 : 1;
    if (depth > 64 || weight > (1 << 18)) throw UserError("a value becomes too large, or nested too deep");
    if (value.is_list())
      for (const JinjaValue& element : value.list()) weight = weighed(element, depth + 1, weight);
    if (value.is_dict() && !value.dict().is_namespace)
      for (const auto& [key, element] : value.dict().members) weight = weighed(element, depth + 1, weight);
    steps_ += weight / 64;
    return weight;
  }

  // One name, or several that take the elements of a list.
  void assign(std::string_view names, JinjaValue value, JinjaScope& scope) {
    weighed(value, 0, 0);
    if (names.find(',') == std::string_view::npos) {
      scope.names.insert_or_assign(std::string(names), std::move(value));
      return;
    }
    const JinjaList elements = value.elements();
    const auto count = static_cast<size_t>(std::count(names.begin(), names.end(), ',')) + 1;
    if (elements.size() != count) throw UserError("{} names stand before {} values", count, elements.size());
    for (const JinjaValue& element : elements) {
      const size_t comma = std::min(names.find(','), names.size());
      scope.names.insert_or_assign(std::string(names.substr(0, comma)), element);
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }

  void set_member(const Node& node, JinjaScope& scope) {
    const size_t dot = node.text.find('.');
    const JinjaValue* held = scope.find(node.text.substr(0, dot));
    if (held == nullptr || !held->is_dict() || !held->dict().is_namespace)
      throw UserError("'{}' is no namespace; only members of a namespace can be set",
                      node.text.substr(0, dot));
    JinjaValue made = value(*node.children[0], scope);
    weighed(made, 0, 0);
    if (holds_namespace(made)) throw UserError("a namespace cannot be a member of another one");
    held->dict().put(node.text.substr(dot + 1), std::move(made));
  }

  // It could then hold itself.
  static bool holds_namespace(const JinjaValue& value) {
    if (value.is_list()) return std::any_of(value.list().begin(), value.list().end(), holds_namespace);
    if (!value.is_dict()) return false;
    const auto& members = value.dict().members;
    return value.dict().is_namespace || std::any_of(members.begin(), members.end(), [](const auto& member) {
             return holds_namespace(member.second);
           });
  }

  JinjaValue loop_facts(const JinjaList& all, size_t at) const {
    const auto index = static_cast<int64_t>(at), size = std::ssize(all);
    JinjaDict facts;
    auto& members = facts.members;
    members.emplace_back("index", index + 1);
    members.emplace_back("index0", index);
    members.emplace_back("first", at == 0);
    members.emplace_back("last", index + 1 == size);
    members.emplace_back("length", size);
    members.emplace_back("revindex", size - index);
    members.emplace_back("revindex0", size - index - 1);
    members.emplace_back("previtem", at > 0 ? all[at - 1] : JinjaValue(JinjaValue::Undefined{"previtem"}));
    members.emplace_back("nextitem",
                         index + 1 < size ? all[at + 1] : JinjaValue(JinjaValue::Undefined{"nextitem"}));
    members.emplace_back("cycle", JinjaCallable([at](const JinjaArguments& given) -> JinjaValue {
                           if (given.positional.empty()) throw UserError("loop.cycle() takes values");
                           return given.positional[at % given.positional.size()];
                         }));
    return {std::move(facts)};
  }

  void loop(const Node& node, JinjaScope& scope) {
    JinjaList all = value(*node.children[0], scope).elements();
    steps_ += std::ssize(all);
    if (node.children[1]) {
      JinjaList kept;
      for (const JinjaValue& element : all) {
        JinjaScope inner{&scope};
        assign(node.text, element, inner);
        if (value(*node.children[1], inner).truth()) kept.push_back(element);
      }
      all = std::move(kept);
    }
    for (size_t at = 0; at < all.size(); ++at) {
      JinjaScope inner{&scope};
      assign(node.text, all[at], inner);
      inner.names.insert_or_assign("loop", loop_facts(all, at));
      if (run(*node.children[2], inner) == Flow::kBreak) break;
    }
    if (all.empty() && node.children[3]) {
      JinjaScope inner{&scope};
      run(*node.children[3], inner);
    }
  }

  // Macros see the names of the template, as these are when they are called.
  void define(const Node& node, JinjaScope& scope) {
    if (scope.parent != &globals_)
      throw UserError("the macro {} is defined within a loop or a macro, which is not supported", node.text);
    const auto call = [this, &node, &scope](const JinjaArguments& given) -> JinjaValue {
      if (++calls_ > kMostCalls) throw UserError("macros call each other more than {} deep", kMostCalls);
      JinjaScope inner{&scope};
      const size_t parameters = node.names.size();
      if (given.positional.size() > parameters)
        throw UserError("{}() takes at most {} arguments", node.text, parameters);
      for (size_t i = 0; i < parameters; ++i) {
        const size_t first_default = parameters - (node.children.size() - 1);
        JinjaValue taken = JinjaValue::Undefined{node.names[i]};
        const auto named = std::find_if(given.named.begin(), given.named.end(),
                                        [&](const auto& member) { return member.first == node.names[i]; });
        if (i < given.positional.size())
          taken = given.positional[i];
        else if (named != given.named.end())
          taken = named->second;
        else if (i >= first_default)
          taken = value(*node.children[1 + i - first_default], inner);
        inner.names.insert_or_assign(node.names[i], std::move(taken));
      }
      for (const auto& [name, unused] : given.named)
        if (std::find(node.names.begin(), node.names.end(), name) == node.names.end())
          throw UserError("{}() has no parameter '{}'", node.text, name);
      std::string text = captured(*node.children[0], inner);
      --calls_;
      return {std::move(text)};
    };
    scope.names.insert_or_assign(node.text, JinjaValue(JinjaCallable(call)));
  }

  JinjaArguments arguments(const Node& node, JinjaScope& scope) {
    JinjaArguments given;
    const size_t named = node.children.size() - node.names.size();
    for (size_t i = 1; i < node.children.size(); ++i) {
      JinjaValue argument = value(*node.children[i], scope);
      if (i < named)
        given.positional.push_back(std::move(argument));
      else
        given.named.emplace_back(node.names[i - named], std::move(argument));
    }
    return given;
  }

  JinjaValue value(const Node& node, JinjaScope& scope) {
    step(node);
    const auto child = [&](size_t i) { return value(*node.children[i], scope); };
    switch (node.kind) {
      case Kind::kLiteral: return node.value;
      case Kind::kName: {
        const JinjaValue* held = scope.find(node.text);
        return held != nullptr ? *held : JinjaValue(JinjaValue::Undefined{node.text});
      }
      case Kind::kList: {
        JinjaList list;
        for (size_t i = 0; i < node.children.size(); ++i) list.push_back(child(i));
        return {std::move(list)};
      }
      case Kind::kDict: {
        JinjaDict dict;
        for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
          const JinjaValue key = child(i);
          dict.put(key.text(), child(i + 1));
        }
        return {std::move(dict)};
      }
      case Kind::kMember: {
        const JinjaValue of = child(0);
        // Methods come before members, as attributes do in Python; a namespace has members only.
        if (!of.is_dict() || !of.dict().is_namespace)
          if (JinjaValue method = method_of(of, node.text); !method.is_undefined()) return method;
        JinjaValue held = member_of(of, JinjaValue(node.text));
        line_ = node.line;
        return held;
      }
      case Kind::kIndex: {
        const JinjaValue of = child(0);
        return member_of(of, child(1));
      }
      case Kind::kSlice: return slice(node, scope);
      case Kind::kCall: {
        const JinjaValue called = child(0);
        if (called.is_undefined())
          throw UserError("'{}' is undefined, or not supported, and cannot be called",
                          called.undefined_name());
        const JinjaArguments given = arguments(node, scope);
        line_ = node.line;
        return called.callable()(given);
      }
      case Kind::kFilter: {
        const JinjaValue of = child(0);
        return apply_filter(node.text, of, arguments(node, scope));
      }
      case Kind::kTest: {
        const JinjaValue of = child(0);
        return {apply_test(node.text, of, arguments(node, scope)) != node.negated};
      }
      case Kind::kNot: return {!child(0).truth()};
      case Kind::kNegative: {
        const JinjaValue of = child(0);
        return of.is_whole() ? JinjaValue(checked(-static_cast<__int128>(of.whole())))
                             : JinjaValue(-of.number());
      }
      case Kind::kAnd: {
        JinjaValue left = child(0);
        return left.truth() ? child(1) : left;
      }
      case Kind::kOr: {
        JinjaValue left = child(0);
        return left.truth() ? left : child(1);
      }
      case Kind::kChoice:
        if (child(1).truth()) return child(0);
        return node.children[2] ? child(2) : JinjaValue(JinjaValue::Undefined{"the other choice"});
      case Kind::kBinary: {
        const JinjaValue left = child(0);
        return binary(node.text, left, child(1));
      }
      case Kind::kCompare: return compare(node, scope);
      default: throw InternalError("no such expression");
    }
  }

  JinjaValue compare(const Node& node, JinjaScope& scope) {
    JinjaValue left = value(*node.children[0], scope);
    for (size_t i = 0; i < node.names.size(); ++i) {
      JinjaValue right = value(*node.children[i + 1], scope);
      const std::string& operation = node.names[i];
      const bool holds = operation == "=="   ? left == right
                         : operation == "!=" ? !(left == right)
                         : operation == "<"  ? left.less_than(right)
                         : operation == ">"  ? right.less_than(left)
                         : operation == "<=" ? !right.less_than(left)
                         : operation == ">=" ? !left.less_than(right)
                         : operation == "in" ? right.contains(left)
                                             : !right.contains(left);
      if (!holds) return {false};
      left = std::move(right);
    }
    return {true};
  }

  JinjaValue slice(const Node& node, JinjaScope& scope) {
    const JinjaValue of = value(*node.children[0], scope);
    if (of.is_undefined()) throw UserError("'{}' is undefined", of.undefined_name());
    if (!of.is_text() && !of.is_list()) throw UserError("{} has no slices", of.type_name());
    const JinjaList all = of.elements();
    const auto size = std::ssize(all);
    const auto bound = [&](size_t part) -> std::optional<int64_t> {
      if (!node.children[part]) return {};
      const JinjaValue given = value(*node.children[part], scope);
      if (given.is_none()) return {};
      return given.whole();
    };
    const int64_t step = bound(3).value_or(1);
    if (step == 0) throw UserError("a slice's step is 0");
    const auto place = [&](std::optional<int64_t> given, int64_t otherwise) {
      if (!given) return otherwise;
      const int64_t from_front = *given < 0 ? std::max<int64_t>(*given, -size - 1) + size : *given;
      return step > 0 ? std::clamp<int64_t>(from_front, 0, size)
                      : std::clamp<int64_t>(from_front, -1, size - 1);
    };
    const int64_t begin = place(bound(1), step > 0 ? 0 : size - 1);
    const int64_t end = place(bound(2), step > 0 ? size : -1);
    JinjaList kept;
    for (__int128 at = begin; step > 0 ? at < end : at > end; at += step)
      kept.push_back(all[static_cast<size_t>(at)]);
    if (of.is_list()) return {std::move(kept)};
    std::string text;
    for (const JinjaValue& point : kept) text += point.text();
    return {std::move(text)};
  }

  static JinjaValue binary(const std::string& operation, const JinjaValue& left, const JinjaValue& right) {
    if (operation == "~" || (operation == "+" && left.is_text() && right.is_text())) {
      std::string text = left.printed() + right.printed();
      if (text.size() > kMostOutput) throw UserError("a text grows beyond 64 MiB");
      return {std::move(text)};
    }
    if (operation == "+" && left.is_list() && right.is_list()) {
      JinjaList joined = left.list();
      joined.insert(joined.end(), right.list().begin(), right.list().end());
      if (joined.size() > size_t{1} << 20) throw UserError("a list grows beyond 2^20 elements");
      return {std::move(joined)};
    }
    if (operation == "*" && left.is_text() && right.is_whole()) {
      std::string text;
      for (int64_t i = 0; i < right.whole(); ++i) {
        text += left.text();
        if (text.size() > kMostOutput || i > (1 << 20)) throw UserError("a text grows beyond 64 MiB");
      }
      return {std::move(text)};
    }
    if (left.is_undefined()) throw UserError("'{}' is undefined", left.undefined_name());
    if (right.is_undefined()) throw UserError("'{}' is undefined", right.undefined_name());
    if (!left.is_number() || !right.is_number())
      throw UserError("{} {} {} is not possible", left.type_name(), operation, right.type_name());
    return arithmetic(operation, left, right);
  }

  static JinjaValue arithmetic(const std::string& operation, const JinjaValue& left,
                               const JinjaValue& right) {
    const bool whole = left.is_whole() && right.is_whole();
    const bool divides = operation == "/" || operation == "//" || operation == "%";
    if (divides && right.number() == 0) throw UserError("a division by 0");
    if (whole && operation != "/" && operation != "**") {
      const __int128 a = left.whole(), b = right.whole();
      if (operation == "+") return {checked(a + b)};
      if (operation == "-") return {checked(a - b)};
      if (operation == "*") return {checked(a * b)};
      const __int128 quotient = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
      return {checked(operation == "//" ? quotient : a - quotient * b)};
    }
    const double a = left.number(), b = right.number();
    if (operation == "+") return {a + b};
    if (operation == "-") return {a - b};
    if (operation == "*") return {a * b};
    if (operation == "/") return {a / b};
    if (operation == "//") return {std::floor(a / b)};
    if (operation == "%") return {a - std::floor(a / b) * b};
    const double power = std::pow(a, b);
    if (!whole || b < 0) return {power};
    if (std::fabs(power) > 9e15) throw UserError("a number becomes too large");
    return {static_cast<int64_t>(power)};
  }

  JinjaScope globals_;
  JinjaOutput output_;
  int64_t steps_ = 0;
  int calls_ = 0, line_ = 1;
};

}  // namespace

JinjaTemplate::JinjaTemplate(std::string name, std::string_view source) : name_(std::move(name)) {
  try {
    ParsedJinja parsed = parse_jinja(source);
    root_ = std::move(parsed.root);
    has_generation_ = parsed.has_generation;
  } catch (const UserError& error) {
    throw UserError("{}, {}", name_, error.what());
  }
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

JinjaOutput JinjaTemplate::render(const JinjaDict& variables) const {
  JinjaRenderer renderer;
  try {
    return renderer.render(*root_, variables);
  } catch (const UserError& error) {
    throw UserError("{}, line {}: {}", name_, renderer.line(), error.what());
  }
}

}  // namespace lockstep
