#include "data/text.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "data/files.h"

namespace lockstep {

TextSource::TextSource(const std::vector<std::string>& files, int64_t seq, int64_t limit) : seq_(seq) {
  if (seq < 1) throw UserError("text: sequences of {} tokens; use at least 1", seq);
  for (const std::string& path : expand_files(files)) {
    files_.push_back({path, static_cast<int64_t>(bytes_.size())});
    bytes_ += read_file(path, limit);
    if (static_cast<int64_t>(bytes_.size()) > limit)
      throw UserError("{}: with it the text has more than {} bytes; name fewer files", path, limit);
  }
  if (static_cast<int64_t>(bytes_.size()) <= seq)
    throw UserError(
        "{}: the text has {} bytes, too few for one sequence of {} tokens; use more text or shorter "
        "sequences",
        files_[0].path, bytes_.size(), seq);
  fingerprint_ = sha256(fmt::format("text 1\nseq {}\n{}\n", seq_, sha256(bytes_)));
}

std::vector<Column> TextSource::columns() const {
  return {{"tokens", DType::kI32, {seq_}}, {"targets", DType::kI32, {seq_}}};
}

void TextSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  for (size_t r = 0; r < records.size(); ++r) {
    const auto tokens = batch.record<int32_t>(0, static_cast<int64_t>(r));
    const auto targets = batch.record<int32_t>(1, static_cast<int64_t>(r));
    if (records[r] == kNoRecord) {
      std::fill(tokens.begin(), tokens.end(), 0);
      std::fill(targets.begin(), targets.end(), kIgnoredLabel);
      continue;
    }
    const char* bytes = bytes_.data() + records[r] * seq_;
    for (size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = static_cast<unsigned char>(bytes[t]);
      targets[t] = static_cast<unsigned char>(bytes[t + 1]);
    }
  }
}

std::string TextSource::describe(int64_t record) const {
  const int64_t position = record * seq_;
  const auto after = std::upper_bound(files_.begin(), files_.end(), position,
                                      [](int64_t value, const File& file) { return value < file.first; });
  return fmt::format("{} at byte {}", std::prev(after)->path, position - std::prev(after)->first);
}

}  // namespace lockstep
