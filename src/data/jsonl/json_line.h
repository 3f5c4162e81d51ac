// One line of JSON, an object, read into the columns that are wanted of it. What is not wanted is looked at
// only as far as it takes to pass over it.
//
// Throws RecordProblem for a line that is no object, is not UTF-8, or has something that its column cannot
// take. Numbers and text as docs/input.md says; true and false are 1 and 0 where numbers are wanted.
#pragma once
#include <memory>
#include <string_view>

#include "data/records/record_sink.h"

namespace lockstep {

class JsonLineReader {
 public:
  JsonLineReader();
  ~JsonLineReader();
  JsonLineReader(const JsonLineReader&) = delete;
  JsonLineReader& operator=(const JsonLineReader&) = delete;

  // 64 bytes behind the line can be read. Text of the block points into the line.
  void read(std::string_view line, RecordSink& sink);
  // Notes which keys it has.
  void survey(std::string_view line, FieldSurvey& survey);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace lockstep
