// ParamShard: the part of a model that one parameter server holds: a range of the flat parameters with what
// the optimizer keeps of them, and gradients that wait for their turn.
//
// A push is staged first, piece by piece, under its lease and attempt; it is applied, skipped or dropped when
// the coordinator says so, which tells all servers the same. So a push reaches all servers or none. What is
// kept is the version at hand alone.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/channel.h"
#include "runtime/executable.h"

namespace lockstep::async {

// What the coordinator tells a server about its part.
struct ShardSetup {
  // What makes a version of the one before it, as texts of graphs over the range: the update, then the moving
  // average where there is one. Buffers are their inputs by name; grads, scale, lr, step and update_rounding
  // are of the push.
  std::vector<std::string> graphs;
  std::vector<std::string> buffers;  // in the order in which they travel; the first are the parameters
  int64_t seed = 0;                  // of roundings
  int64_t most_staged = 1;           // pushes that may wait here
  std::string architecture;          // of the coordinator's processor, whose arithmetic is that of the run

  bool operator==(const ShardSetup&) const = default;
};

std::string to_text(const ShardSetup& setup);
// CommError for what is none.
ShardSetup parse_setup(std::string_view text);

class ParamShard {
 public:
  // UserError where a graph cannot be compiled, or the processor has another architecture.
  ParamShard(Backend& backend, const ShardSetup& setup);

  int64_t version() const { return version_; }
  size_t buffers() const { return buffers_.size(); }
  int64_t bytes_of(size_t buffer) const { return buffers_.at(buffer)->bytes(); }
  int64_t staged() const { return static_cast<int64_t>(staged_.size()); }

  // All of these throw CommError for what nobody should send.
  void load(size_t buffer, uint64_t offset, std::span<const std::byte> bytes);
  SharedBytes read(size_t buffer) const;
  // The buffers are those of this version, after so many updates. Nothing is staged.
  void begin(int64_t version, int64_t updates);
  // Whether the push is complete with these bytes. What comes for an attempt that was dropped is passed over.
  bool stage(uint64_t lease, uint64_t attempt, uint64_t offset, std::span<const std::byte> bytes);
  void drop(uint64_t lease, uint64_t attempt);
  void apply(uint64_t lease, uint64_t attempt, const ApplyOrder& order);

 private:
  struct Staged {
    std::unique_ptr<Buffer> gradient;
    int64_t received = 0;
  };
  using Push = std::pair<uint64_t, uint64_t>;  // lease and attempt

  void check_ready() const;
  void update(Staged& push, const ApplyOrder& order);
  std::unique_ptr<Buffer> gradient_buffer();

  Backend& backend_;
  ShardSetup setup_;
  std::vector<std::unique_ptr<Executable>> graphs_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::unique_ptr<Buffer> scalars_;
  int64_t gradient_bytes_ = 0;
  int64_t version_ = -1;  // before begin()
  int64_t updates_ = 0;
  std::map<Push, Staged> staged_;
  std::map<uint64_t, uint64_t> dropped_;  // by lease: the last attempt that was
  std::vector<std::unique_ptr<Buffer>> spare_;
};

}  // namespace lockstep::async
