#include "graph/type.h"

#include "base/error.h"

namespace lockstep {

std::string to_string(const Type& type) {
  return fmt::format("{}{}", name_of(type.dtype), to_string(type.shape));
}

}  // namespace lockstep
