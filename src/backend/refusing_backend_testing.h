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
  bool in_host_memory() const override { return inner_->in_host_memory(); }
  int host_threads() const override { return inner_->host_threads(); }
  std::unique_ptr<Buffer> allocate(int64_t bytes) override { return inner_->allocate(bytes); }
  std::unique_ptr<Stream> make_stream() override { return inner_->make_stream(); }
  void upload(void* device, const void* host, int64_t bytes) override { inner_->upload(device, host, bytes); }
  void zero(void* device, int64_t bytes) override { inner_->zero(device, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { inner_->copy(to, from, bytes); }
  void download(void* host, const void* device, int64_t bytes) override {
    inner_->download(host, device, bytes);
  }

 private:
  std::unique_ptr<Backend> inner_;
  std::set<std::string> refused_;
};

}  // namespace lockstep
