#include "job/origin.h"

#include <fmt/format.h>

namespace lockstep {

std::string Origin::place() const {
  switch (kind) {
    case Kind::kFile: return line > 0 ? fmt::format("{}:{}", file, line) : file;
    case Kind::kSet: return "--set";
    case Kind::kDerived:
    case Kind::kDefault: break;
  }
  return file.empty() ? "the job" : file;
}

std::string Origin::comment() const {
  if (kind == Kind::kDefault) return "default";
  if (kind == Kind::kDerived) return how;
  return alias.empty() ? place() : fmt::format("{}, as {}", place(), alias);
}

}  // namespace lockstep
