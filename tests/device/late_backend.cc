#include "device/late_backend.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/device_messages.h"
#include "backend/device_sharing.h"
#include "base/error.h"
#include "base/file_descriptor.h"

namespace lockstep::testing {
namespace {

// Device addresses are reserved and closed to everybody; what lies behind them is elsewhere.
class AddressSpace {
 public:
  char* reserve(int64_t bytes, char* behind) {
    void* const at =
        mmap(nullptr, mapped(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LOCKSTEP_CHECK(at != MAP_FAILED, "no {} addresses", bytes);
    const std::lock_guard lock(mutex_);
    ranges_[static_cast<char*>(at)] = {bytes, behind};
    return static_cast<char*>(at);
  }

  void release(char* at) {
    const std::lock_guard lock(mutex_);
    munmap(at, mapped(ranges_.at(at).bytes));
    ranges_.erase(at);
  }

  // Of the host's memory, the address itself.
  template <typename T>
  T* behind(T* address) const {
    auto* const at = const_cast<char*>(static_cast<const char*>(address));
    const std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(at);
    if (range == ranges_.begin()) return address;
    --range;
    if (at > range->first + range->second.bytes) return address;
    return range->second.behind + (at - range->first);
  }

 private:
  // The end of a range is an address of it too, of nothing: no memory of the host may begin there.
  static size_t mapped(int64_t bytes) { return static_cast<size_t>(bytes) + 1; }
  struct Range {
    int64_t bytes;
    char* behind;
  };
  mutable std::mutex mutex_;
  std::map<char*, Range> ranges_;
};

// The end of a device: no stream runs anything behind it.
class Failure {
 public:
  explicit Failure(int64_t at) : at_(at) {}
  void count_kernel() {
    if (at_ > 0 && ++kernels_ == at_) throw DeviceError("kernel {} was made to fail", at_);
  }
  void tell(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (what_.empty()) what_ = what;
  }
  std::string what() const {
    const std::lock_guard lock(mutex_);
    return what_;
  }

 private:
  int64_t at_;
  std::atomic<int64_t> kernels_ = 0;
  mutable std::mutex mutex_;
  std::string what_;
};

// Runs tasks in order on a thread of its own, up to the last that somebody waits for.
class LateQueue {
 public:
  explicit LateQueue(Failure& failure) : failure_(failure), thread_([this] { serve(); }) {}
  ~LateQueue() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  LateQueue(const LateQueue&) = delete;
  LateQueue& operator=(const LateQueue&) = delete;

  void put(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++put_;
  }

  int64_t position() {
    const std::lock_guard lock(mutex_);
    return put_;
  }

  void wait_for(int64_t position) {
    std::unique_lock lock(mutex_);
    wanted_ = std::max(wanted_, position);
    wake_.notify_all();
    done_changed_.wait(lock, [&] { return done_ >= position; });
    if (const std::string what = failure_.what(); !what.empty()) throw DeviceError("late device: {}", what);
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return done_ < wanted_ || stopping_; });
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        if (failure_.what().empty()) task();
      } catch (const std::exception& error) {
        failure_.tell(error.what());
      }
      task = nullptr;
      lock.lock();
      ++done_;
      done_changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_changed_;
  std::deque<std::function<void()>> tasks_;
  int64_t put_ = 0, done_ = 0, wanted_ = 0;
  bool stopping_ = false;
  Failure& failure_;
  std::thread thread_;
};

class LateEvent : public Event {
 public:
  explicit LateEvent(LateQueue& queue) : queue_(queue), position_(queue.position()) {}
  void wait() override { queue_.wait_for(position_); }

 private:
  LateQueue& queue_;
  int64_t position_;
};

class LateRecording : public Recording {
 public:
  explicit LateRecording(LateQueue& queue) : queue_(queue) {}
  void replay() override {
    for (const std::function<void()>& task : tasks) queue_.put(task);
  }
  std::vector<std::function<void()>> tasks;

 private:
  LateQueue& queue_;
};

// A kernel that work in a queue holds on to, where whoever made it has gone: what a GPU was given runs too.
class LateKernel : public Kernel {
 public:
  explicit LateKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}
  void run(const KernelArgs& args) override { inner_->run(args); }
  int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  KernelMemory memory() const override { return inner_->memory(); }
  const std::shared_ptr<Kernel>& inner() const { return inner_; }

 private:
  std::shared_ptr<Kernel> inner_;
};

class LateStream : public Stream {
 public:
  LateStream(AddressSpace& addresses, Failure& failure)
      : addresses_(addresses), failure_(failure), queue_(failure) {}

