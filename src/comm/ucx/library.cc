#include "comm/ucx/library.h"

#include <dlfcn.h>
#include <ucs/debug/log_def.h>

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"

namespace lockstep::ucx {
namespace {

// The signals that UCX 1.13 takes unless its environment says otherwise.
constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGHUP};

class SavedSignals {
 public:
  SavedSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &saved_[i]);
  }
  ~SavedSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &saved_[i], nullptr);
  }
  SavedSignals(const SavedSignals&) = delete;
  SavedSignals& operator=(const SavedSignals&) = delete;

 private:
  std::array<struct sigaction, kSignals.size()> saved_{};
};

// UCX would print to standard output, where results go. What it warns of, such as a lost connection, is
// reported here in other words, so it is only of interest to those who look into a failure.
ucs_log_func_rc_t pass_on_log_line(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                                   ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                                   const char* message, va_list arguments) {
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), message, arguments);
  if (level == UCS_LOG_LEVEL_FATAL)
    log_error("UCX: {}", text.data());
  else
    log_debug("UCX: {}", text.data());
  return UCS_LOG_FUNC_RC_STOP;
}

template <typename Function>
void look_up(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) throw UserError("the UCX on this machine has no {}: {}", name, dlerror());
}

Library load() {
  const SavedSignals saved;
  void* const handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw UserError("workers on several hosts need UCX, and it cannot be loaded: {}; install libucx0",
                    dlerror());
  Library library{};
  look_up(handle, "ucp_config_read", library.config_read);
  look_up(handle, "ucp_config_modify", library.config_modify);
  look_up(handle, "ucp_config_release", library.config_release);
  look_up(handle, "ucp_init_version", library.init_version);
  look_up(handle, "ucp_cleanup", library.cleanup);
  look_up(handle, "ucp_worker_create", library.worker_create);
  look_up(handle, "ucp_worker_destroy", library.worker_destroy);
  look_up(handle, "ucp_worker_get_address", library.worker_get_address);
  look_up(handle, "ucp_worker_release_address", library.worker_release_address);
  look_up(handle, "ucp_worker_get_efd", library.worker_get_efd);
  look_up(handle, "ucp_worker_arm", library.worker_arm);
  look_up(handle, "ucp_worker_signal", library.worker_signal);
  look_up(handle, "ucp_worker_progress", library.worker_progress);
  look_up(handle, "ucp_worker_flush_nbx", library.worker_flush_nbx);
  look_up(handle, "ucp_worker_set_am_recv_handler", library.worker_set_am_recv_handler);
  look_up(handle, "ucp_ep_create", library.ep_create);
  look_up(handle, "ucp_ep_close_nbx", library.ep_close_nbx);
  look_up(handle, "ucp_am_send_nbx", library.am_send_nbx);
  look_up(handle, "ucp_tag_send_nbx", library.tag_send_nbx);
  look_up(handle, "ucp_tag_recv_nbx", library.tag_recv_nbx);
  look_up(handle, "ucp_request_check_status", library.request_check_status);
  look_up(handle, "ucp_request_cancel", library.request_cancel);
  look_up(handle, "ucp_request_free", library.request_free);
  look_up(handle, "ucs_status_string", library.status_string);
  decltype(&ucs_log_push_handler) push_handler = nullptr;
  look_up(handle, "ucs_log_push_handler", push_handler);
  push_handler(pass_on_log_line);
  return library;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void require_ok(ucs_status_t status, const std::string& what) {
  if (status != UCS_OK) throw CommError("UCX: {}: {}", what, library().status_string(status));
}

}  // namespace lockstep::ucx
