// For tests: trains a graph on one batch by gradient descent, whole or split over the ranks of a mesh, and
// puts the parts of its weights together again.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/mesh_testing.h"
#include "passes/autodiff.h"
#include "runtime/compile.h"

namespace lockstep::testing {

using Placements = std::map<std::string, Placement>;

struct TrainingCase {
  Graph graph;                                         // forward; its first output is the loss
  std::map<std::string, int64_t> integer_inputs = {};  // values lie below this bound
  Placements tensor = {};                              // of parameters over the tensor axis
  Placements data = {};                                // of inputs over the data axis
};

// Numbers in [0, 1) that depend on a name and their index in the whole tensor.
inline double draw(const std::string& name, int64_t index) {
  uint64_t state = std::hash<std::string>{}(name);
  state = (state ^ (static_cast<uint64_t>(index) + 0x9E3779B97F4A7C15U)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 29)) * 0x94D049BB133111EBU;
  return static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
}

// The part of a tensor that rank `index` of `size` has: elements are looked up by their place in the whole.
class Part {
 public:
  explicit Part(const Shape& whole) : whole_(whole), local_(whole), begin_{} {}

  void cut(Placement placement, int size, int index) {
    if (placement.kind != Placement::Kind::kSplit) return;
    const int64_t extent = local_[placement.axis] / size;
    local_ = local_.with(placement.axis, extent);
    begin_[static_cast<size_t>(placement.axis)] += index * extent;
  }
  int64_t count() const { return local_.numel(); }
  int64_t in_whole(int64_t flat) const {
    int64_t result = 0;
    const auto strides = local_.strides();
    const auto whole_strides = whole_.strides();
    for (int axis = 0; axis < local_.rank(); ++axis) {
      const auto at = static_cast<size_t>(axis);
      result += (flat / strides[at] % local_[axis] + begin_[at]) * whole_strides[at];
    }
    return result;
  }

 private:
  Shape whole_;
  Shape local_;
  std::array<int64_t, Shape::kMaxRank> begin_;
};

// What a run ends with: parts that several ranks have must have the same bits on all of them.
class Trained {
 public:
  explicit Trained(const Graph& graph) {
    for (const GraphInput& input : graph.inputs())
      if (input.role == Role::kParam)
        weights_[graph.name(input.value)].resize(static_cast<size_t>(graph.type(input.value).shape.numel()));
  }

  void add_losses(const std::vector<float>& losses) {
    if (losses_.empty()) losses_ = losses;
    EXPECT_EQ(losses, losses_);
  }
  void add_weights(const std::string& name, const Part& part, const std::vector<float>& values) {
    for (int64_t i = 0; i < part.count(); ++i) {
      std::optional<float>& element = weights_.at(name)[static_cast<size_t>(part.in_whole(i))];
      const float value = values[static_cast<size_t>(i)];
      EXPECT_EQ(element.value_or(value), value) << name << "[" << part.in_whole(i) << "]";
      element = value;
    }
  }

  const std::vector<float>& losses() const { return losses_; }
  const std::map<std::string, std::vector<std::optional<float>>>& weights() const { return weights_; }
  bool operator==(const Trained&) const = default;

 private:
  std::vector<float> losses_;
  std::map<std::string, std::vector<std::optional<float>>> weights_;  // whole tensors
};

using MakeBackend = std::unique_ptr<Backend> (*)(int threads);

// One rank of a training run. Without a mesh the graph runs whole.
class Trainer {
 public:
  Trainer(const TrainingCase& training, Mesh* mesh, MakeBackend make_backend = make_cpu_backend)
      : case_(training), mesh_(mesh), backend_(make_backend(1)) {
    executable_ = compile(training.graph, *backend_, pass_options());
    for (const GraphInput& input : training.graph.inputs()) add_input(input);
    if (mesh == nullptr) return;
    for (const MeshAxis axis : kMeshAxes)
      if (Group* group = mesh->group(axis)) executable_->bind_group(name_of(axis), *group);
  }

