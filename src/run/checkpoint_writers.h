// CheckpointWriters: the workers of a run as writers of its checkpoints. Where all of them see the leader's
// folder, everyone writes what it owns into the files that the leader has made
// (train/checkpoint/owned_parts.h); elsewhere the leader writes alone.
//
// The leader calls; the others are in Workers::agree meanwhile and do the same with it. A thread of each
// writes, and they tell each other how far it is, so that one that takes long is not taken for one that has
// died, and the first that cannot write stops all.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "run/workers.h"
#include "train/checkpoint/owned_parts.h"
#include "train/step/train_step.h"

namespace lockstep {

class CheckpointWriters {
 public:
  // `folder`: of the run's checkpoints, as this worker names it.
  CheckpointWriters(Workers& workers, TrainStep& train, std::string folder);

  // Of the leader: in words, who does not see its folder or may not write there; empty: all do.
  std::string find_strangers();

  struct Written {
    std::vector<PartSums> sums;  // by worker
    std::string error;           // who could not, and why; empty: all is written
  };
  // Of the leader: all write what they own into the files of a folder in that folder.
  Written write(const std::string& folder, const std::set<std::string>& left_out, bool weights_alone,
                std::span<std::byte> staging);

 private:
  struct Request;
  struct Told;
  void serve();
  std::string broadcast(std::string text);
  // Everybody's, by rank.
  std::vector<Told> tell(const Told& own);
  // Together, of the leader and those who serve.
  std::vector<Told> look(const std::string& marker, const std::string& content);
  std::vector<Told> write_together(const Request& request, std::span<std::byte> staging);

  Workers& workers_;
  Group& group_;
  TrainStep& train_;
  std::string folder_;
  bool durable_ = true;  // whether this worker has to sync what it writes
};

}  // namespace lockstep
