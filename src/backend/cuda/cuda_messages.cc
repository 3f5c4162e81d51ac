#include "backend/cuda/cuda_messages.h"

#include <cstring>
#include <thread>

#include "backend/cuda/library/nccl.h"
#include "base/error.h"

namespace lockstep::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kLookAfter{5};  // whether a peer is gone

int type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return kNcclFloat32;
    case DType::kBF16: return kNcclBfloat16;
    default: throw InternalError("sums of {} by NCCL", name_of(dtype));
  }
}

// None of its calls blocks, and no wait is without an end: a communicator whose peers do not come is aborted,
// which also ends its kernels.
class NcclMessages : public DeviceMessages {
 public:
  NcclMessages(std::shared_ptr<Device> device, std::span<const std::byte> invitation, int rank, int size,
               std::chrono::milliseconds deadline)
      : device_(std::move(device)), deadline_(deadline) {
    NcclId id;
    std::memcpy(id.bytes, invitation.data(), sizeof id.bytes);
    NcclConfig config;
    device_->use();
    begin();
    settle(nccl().init(&communicator_, size, id, rank, &config), "joining");
    done_ = device_->take_event();
  }
  // Whoever has sent something knows by a meeting that it has arrived.
  ~NcclMessages() override {
    give_up();
    if (done_ != nullptr) device_->give_event_back(done_);
  }
  NcclMessages(const NcclMessages&) = delete;
  NcclMessages& operator=(const NcclMessages&) = delete;

  void exchange(std::span<const Part> sent, std::span<const Part> received) override {
    run("an exchange", [&](cudaStream_t stream) {
      for (const Part& part : sent)
        require(nccl().send(part.data, static_cast<size_t>(part.bytes), kNcclInt8, part.rank, communicator_,
                            stream));
      for (const Part& part : received)
        require(nccl().receive(part.data, static_cast<size_t>(part.bytes), kNcclInt8, part.rank,
                               communicator_, stream));
    });
  }
  void sum(DType dtype, void* data, int64_t count) override {
    run("a sum", [&](cudaStream_t stream) {
      require(nccl().all_reduce(data, data, static_cast<size_t>(count), type_of(dtype), kNcclSum,
                                communicator_, stream));
    });
  }

 private:
  void begin() { end_ = Clock::now() + deadline_; }

  template <typename Calls>
  void run(const char* what, const Calls& calls) {
    if (communicator_ == nullptr) throw DeviceError("NCCL: its communicator was given up");
    begin();
    device_->use();
    const cudaStream_t stream = device_->stream(StreamKind::kCommunication);
    require(nccl().group_start());
    calls(stream);
    settle(nccl().group_end(), what);
    cudaEventRecord(done_, stream);
    auto look = Clock::now() + kLookAfter;
    cudaError_t status = cudaSuccess;
    while ((status = cudaEventQuery(done_)) == cudaErrorNotReady) {
      if (Clock::now() >= look) {
        settle(kNcclSuccess, what);
        look = Clock::now() + kLookAfter;
      }
      if (Clock::now() >= end_) fail(what, timeout());
      std::this_thread::sleep_for(kPause);
    }
    if (status != cudaSuccess) fail(what, cudaGetErrorString(status));
  }

  static void require(NcclResult result) {
    if (result != kNcclSuccess && result != kNcclInProgress)
      throw DeviceError("NCCL: {}", nccl().error_string(result));
  }

  // Until the library has done its part, or says what is wrong.
  void settle(NcclResult result, const char* what) {
    while (true) {
      if (result != kNcclSuccess && result != kNcclInProgress) fail(what, nccl().error_string(result));
      NcclResult state = kNcclSuccess;
      if (const NcclResult asked = nccl().state(communicator_, &state); asked != kNcclSuccess)
        fail(what, nccl().error_string(asked));
      if (state == kNcclSuccess) return;
      if (Clock::now() >= end_) fail(what, timeout());
      result = state;
      std::this_thread::sleep_for(kPause);
    }
  }

  std::string timeout() const {
    return fmt::format("not all peers came within {} s", static_cast<double>(deadline_.count()) / 1000);
  }

  [[noreturn]] void fail(const char* what, const std::string& why) {
    const std::string last = communicator_ == nullptr ? "" : nccl().last_error(communicator_);
    give_up();
    throw DeviceError("NCCL: {}: {}{}", what, why, last.empty() ? "" : fmt::format(" ({})", last));
  }

  void give_up() noexcept {
    if (communicator_ != nullptr) nccl().abort(communicator_);
    communicator_ = nullptr;
  }

  std::shared_ptr<Device> device_;
  std::chrono::milliseconds deadline_;
  Clock::time_point end_;  // of what is under way
  NcclComm communicator_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

class NcclMessenger : public DeviceMessenger {
 public:
  explicit NcclMessenger(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  std::string_view name() const override { return "nccl"; }
  std::string why_not() override {
    try {
      nccl();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::vector<std::byte> invite() override {
    NcclId id;
    device_->use();
    if (const NcclResult result = nccl().unique_id(&id); result != kNcclSuccess)
      throw DeviceError("NCCL: an id: {}", nccl().error_string(result));
    const auto bytes = std::as_bytes(std::span(id.bytes));
    return {bytes.begin(), bytes.end()};
  }
  std::unique_ptr<DeviceMessages> join(std::span<const std::byte> invitation, int rank, int size,
                                       std::chrono::milliseconds deadline) override {
    return std::make_unique<NcclMessages>(device_, invitation, rank, size, deadline);
  }

 private:
  std::shared_ptr<Device> device_;
};

static_assert(kNcclIdBytes == DeviceMessenger::kInvitationBytes);

}  // namespace

std::unique_ptr<DeviceMessenger> make_nccl_messenger(std::shared_ptr<Device> device) {
  return std::make_unique<NcclMessenger>(std::move(device));
}

}  // namespace lockstep::cuda
