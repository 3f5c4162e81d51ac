#include "job/gather.h"

#include <algorithm>

#include "base/error.h"
#include "job/aliases.h"
#include "job/fields.h"
#include "job/numbers.h"
#include "job/unknown_key.h"

namespace lockstep {
namespace {

std::string joined(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

std::string camel_case(std::string_view key) {
  std::string result;
  bool raise = false;
  for (const char c : key) {
    if (c != '_') result += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    raise = c == '_';
  }
  return result;
}

// "workerPoolSpecs[3].x" as the table has it: "workerPoolSpecs[].x".
std::string table_path(std::string_view path) {
  const size_t open = path.find('[');
  const size_t close = path.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos) return std::string(path);
  return fmt::format("{}{}", path.substr(0, open + 1), path.substr(close));
}

void check_pool_index(std::string_view section, const Gathered& gathered) {
  const size_t open = section.find('[') + 1;
  const size_t close = section.find(']');
  const std::optional<int64_t> index =
      close == std::string_view::npos ? std::nullopt : read_whole(section.substr(open, close - open));
  const auto pools = static_cast<int64_t>(gathered.pools.size());
  if (!index || *index < 0 || *index >= pools)
    throw UserError(
        "--set: {} is not one of the job's {} pools; write workerPoolSpecs=[{{replicaCount: 1}}] to give all "
        "of them",
        clipped(section), pools);
}

class Walker {
 public:
  Walker(Gathered& into, Origin origin) : into_(into), origin_(std::move(origin)) {}

  void section(const std::string& path, const YamlNode& map) {
    for (const YamlNode::Entry& entry : map.entries) key(path, entry.key, entry.line, entry.value);
  }

  void key(const std::string& section, const std::string& name, int line, const YamlNode& value) {
    const std::string path = joined(section, known_spelling(section, name));
    const std::string in_table = table_path(path);
    if (section.empty() && (name == "jobSpec" || name == "job_spec")) return wrapped(name, line, value);
    if (path == "workerPoolSpecs") return pools(line, value);
    if (const Field* field = find_field(in_table)) return field_value(*field, path, line, value);
    if (is_section(in_table)) return subsection(path, line, value);
    // Some tools give a key a value, others a section of the same name (bf16: true; bf16: {enabled: true}).
    if (const Alias* alias = find_alias(path);
        alias != nullptr && !(value.is_map() && is_alias_section(path)))
      return alias_value(*alias, path, line, value);
    if (is_alias_section(path) && value.is_map()) return this->section(path, value);
    throw UserError("{}", unknown_key(place(line), table_path(section), name));
  }

 private:
  std::string place(int line) const { return at(line).place(); }
  Origin at(int line) const {
    Origin origin = origin_;
    if (origin.kind == Origin::Kind::kFile) origin.line = line;
    return origin;
  }

  // Vertex AI writes camelCase in files and snake_case in Python.
  static std::string known_spelling(const std::string& section, const std::string& name) {
    const std::vector<std::string_view> names = names_in(table_path(section));
    const auto known = [&](std::string_view spelling) {
      return std::find(names.begin(), names.end(), spelling) != names.end();
    };
    if (known(name)) return name;
    const std::string camel = camel_case(name);
    return known(camel) ? camel : name;
  }

  void wrapped(const std::string& name, int line, const YamlNode& value) {
    if (!value.is_map())
      throw UserError("{}: {} is {}; write the map that holds workerPoolSpecs", place(line), name,
                      describe(value));
    section("", value);
  }

  void subsection(const std::string& path, int line, const YamlNode& value) {
    const std::string_view plain = key_of_plain_value(table_path(path));
    if (!plain.empty() && value.is_scalar()) return key(path, std::string(plain), line, value);
    if (value.is_null()) {
      if (origin_.kind == Origin::Kind::kSet)
        std::erase_if(into_.values, [&](const auto& entry) { return entry.first.starts_with(path + "."); });
      return;
    }
    if (!value.is_map()) {
      const std::vector<std::string_view> names = names_in(table_path(path));
      const std::string example = value.is_scalar()
                                      ? fmt::format("{}: {}", names.front(), clipped(value.text))
                                      : fmt::format("{}: ...", names.front());
      throw UserError("{}: {} is {}, but it is a section with the keys {}; write {}: {{{}}}", place(line),
                      path, describe(value), fmt::join(names, ", "), path.substr(path.rfind('.') + 1),
                      example);
    }
    section(path, value);
  }

