// What the parts that open files are asked for, from what a job says about its data. Budgets are those of
// training records, and nothing is held out or augmented: who opens them says so.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/open/corpus.h"
#include "data/open/image_data.h"
#include "data/open/open.h"
#include "data/table/table.h"

namespace lockstep {

TableOptions table_options(const DataOptions& options);
CorpusOptions corpus_options(const DataOptions& options);
ImageDataOptions image_options(const DataOptions& options);

// The classes of images in the order of their labels, as text that is kept with a run, and back. None: they
// are numbers. Throws UserError for text that is not of classes.
std::string text_of_classes(const std::vector<std::string>& classes);
std::vector<std::string> classes_of_text(std::string_view text);

}  // namespace lockstep
