// Columns of tables as documents: a text, a conversation, or a prompt and the response to it.
#include <algorithm>

#include "base/error.h"
#include "data/tokenize/document_tasks.h"
#include "jinja/value.h"

namespace lockstep {
namespace {

constexpr int64_t kTaskBytes = int64_t{1} << 20;
constexpr int64_t kMostRecords = 4096;

class TableTasks : public DocumentTasks {
 public:
  TableTasks(const TokenizeOptions& options, const ShardSet& records)
      : options_(options), records_(records), frame_(document_frame(options)) {
    const int64_t bytes =
        std::max<int64_t>(records.manifest().bytes() / std::max<int64_t>(records.records(), 1), 1);
    together_ = std::clamp<int64_t>(kTaskBytes / bytes, 1, kMostRecords);
  }

  DocumentTask next() override {
    const int64_t first = next_, count = std::min(together_, records_.records() - first);
    if (count <= 0) return nullptr;
    next_ += count;
    return [this, first, count](EncodedDocuments& out) { encode(first, count, out); };
  }

 private:
  void encode(int64_t first, int64_t count, EncodedDocuments& out) const {
    BlockScratch scratch;
    StageCounters counters;
    records_.load(first, count, scratch, counters);
    out.bytes = records_.manifest().bytes() * (first + count) / records_.records() -
                records_.manifest().bytes() * first / records_.records();
    for (int64_t r = 0; r < count; ++r) {
      try {
        encode_record(scratch.block, static_cast<size_t>(r), out);
      } catch (const UserError& error) {
        out.problems.push_back(fmt::format("{}: {}", records_.describe(first + r), error.what()));
      }
    }
  }

  static std::string_view text_of(const ColumnBlock& block, const std::string& name, size_t record) {
    const BlockColumn& column = block.column(name);
    if (column.type() != ValueType::kBytes || column.width != 1)
      throw UserError("column '{}' holds {}, not text", name, name_of(column.type()));
    if (column.is_missing(record)) throw UserError("column '{}' has no value here", name);
    return column.as<std::string_view>()[record];
  }

  void encode_record(const ColumnBlock& block, size_t record, EncodedDocuments& out) const {
    const DocumentInput& input = options_.input;
    if (!input.is_chat()) {
      const std::string_view text = text_of(block, input.column, record);
      out.ids.insert(out.ids.end(), frame_.before.begin(), frame_.before.end());
      options_.tokenizer->encode_to(text, false, out.ids);
      out.ids.insert(out.ids.end(), frame_.after.begin(), frame_.after.end());
      out.ends.push_back(out.ids.size());
      return;
    }
    ChatTokens tokens = input.messages.empty() ? options_.chat->encode(text_of(block, input.prompt, record),
                                                                       text_of(block, input.response, record))
                        : input.roles.empty()
                            ? options_.chat->encode(messages_of(text_of(block, input.messages, record)))
                            : options_.chat->encode(messages_of(block, record));
    if (options_.longest > 0 && std::ssize(tokens.ids) > options_.longest) {
      tokens.ids.resize(static_cast<size_t>(options_.longest));
      tokens.counts.resize(static_cast<size_t>(options_.longest));
      ++out.cut;
    }
    // The first token is nobody's target.
    if (tokens.counts.empty() ||
        std::find(tokens.counts.begin() + 1, tokens.counts.end(), 1) == tokens.counts.end()) {
      ++out.dropped;
      return;
    }
    out.ids.insert(out.ids.end(), tokens.ids.begin(), tokens.ids.end());
    out.counts.insert(out.counts.end(), tokens.counts.begin(), tokens.counts.end());
    out.ends.push_back(out.ids.size());
  }

  // Of two lists.
  JinjaValue messages_of(const ColumnBlock& block, size_t record) const {
    const auto range = [&](const std::string& name) {
      const BlockColumn& column = block.column(name);
      if (column.type() != ValueType::kBytes || column.width != kVarying)
        throw UserError("column '{}' holds {}, not lists of text", name, name_of(column.type()));
      const auto begin = static_cast<size_t>(record == 0 ? 0 : column.ends[record - 1]);
      return std::span(column.as<std::string_view>())
          .subspan(begin, static_cast<size_t>(column.ends[record]) - begin);
    };
    const auto roles = range(options_.input.roles), contents = range(options_.input.contents);
    if (roles.size() != contents.size())
      throw UserError("column '{}' has {} roles and {} contents", options_.input.messages, roles.size(),
                      contents.size());
    JinjaList messages;
    for (size_t i = 0; i < roles.size(); ++i) {
      JinjaDict message;
      message.put("role", JinjaValue(roles[i]));
      message.put("content", JinjaValue(contents[i]));
      messages.emplace_back(std::move(message));
    }
    return {std::move(messages)};
  }

  JinjaValue messages_of(std::string_view json) const {
    try {
      return value_of_json(json);
    } catch (const UserError& error) {
      throw UserError("column '{}' is no list of messages: {}", options_.input.messages, error.what());
    }
  }

  const TokenizeOptions& options_;
  const ShardSet& records_;
  TextFrame frame_;
  int64_t together_ = 1, next_ = 0;
};

}  // namespace

std::unique_ptr<DocumentTasks> table_tasks(const TokenizeOptions& options, const ShardSet& records) {
  return std::make_unique<TableTasks>(options, records);
}

}  // namespace lockstep
