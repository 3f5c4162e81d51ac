#include "data/text.h"

#include <fmt/format.h>

#include "data/files.h"
#include "data/format/compressed_source.h"
#include "data/format/joined_bytes.h"
#include "data/format/text_format.h"

namespace lockstep {
namespace {

std::unique_ptr<ByteSource> open_joined(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<std::unique_ptr<ByteSource>> parts;
  for (const std::string& path : paths) parts.push_back(open_shard(path, folder));
  if (parts.size() == 1) return std::move(parts[0]);
  return join_bytes(fmt::format("{} and {} more", paths[0], paths.size() - 1), std::move(parts));
}

}  // namespace

std::shared_ptr<const Source> open_text_files(const TextOptions& options,
                                              const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  auto format = make_text_format({{}, {{"seq", std::to_string(options.seq)}}});
  shards.push_back(open_joined(expand_files(files), options.index_folder));
  auto set = std::make_shared<ShardSet>(
      std::move(format), std::move(shards),
      ShardSetOptions{.index_folder = options.index_folder, .progress = options.progress});
  std::vector<Column> columns;
  for (const BlockField& field : set->fields()) columns.push_back({field.name, DType::kI32, {options.seq}});
  return open_rows(std::move(set), std::move(columns), options.budget);
}

}  // namespace lockstep
