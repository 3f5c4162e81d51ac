#include "job/yaml_node.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "job/yaml_text.h"

namespace lockstep {
namespace {

struct Extent {
  int64_t nodes = 1;
  int depth = 1;
};

// Builds the tree from the parser's events, so that limits hold while it grows and not only afterwards.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& source, const YamlLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(node(YamlNode::Kind::kNull, mark), {}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    YamlNode scalar = node(YamlNode::Kind::kScalar, mark);
    scalar.text = value;
    scalar.quoted = tag == "!";
    if (scalar.quoted) require_closing_quote(mark);
    // The parser gives an empty plain value as text; it is the same nothing as `~` and `null`.
    if (!scalar.quoted && (value.empty() || value == "~" || value == "null"))
      scalar.kind = YamlNode::Kind::kNull;
    place(std::move(scalar), {}, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(node(YamlNode::Kind::kList, mark), anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_tag(mark, tag);
    open(node(YamlNode::Kind::kMap, mark), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      fail(mark.line + 1, "an alias stands inside the value that it repeats; write the value out");
    const auto& [repeated, extent] = found->second;
    count(mark.line + 1, extent);
    place(YamlNode(repeated), extent, 0);
  }

 private:
  struct Open {
    YamlNode node;
    Extent extent;
    YAML::anchor_t anchor = 0;
    bool expects_value = false;                      // a map that has seen a key
    std::unordered_map<std::string, int> keys = {};  // of a map, with their lines
  };

  template <typename... Args>
  [[noreturn]] void fail(int line, fmt::format_string<Args...> text, Args&&... args) const {
    throw UserError("{}:{}: {}", source_, line, fmt::format(text, std::forward<Args>(args)...));
  }

  static YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode result;
    result.kind = kind;
    result.line = mark.line + 1;
    result.column = mark.column + 1;
    return result;
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(mark.line + 1, "the tag {} has no meaning in a job file; write the value without it",
           clipped(tag));
  }

  // The parser takes a quote that is never closed as closed at the end of the text.
  void require_closing_quote(const YAML::Mark& mark) const {
    const size_t opening = text_.find_first_of("\"'|>", static_cast<size_t>(mark.pos));
    if (opening == std::string_view::npos || text_[opening] == '|' || text_[opening] == '>') return;
    const char quote = text_[opening];
    for (size_t i = opening + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\')
        ++i;
      else if (text_[i] == quote)
        return;
    }
    fail(mark.line + 1, "a quote is opened here and never closed; close the quote with {}", quote);
  }

  void open(YamlNode node, YAML::anchor_t anchor) {
    if (static_cast<int>(stack_.size()) >= limits_.depth)
      fail(node.line,
           "values are nested more than {} deep; write the sections of docs/job-file.md, which nest 4 deep",
           limits_.depth);
    if (!stack_.empty() && stack_.back().node.is_map() && !stack_.back().expects_value)
      fail(node.line, "a list or map stands where a key is expected; write a plain name before the colon");
    stack_.push_back({std::move(node), {}, anchor, false});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    place(std::move(done.node), done.extent, done.anchor);
  }

  void place(YamlNode node, Extent extent, YAML::anchor_t anchor) {
    count(node.line, {});
    if (anchor != 0) anchors_[anchor] = {node, extent};
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.is_map() && !parent.expects_value) {
      add_key(parent, node);
      return;
    }
    parent.extent.nodes += extent.nodes;
    parent.extent.depth = std::max(parent.extent.depth, extent.depth + 1);
    if (parent.node.is_map()) {
      parent.node.entries.back().value = std::move(node);
      parent.expects_value = false;
    } else {
      parent.node.items.push_back(std::move(node));
    }
  }

  void count(int line, const Extent& extent) {
    nodes_ += extent.nodes;
    if (nodes_ > limits_.nodes)
      fail(line, "the text expands to more than {} values; write fewer, and fewer aliases (*name)",
           limits_.nodes);
    if (static_cast<int>(stack_.size()) + extent.depth > limits_.depth + 1)
      fail(line, "aliases nest values more than {} deep; write the values out", limits_.depth);
  }

  void add_key(Open& map, const YamlNode& key) {
    if (!key.is_scalar()) fail(key.line, "a key is {}; write a plain name before the colon", describe(key));
    if (key.text == "<<") fail(key.line, "merge keys (<<) are not read; write the keys out");
    const auto [first, is_new] = map.keys.emplace(key.text, key.line);
    if (!is_new)
      fail(key.line, "{} is given twice, first at line {}; keep one of them", clipped(key.text),
           first->second);
    map.node.entries.push_back({key.text, key.line, {}});
    map.expects_value = true;
  }

  std::string_view text_;
  const std::string& source_;
  const YamlLimits& limits_;
  YamlNode root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, std::pair<YamlNode, Extent>> anchors_;
  int64_t nodes_ = 0;
};

// What to do about the parser's own complaints, by a part of their words.
std::string_view advice(std::string_view complaint) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kAdvice = {{
      {"end of map flow", "close the brace with } and part the entries by commas"},
      {"end of sequence flow", "close the bracket with ] and part the items by commas"},
      {"end of map", "line up the keys of a section, and write `key: value`"},
      {"end of sequence", "line up the dashes of a list"},
      {"illegal map value", "put quotes around a value that holds a colon, and one key on a line"},
      {"illegal block entry", "start each list item on a line of its own"},
      {"illegal map key", "write a plain name before the colon"},
      {"anchor is not defined", "define it before with &name, or write the value out"},
      {"illegal EOF in scalar", "close the quote"},
      {"illegal character when scanning", "put quotes around the value"},
      {"unknown token", "put quotes around a value that begins with a sign, as in [\"?\", \"-\"]"},
      {"unknown escape", "write single quotes, in which a backslash is a backslash"},
  }};
  for (const auto& [words, what] : kAdvice)
    if (complaint.find(words) != std::string_view::npos) return what;
  return "check the indentation, quotes, colons and brackets of this line and the one before";
}

}  // namespace

YamlNode read_yaml(std::string_view text, const std::string& source, const YamlLimits& limits) {
  check_yaml_text(text, source, limits);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(text, source, limits);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    YamlNode root = builder.take();
    TreeBuilder second(text, source, limits);
    if (parser.HandleNextDocument(second)) {
      const YamlNode extra = second.take();
      throw UserError("{}:{}: a second document starts here; write one job per file, without ---", source,
                      std::max(extra.line, 1));
    }
    return root;
  } catch (const YAML::Exception& error) {
    if (error.mark.is_null())
      throw UserError("{}: not YAML: {}; {}", source, clipped(error.msg), advice(error.msg));
    throw UserError("{}:{}:{}: not YAML: {}; {}", source, error.mark.line + 1, error.mark.column + 1,
                    clipped(error.msg), advice(error.msg));
  }
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kList: return "a list";
    case YamlNode::Kind::kMap: return "a map";
    case YamlNode::Kind::kScalar: break;
  }
  return fmt::format("'{}'", clipped(node.text));
}

std::string clipped(std::string_view text) {
  constexpr size_t kShown = 60;
  size_t end = std::min(text.size(), kShown);
  const auto continues = [&](size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  while (end > 0 && continues(end)) --end;
  std::string result(text.substr(0, end));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return end == text.size() ? result : result + "...";
}

}  // namespace lockstep
