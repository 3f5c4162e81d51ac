#include "data/table.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "data/files.h"
#include "data/format/compressed_source.h"
#include "data/index/sidecar.h"
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

OpenShards opener(const TableOptions& options, const std::vector<std::string>& files) {
  const std::string suffix(make_format(options.format, format_options(options, {}))->suffix());
  return [paths = expand_files(files, suffix), folder = options.index_folder] {
    Shards shards;
    for (const std::string& path : paths) shards.push_back(open_shard(path, folder));
    return shards;
  };
}

std::string text_of(const BlockColumn& column, size_t record) {
  if (column.is_missing(record)) return {};
  return std::visit([&](const auto& values) { return fmt::format("{}", values[record]); }, column.values);
}

// The roles of the columns, by the names and the first records of the first shard.
CsvEncoding roles_of(const TableOptions& options, Shards shards) {
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
  return resolve_roles(options.csv, name, header, sample);
}

std::shared_ptr<const ShardSet> shards_of(const TableOptions& options, const CsvEncoding& encoding,
                                          const OpenShards& open) {
  const std::vector<BlockField> wanted = EncodeTable(options.csv, encoding).wanted();
  return std::make_shared<ShardSet>(make_format(options.format, format_options(options, wanted)), open(),
                                    set_options(options));
}

std::shared_ptr<const FileSource> source_of(const TableOptions& options,
                                            std::shared_ptr<const ShardSet> shards, const Table& table) {
  return std::make_shared<FileSource>(std::move(shards), table.transforms,
                                      FileSourceOptions{table.encoding->columns(), options.budget, 0});
}

// Where the constants of a fit are kept, and under which name they are found again.
std::string fit_path(const TableOptions& options, const ShardSet& shards, const Table& table,
                     const EncodeTable& encoding, int64_t records) {
  std::string key = fmt::format("fit 1\n{}\n{}\n{}\n", shards.fingerprint(), records, encoding.fitted());
  for (const auto& transform : table.transforms) key += transform->text() + transform->fitted() + "\n";
  if (options.csv.log1p) key += fmt::format("log1p {}\n", fmt::join(*options.csv.log1p, ","));
  if (options.csv.fill) key += fmt::format("fill {}\n", *options.csv.fill);
  const std::filesystem::path beside =
      sidecar_path(shards.format(), shards.manifest().shards()[0].name, options.index_folder);
  return (beside.parent_path() / fmt::format("fit-{}.txt", sha256(key).substr(0, 16))).string();
}

void fit(const TableOptions& options, const ShardSet& shards, const Table& table, EncodeTable& encoding,
         bool kept) {
  const int64_t records = shards.manifest().records();
  const int64_t fitted = records - held_out(records, options.csv.hold_out);
  const std::string path = kept ? fit_path(options, shards, table, encoding, fitted) : "";
  if (kept && std::filesystem::exists(path)) {
    try {
      encoding.set_fitted(read_file(path));
      return;
    } catch (const UserError& error) {
      log_warn("{}: {}; the fit is made again", path, error.what());
    }
  }
  fit_transform(shards, table.transforms, encoding, fitted, options.threads);
  if (!kept) return;
  try {
    write_file(path, encoding.fitted());
  } catch (const UserError&) {
    // The log has said so of the index.
  }
}

Table open_fitted(const TableOptions& options, const OpenShards& open, bool kept) {
  Table table;
  for (const TransformOptions& transform : options.transforms)
    table.transforms.push_back(make_transform(transform));
  auto encoding = std::make_shared<EncodeTable>(options.csv, roles_of(options, open()));
  const auto shards = shards_of(options, encoding->encoding(), open);
  fit(options, *shards, table, *encoding, kept);
  table.encoding = encoding;
  table.transforms.push_back(encoding);
  table.source = source_of(options, shards, table);
  return table;
}

}  // namespace

Table open_table(const TableOptions& options, const std::vector<std::string>& files) {
  return open_fitted(options, opener(options, files), true);
}

Table open_table(const TableOptions& options, const std::function<Shards()>& open) {
  return open_fitted(options, open, false);
}

Table open_table(const TableOptions& options, const Table& fitted, const std::function<Shards()>& open) {
  Table table{nullptr, fitted.encoding, fitted.transforms};
  table.source = source_of(options, shards_of(options, fitted.encoding->encoding(), open), table);
  return table;
}

Table open_table(const TableOptions& options, const Table& fitted, const std::vector<std::string>& files) {
  return open_table(options, fitted, opener(options, files));
}

}  // namespace lockstep
