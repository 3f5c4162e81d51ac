#include "comm/ucx/worker.h"

#include <poll.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "comm/ucx/interface.h"

namespace lockstep::ucx {
namespace {

// A look at the sockets costs about half a microsecond, a sleep and its end some tens.
constexpr int kSpins = 50;
constexpr int kGlanceMs = 100;
constexpr int kYields = 64;

class Config {
 public:
  Config() { require_ok(library().config_read(nullptr, nullptr, &config_), "reading the configuration"); }
  ~Config() { library().config_release(config_); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  void set(const char* name, const std::string& value) {
    require_ok(library().config_modify(config_, name, value.c_str()), fmt::format("{}={}", name, value));
  }
  ucp_config_t* get() const { return config_; }

 private:
  ucp_config_t* config_ = nullptr;
};

void configure(Config& config, const UcxOptions& options) {
  config.set("TLS", options.transports);
  if (!options.interface.empty() && std::getenv("UCX_NET_DEVICES") == nullptr)
    config.set("NET_DEVICES", options.interface);
  // Most machines have only some of the transports.
  config.set("WARN_INVALID_CONFIG", "n");
  if (has_rdma()) return;  // UCX's own choices are made for it
  // Over TCP a message of up to 4 MiB is sent at once, without asking the receiver first. The questions wait
  // behind data that is under way in the same direction: on a link of 1 Gbit/s that carries 1 MiB messages in
  // both directions they cost 8 % of the time, without them it is within 0.2 % of a plain socket's.
  if (std::getenv("UCX_RNDV_THRESH") == nullptr) config.set("RNDV_THRESH", "4m");
  // What one system call moves. Where links are not the limit, two ranks that send each other 1 MiB messages
  // move 1.2 GB/s with 64 KiB, UCX's own choice, and 1.4 to 2.4 GB/s with this. The name has no TCP_ here:
  // settings of a transport are known to ucp_config_modify by their name within it.
  if (std::getenv("UCX_TCP_TX_SEG_SIZE") == nullptr) config.set("TX_SEG_SIZE", "256k");
  if (std::getenv("UCX_TCP_RX_SEG_SIZE") == nullptr) config.set("RX_SEG_SIZE", "256k");
}

}  // namespace

Worker::Worker(const UcxOptions& options) {
  Config config;
  configure(config, options);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const ucs_status_t made =
      library().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config.get(), &context_);
  if (made == UCS_ERR_NO_DEVICE)
    throw UserError("UCX finds no network device{}{} for {}", options.interface.empty() ? "" : " named ",
                    options.interface, options.transports);
  require_ok(made, "making a context");
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = library().worker_create(context_, &worker, &worker_);
  if (status == UCS_OK) status = library().worker_get_efd(worker_, &events_);
  if (status == UCS_OK) return;
  if (worker_ != nullptr) library().worker_destroy(worker_);
  library().cleanup(context_);
  require_ok(status, "making a worker");
}

Worker::~Worker() {
  library().worker_destroy(worker_);
  library().cleanup(context_);
}

std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  size_t length = 0;
  require_ok(library().worker_get_address(worker_, &address, &length), "the worker's address");
  std::string text(reinterpret_cast<const char*>(address), length);
  library().worker_release_address(worker_, address);
  return text;
}

Worker::Lock Worker::lock() {
  wanting_.fetch_add(1);
  Lock lock(mutex_);
  wanting_.fetch_sub(1);
  return lock;
}

void Worker::wake() {
  if (sleeping_) library().worker_signal(worker_);
}

void Worker::advance(Lock& lock, int& idle) {
  if (driving_) {
    ++followers_;
    turn_.wait_for(lock, std::chrono::milliseconds(kGlanceMs));
    --followers_;
    return;
  }
  driving_ = true;
  if (library().worker_progress(worker_) != 0) {
    idle = 0;
    if (followers_ > 0) turn_.notify_all();
    make_way(lock);
  } else if (++idle < kSpins) {
    make_way(lock);
  } else if (library().worker_arm(worker_) == UCS_OK) {
    sleep(lock);
  }
  driving_ = false;
}

void Worker::flush(Lock& lock, std::chrono::milliseconds limit) {
  const ucp_request_param_t parameters{};
  void* const request = library().worker_flush_nbx(worker_, &parameters);
  // A connection that is lost is reported to whoever waits for that peer.
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const int64_t end = steady_now_ns() + limit.count() * 1'000'000;
  drive(
      lock,
      [&] { return library().request_check_status(request) != UCS_INPROGRESS || steady_now_ns() >= end; },
      [] {});
  library().request_free(request);
}

void Worker::move() {
  // Whoever drives has the worker's events for itself.
  if (driving_) return;
  for (int i = 0; i < kSpins && library().worker_progress(worker_) != 0; ++i) {
  }
  if (followers_ > 0) turn_.notify_all();
}

void Worker::sleep(Lock& lock) {
  sleeping_ = true;
  lock.unlock();
  pollfd events{events_, POLLIN, 0};
  poll(&events, 1, kGlanceMs);
  lock.lock();
  sleeping_ = false;
}

// A mutex is not fair: without a pause the driver would take it again before another thread wakes up.
void Worker::make_way(Lock& lock) {
  if (wanting_.load() == 0) return;
  lock.unlock();
  for (int i = 0; i < kYields && wanting_.load() > 0; ++i) std::this_thread::yield();
  lock.lock();
}

}  // namespace lockstep::ucx
