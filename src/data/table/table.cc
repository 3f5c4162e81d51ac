#include "data/table/table.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/sha256.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/bytes/kept_file.h"
#include "data/format/value_text.h"
#include "data/reading/fit_transforms.h"
#include "data/shards/formats.h"
#include "data/shards/sidecar.h"
#include "data/source/wrapped_source.h"
#include "data/table/column_sample.h"
#include "data/table/label_check.h"
#include "data/table/look_through.h"

namespace lockstep {
namespace {

constexpr int64_t kSampledRecords = 10000;

using OpenShards = std::function<Shards()>;

FormatOptions format_options(const TableOptions& options, std::vector<BlockField> columns) {
  return {std::move(columns), options.settings, options.bad, options.missing};
}

ShardSetOptions set_options(const TableOptions& options) {
  return {.index_folder = options.index_folder,
          .threads = options.threads,
          .most_bad = options.most_bad,
          .progress = options.progress};
}

// The paths of each part; without parts, of all files as one.
using Parts = std::vector<std::vector<std::string>>;

Parts parts_of(const TableOptions& options, const std::vector<std::string>& files) {
  const std::string suffix(make_format(options.format, format_options(options, {}))->suffix());
  if (!options.in_parts) return {expand_files(files, suffix)};
  Parts parts;
  std::set<std::string> known;
  for (const std::string& pattern : files) {
    parts.push_back(expand_files({pattern}, suffix));
    for (const std::string& path : parts.back())
      if (!known.insert(path).second)
        throw UserError("{} belongs to two entries of the data files that have weights; name it once", path);
  }
  return parts;
}

OpenShards opener(const TableOptions& options, const Parts& parts) {
  std::vector<std::string> paths;
  for (const auto& part : parts) paths.insert(paths.end(), part.begin(), part.end());
  return [paths, folder = options.index_folder] {
    Shards shards;
    for (const std::string& path : paths) shards.push_back(open_shard(path, folder));
    return shards;
  };
}

// A column that a transform makes and nobody reads was meant for the model.
void check_made_are_used(const TableOptions& options, const std::vector<std::string>& header,
                         const std::vector<BlockField>& made, const Transforms& transforms,
                         const TableEncoding& encoding) {
  std::set<std::string> used(header.begin(), header.end());
  for (const auto& transform : transforms)
    for (const BlockField& field : transform->reads()) used.insert(field.name);
  for (const NumericColumn& column : encoding.numeric) used.insert(column.name);
  used.insert(encoding.categorical.begin(), encoding.categorical.end());
  used.insert(options.encoding.ignore.begin(), options.encoding.ignore.end());
  for (const BlockField& field : made) {
    if (field.width != 1 && std::find(options.encoding.ignore.begin(), options.encoding.ignore.end(),
                                      field.name) == options.encoding.ignore.end())
      throw UserError(
          "a transform makes several values in a record of column '{}', which a tabular model does not "
          "take; use model.family encoder with data.train.text",
          field.name);
    if (field.width == 1 && !used.contains(field.name))
      throw UserError(
          "a transform makes column '{}', which nothing uses; name it under columns.{}, or under "
          "columns.ignore",
          field.name, field.ids > 0 || field.type == ValueType::kBytes ? "categorical" : "numeric");
  }
}

// What the columns of a shard's first records look like; kept beside the index where `kept`: sampling takes
// longer than all else that opening does. They lie under a name that stands for the shard's content and how
// it is decoded.
std::vector<ColumnSample> samples_of_shard(const TableOptions& options, const ShardSet& shard, size_t columns,
                                           bool kept) {
  if (!kept) return sample_columns(shard, kSampledRecords);
  const std::string key = fmt::format("looks 3\n{}\n{}\n", shard.fingerprint(), kSampledRecords);
  const std::filesystem::path beside =
      sidecar_path(shard.format(), shard.manifest().shards()[0].name, options.index_folder);
  const std::string path =
      (beside.parent_path() / fmt::format("looks-{}.txt", sha256(key).substr(0, 16))).string();
  if (auto samples = parse_samples(read_kept(path).value_or(""), columns)) return *samples;
  const std::vector<ColumnSample> samples = sample_columns(shard, kSampledRecords);
  if (options.index_folder.writes) write_kept(path, to_text(samples));
  return samples;
}

// A format may pass over columns that it cannot read. One that the job names is refused with the reason.
void check_named(const TableOptions& options, const std::vector<BlockField>& fields,
                 const std::vector<BlockField>& made, const ByteSource& shard) {
  std::vector<std::string> names = options.encoding.numeric;
  names.insert(names.end(), options.encoding.categorical.begin(), options.encoding.categorical.end());
  names.push_back(options.encoding.label);
  names.push_back(options.encoding.weight);
  std::vector<BlockField> absent;
  for (const std::string& name : names) {
    const auto is_it = [&](const BlockField& field) { return field.name == name; };
    if (!name.empty() && std::none_of(fields.begin(), fields.end(), is_it) &&
        std::none_of(made.begin(), made.end(), is_it))
      absent.push_back({name, ValueType::kBytes, 1});
  }
  if (!absent.empty()) (void)make_format(options.format, format_options(options, absent))->fields(shard);
}

std::vector<std::string> read_by(const Transforms& transforms) {
  std::vector<std::string> names;
  for (const auto& transform : transforms)
    for (const BlockField& field : transform->reads()) names.push_back(field.name);
  return names;
}

// What the columns hold that were left out of the model, as far as they can be read.
std::map<std::string, ColumnFacts> facts_of_others(const TableOptions& options, const OpenShards& open,
                                                   const std::vector<BlockField>& columns) {
  std::map<std::string, ColumnFacts> facts;
  if (columns.empty()) return facts;
  ShardSetOptions set = set_options(options);
  set.most_bad = 1;  // what is bad is bad for the columns of the model
  const ShardSet shards(make_format(options.format, format_options(options, columns)), open(), set);
  const std::vector<ColumnFacts> found =
      look_through(shards, {}, {.threads = options.threads, .parses = true, .progress = options.progress});
  for (size_t i = 0; i < found.size(); ++i) facts.emplace(shards.fields()[i].name, found[i]);
  return facts;
}

// The columns that other shards have and the first, which decides, does not.
std::vector<LeftOutColumn> not_in_first(const Format& format, const std::vector<BlockField>& first,
                                        const Shards& shards) {
  std::vector<LeftOutColumn> others;
  std::set<std::string> known;
  for (const BlockField& field : first) known.insert(field.name);
  for (size_t i = 1; format.names_columns() && i < shards.size(); ++i)
    for (const BlockField& field : format.fields(*shards[i]))
      if (known.insert(field.name).second)
        others.push_back(
            {field.name, fmt::format("in {}, but not in {}", shards[i]->name(), shards[0]->name())});
  return others;
}

// The roles of the columns, by the names and the first records of the first shard, and by what transforms
// make. Where roles are named, the names are enough. The report is told which columns have none.
TableEncoding roles_of(const TableOptions& options, const Transforms& transforms, const OpenShards& open,
                       bool kept, TableReport& report) {
  Shards shards = open();
  if (shards.empty()) throw UserError("no data files are given");
  const std::string name = shards[0]->name();
  auto format = make_format(options.format, format_options(options, {}));
  const std::vector<BlockField> fields = format->fields(*shards[0]);
  std::vector<LeftOutColumn> unread = not_in_first(*format, fields, shards);
  shards.resize(1);
  std::vector<std::string> header;
  // A role is that of one value in a record.
  for (const BlockField& field : fields)
    if (field.width == 1) header.push_back(field.name);
  std::vector<std::string> names;
  for (const TransformOptions& transform : options.transforms) names.push_back(transform.name);
  const std::vector<BlockField> made = made_columns(transforms, names, fields);
  check_named(options, fields, made, *shards[0]);
  for (const auto& [column, reason] : format->unread(*shards[0])) unread.push_back({column, reason});
  std::vector<ColumnSample> samples;
  if (!options.encoding.names_roles()) {
    const ShardSet first(std::move(format), std::move(shards),
                         {.index_folder = options.index_folder, .most_bad = 1, .progress = options.progress});
    samples = samples_of_shard(options, first, header.size(), kept);
  }
  std::vector<ColumnLook> looks;
  for (const ColumnSample& sample : samples) looks.push_back(sample.look());
  TableEncoding encoding = resolve_roles(options.encoding, name, header, looks, made);
  for (const BlockField& field : made)
    if (field.name == encoding.label)
      encoding.labels.kind = field.type == ValueType::kBytes ? LabelKind::kTexts : LabelKind::kNumbers;
  check_made_are_used(options, header, made, transforms, encoding);
  report.left_out =
      left_out_columns(options.encoding, encoding, read_by(transforms), fields, samples, unread);
  std::vector<BlockField> others;
  for (const LeftOutColumn& left : report.left_out)
    for (const BlockField& field : fields)
      if (field.name == left.name && field.width == 1) others.push_back({left.name, ValueType::kBytes, 1});
  TableOptions later = options;
  later.progress = {};  // of who opens the table
  report.left_out_facts = [later, open, others] { return facts_of_others(later, open, others); };
  return encoding;
}

SelectionOptions selection_of(const TableOptions& options) {
  return {options.filter, options.split, options.subsample, options.encoding.hold_out};
}

// With bad records skipped, what is bad must be the same for all who number the records: the columns of the
// model and those of the selection decide together.
std::unique_ptr<Format> index_format(const TableOptions& options, std::vector<BlockField> columns) {
  for (const BlockField& column : selection_of(options).columns())
    if (std::none_of(columns.begin(), columns.end(),
                     [&](const BlockField& field) { return field.name == column.name; }))
      columns.push_back(column);
  return make_format(options.format, format_options(options, std::move(columns)));
}

std::shared_ptr<const ShardSet> shards_of(const TableOptions& options, const std::vector<BlockField>& columns,
                                          const Format& indexed_by, const OpenShards& open) {
  ShardSetOptions set = set_options(options);
  set.indexed_by = &indexed_by;
  set.check_columns = true;
  return std::make_shared<ShardSet>(make_format(options.format, format_options(options, columns)), open(),
                                    set);
}

OpenedRecords open_records(const TableOptions& options, const Transforms& transforms, const OpenShards& open,
                           bool kept) {
  const std::vector<BlockField> wanted = columns_to_decode(transforms);
  const std::shared_ptr<const Format> indexed_by = index_format(options, wanted);
  OpenedRecords records;
  records.all = shards_of(options, wanted, *indexed_by, open);
  warn_of_bad_records(*records.all);
  records.open_columns = [options, open, indexed_by](const std::vector<BlockField>& asked) {
    // In the types in which they decided what is bad. What is asked for as text is taken as it is written:
    // the number that a model takes may stand for several texts.
    std::vector<BlockField> columns;
    const std::vector<BlockField>& known = indexed_by->options().columns;
    for (const BlockField& column : asked)
      columns.push_back(column.type == ValueType::kBytes ? column : known[index_of(known, column.name)]);
    return shards_of(options, columns, *indexed_by, open);
  };
  const std::string beside =
      sidecar_path(records.all->format(), records.all->manifest().shards()[0].name, options.index_folder);
  records.kept = {kept ? std::filesystem::path(beside).parent_path().string() : "",
                  options.index_folder.writes,
                  indexed_by->options().index_text() + indexed_by->options().missing_lines(), options.threads,
                  options.progress};
  return records;
}

// The records that are used. With a test, those whose label does not pass it are left out, where bad records
// are skipped.
TableSelection selected(const TableOptions& options, const OpenedRecords& records,
                        const std::optional<LabelTest>& test) {
  SelectionOptions selection = selection_of(options);
  if (test && options.bad == BadRecords::kSkip)
    selection.usable = usable_records(records, *test, options.most_bad);
  if (!selection.any()) return {records.all};
  return select_records(records.all, selection, records.open_columns, records.kept);
}

// Those that the fit has not seen: a label that no training record has may be among them.
void check_held_out_labels(const TableOptions& options, const OpenedRecords& records,
                           const TableSelection& selection, const EncodeTable& encoding) {
  // What the kind alone decides was left out before the fit, where bad records are skipped.
  if (options.bad == BadRecords::kSkip && encoding.encoding().labels.classes.empty()) return;
  const LabelTest test = label_test(encoding.without_weights()->encoding());
  if (selection.eval) return require_usable(records, test, members_of(*selection.eval));
  const int64_t all = records.all->records(), held = held_out(all, options.encoding.hold_out);
  if (held > 0) require_usable(records, test, [&](int64_t record) { return record >= all - held; });
}

std::shared_ptr<const FileSource> source_of(const TableOptions& options,
                                            std::shared_ptr<const ShardSet> shards, const Table& table,
                                            std::shared_ptr<const RecordWeights> weights = {}) {
  return std::make_shared<FileSource>(std::move(shards), table.transforms,
                                      FileSourceOptions{.columns = table.columns,
                                                        .budget = options.budget,
                                                        .seed = options.seed,
                                                        .weights = std::move(weights),
                                                        .table = true});
}

// Where the constants of transform `number` are kept: under a name that stands for all they depend on.
std::string fit_path(const TableOptions& options, const ShardSet& shards, const Transforms& transforms,
                     size_t number, int64_t records) {
  std::string key = fmt::format("fit 4\n{}\n{}\n", shards.fingerprint(), records);
  for (size_t i = 0; i <= number; ++i) key += transforms[i]->text() + "\n";
  if (number + 1 == transforms.size()) {
    key += transforms[number]->fitted();  // the roles, with no constants yet
    if (options.encoding.log1p) key += fmt::format("log1p {}\n", fmt::join(*options.encoding.log1p, ","));
    if (options.encoding.fill) key += fmt::format("fill {}\n", *options.encoding.fill);
    if (const auto* table = dynamic_cast<const EncodeTable*>(transforms[number].get()))
      key +=
          fmt::format("task {} labels {} classes {}\n", name_of(options.encoding.task),
                      static_cast<int>(table->encoding().labels.kind), options.encoding.class_weights.text());
  }
  const std::filesystem::path beside =
      sidecar_path(shards.format(), shards.manifest().shards()[0].name, options.index_folder);
  return (beside.parent_path() / fmt::format("fit-{}.txt", sha256(key).substr(0, 16))).string();
}

bool read_fit(const std::string& path, Transform& transform) {
  const auto text = read_kept(path);
  if (!text) return false;
  try {
    transform.set_kept(*text);
    return true;
  } catch (const UserError& error) {
    log_warn("{}: {}; the fit is made again", path, error.what());
    return false;
  }
}

void fit(const TableOptions& options, const TableSelection& records,
         const std::vector<std::shared_ptr<Transform>>& transforms, bool kept) {
  const ShardSet& shards = *records.train;
  // What is selected is already without the records that are held out.
  const double held = records.eval ? 0 : options.encoding.hold_out;
  const int64_t fitted = shards.records() - held_out(shards.records(), held);
  const Transforms chain(transforms.begin(), transforms.end());
  std::vector<std::string> paths(chain.size());
  std::vector<bool> ready(chain.size());
  for (size_t i = 0; i < chain.size(); ++i) {
    ready[i] = !chain[i]->begin_fit();
    if (ready[i] || !kept) continue;
    paths[i] = fit_path(options, shards, chain, i, fitted);
    ready[i] = read_fit(paths[i], *transforms[i]);
  }
  const std::vector<bool> known = ready;
  fit_transforms(shards, transforms, ready, {fitted, options.threads});
  for (size_t i = 0; kept && options.index_folder.writes && i < chain.size(); ++i) {
    if (known[i]) continue;
    write_kept(paths[i], chain[i]->kept());
  }
}

std::vector<ColumnFacts> look(const TableOptions& options, const FileSource& source, const std::string& label,
                              bool kept) {
  const LookOptions how{
      .label = label, .seed = options.seed, .threads = options.threads, .progress = options.progress};
  return kept ? looked_through(source.shards(), source.transforms(), how, source.fingerprint(),
                               options.index_folder)
              : look_through(source.shards(), source.transforms(), how);
}

ColumnRole role_of(const TableOptions& options, const Table& table, const std::string& name) {
  if (name == table.report.label) return ColumnRole::kLabel;
  if (options.text) return name == options.text->column ? ColumnRole::kText : ColumnRole::kTransformed;
  const TableEncoding& encoding = table.encoding->encoding();
  if (name == encoding.weight) return ColumnRole::kWeight;
  for (const NumericColumn& column : encoding.numeric)
    if (column.name == name) return ColumnRole::kNumeric;
  const auto& categories = encoding.categorical;
  return std::find(categories.begin(), categories.end(), name) != categories.end() ? ColumnRole::kCategorical
                                                                                   : ColumnRole::kTransformed;
}

// What the columns that are read are, and where the job looks records through, what they hold.
void describe_columns(const TableOptions& options, bool kept, Table& table) {
  TableReport& report = table.report;
  report.label = options.text ? options.text->label : table.encoding->encoding().label;
  std::vector<ColumnFacts> facts;
  if (options.looks_through) facts = look(options, *table.source, report.label, kept);
  if (options.looks_through && table.held_out) look(options, *table.held_out, report.label, kept);
  const std::vector<BlockField>& fields = table.source->shards().fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    const ColumnRole role = role_of(options, table, fields[i].name);
    report.used.push_back({fields[i], role});
    if (facts.empty()) continue;
    report.used.back().facts = facts[i];
    if (role == ColumnRole::kWeight) report.used.back().facts->decides_label = false;  // it reaches no model
  }
}

Table open_fitted(const TableOptions& options, const OpenShards& open, bool kept) {
  std::vector<std::shared_ptr<Transform>> transforms;
  for (const TransformOptions& transform : options.transforms)
    transforms.push_back(make_transform(transform));
  Table table;
  std::shared_ptr<EncodeTable> encoding;
  if (options.text) {
    const auto text = std::make_shared<EncodeText>(*options.text);
    table.columns = text->columns();
    transforms.push_back(text);
  } else {
    encoding = std::make_shared<EncodeTable>(
        options.encoding,
        roles_of(options, {transforms.begin(), transforms.end()}, open, kept, table.report));
    table.encoding = encoding;
    transforms.push_back(encoding);
  }
  table.transforms = {transforms.begin(), transforms.end()};
  const OpenedRecords opened = open_records(options, table.transforms, open, kept);
  const std::string& label = options.text ? options.text->label : options.encoding.label;
  std::optional<LabelTest> test;
  if (is_in_files(table.transforms, label)) {
    if (encoding) encoding->set_label_kind(kind_of_labels(*opened.all, label, options.encoding.task));
    test =
        encoding ? label_test(in_files(table.transforms, encoding->encoding())) : label_test(*options.text);
  }
  const TableSelection records = selected(options, opened, test);
  fit(options, records, transforms, kept);
  if (test && encoding) check_held_out_labels(options, opened, records, *encoding);
  // Text has no fit that would have seen them.
  if (test && options.text) {
    require_usable(opened, *test, members_of(*records.train));
    if (records.eval) require_usable(opened, *test, members_of(*records.eval));
  }
  if (encoding) table.columns = encoding->columns();  // with a flag where values are missing
  if (encoding && !encoding->warning().empty()) log_warn("{}", encoding->warning());
  table.source = source_of(options, records.train, table, records.weights);
  if (records.eval) {
    TableOptions eval = options;
    eval.budget = options.eval_budget;
    table.held_out = source_of(eval, records.eval, table);
  }
  describe_columns(options, kept, table);
  return table;
}

// Neither split nor down-sampled nor weighted: these records are there to evaluate on.
Table open_other(TableOptions options, const Table& fitted, const OpenShards& open, bool kept) {
  options.split.reset();
  options.subsample.reset();
  options.encoding.hold_out = 0;
  Table table{nullptr, fitted.encoding, fitted.columns, fitted.transforms, {}, {}, fitted.report};
  if (fitted.encoding && fitted.encoding->encoding().weighted()) {
    table.encoding = fitted.encoding->without_weights();
    table.columns = table.encoding->columns();
    table.transforms.back() = table.encoding;
  }
  const OpenedRecords opened = open_records(options, table.transforms, open, kept);
  const std::string& label = options.text ? options.text->label : options.encoding.label;
  std::optional<LabelTest> test;
  if (is_in_files(table.transforms, label))
    test = options.text ? label_test(*options.text) : label_test(table.encoding->encoding());
  const TableSelection records = selected(options, opened, test);
  if (test) require_usable(opened, *test, members_of(*records.train));
  table.source = source_of(options, records.train, table);
  if (options.looks_through) look(options, *table.source, fitted.report.label, kept);
  return table;
}

}  // namespace

