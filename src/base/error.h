// The four kinds of error, as exceptions that carry what the reader needs to act. docs/errors.md shows the
// tone.
//
// UserError: the input is wrong; says what, where, and what to write instead. InternalError: our bug.
// DeviceError: a device or library call failed. CommError: a peer failed; recoverable. None of them crosses a
// thread or a C boundary.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace lockstep {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#define LOCKSTEP_ERROR_KIND(Name)                                   \
  class Name : public Error {                                       \
   public:                                                          \
    template <typename... Args>                                     \
    explicit Name(fmt::format_string<Args...> text, Args&&... args) \
        : Error(fmt::format(text, std::forward<Args>(args)...)) {}  \
  };

LOCKSTEP_ERROR_KIND(UserError)
LOCKSTEP_ERROR_KIND(InternalError)
LOCKSTEP_ERROR_KIND(DeviceError)
LOCKSTEP_ERROR_KIND(CommError)
#undef LOCKSTEP_ERROR_KIND

}  // namespace lockstep

// An invariant of ours: failing it is a bug in Lockstep, reported with the place and the values.
#define LOCKSTEP_CHECK(condition, ...)                                                               \
  do {                                                                                               \
    if (!(condition))                                                                                \
      throw ::lockstep::InternalError("{}:{}: {} does not hold: {}", __FILE__, __LINE__, #condition, \
                                      fmt::format(__VA_ARGS__));                                     \
  } while (false)
