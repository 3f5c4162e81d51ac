// RecordTrial: decodes records only to see whether they can be, with the same code that will decode them for
// use: what indexing lists as bad is then what decoding would refuse.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/format/record_sink.h"

namespace lockstep {

class RecordTrial {
 public:
  explicit RecordTrial(std::vector<BlockField> fields) : fields_(std::move(fields)) {}

  // read(sink) appends one record. Gives what it is refused for. Everything it points to must stay until
  // restart() or the next refusal.
  template <typename Read>
  std::optional<std::string> problem(const Read& read) {
    if (!sink_ || block_.records >= kMostRecords) restart();
    try {
      read(*sink_);
      return {};
    } catch (const RecordProblem& problem) {
      sink_.reset();
      return problem.what();
    }
  }
  void restart() {
    block_.reset(fields_);
    sink_.emplace(block_, kMostRecords);
  }

 private:
  static constexpr int64_t kMostRecords = 256;

  std::vector<BlockField> fields_;
  ColumnBlock block_;
  std::optional<RecordSink> sink_;
};

}  // namespace lockstep
