// UCX, loaded when a group between hosts is first formed.
//
// Its libraries are not linked: as they are loaded they install handlers of their own for SIGSEGV, SIGHUP and
// others, in any program that has them, and these would hide how a worker ended from whoever started it.
// Loaded from here, everybody's handlers are put back at once. A machine without UCX can still train on one
// host.
#pragma once
#include <ucp/api/ucp.h>

#include <string>

namespace lockstep::ucx {

struct Library {
  decltype(&ucp_config_read) config_read;
  decltype(&ucp_config_modify) config_modify;
  decltype(&ucp_config_release) config_release;
  decltype(&ucp_init_version) init_version;
  decltype(&ucp_cleanup) cleanup;
  decltype(&ucp_worker_create) worker_create;
  decltype(&ucp_worker_destroy) worker_destroy;
  decltype(&ucp_worker_get_address) worker_get_address;
  decltype(&ucp_worker_release_address) worker_release_address;
  decltype(&ucp_worker_get_efd) worker_get_efd;
  decltype(&ucp_worker_arm) worker_arm;
  decltype(&ucp_worker_signal) worker_signal;
  decltype(&ucp_worker_progress) worker_progress;
  decltype(&ucp_worker_flush_nbx) worker_flush_nbx;
  decltype(&ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
  decltype(&ucp_ep_create) ep_create;
  decltype(&ucp_ep_close_nbx) ep_close_nbx;
  decltype(&ucp_am_send_nbx) am_send_nbx;
  decltype(&ucp_tag_send_nbx) tag_send_nbx;
  decltype(&ucp_tag_recv_nbx) tag_recv_nbx;
  decltype(&ucp_request_check_status) request_check_status;
  decltype(&ucp_request_cancel) request_cancel;
  decltype(&ucp_request_free) request_free;
  decltype(&ucs_status_string) status_string;
};

// UserError when this machine has no UCX.
const Library& library();
// CommError with what was tried, unless the status is that of success.
void require_ok(ucs_status_t status, const std::string& what);

}  // namespace lockstep::ucx
