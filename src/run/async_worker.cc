#include "run/async_worker.h"

#include <poll.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "async/channel.h"
#include "async/lease_table.h"
#include "base/error.h"
#include "base/printable.h"
#include "prepare/fit.h"
#include "prepare/job_data.h"
#include "prepare/job_options.h"
#include "prepare/job_parts.h"
#include "prepare/job_plan.h"
#include "prepare/job_reading.h"
#include "run/feeder.h"
#include "run/pace.h"
#include "run/param_servers.h"

namespace lockstep {
namespace {

using async::AsyncHeader;
using async::AsyncKind;
using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

TrainStep lone_step(const JobParts& parts, Backend& backend) {
  JobPlan plan = plan_job(parts.spec, parts.resolved, parts.model, parts.inputs, backend);
  require_fit(parts.spec, parts.resolved, plan, parts.inputs, backend, parts.host);
  return {std::move(plan.train), parts.model, backend, options_in({}, backend, parts.options)};
}

class AsyncWorker {
 public:
  AsyncWorker(JobSpec spec, const WorkerPlace& place, const HostPort& coordinator, std::string token)
      : host_(host_share(place)),
        token_(std::move(token)),
        name_(worker_name(place.rank)),
        backend_(make_job_backend(spec, host_)),
        parts_(build_parts(std::move(spec), *backend_, host_, false)),
        train_(lone_step(parts_, *backend_)),
        reading_(parts_.spec, host_),
        feeder_(*parts_.data.train, job_order(parts_), train_, parts_.steps(), reading_.train()),
        pace_(place.local_rank),
        deadline_(steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                            std::chrono::duration<double>(parts_.spec.strategy.deadline))),
        coordinator_(async::Channel::connect(coordinator, token_, name_, deadline_)) {
    coordinator_->send({.kind = AsyncKind::kWork}, shared_part(parts_.identity).sha256());
  }

  void run() {
    wait_for([this] { return !addresses_.empty(); });
    if (!over_) join_servers();
    while (!over_) {
      wait_for([this] { return lease_.has_value(); });
      if (!over_) work(*std::exchange(lease_, std::nullopt));
    }
  }

 private:
  struct Server {
    HostPort address;
    Slice slice;
    std::unique_ptr<async::Channel> channel;
    bool joined = false;
    int64_t received = 0;  // bytes of parameters, of the lease at hand
    bool staged = false;
  };

  // Lets what comes be heard until `done`, or the run is over.
  template <typename Done>
  void wait_for(const Done& done) {
    while (!done() && !over_) {
      std::vector<pollfd> entries;
      const auto add = [&](const async::Channel& channel) {
        entries.push_back(
            {channel.descriptor(), static_cast<short>(POLLIN | (channel.has_unsent() ? POLLOUT : 0)), 0});
      };
      coordinator_->write_some();
      add(*coordinator_);
      for (Server& server : servers_)
        if (server.channel) {
          server.channel->write_some();
          add(*server.channel);
        }
      if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR)
        throw DeviceError("poll: {}", std::strerror(errno));
      hear_coordinator();
      for (size_t i = 0; i < servers_.size() && !over_; ++i) listen_to(i);
    }
  }

  void hear_coordinator() {
    coordinator_->read_some(
        [this](const AsyncHeader& header, std::span<const std::byte> payload) { obey(header, payload); });
  }

  void listen_to(size_t index) {
    Server& server = servers_[index];
    if (!server.channel) return;
    try {
      server.channel->read_some([&](const AsyncHeader& header, std::span<const std::byte> payload) {
        hear(server, header, payload);
      });
    } catch (const CommError& error) {
      hear_coordinator();  // at the end of a run servers go as soon as everybody has been told
      if (over_) return;
      throw CommError("server-{} at {}: {}", index + 1, to_string(server.address), error.what());
    }
  }

  void obey(const AsyncHeader& header, std::span<const std::byte> payload) {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (header.kind == AsyncKind::kServers && addresses_.empty()) {
      addresses_ = nlohmann::json::parse(text).get<std::vector<std::string>>();
      number_ = header.lease;
    } else if (header.kind == AsyncKind::kFrozen) {
      take_frozen(header, payload);
    } else if (header.kind == AsyncKind::kLease && !lease_) {
      lease_ = async::Lease{.number = static_cast<int64_t>(header.lease),
                            .attempt = static_cast<int64_t>(header.attempt)};
      heard_ = steady_clock::now();
    } else if (header.kind == AsyncKind::kEnd) {
      over_ = true;
    } else {
      throw CommError("the coordinator sends a frame of kind {} out of turn", static_cast<int>(header.kind));
    }
  }

  // Weights that are not trained come once, from who has read them.
  void take_frozen(const AsyncHeader& header, std::span<const std::byte> payload) {
    const std::vector<StateTensor>& frozen = train_.state().frozen();
    if (header.index >= frozen.size() ||
        header.offset + payload.size() > static_cast<uint64_t>(frozen[header.index].bytes()))
      throw CommError("the coordinator sends weights that the model does not have");
    backend_->upload(static_cast<std::byte*>(frozen[header.index].data) + header.offset, payload.data(),
                     static_cast<int64_t>(payload.size()));
  }

