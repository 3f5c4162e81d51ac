// For tests: runs a body on every rank of a mesh, as threads or as processes.
#pragma once
#include <deque>
#include <map>
#include <mutex>

#include "comm/mesh.h"
#include "comm/ranks_testing.h"

namespace lockstep::testing {

using MeshBody = std::function<void(Mesh&)>;

inline shm::ShmOptions options_on(const RankLine& line, int deadline_ms = 20000) {
  shm::ShmOptions options = test_options(deadline_ms);
  options.first_rank = line.first;
  options.rank_stride = line.stride;
  return options;
}

// One meeting per line, made by whoever comes first.
class MeshMeeting {
 public:
  Mesh::Join join() {
    return [this](MeshAxis axis, const RankLine& line, int index) {
      return meeting(axis, line).join(index, options_on(line));
    };
  }

 private:
  shm::ThreadMeeting& meeting(MeshAxis axis, const RankLine& line) {
    const std::lock_guard lock(mutex_);
    auto& meeting = meetings_[{axis, line.first}];
    if (!meeting) meeting = std::make_unique<shm::ThreadMeeting>(line.count);
    return *meeting;
  }

  std::mutex mutex_;
  std::map<std::pair<MeshAxis, int>, std::unique_ptr<shm::ThreadMeeting>> meetings_;
};

// Nothing may go wrong.
inline void on_mesh_threads(const MeshShape& shape, const MeshBody& body) {
  MeshMeeting meeting;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(shape.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < shape.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        Mesh mesh(shape, rank, LeafSplit::one_each(shape.data), meeting.join());
        body(mesh);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  expect_no_errors(errors);
}

// So many ranks that share the leaves, in parts of `part` ranks each (MeshGroups::part). Nothing may go
// wrong.
inline void on_parts(int64_t leaves, int ranks, int part,
                     const std::function<void(const MeshGroups& groups)>& body) {
  const int count = ranks / part;
  std::deque<shm::ThreadMeeting> parts, same_places;
  for (int i = 0; i < count; ++i) parts.emplace_back(part);
  for (int i = 0; i < part; ++i) same_places.emplace_back(count);
  on_threads(LeafSplit::search(leaves, ranks), [&](Group& group) {
    const int own = group.rank() / part, place = group.rank() % part;
    Group owners(parts[static_cast<size_t>(own)].join(place, options_on({own * part, 1, part})),
                 LeafSplit::one_each(part), "part");
    Group replicas(same_places[static_cast<size_t>(place)].join(own, options_on({place, part, count})),
                   LeafSplit::search(leaves, count), "replicas");
    MeshGroups groups(&group);
    groups.part = &owners;
    groups.replicas = &replicas;
    body(groups);
    group.barrier();
  });
}

// Forks a rank that exits with what the body returns; 99 after an exception. Lines meet at names of their
// own.
inline Child fork_mesh_rank(const std::string& name, int rank, const MeshShape& shape,
                            const std::function<int(Mesh&)>& body) {
  fflush(nullptr);  // or the child would print it again
  const pid_t pid = fork();
  if (pid != 0) return {pid};
  int code = 99;
  try {
    Mesh mesh(shape, rank, LeafSplit::one_each(shape.data),
              [&](MeshAxis axis, const RankLine& line, int index) {
                return shm::join_processes(fmt::format("{}-{}-{}", name, name_of(axis), line.first), index,
                                           line.count, options_on(line));
              });
    code = body(mesh);
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  _exit(code);
}

}  // namespace lockstep::testing
