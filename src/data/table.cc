#include "data/table.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/files.h"
#include "data/format/compressed_source.h"
#include "data/index/sidecar.h"
#include "data/order/selection.h"
#include "data/pipeline/fit_transforms.h"
#include "data/slice.h"

namespace lockstep {
namespace {

constexpr int64_t kSampledRecords = 10000;

using OpenShards = std::function<Shards()>;

FormatOptions format_options(const TableOptions& options, std::vector<BlockField> columns) {
  return {std::move(columns), options.settings, options.bad};
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

std::string text_of(const BlockColumn& column, size_t record) {
  if (column.is_missing(record)) return {};
  return std::visit([&](const auto& values) { return fmt::format("{}", values[record]); }, column.values);
}

// A column that a transform makes and nobody reads was meant for the model.
void check_made_are_used(const TableOptions& options, const std::vector<std::string>& header,
                         const std::vector<BlockField>& made, const Transforms& transforms,
                         const CsvEncoding& encoding) {
  std::set<std::string> used(header.begin(), header.end());
  for (const auto& transform : transforms)
    for (const BlockField& field : transform->reads()) used.insert(field.name);
  for (const CsvNumeric& column : encoding.numeric) used.insert(column.name);
  used.insert(encoding.categorical.begin(), encoding.categorical.end());
  used.insert(options.csv.ignore.begin(), options.csv.ignore.end());
  for (const BlockField& field : made)
    if (field.width == 1 && !used.contains(field.name))
      throw UserError(
          "a transform makes column '{}', which nothing uses; name it under columns.{}, or under "
          "columns.ignore",
          field.name, field.ids > 0 || field.type == ValueType::kBytes ? "categorical" : "numeric");
}

// The roles of the columns, by the names and the first records of the first shard, and by what transforms
// make.
CsvEncoding roles_of(const TableOptions& options, const Transforms& transforms, Shards shards) {
  if (shards.empty()) throw UserError("no data files are given");
  shards.resize(1);
  const std::string name = shards[0]->name();
  const ShardSet first(make_format(options.format, format_options(options, {})), std::move(shards),
                       {.index_folder = options.index_folder, .most_bad = 1, .progress = options.progress});
  std::vector<std::string> header;
  // A role is that of one value in a record.
  for (const BlockField& field : first.fields())
    if (field.width == 1) header.push_back(field.name);
  BlockScratch scratch;
  StageCounters counters;
  first.load(0, std::min(kSampledRecords, first.manifest().records()), scratch, counters);
  std::vector<std::vector<std::string>> sample(static_cast<size_t>(scratch.block.records));
  for (const BlockColumn& column : scratch.block.columns)
    for (size_t r = 0; column.width == 1 && r < sample.size(); ++r) sample[r].push_back(text_of(column, r));
  std::vector<std::string> names;
  for (const TransformOptions& transform : options.transforms) names.push_back(transform.name);
  const std::vector<BlockField> made = made_columns(transforms, names, first.fields());
  CsvEncoding encoding = resolve_roles(options.csv, name, header, sample, made);
  check_made_are_used(options, header, made, transforms, encoding);
  return encoding;
}

std::shared_ptr<const ShardSet> shards_of(const TableOptions& options, const Transforms& transforms,
                                          const OpenShards& open) {
  std::vector<BlockField> wanted = columns_to_decode(transforms);
  const auto names_key = [&](const BlockField& field) { return field.name == options.split->column; };
  if (options.split && std::none_of(wanted.begin(), wanted.end(), names_key))
    wanted.push_back({options.split->column, ValueType::kBytes, 1});
  auto shards = std::make_shared<ShardSet>(make_format(options.format, format_options(options, wanted)),
                                           open(), set_options(options));
  if (const std::vector<std::string> bad = shards->bad_records(); !bad.empty())
    log_warn("{} of {} records are left out; the first: {}", bad.size(),
             shards->manifest().records() + static_cast<int64_t>(bad.size()), bad[0]);
  return shards;
}

std::shared_ptr<const FileSource> source_of(const TableOptions& options,
                                            std::shared_ptr<const ShardSet> shards, const Table& table) {
  return std::make_shared<FileSource>(
      std::move(shards), table.transforms,
      FileSourceOptions{table.encoding->columns(), options.budget, options.seed});
}

// The records of the entities that are trained on.
RecordSet find_training(const TableOptions& options, const ShardSet& shards) {
  const EntitySplit split(options.split->seed, {1 - options.split->eval, options.split->eval});
  const int64_t records = shards.manifest().records();
  const int64_t block = shards.manifest().block_records();
  const int64_t blocks = (records + block - 1) / block;
  std::vector<std::vector<uint8_t>> trained(static_cast<size_t>(blocks));
  ThreadPool pool(options.threads);
  StageCounters counters;
  pool.run(blocks, [&](int64_t task) {
    thread_local BlockScratch scratch;
    const int64_t first = task * block;
    shards.load(first, std::min(block, records - first), scratch, counters);
    const BlockColumn& keys = scratch.block.column(options.split->column);
    std::vector<uint8_t>& marks = trained[static_cast<size_t>(task)];
    for (size_t r = 0; r < static_cast<size_t>(scratch.block.records); ++r)
      marks.push_back(split.part_of(text_of(keys, r)) == 0 ? 1 : 0);
  });
  std::vector<uint64_t> bits(static_cast<size_t>((records + 63) / 64));
  int64_t record = 0;
  for (const std::vector<uint8_t>& marks : trained)
    for (const uint8_t mark : marks) {
      bits[static_cast<size_t>(record / 64)] |= uint64_t{mark} << (record % 64);
      ++record;
    }
  RecordSet set(std::move(bits), records);
  if (set.size() == 0 || set.size() == records)
    throw UserError(
        "splitting by '{}' leaves {} records to train on and {} to evaluate on; it has too few "
        "values, use another column or share",
        options.split->column, set.size(), records - set.size());
  return set;
}

// Found once, then kept beside the indexes.
std::shared_ptr<const RecordSet> training_of(const TableOptions& options, const ShardSet& shards, bool kept) {
  if (!options.split) return nullptr;
  std::filesystem::path path;
  if (kept) {
    const std::string key =
        sha256(fmt::format("split 1\n{}\n{}\n", shards.fingerprint(), options.split->text()));
    path = sidecar_path(shards.format(), shards.manifest().shards()[0].name, options.index_folder);
    path = path.parent_path() / fmt::format("split-{}.bits", key.substr(0, 16));
    if (std::filesystem::exists(path)) {
      try {
        return std::make_shared<RecordSet>(
            RecordSet::from_bytes(read_file(path.string()), shards.manifest().records()));
      } catch (const UserError& error) {
        log_warn("{}: {}; the split is made again", path.string(), error.what());
      }
    }
  }
  auto set = std::make_shared<RecordSet>(find_training(options, shards));
  if (!kept) return set;
  try {
    write_file(path.string(), set->bytes());
  } catch (const UserError&) {
    // The log has said so of the index.
  }
  return set;
}

// Where the constants of transform `number` are kept: under a name that stands for all they depend on.
std::string fit_path(const TableOptions& options, const ShardSet& shards, const Transforms& transforms,
                     size_t number, int64_t records) {
  std::string key = fmt::format("fit 2\n{}\n{}\n", shards.fingerprint(), records);
  for (size_t i = 0; i <= number; ++i) key += transforms[i]->text() + "\n";
  if (options.split) key += options.split->text() + "\n";
  if (number + 1 == transforms.size()) {
    key += transforms[number]->fitted();  // the roles, with no constants yet
    if (options.csv.log1p) key += fmt::format("log1p {}\n", fmt::join(*options.csv.log1p, ","));
    if (options.csv.fill) key += fmt::format("fill {}\n", *options.csv.fill);
  }
  const std::filesystem::path beside =
      sidecar_path(shards.format(), shards.manifest().shards()[0].name, options.index_folder);
  return (beside.parent_path() / fmt::format("fit-{}.txt", sha256(key).substr(0, 16))).string();
}

bool read_fit(const std::string& path, Transform& transform) {
  if (!std::filesystem::exists(path)) return false;
  try {
    transform.set_fitted(read_file(path));
    return true;
  } catch (const UserError& error) {
    log_warn("{}: {}; the fit is made again", path, error.what());
    return false;
  }
}

void fit(const TableOptions& options, const ShardSet& shards, const RecordSet* only,
         const std::vector<std::shared_ptr<Transform>>& transforms, bool kept) {
  const int64_t records = shards.manifest().records();
  const int64_t fitted = records - held_out(records, options.csv.hold_out);
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
  fit_transforms(shards, transforms, ready, {fitted, only, options.threads});
  for (size_t i = 0; kept && i < chain.size(); ++i) {
    if (known[i]) continue;
    try {
      write_file(paths[i], chain[i]->fitted());
    } catch (const UserError&) {
      // The log has said so of the index.
    }
  }
}

Table open_fitted(const TableOptions& options, const OpenShards& open, bool kept) {
  std::vector<std::shared_ptr<Transform>> transforms;
  for (const TransformOptions& transform : options.transforms)
    transforms.push_back(make_transform(transform));
  const auto encoding = std::make_shared<EncodeTable>(
      options.csv, roles_of(options, {transforms.begin(), transforms.end()}, open()));
  transforms.push_back(encoding);
  Table table;
  table.encoding = encoding;
  table.transforms = {transforms.begin(), transforms.end()};
  const auto shards = shards_of(options, table.transforms, open);
  table.training = training_of(options, *shards, kept);
  fit(options, *shards, table.training.get(), transforms, kept);
  table.source = source_of(options, shards, table);
  return table;
}

}  // namespace

std::string TableSplit::text() const { return fmt::format("split {} {} {}", column, eval, seed); }

std::string Table::constants() const {
  std::string text;
  for (const auto& transform : transforms)
    if (transform != encoding)
      text += fmt::format("transform {}\n{}", transform->text(), transform->fitted());
  return text + encoding->fitted();
}

Table open_table(const TableOptions& options, const std::vector<std::string>& files) {
  const Parts parts = parts_of(options, files);
  Table table = open_fitted(options, opener(options, parts), true);
  if (!options.in_parts) return table;
  auto shard = table.source->shards().manifest().shards().begin();
  for (const auto& part : parts) {
    table.parts.push_back(0);
    for (size_t i = 0; i < part.size(); ++i) table.parts.back() += (shard++)->records;
  }
  return table;
}

Table open_table(const TableOptions& options, const std::function<Shards()>& open) {
  return open_fitted(options, open, false);
}

Table open_table(const TableOptions& options, const Table& fitted, const std::function<Shards()>& open) {
  Table table{nullptr, fitted.encoding, fitted.transforms, {}, {}};
  table.source = source_of(options, shards_of(options, fitted.transforms, open), table);
  return table;
}

Table open_table(const TableOptions& options, const Table& fitted, const std::vector<std::string>& files) {
  return open_table(options, fitted, opener(options, parts_of(options, files)));
}

}  // namespace lockstep
