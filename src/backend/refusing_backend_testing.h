// A backend for tests that has no kernels for some ops and is otherwise another backend: what a new backend
// looks like before it has a kernel for everything.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "graph/op_def.h"

namespace lockstep {

class RefusingBackend : public Backend {
 public:
  RefusingBackend(std::unique_ptr<Backend> inner, std::set<std::string> refused)
      : inner_(std::move(inner)), refused_(std::move(refused)) {}

  KernelChoice choose(const Graph& graph, const Node& node) override {
    if (!refused_.contains(std::string(node.op->name))) return inner_->choose(graph, node);
    return {nullptr, "", {{"test." + std::string(node.op->name), "not written yet"}}};
  }

  std::string name() const override { return "refusing"; }
  std::string architecture() const override { return inner_->architecture(); }
  int64_t alignment() const override { return inner_->alignment(); }
  MemoryKind memory() const override { return inner_->memory(); }
  int host_threads() const override { return inner_->host_threads(); }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryKind kind) override {
    return inner_->allocate(bytes, kind);
  }
  Stream& stream(StreamKind kind) override { return inner_->stream(kind); }

 private:
  std::unique_ptr<Backend> inner_;
  std::set<std::string> refused_;
};

}  // namespace lockstep