  std::vector<float> run(int steps, float lr) {
    std::vector<float> losses(static_cast<size_t>(steps));
    for (float& loss : losses) {
      executable_->run();
      backend_->download(&loss, executable_->output(0), sizeof loss);
      for (auto& [name, weights] : params_) {
        std::vector<float> gradient(weights.size());
        download(gradient, grad_name(name));
        for (size_t i = 0; i < weights.size(); ++i) weights[i] -= lr * gradient[i];
        upload(weights, name);
      }
    }
    return losses;
  }

  void store(Trained& trained) const {
    for (const auto& [name, weights] : params_) trained.add_weights(name, part_of(name), weights);
  }
  const Executable& executable() const { return *executable_; }

 private:
  const Placements& placements(MeshAxis axis) const {
    static const Placements none;
    return axis == MeshAxis::kTensor ? case_.tensor : axis == MeshAxis::kData ? case_.data : none;
  }

  PassOptions pass_options() const {
    PassOptions options;
    if (mesh_ == nullptr) return options;
    for (const MeshAxis axis : kMeshAxes)
      if (mesh_->group(axis) != nullptr)
        options.shard.push_back({std::string(name_of(axis)), mesh_->shape().degree(axis),
                                 mesh_->coordinate(axis), placements(axis)});
    return options;
  }

  Part part_of(const std::string& name) const {
    Part part(case_.graph.type(case_.graph.find(name)).shape);
    if (mesh_ == nullptr) return part;
    for (const MeshAxis axis : kMeshAxes) {
      const auto found = placements(axis).find(name);
      if (found != placements(axis).end())
        part.cut(found->second, mesh_->shape().degree(axis), mesh_->coordinate(axis));
    }
    return part;
  }

  void add_input(const GraphInput& input) {
    const std::string& name = case_.graph.name(input.value);
    const Part part = part_of(name);
    const auto drawn = [&](int64_t i) { return draw(name, part.in_whole(i)); };
    const auto bound = case_.integer_inputs.find(name);
    if (bound != case_.integer_inputs.end()) {
      std::vector<int32_t> values;
      for (int64_t i = 0; i < part.count(); ++i)
        values.push_back(static_cast<int32_t>(static_cast<double>(bound->second) * drawn(i)));
      return add_tensor(name, values);
    }
    const bool is_param = input.role == Role::kParam;
    std::vector<float> values;
    for (int64_t i = 0; i < part.count(); ++i)
      values.push_back(static_cast<float>((is_param ? 0.4 : 1.0) * (2 * drawn(i) - 1)));
    add_tensor(name, values);
    if (!is_param) return;
    add_tensor(grad_name(name), values);
    params_[name] = std::move(values);
  }

  template <typename T>
  void add_tensor(const std::string& name, const std::vector<T>& values) {
    tensors_[name] = backend_->allocate(static_cast<int64_t>(values.size() * sizeof(T)));
    upload(values, name);
    executable_->bind(name, tensors_[name]->data());
  }
  template <typename T>
  void upload(const std::vector<T>& values, const std::string& name) {
    backend_->upload(tensors_.at(name)->data(), values.data(), tensors_.at(name)->bytes());
  }
  void download(std::vector<float>& values, const std::string& name) {
    backend_->download(values.data(), tensors_.at(name)->data(), tensors_.at(name)->bytes());
  }

  const TrainingCase& case_;
  Mesh* mesh_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  std::map<std::string, std::unique_ptr<Buffer>> tensors_;
  std::map<std::string, std::vector<float>> params_;
};

inline Trained train_whole(const TrainingCase& training, int steps, float lr) {
  Trained result(training.graph);
  Trainer trainer(training, nullptr);
  result.add_losses(trainer.run(steps, lr));
  trainer.store(result);
  return result;
}

inline Trained train_on_mesh(const TrainingCase& training, const MeshShape& shape, int steps, float lr,
                             MakeBackend make_backend = make_cpu_backend) {
  Trained result(training.graph);
  std::mutex mutex;
  on_mesh_threads(shape, [&](Mesh& mesh) {
    Trainer trainer(training, &mesh, make_backend);
    const std::vector<float> losses = trainer.run(steps, lr);
    const std::lock_guard lock(mutex);
    result.add_losses(losses);
    trainer.store(result);
  });
  return result;
}

}  // namespace lockstep::testing
