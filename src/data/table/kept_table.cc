#include "data/table/kept_table.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/shards/formats.h"

namespace lockstep {
namespace {

constexpr const char* kOthers = "the constants kept with the run are not those of its job file";

std::string heading_of(const Transform& transform) { return fmt::format("transform {}\n", transform.text()); }

// Where the last line begins that is `line`, which ends as one; nothing: there is none.
std::optional<size_t> last_line(std::string_view text, std::string_view line) {
  const size_t found = text.rfind(fmt::format("\n{}", line));
  if (found != std::string_view::npos) return found + 1;
  return text.starts_with(line) ? std::optional<size_t>(0) : std::nullopt;
}

// What Table::constants() joined: the fitted text of each transform, the encoding's last. Looked for from the
// end, where the roles stand, so that a word of a vocabulary is never taken for a heading.
std::vector<std::string_view> parts_of(std::string_view constants, const Transforms& transforms,
                                       const std::string& encoding_begin) {
  std::vector<std::string_view> parts(transforms.size());
  for (size_t i = transforms.size(); i-- > 0;) {
    const bool encoding = i + 1 == transforms.size() && !encoding_begin.empty();
    const std::string heading = encoding ? encoding_begin : heading_of(*transforms[i]);
    const std::optional<size_t> begin = last_line(constants, heading);
    if (!begin) throw UserError("{}", kOthers);
    parts[i] = constants.substr(encoding ? *begin : *begin + heading.size());
    constants = constants.substr(0, *begin);
  }
  if (!constants.empty()) throw UserError("{}", kOthers);
  return parts;
}

// The columns of a role, of an encoding as text: "numeric amount log1p=true ...".
std::vector<std::string> columns_in(std::string_view encoding, std::string_view role,
                                    std::initializer_list<std::string_view> behind) {
  std::vector<std::string> names;
  while (!encoding.empty()) {
    std::string_view line = encoding.substr(0, encoding.find('\n'));
    encoding.remove_prefix(std::min(encoding.size(), line.size() + 1));
    if (!line.starts_with(role)) continue;
    line.remove_prefix(role.size());
    for (const std::string_view key : behind)
      if (const size_t end = line.rfind(key); end != std::string_view::npos) {
        names.emplace_back(line.substr(0, end));
        break;
      }
  }
  return names;
}

std::vector<BlockField> fields_with_label(const TableOptions& options, const std::vector<std::string>& files,
                                          std::string& name) {
  const auto format = make_format(options.format, {{}, options.settings, options.bad});
  const std::vector<std::string> paths = expand_files(files, format->suffix());
  if (paths.empty()) throw UserError("no data files are given");
  const auto shard = open_shard(paths[0], options.index_folder);
  name = shard->name();
  std::vector<BlockField> fields = format->fields(*shard);
  const std::string& label = options.text ? options.text->label : options.encoding.label;
  if (std::none_of(fields.begin(), fields.end(), [&](const BlockField& f) { return f.name == label; }))
    fields.push_back({label, ValueType::kBytes, 1});
  return fields;
}

// The roles as they were, of columns that must all be there.
TableEncoding roles_in(TableOptions options, std::string_view kept, const Transforms& transforms,
                       const std::vector<std::string>& files) {
  options.encoding.numeric = columns_in(kept, "numeric ", {" log1p="});
  options.encoding.categorical = columns_in(kept, "categorical ", {" buckets=", " ids="});
  if (!options.encoding.names_roles()) throw UserError("{}", kOthers);
  // New files need not have what was never used, nor what says how much a training record counts.
  options.encoding.ignore.clear();
  options.encoding.weight.clear();
  std::string name;
  const std::vector<BlockField> fields = fields_with_label(options, files, name);
  std::vector<std::string> header, names;
  for (const BlockField& field : fields)
    if (field.width == 1) header.push_back(field.name);
  for (const TransformOptions& transform : options.transforms) names.push_back(transform.name);
  return resolve_roles(options.encoding, name, header, {}, made_columns(transforms, names, fields));
}

}  // namespace

Table restore_table(const TableOptions& options, std::string_view constants,
                    const std::vector<std::string>& files) {
  std::vector<std::shared_ptr<Transform>> transforms;
  for (const TransformOptions& transform : options.transforms)
    transforms.push_back(make_transform(transform));
  Table table;
  std::shared_ptr<EncodeTable> encoding;
  std::string encoding_begin;
  if (options.text) {
    const auto text = std::make_shared<EncodeText>(*options.text);
    table.columns = text->columns();
    transforms.push_back(text);
  } else {
    encoding_begin = fmt::format("label {}\n", options.encoding.label);
    const std::string_view kept = constants.substr(last_line(constants, encoding_begin).value_or(0));
    const Transforms before(transforms.begin(), transforms.end());
    encoding = std::make_shared<EncodeTable>(options.encoding, roles_in(options, kept, before, files));
    transforms.push_back(encoding);
  }
  table.transforms = {transforms.begin(), transforms.end()};
  const auto parts = parts_of(constants, table.transforms, encoding_begin);
  for (size_t i = 0; i < transforms.size(); ++i)
    if (transforms[i]->begin_fit()) transforms[i]->set_fitted(parts[i]);
  if (!encoding) return table;
  table.encoding = encoding->without_weights();
  table.transforms.back() = table.encoding;
  table.columns = table.encoding->columns();
  return table;
}

Transforms without_label(const Table& table, const std::string& label) {
  Transforms chain;
  for (const auto& transform : table.transforms) {
    if (const auto* encoding = dynamic_cast<const EncodeTable*>(transform.get())) {
      chain.push_back(encoding->without_label());
      continue;
    }
    if (const auto* text = dynamic_cast<const EncodeText*>(transform.get())) {
      chain.push_back(text->without_label());
      continue;
    }
    const std::vector<BlockField> reads = transform->reads();
    const bool of_label = !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const auto& field) {
      return field.name == label;
    });
    if (!of_label) chain.push_back(transform);
  }
  return chain;
}

}  // namespace lockstep
