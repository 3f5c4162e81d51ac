// Predictions: every record of some files with what a trained model answers about it, in the order of the
// files.
//
// Chunks of records go to several lanes. A lane reads its chunk, computes it on one thread, and makes text of
// it; what is written is put in order again. So no lane waits for another, memory stays bounded, and what a
// record gets depends neither on the lanes nor on its chunk.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prepare/trained_run.h"

namespace lockstep {

struct PredictOptions {
  std::vector<std::string> files;          // paths, folders and patterns
  std::string out;                         // a path, or "-"
  std::string out_format = {};             // empty: what the ending of `out` says
  std::optional<std::string> format = {};  // of the files; see use/use_data.h
  std::vector<std::string> columns = {};   // of the records, to be written; empty: all that can be
  std::optional<double> threshold = {};
  bool each_class = true;
  std::optional<int64_t> threads = {};  // lanes; unset: the processors of this machine
  std::optional<int64_t> batch = {};    // records that are computed at once
  std::function<void()> began = {};     // called when all is open: what fails from now on is in the records
};

struct PredictReport {
  int64_t records = 0;
  int64_t bytes = 0;  // written
  int lanes = 0;
  double open_seconds = 0;  // to open and index the files, and to load the weights
  double seconds = 0;       // after that
  std::string format;       // of the files
  std::string out_format;
  std::vector<std::string> left_out = {};  // columns that could not be written, and why
};

// Throws UserError; nothing is left under the name of the output then.
PredictReport predict(const TrainedRun& run, const PredictOptions& options);

}  // namespace lockstep
