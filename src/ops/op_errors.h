// For tests of ops: the error that a statement gives when it is parsed.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "graph/text.h"
#include "ops/registry.h"

namespace lockstep::testing {

inline std::string error_of(const std::string& inputs, const std::string& statement) {
  try {
    parse_graph("graph t(" + inputs + ") {\n  " + statement + "\n  return y\n}\n", all_ops(), "t");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

inline void expect_error(const std::string& inputs, const std::string& statement, const std::string& part) {
  EXPECT_NE(error_of(inputs, statement).find(part), std::string::npos) << error_of(inputs, statement);
}

}  // namespace lockstep::testing
