// Which records of a table have a label, and a weight, that can be used: found before the first step in one
// pass over these columns alone, which is kept beside the index as one bit a record.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/select/table_selection.h"
#include "data/transform/model_inputs.h"

namespace lockstep {

// What makes a label one: a test of records, and what is wrong with one that does not pass it.
struct LabelTest {
  RecordTest test;
  std::function<std::string(const ColumnBlock& block, size_t record)> problem;
};

// Whether a column comes as it is in files, where it can be looked at before transforms are fitted.
bool is_in_files(const Transforms& transforms, const std::string& column);
// The encoding with a weight only where that is so of it.
TableEncoding in_files(const Transforms& transforms, TableEncoding encoding);

// By the kind of the labels, or once these are fitted by what they can be; weights where the encoding has
// them.
LabelTest label_test(const TableEncoding& encoding);
// Of the encoder: a number of one of its classes.
LabelTest label_test(const EncodeTextOptions& options);

// The shards of a table, with the columns that the model needs, and the means to open others of the same
// records.
struct OpenedRecords {
  std::shared_ptr<const ShardSet> all;
  OpenColumns open_columns;
  KeptSetOptions kept;
};

// How the labels are written, by records from all over the shards, of which none is read twice.
LabelKind kind_of_labels(const ShardSet& shards, const std::string& column, LabelTask asked);

// What leaves out the records that do not pass, for a selection that may leave out the share `most_bad`;
// nothing where all pass.
std::optional<UsableRecords> usable_records(const OpenedRecords& records, const LabelTest& test,
                                            double most_bad);
// Which of all records belong to a part of them, which must outlive the answer.
std::function<bool(int64_t record)> members_of(const ShardSet& part);
// Throws UserError that names the first of the records for which `among` holds that does not pass.
void require_usable(const OpenedRecords& records, const LabelTest& test,
                    const std::function<bool(int64_t record)>& among);

}  // namespace lockstep
