// ModelHolders: which workers hold which tensors of the model, where not all hold all of them (the stages of
// a pipeline, the leaves of tensor parallelism, docs/splitting.md).
//
// The layout of a worker is that of the whole model without what others hold, in the same order: every
// element goes through the same operations, and parts of norms are added in the order of the whole one.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mesh.h"
#include "runtime/flat.h"

namespace lockstep {

class ModelHolders {
 public:
  // All hold everything.
  ModelHolders() = default;
  // Coordinates along the pipeline of those who hold a parameter.
  using Readers = std::map<std::string, std::set<int>, std::less<>>;
  // `stages`: which one each parameter is in, stage s on rank s mod p; `copies`: who else reads it (tied
  // weights). `tensor`: where a piece of one is; all others are with every tensor rank.
  using Places = std::map<std::string, int, std::less<>>;
  ModelHolders(const MeshShape& mesh, Places stages, Readers copies = {}, Places tensor = {})
      : mesh_(mesh), stages_(std::move(stages)), copies_(std::move(copies)), tensor_(std::move(tensor)) {}

  bool is_split() const { return mesh_.splits_model(); }
  const MeshShape& mesh() const { return mesh_; }
  int stage_of(std::string_view tensor) const {
    const auto found = stages_.find(tensor);
    return found == stages_.end() ? 0 : found->second;
  }
  int pipeline_of(std::string_view tensor) const { return stage_of(tensor) % mesh_.pipeline; }
  bool holds(int rank, std::string_view tensor) const {
    if (!is_split()) return true;
    return mesh_.coordinate(MeshAxis::kPipeline, rank) == pipeline_of(tensor) && is_with(rank, tensor);
  }
  // Whether it has a place on the tensor rank of a worker, in whatever stage.
  bool is_with(int rank, std::string_view tensor) const {
    const auto piece = tensor_.find(tensor);
    return piece == tensor_.end() || piece->second == mesh_.coordinate(MeshAxis::kTensor, rank);
  }
  // Of the tensor ranks that hold the same, one speaks for it: in norms, and when it is asked for.
  bool speaks_for(int rank, std::string_view tensor) const {
    return holds(rank, tensor) &&
           (tensor_.contains(tensor) || mesh_.coordinate(MeshAxis::kTensor, rank) == 0);
  }
  // Parameters that others read a copy of: renewed before every step, and no part of the state.
  const Readers& copies() const { return copies_; }
  bool has_copy(int rank, std::string_view tensor) const {
    const auto found = copies_.find(tensor);
    return found != copies_.end() && is_with(rank, tensor) &&
           found->second.contains(mesh_.coordinate(MeshAxis::kPipeline, rank));
  }
  // What those hold of a layout of the whole model who differ in it: by pipeline coordinate, then tensor.
  std::vector<FlatLayout> layouts_of(const FlatLayout& whole) const {
    if (!is_split()) return {whole};
    std::vector<FlatLayout> layouts(static_cast<size_t>(mesh_.pipeline * mesh_.tensor),
                                    FlatLayout(whole.dtype()));
    for (const FlatEntry& entry : whole.entries()) {
      const int stage = stage_of(entry.name);
      const auto piece = tensor_.find(entry.name);
      for (int tensor = 0; tensor < mesh_.tensor; ++tensor)
        if (piece == tensor_.end() || piece->second == tensor) {
          const int place = stage % mesh_.pipeline * mesh_.tensor + tensor;
          layouts[static_cast<size_t>(place)].add(entry.name, entry.shape, entry.block, stage);
        }
    }
    return layouts;
  }
  // What a worker holds of a layout of the whole model.
  FlatLayout layout_of(int rank, const FlatLayout& whole) const {
    if (!is_split()) return whole;
    FlatLayout layout(whole.dtype());
    for (const FlatEntry& entry : whole.entries())
      if (holds(rank, entry.name)) layout.add(entry.name, entry.shape, entry.block, stage_of(entry.name));
    return layout;
  }

 private:
  MeshShape mesh_;
  Places stages_;
  Readers copies_;
  Places tensor_;
};

}  // namespace lockstep
