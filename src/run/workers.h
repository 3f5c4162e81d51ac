// The workers of a run, as one of them sees it. Worker 0 leads: it alone evaluates, listens to signals and
// writes files, except for what others own of a checkpoint. The others follow what it says; all of them make
// every step.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/mesh.h"

namespace lockstep {

// What a worker has joined. `mesh` is null where ranks differ in the leaves that they sum alone.
struct JoinedWorkers {
  std::unique_ptr<Group> all = nullptr;  // null with one worker
  std::unique_ptr<Mesh> mesh = nullptr;
  // See MeshGroups; null where all workers are one part.
  std::unique_ptr<Group> part = nullptr, replicas = nullptr;
  bool parts_on_hosts = false;

  MeshGroups groups() const {
    MeshGroups groups = mesh ? MeshGroups(*all, *mesh) : MeshGroups(all.get());
    groups.part = part.get();
    groups.replicas = replicas.get();
    groups.parts_on_hosts = parts_on_hosts;
    return groups;
  }
};

class Workers {
 public:
  // Without a group there is one worker, which leads.
  explicit Workers(Group* group) : group_(group) {}

  Group* group() const { return group_; }
  int64_t count() const { return group_ == nullptr ? 1 : group_->size(); }
  bool leads() const { return group_ == nullptr || group_->rank() == 0; }

  // The leader's number, on everyone.
  int64_t agree(int64_t value, const std::string& about) const;
  // Everybody's numbers, added up one by one, on everyone.
  void add_up(std::span<int64_t> numbers, const std::string& about) const;
  // What the first of those who say something says, on everyone; "": nobody does.
  std::string first_word(const std::string& own, const std::string& about) const;
  // The leader calls it, as often as it likes, from work that the others sit out in agree(): their deadline
  // begins anew. One that hangs or is stopped says nothing, and is found.
  void still_working(const std::string& on);
  // The leader calls it to have the others do what serve_with says, each in its agree().
  enum class Service : uint8_t { kStatePieces, kCheckpoint };
  void call(Service service, const std::string& about) const;
  void serve_with(Service service, std::function<void()> serve) {
    services_[static_cast<size_t>(service)] = std::move(serve);
  }
  // Throws CommError that names the worker unless its text is the leader's.
  void require_same(std::string_view what, const std::string& text) const;

 private:
  using Clock = std::chrono::steady_clock;
  Group* group_;
  Clock::time_point last_word_ = Clock::now();
  std::array<std::function<void()>, 2> services_;
};

}  // namespace lockstep
