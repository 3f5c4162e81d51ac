// Replays the corpora of the fuzzers: inputs that once failed, and one of each kind.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/async_frame.h"
#include "fuzz/async_log.h"
#include "fuzz/block_file.h"
#include "fuzz/checkpoint.h"
#include "fuzz/csv.h"
#include "fuzz/field.h"
#include "fuzz/filter.h"
#include "fuzz/generation_config.h"
#include "fuzz/graph_text.h"
#include "fuzz/hf_config.h"
#include "fuzz/hf_files.h"
#include "fuzz/image.h"
#include "fuzz/jinja.h"
#include "fuzz/job.h"
#include "fuzz/labels.h"
#include "fuzz/launch_environment.h"
#include "fuzz/notice.h"
#include "fuzz/parquet.h"
#include "fuzz/record_formats.h"
#include "fuzz/reduction_frame.h"
#include "fuzz/row_file.h"
#include "fuzz/run_files.h"
#include "fuzz/safetensors.h"
#include "fuzz/shard_index.h"
#include "fuzz/sidecar.h"
#include "fuzz/store_message.h"
#include "fuzz/tar.h"
#include "fuzz/tokenizer.h"
#include "fuzz/tokens.h"

namespace lockstep::testing {
namespace {

// How many of a corpus pass, and that none does worse than be refused.
template <typename Check>
void replay(const std::string& corpus, Check check) {
  int good = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(LOCKSTEP_FUZZ_CORPUS + ("/" + corpus))) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    ++files;
    EXPECT_NO_THROW(good += check(text.str()) ? 1 : 0) << entry.path();
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(files, good);
}

TEST(FuzzCorpus, EveryTextIsATableOrAUserError) { replay("csv", check_csv_table); }
TEST(FuzzCorpus, EveryTextIsCsvOrAUserError) { replay("csv", check_csv); }
TEST(FuzzCorpus, EveryTextIsJsonLinesOrAUserError) { replay("jsonl", check_jsonl); }
TEST(FuzzCorpus, EveryMessageIsAnExampleOrAUserError) { replay("example", check_example); }
TEST(FuzzCorpus, EveryFileIsTfrecordsOrAUserError) { replay("tfrecord", check_tfrecord); }
TEST(FuzzCorpus, EveryFileIsDecompressedOrAUserError) { replay("compressed", check_compressed); }
TEST(FuzzCorpus, EveryFileIsBlocksOrAUserError) { replay("block_file", check_block_file); }
TEST(FuzzCorpus, EveryFileIsParquetOrAUserError) { replay("parquet", check_parquet); }
TEST(FuzzCorpus, EveryFileIsAnIndexOrAUserError) { replay("shard_index", check_shard_index); }
TEST(FuzzCorpus, EveryFileOfRowsIsTakenOrRefused) { replay("row_file", check_row_file); }
TEST(FuzzCorpus, EveryFileBesideTheDataIsTakenOrRefused) { replay("sidecar", check_sidecar); }
TEST(FuzzCorpus, EveryTextIsAChatTemplateOrAUserError) { replay("jinja", check_jinja); }
TEST(FuzzCorpus, EveryTextIsAFieldOrRefused) { replay("field", check_field); }
TEST(FuzzCorpus, EveryTextIsAGenerationConfigOrAUserError) {
  replay("generation_config", check_generation_config);
}
TEST(FuzzCorpus, EveryTextIsAModelsConfigOrAUserError) { replay("hf_config", check_hf_config); }
TEST(FuzzCorpus, EveryTextIsLabelsOrAUserError) { replay("labels", check_labels); }
TEST(FuzzCorpus, EveryTextIsAFilterOrAUserError) { replay("filter", check_filter); }
TEST(FuzzCorpus, EveryTextIsAGraphOrAUserError) { replay("graph_text", check_graph_text); }
TEST(FuzzCorpus, EveryTextIsAJobOrAUserError) { replay("job", check_job); }
TEST(FuzzCorpus, EveryTextIsAnIndexOfWeightsOrAUserError) { replay("hf_files", check_weight_index); }
TEST(FuzzCorpus, EveryTextIsAPreprocessorsConfigOrAUserError) { replay("hf_files", check_preprocessor); }
TEST(FuzzCorpus, EveryTextIsAnAdaptersConfigOrAUserError) { replay("hf_files", check_peft_config); }
TEST(FuzzCorpus, EveryTextIsMetricsOrAUserError) { replay("metrics", check_metrics); }
TEST(FuzzCorpus, EveryTextIsASummaryOrAUserError) { replay("summary", check_summary); }
TEST(FuzzCorpus, EveryEnvironmentIsAPlacementOrAUserError) {
  replay("launch_environment", check_launch_environment);
}
TEST(FuzzCorpus, EveryFileIsTensorsOrAUserError) { replay("safetensors", check_safetensors); }
TEST(FuzzCorpus, EveryTextIsAManifestOrAUserError) { replay("checkpoint", check_manifest); }
TEST(FuzzCorpus, EveryTextIsASavedStateOrAUserError) { replay("checkpoint", check_saved_state); }
TEST(FuzzCorpus, EveryByteIsANoticeOrRefused) { replay("notice", check_notice); }
TEST(FuzzCorpus, EveryByteIsAFrameOfAnAsynchronousRunOrRefused) { replay("async_frame", check_async_frame); }
TEST(FuzzCorpus, EveryLogOfPushesIsReadAsItIsWrittenOrRefused) { replay("async_log", check_async_log); }
TEST(FuzzCorpus, EveryByteIsAFrameOfSumsOrRefused) { replay("reduction_frame", check_reduction_frame); }
TEST(FuzzCorpus, EveryByteIsACorpusOfTokensOrAUserError) { replay("tokens", check_tokens); }
TEST(FuzzCorpus, EveryTextIsATokenizerOrAUserError) { replay("tokenizer_json", check_tokenizer_json); }
TEST(FuzzCorpus, EveryByteIsPiecesOrAUserError) { replay("sentencepiece", check_sentencepiece); }
TEST(FuzzCorpus, EveryByteIsATarShardOrAUserError) { replay("tar", check_tar); }
TEST(FuzzCorpus, EveryByteIsAnImageOrRefused) { replay("image", check_image); }
TEST(FuzzCorpus, EveryByteIsAMessageOrRefused) { replay("store_message", check_store_message); }

}  // namespace
}  // namespace lockstep::testing