  void pools(int line, const YamlNode& value) {
    constexpr size_t kMostPools = 4;
    if (!value.is_list())
      throw UserError(
          "{}: workerPoolSpecs is {}; write a list of pools, each as {{machineSpec: {{machineType: local}}, "
          "replicaCount: 1}}",
          place(line), describe(value));
    if (value.items.size() > kMostPools)
      throw UserError(
          "{}: workerPoolSpecs has {} pools; write at most 4: the first worker, the others, reduction "
          "servers, evaluators",
          place(line), value.items.size());
    std::erase_if(into_.values,
                  [](const auto& entry) { return entry.first.starts_with("workerPoolSpecs["); });
    into_.pools.assign(value.items.size(), false);
    for (size_t i = 0; i < value.items.size(); ++i) {
      const YamlNode& pool = value.items[i];
      if (!pool.is_map() && !pool.is_null())
        throw UserError(
            "{}: workerPoolSpecs[{}] is {}; write {{machineSpec: {{machineType: local}}, replicaCount: 1}}",
            place(pool.line), i, describe(pool));
      into_.pools[i] = !pool.entries.empty();
      section(fmt::format("workerPoolSpecs[{}]", i), pool);
    }
  }

  void field_value(const Field& field, const std::string& path, int line, const YamlNode& value) {
    if (field.is_ignored()) {
      into_.notes.push_back(fmt::format("{}: {} has no effect here", place(line), path));
      return;
    }
    put(path, value, at(line));
  }

  void alias_value(const Alias& alias, const std::string& path, int line, const YamlNode& value) {
    const std::string where = place(line);
    std::optional<YamlNode> translated = value;
    if (alias.translate) translated = alias.translate({value, path, where});
    if (alias.target.empty()) {
      into_.notes.push_back(fmt::format("{}: {} ({}) has no effect here", where, path, alias.tool));
      return;
    }
    if (!translated) return;
    Origin origin = at(line);
    origin.alias = path;
    // Parts of a value are reported once they are put together.
    if (find_field(alias.target) != nullptr)
      into_.notes.push_back(fmt::format("{}: understood {} ({}) as {}{}", where, path, alias.tool,
                                        alias.target,
                                        translated->is_scalar() ? ": " + clipped(translated->text) : ""));
    put(std::string(alias.target), *translated, origin);
  }

  void put(const std::string& path, const YamlNode& value, const Origin& origin) {
    if (origin.kind == Origin::Kind::kSet) {
      into_.values.erase(path);
      if (value.is_null()) return;
    }
    const auto [place, is_new] = into_.values.try_emplace(path, Gathered::Value{value, origin});
    if (is_new) return;
    const Origin& before = place->second.origin;
    const auto name = [&](const Origin& from) { return from.alias.empty() ? path : from.alias; };
    throw UserError("{}: {} and {} (line {}) say the same thing; keep one of them", origin.place(),
                    name(origin), name(before), before.line);
  }

  Gathered& into_;
  Origin origin_;
};

}  // namespace

const Gathered::Value* Gathered::find(std::string_view path) const {
  const auto found = values.find(path);
  return found == values.end() ? nullptr : &found->second;
}

void gather_file(const YamlNode& root, const std::string& file, Gathered& into) {
  if (root.is_null())
    throw UserError("{}: the file says nothing; `lockstep init --template gpt` prints a job to start from",
                    file);
  if (!root.is_map())
    throw UserError("{}:{}: the file is {}, not a job; write sections such as `model:`, `data:` and `train:`",
                    file, std::max(root.line, 1), describe(root));
  Walker(into, {.kind = Origin::Kind::kFile, .file = file}).section("", root);
}

void gather_override(const std::string& text, Gathered& into) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UserError("--set {}: there is no value; write key=value, for example train.lr.base=1e-3",
                    clipped(text));
  const std::string path = text.substr(0, equals);
  const YamlNode value = read_yaml(text.substr(equals + 1), "--set " + clipped(path));
  const size_t dot = path.rfind('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
  if (section.starts_with("workerPoolSpecs[")) check_pool_index(section, into);
  Walker(into, {.kind = Origin::Kind::kSet})
      .key(section, path.substr(section.empty() ? 0 : dot + 1), 0, value);
}

}  // namespace lockstep
