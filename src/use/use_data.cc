#include "use/use_data.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/open/open_kept.h"
#include "data/shards/formats.h"

namespace lockstep {
namespace {

std::vector<DataFormat> formats_of(Records records) {
  switch (records) {
    case Records::kTokens: {
      std::vector<DataFormat> formats{DataFormat::kText, DataFormat::kTokens};
      formats.insert(formats.end(), kTableFormats.begin(), kTableFormats.end());
      return formats;
    }
    case Records::kImages: return {DataFormat::kImages, DataFormat::kTar};
    case Records::kText:
    case Records::kTable: break;
  }
  return {kTableFormats.begin(), kTableFormats.end()};
}

}  // namespace

void choose_format(const std::vector<std::string>& files, const std::optional<std::string>& asked,
                   JobSpec& spec) {
  const std::vector<DataFormat> known = formats_of(spec.model.family->records);
  if (asked) {
    for (const DataFormat format : known) {
      if (name_of(format) != *asked) continue;
      spec.data.train.format = format;
      return;
    }
    std::vector<std::string_view> names;
    for (const DataFormat format : known) names.push_back(name_of(format));
    throw UserError("--format {}: a {} reads {}", *asked, spec.model.family->name, fmt::join(names, ", "));
  }
  const bool table = std::find(known.begin(), known.end(), DataFormat::kCsv) != known.end();
  if (!table || files.empty() || std::filesystem::is_directory(files[0])) return;
  for (const DataFormat format : kTableFormats) {
    const std::string_view suffix = make_format(name_of(format), {})->suffix();
    if (!suffix.empty() && without_compression(files[0]).ends_with(suffix)) spec.data.train.format = format;
  }
}

std::vector<std::string> class_names(const TrainedRun& run, const DataOptions& options) {
  return run.labels ? run.labels->classes : kept_classes(options, run.constants);
}

}  // namespace lockstep
