// Files opened to use a trained model on: read as its training data was, with the constants that were kept
// with the run (`Data::encoding`), and never fitted to what they hold.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/open/open.h"
#include "data/reading/record_reader.h"

namespace lockstep {

// Records with their labels, to evaluate on. `options` are those of the run's job.
std::shared_ptr<const Source> open_to_evaluate(const DataOptions& options, const std::string& constants,
                                               const std::vector<std::string>& files);

// What of a record is written beside its answer.
struct OwnColumns {
  std::vector<std::string> names = {};  // empty: all columns that can be written
  std::string written_as = "csv";       // the format of what is written
};

struct RecordsToPredict {
  std::unique_ptr<RecordReader> reader;
  std::vector<std::string> left_out = {};  // columns that cannot be written, each with the reason
};

// Every record of the files in their order, without labels: no filter, split or sample of the job applies.
// Throws UserError for a column of the run that the files do not have.
RecordsToPredict open_to_predict(const DataOptions& options, const std::string& constants,
                                 const std::vector<std::string>& files, const OwnColumns& own);

// The names of the classes that images or text have, in the order of their labels; none: numbers.
std::vector<std::string> kept_classes(const DataOptions& options, const std::string& constants);

}  // namespace lockstep