std::string Table::constants() const {
  std::string text;
  for (const auto& transform : transforms)
    if (transform != encoding)
      text += fmt::format("transform {}\n{}", transform->text(), transform->fitted());
  return encoding ? text + encoding->fitted() : text;
}

Table open_table(const TableOptions& options, const std::vector<std::string>& files) {
  const Parts parts = parts_of(options, files);
  Table table = open_fitted(options, opener(options, parts), true);
  if (!options.in_parts) return table;
  const ShardSet& shards = table.source->shards();
  size_t shard = 0;
  int64_t before = 0;
  for (const auto& part : parts) {
    shard += part.size();
    const bool last = shard == shards.manifest().shards().size();
    const int64_t end = last ? shards.records() : shards.records_before(shards.manifest().first_of(shard));
    table.parts.push_back(end - before);
    before = end;
  }
  return table;
}

Table open_table(const TableOptions& options, const std::function<Shards()>& open) {
  return open_fitted(options, open, false);
}

Table open_table(const TableOptions& options, const Table& fitted, const std::function<Shards()>& open) {
  return open_other(options, fitted, open, false);
}

Table open_table(const TableOptions& options, const Table& fitted, const std::vector<std::string>& files) {
  return open_other(options, fitted, opener(options, parts_of(options, files)), true);
}

}  // namespace lockstep