  void enqueue(Kernel& kernel, const KernelArgs& args) override {
    const auto behind = [&](std::span<void* const> given) {
      std::vector<void*> all;
      for (void* address : given) all.push_back(addresses_.behind(address));
      return all;
    };
    const auto* const late = dynamic_cast<const LateKernel*>(&kernel);
    LOCKSTEP_CHECK(late != nullptr, "a kernel that another device chose");
    put([kernel = late->inner(), &failure = failure_, inputs = behind(args.inputs),
         outputs = behind(args.outputs), workspace = addresses_.behind(args.workspace)] {
      failure.count_kernel();
      kernel->run({inputs, outputs, workspace});
    });
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    put([to = addresses_.behind(to), from = addresses_.behind(from), bytes] {
      if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    });
  }
  void zero(void* at, int64_t bytes) override {
    put([at = addresses_.behind(at), bytes] {
      if (bytes > 0) std::memset(at, 0, static_cast<size_t>(bytes));
    });
  }
  std::unique_ptr<Recording> capture(const std::function<void()>& put_all) override {
    auto recording = std::make_unique<LateRecording>(queue_);
    recorded_ = &recording->tasks;
    put_all();
    recorded_ = nullptr;
    return recording;
  }
  EventPtr record() override { return std::make_shared<LateEvent>(queue_); }
  void wait(const EventPtr& event) override {
    queue_.put([event] { event->wait(); });
  }
  void synchronize() override { queue_.wait_for(queue_.position()); }

  LateQueue& queue() { return queue_; }

 private:
  void put(std::function<void()> task) {
    if (recorded_ == nullptr) return queue_.put(std::move(task));
    recorded_->push_back(std::move(task));
  }

  AddressSpace& addresses_;
  Failure& failure_;
  LateQueue queue_;
  std::vector<std::function<void()>>* recorded_ = nullptr;  // instead of the queue
};

struct Device {
  explicit Device(int64_t fails_at) : failure(fails_at) {}

