// Where a value of a job came from, so that an error found much later can still cite the line to change.
#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

struct Origin {
  enum class Kind : uint8_t { kDefault, kFile, kSet, kDerived };
  Kind kind = Kind::kDefault;
  std::string file = {};   // of kFile
  int line = 0;            // of kFile
  std::string alias = {};  // the name it was written under, if not its own
  std::string how = {};    // of kDerived: the sum that gave it

  // "job.yaml:14" or "--set": what an error starts with.
  std::string place() const;
  // For the comment beside a value: "job.yaml:14, as learning_rate", "default", "--set".
  std::string comment() const;
};

}  // namespace lockstep