  void hear(Server& server, const AsyncHeader& header, std::span<const std::byte> payload) {
    // What of an attempt comes before its lease does: the streams are two.
    if (header.kind == AsyncKind::kJoined) {
      server.joined = true;
    } else if (header.kind == AsyncKind::kParams) {
      const int64_t bytes = server.slice.size() * size_of(train_.layout().dtype());
      if (static_cast<uint64_t>(server.received) != header.offset ||
          server.received + static_cast<int64_t>(payload.size()) > bytes)
        throw CommError("parameters out of turn");
      std::byte* const params = static_cast<std::byte*>(train_.state().flat_params()) +
                                server.slice.begin * size_of(train_.layout().dtype());
      backend_->upload(params + header.offset, payload.data(), static_cast<int64_t>(payload.size()));
      server.received += static_cast<int64_t>(payload.size());
    } else if (header.kind == AsyncKind::kStaged) {
      server.staged = true;
    } else {
      throw CommError("a frame of kind {} out of turn", static_cast<int>(header.kind));
    }
  }

  void join_servers() {
    const std::vector<Slice> slices = server_slices(train_.layout(), static_cast<int64_t>(addresses_.size()));
    for (size_t i = 0; i < addresses_.size(); ++i) {
      Server& server = servers_.emplace_back();
      server.address = parse_host_port(addresses_[i], "a parameter server's address");
      server.slice = slices[i];
      server.channel = async::Channel::connect(server.address, token_, name_, deadline_);
      server.channel->send({.kind = AsyncKind::kJoin, .lease = number_});
    }
    wait_for([this] {
      return std::all_of(servers_.begin(), servers_.end(), [](const Server& one) { return one.joined; });
    });
    coordinator_->send({.kind = AsyncKind::kReady});
  }

  void work(const async::Lease& lease) {
    async::PushFacts facts;
    const int64_t element = size_of(train_.layout().dtype());
    wait_for([&] {
      return std::all_of(servers_.begin(), servers_.end(),
                         [&](const Server& one) { return one.received == one.slice.size() * element; });
    });
    if (over_) return;
    for (Server& server : servers_) server.received = 0;
    const auto begun = steady_clock::now();
    facts.waited_for_params = seconds_since(heard_);

    pace_.begin();
    const double input_before = feeder_.seconds();
    feeder_.begin(lease.number, 1);
    const StepResult result = train_.accumulate(
        [&](int64_t microbatch) { feeder_.load(train_, lease.number, microbatch); }, lease.number,
        [this] {
          pace_.wait(parts_.resolved.microbatches);
          return int64_t{0};
        });
    facts.loss = result.loss;
    facts.grad_norm = result.grad_norm;
    facts.count = result.count;
    facts.scale = train_.update_scale();
    facts.input = feeder_.seconds() - input_before;
    facts.compute = seconds_since(begun) - facts.input;

    const auto computed = steady_clock::now();
    stage(lease);
    if (over_) return;
    facts.sent = seconds_since(computed);
    coordinator_->send_fixed({.kind = AsyncKind::kPush,
                              .lease = static_cast<uint64_t>(lease.number),
                              .attempt = static_cast<uint64_t>(lease.attempt)},
                             facts);
  }

  void stage(const async::Lease& lease) {
    const int64_t element = size_of(train_.layout().dtype());
    for (Server& server : servers_) {
      server.staged = false;
      auto bytes =
          std::make_shared<std::vector<std::byte>>(static_cast<size_t>(server.slice.size() * element));
      backend_->download(bytes->data(), train_.summed(server.slice.begin),
                         static_cast<int64_t>(bytes->size()));
      server.channel->send_pieces({.kind = AsyncKind::kStage,
                                   .lease = static_cast<uint64_t>(lease.number),
                                   .attempt = static_cast<uint64_t>(lease.attempt)},
                                  bytes);
    }
    wait_for([this] {
      return std::all_of(servers_.begin(), servers_.end(), [](const Server& one) { return one.staged; });
    });
  }

  HostShare host_;
  std::string token_;
  std::string name_;
  std::unique_ptr<Backend> backend_;
  JobParts parts_;
  TrainStep train_;
  JobReading reading_;
  Feeder feeder_;
  Pace pace_;
  TimePoint deadline_;  // of everything before the first lease
  std::unique_ptr<async::Channel> coordinator_;
  std::vector<std::string> addresses_;
  uint64_t number_ = 0;
  std::vector<Server> servers_;
  std::optional<async::Lease> lease_;
  steady_clock::time_point heard_ = {};
  bool over_ = false;
};

}  // namespace

void run_async_worker(JobSpec spec, const WorkerPlace& place, const HostPort& coordinator,
                      const std::string& token) {
  spec.strategy.workers = 1;  // that share a step
  AsyncWorker(std::move(spec), place, coordinator, token).run();
}

}  // namespace lockstep