  AddressSpace addresses;
  Failure failure;
  std::array<LateStream, kStreamKinds> streams{LateStream(addresses, failure), LateStream(addresses, failure),
                                               LateStream(addresses, failure)};
  LateStream& stream(StreamKind kind) { return streams[static_cast<size_t>(kind)]; }
  // Runs the task, which gives memory back, behind all that is on the streams now.
  void leave(std::function<void()> task) {
    LateStream& compute = stream(StreamKind::kCompute);
    for (LateStream& other : streams)
      if (&other != &compute) compute.wait(other.record());
    compute.queue().put(std::move(task));
  }
  // Work that is left over may wait for that of another stream.
  void drain() {
    for (LateStream& stream : streams) try {
        stream.synchronize();
      } catch (const DeviceError&) {  // told to whoever waited, or to nobody
      }
  }
  ~Device() { drain(); }
};

// Goes back when the work that was put on any stream before has run, also where nobody waits for it any more.
class LateBuffer : public Buffer {
 public:
  LateBuffer(std::shared_ptr<Device> device, std::unique_ptr<Buffer> behind)
      : device_(std::move(device)), behind_(std::move(behind)) {
    if (bytes() > 0) at_ = device_->addresses.reserve(bytes(), static_cast<char*>(behind_->data()));
  }
  ~LateBuffer() override {
    if (at_ == nullptr) return;
    device_->leave([&device = *device_, at = at_, behind = std::shared_ptr<Buffer>(std::move(behind_))] {
      device.addresses.release(at);
    });
  }
  LateBuffer(const LateBuffer&) = delete;
  LateBuffer& operator=(const LateBuffer&) = delete;
  void* data() override { return at_; }
  int64_t bytes() const override { return behind_->bytes(); }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Buffer> behind_;
  char* at_ = nullptr;
};

// What lies behind a buffer that other processes open.
class SharedFile : public Buffer {
 public:
  SharedFile(FileDescriptor file, int64_t bytes) : file_(std::move(file)), bytes_(bytes) {
    memory_ =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
    LOCKSTEP_CHECK(memory_ != MAP_FAILED, "no {} bytes", bytes);
  }
  ~SharedFile() override { munmap(memory_, static_cast<size_t>(bytes_)); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  void* data() override { return memory_; }
  int64_t bytes() const override { return bytes_; }
  int file() const { return file_.number(); }

 private:
  FileDescriptor file_;
  int64_t bytes_;
  void* memory_ = nullptr;
};

// Processes open each other's files.
class LateSharing : public DeviceSharing {
 public:
  explicit LateSharing(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  std::string_view name() const override { return "late_ipc"; }
  std::unique_ptr<Buffer> allocate(int64_t bytes) override {
    FileDescriptor file(memfd_create("late device", MFD_CLOEXEC));
    LOCKSTEP_CHECK(file.number() >= 0 && ftruncate(file.number(), bytes) == 0, "no file of {} bytes", bytes);
    auto behind = std::make_unique<SharedFile>(std::move(file), bytes);
    const int number = behind->file();
    auto buffer = std::make_unique<LateBuffer>(device_, std::move(behind));
    const std::lock_guard lock(mutex_);
    files_[buffer->data()] = number;
    return buffer;
  }
  std::vector<std::byte> export_memory(Buffer& buffer) override {
    const std::lock_guard lock(mutex_);
    const Export one{getpid(), files_.at(buffer.data()), buffer.bytes()};
    const auto bytes = std::as_bytes(std::span(&one, 1));
    return {bytes.begin(), bytes.end()};
  }
  std::unique_ptr<Buffer> open(std::span<const std::byte> exported) override {
    Export one{};
    std::memcpy(&one, exported.data(), sizeof one);
    FileDescriptor file(
        ::open(fmt::format("/proc/{}/fd/{}", one.process, one.file).c_str(), O_RDWR | O_CLOEXEC));
    if (file.number() < 0) throw DeviceError("late device: memory of process {} is not there", one.process);
    return std::make_unique<LateBuffer>(device_, std::make_unique<SharedFile>(std::move(file), one.bytes));
  }
  size_t most_sources() const override { return 16; }
  void sum(StreamKind stream, DType dtype, const SumSources& sources, void* into, int64_t count) override {
    std::vector<const std::byte*> from;
    for (const void* address : sources.addresses)
      from.push_back(static_cast<const std::byte*>(device_->addresses.behind(address)));
    const bool rounds = dtype == DType::kBF16 && sources.rounds_nodes;
    device_->stream(stream).queue().put([from, merges = sources.merges, dtype, rounds, count,
                                         to = static_cast<std::byte*>(device_->addresses.behind(into))] {
      for (int64_t i = 0; i < count; ++i) {
        std::vector<float> sums;
        for (size_t s = 0; s < from.size(); ++s) {
          sums.push_back(static_cast<float>(read_element(dtype, from[s], i)));
          for (int merge = 0; merge < merges[s]; ++merge) {
            const float right = sums.back();
            sums.pop_back();
            sums.back() += right;
            if (rounds) sums.back() = from_bf16(to_bf16(sums.back()));
          }
        }
        write_element(dtype, to, i, sums.at(0));
      }
    });
  }

 private:
  struct Export {
    pid_t process;
    int file;
    int64_t bytes;
  };
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::map<void*, int> files_;
};

class PinnedBuffer : public Buffer {
 public:
  PinnedBuffer(std::shared_ptr<Device> device, std::unique_ptr<Buffer> memory)
      : device_(std::move(device)), memory_(std::move(memory)) {}
  ~PinnedBuffer() override {
    device_->leave([memory = memory_] {});
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  void* data() override { return memory_->data(); }
  int64_t bytes() const override { return memory_->bytes(); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Buffer> memory_;
};

// What devices of this process send each other, by invitation: (from, to), in order.
class Post {
 public:
  using Letter = std::vector<std::byte>;
  void send(int from, int to, Letter letter) {
    const std::lock_guard lock(mutex_);
    letters_[{from, to}].push_back(std::move(letter));
    arrived_.notify_all();
  }
  Letter take(int from, int to, std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    auto& letters = letters_[{from, to}];
    if (!arrived_.wait_until(lock, end, [&] { return !letters.empty(); }))
      throw DeviceError("late device: rank {} has sent nothing", from);
    Letter letter = std::move(letters.front());
    letters.pop_front();
    return letter;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<Letter>> letters_;
};

class LateMessages : public DeviceMessages {
 public:
  LateMessages(std::shared_ptr<Device> device, std::shared_ptr<Post> post, int rank, int size,
               std::chrono::milliseconds deadline, int64_t fails_at)
      : device_(std::move(device)),
        post_(std::move(post)),
        rank_(rank),
        size_(size),
        deadline_(deadline),
        fails_at_(fails_at) {}

  void exchange(std::span<const Part> sent, std::span<const Part> received) override {
    if (++exchanges_ == fails_at_) throw DeviceError("message {} was made to fail", fails_at_);
    device_->stream(StreamKind::kCommunication).synchronize();
    for (const Part& part : sent) {
      const auto* const from = static_cast<const std::byte*>(device_->addresses.behind(part.data));
      post_->send(rank_, part.rank, {from, from + part.bytes});
    }
    for (const Part& part : received) {
      const Post::Letter letter = take(part.rank);
      LOCKSTEP_CHECK(static_cast<int64_t>(letter.size()) == part.bytes, "{} bytes instead of {}",
                     letter.size(), part.bytes);
      std::ranges::copy(letter, static_cast<std::byte*>(device_->addresses.behind(part.data)));
    }
  }
  void sum(DType dtype, void* data, int64_t count) override {
    LOCKSTEP_CHECK(dtype == DType::kF32, "sums of {}", name_of(dtype));
    device_->stream(StreamKind::kCommunication).synchronize();
    auto* const own = static_cast<float*>(device_->addresses.behind(data));
    const auto bytes = std::as_bytes(std::span(own, static_cast<size_t>(count)));
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) post_->send(rank_, rank, {bytes.begin(), bytes.end()});
    std::vector<float> sum(static_cast<size_t>(count)), one(own, own + count);
    for (int rank = 0; rank < size_; ++rank) {
      std::vector<float> theirs = one;
      if (rank != rank_) std::memcpy(theirs.data(), take(rank).data(), bytes.size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += theirs[i];
    }
    std::ranges::copy(sum, own);
  }

 private:
  Post::Letter take(int from) {
    return post_->take(from, rank_, std::chrono::steady_clock::now() + deadline_);
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<Post> post_;
  int rank_, size_;
  std::chrono::milliseconds deadline_;
  int64_t fails_at_, exchanges_ = 0;
};

class LateMessenger : public DeviceMessenger {
 public:
  LateMessenger(std::shared_ptr<Device> device, int64_t fails_at)
      : device_(std::move(device)), fails_at_(fails_at) {}
  std::string_view name() const override { return "late_post"; }
  std::string why_not() override { return ""; }
  std::vector<std::byte> invite() override {
    static std::atomic<uint64_t> last = 0;
    std::vector<std::byte> invitation(kInvitationBytes);
    const uint64_t number = ++last;
    std::memcpy(invitation.data(), &number, sizeof number);
    return invitation;
  }
  std::unique_ptr<DeviceMessages> join(std::span<const std::byte> invitation, int rank, int size,
                                       std::chrono::milliseconds deadline) override {
    static std::mutex mutex;
    static std::map<uint64_t, std::weak_ptr<Post>> posts;
    uint64_t number = 0;
    std::memcpy(&number, invitation.data(), sizeof number);
    const std::lock_guard lock(mutex);
    std::shared_ptr<Post> post = posts[number].lock();
    if (!post) posts[number] = post = std::make_shared<Post>();
    return std::make_unique<LateMessages>(device_, post, rank, size, deadline, fails_at_);
  }

 private:
  std::shared_ptr<Device> device_;
  int64_t fails_at_;
};

class LateBackend : public Backend {
 public:
  LateBackend(int threads, int64_t fails_at, bool shares)
      : cpu_(make_cpu_backend(threads)), device_(std::make_shared<Device>(fails_at)) {
    if (shares) sharing_ = std::make_unique<LateSharing>(device_);
  }
  void send_until(int64_t fails_at) { messenger_ = std::make_unique<LateMessenger>(device_, fails_at); }
  std::string name() const override { return "late"; }
  std::string architecture() const override { return cpu_->architecture(); }
  int host_threads() const override { return cpu_->host_threads(); }
  KernelChoice choose(const Graph& graph, const Node& node) override {
    KernelChoice choice = cpu_->choose(graph, node);
    if (choice.kernel != nullptr) choice.kernel = std::make_unique<LateKernel>(std::move(choice.kernel));
    return choice;
  }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    if (kind == MemoryKind::kHost) return cpu_->allocate(bytes, kind);
    if (kind == MemoryKind::kPinned)
      return std::make_unique<PinnedBuffer>(device_, cpu_->allocate(bytes, kind));
    return std::make_unique<LateBuffer>(device_, cpu_->allocate(bytes, kind));
  }
  DeviceSharing* sharing() override { return sharing_.get(); }
  DeviceMessenger* messenger() override { return messenger_.get(); }
  Stream& stream(StreamKind kind) override { return device_->stream(kind); }

 private:
  std::unique_ptr<Backend> cpu_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<DeviceSharing> sharing_;
  std::unique_ptr<DeviceMessenger> messenger_;
};

}  // namespace

std::unique_ptr<Backend> make_late_backend(int threads) {
  return std::make_unique<LateBackend>(threads, 0, false);
}
std::unique_ptr<Backend> make_failing_late_backend(int threads, int64_t fails_at) {
  return std::make_unique<LateBackend>(threads, fails_at, false);
}
std::unique_ptr<Backend> make_sharing_late_backend(int threads) {
  return std::make_unique<LateBackend>(threads, 0, true);
}
std::unique_ptr<Backend> make_sending_late_backend(int threads, int64_t fails_at) {
  auto backend = std::make_unique<LateBackend>(threads, 0, true);
  backend->send_until(fails_at);
  return backend;
}

}  // namespace lockstep::testing
