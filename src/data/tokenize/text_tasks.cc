// Text files as documents: each file one, or each line, or each block of lines.
#include <algorithm>

#include "base/error.h"
#include "data/bytes/text_lines.h"
#include "data/tokenize/document_tasks.h"

namespace lockstep {
namespace {

constexpr int64_t kLongest = int64_t{256} << 20;  // of a line, a block, or what is tokenized at once

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// Calls take(line without its end, position behind it) for the lines of a text.
template <typename Take>
void for_each_line(std::string_view text, const Take& take) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t next = std::min(end + 1, text.size());
    take(text.substr(at, end - at), next);
    at = next;
  }
}

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Documents within a text of whole ones.
std::vector<std::string_view> documents_of(std::string_view text, TextDocuments kind) {
  std::vector<std::string_view> documents;
  if (kind == TextDocuments::kLine) {
    for_each_line(text, [&](std::string_view line, size_t) {
      if (!is_blank(line)) documents.push_back(without_return(line));
    });
    return documents;
  }
  size_t begin = 0, end = 0;  // of the block
  bool open = false;
  for_each_line(text, [&](std::string_view line, size_t) {
    const auto at = static_cast<size_t>(line.data() - text.data());
    if (is_blank(line)) {
      if (open) documents.push_back(text.substr(begin, end - begin));
      open = false;
      return;
    }
    if (!open) begin = at;
    open = true;
    end = at + without_return(line).size();
  });
  if (open) documents.push_back(text.substr(begin, end - begin));
  return documents;
}

// Whether a text has the same tokens when it is cut here, by what stands around.
bool cuts_well(const Tokenizer& tokenizer, std::string_view text, size_t at) {
  constexpr size_t kAround = 256;
  size_t begin = at - std::min(at, kAround);
  while (begin < at && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  size_t end = std::min(text.size(), at + kAround);
  while (end > at && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  std::vector<int32_t> parts = tokenizer.encode(text.substr(begin, at - begin), false);
  tokenizer.encode_to(text.substr(at, end - at), false, parts);
  return parts == tokenizer.encode(text.substr(begin, end - begin), false);
}

class TextTasks : public DocumentTasks {
 public:
  TextTasks(const TokenizeOptions& options, const std::vector<std::unique_ptr<ByteSource>>& files)
      : options_(options), files_(files), frame_(document_frame(options)) {}

  DocumentTask next() override {
    while (file_ < files_.size()) {
      if (!lines_) {
        lines_ = std::make_unique<TextLines>(*files_[file_], text_begin(*files_[file_]), kLongest);
        begins_ = true;
      }
      const auto piece = lines_->next([&](std::string_view text, bool last) { return whole(text, last); });
      if (!piece) {
        lines_.reset();
        ++file_;
        continue;
      }
      if (piece->too_long)
        throw UserError("{}:{}: {} MiB without {}; documents that long cannot be tokenized piece by piece",
                        files_[file_]->name(), line_number(*files_[file_], piece->offset), kLongest >> 20,
                        options_.input.documents == TextDocuments::kLine ? "the end of a line"
                        : options_.input.documents == TextDocuments::kBlock
                            ? "a blank line"
                            : "a place where the text could be cut");
      return task(std::string(piece->text.substr(0, static_cast<size_t>(piece->consumed))),
                  piece->last && piece->consumed == std::ssize(piece->text));
    }
    return nullptr;
  }

 private:
  // How much of a text is whole documents, or what of a document can be tokenized on its own.
  size_t whole(std::string_view text, bool last) const {
    if (last) return text.size();
    for (size_t newline = text.rfind('\n'); newline != std::string_view::npos && newline > 0;
         newline = text.rfind('\n', newline - 1)) {
      const size_t at = newline + 1;
      switch (options_.input.documents) {
        case TextDocuments::kLine: return at;
        case TextDocuments::kBlock: {
          const size_t before = text.rfind('\n', newline - 1);
          if (before != std::string_view::npos && is_blank(text.substr(before, newline - before))) return at;
          break;
        }
        case TextDocuments::kFile:
          // Far enough from the end to see what follows.
          if (at + 64 < text.size() && cuts_well(*options_.tokenizer, text, at)) return at;
          break;
      }
      // Where nothing near the end of a piece will do, a longer piece is tried.
      if (text.size() - at > text.size() / 2) break;
    }
    return 0;
  }

  DocumentTask task(std::string text, bool ends) {
    const bool begins = begins_;
    begins_ = false;
    return [this, text = std::move(text), begins, ends](EncodedDocuments& out) {
      out.bytes = std::ssize(text);
      const auto put = [&](const std::vector<int32_t>& ids) {
        out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      };
      if (options_.input.documents == TextDocuments::kFile) {
        if (begins) put(frame_.before);
        options_.tokenizer->encode_to(text, false, out.ids);
        if (!ends) return;
        put(frame_.after);
        out.ends.push_back(out.ids.size());
        return;
      }
      for (const std::string_view document : documents_of(text, options_.input.documents)) {
        put(frame_.before);
        options_.tokenizer->encode_to(document, false, out.ids);
        put(frame_.after);
        out.ends.push_back(out.ids.size());
      }
    };
  }

  const TokenizeOptions& options_;
  const std::vector<std::unique_ptr<ByteSource>>& files_;
  TextFrame frame_;
  size_t file_ = 0;
  std::unique_ptr<TextLines> lines_;  // of the file
  bool begins_ = true;                // the next piece begins its file
};

}  // namespace

TextFrame document_frame(const TokenizeOptions& options) {
  TextFrame frame;
  if (options.special_tokens) frame = text_frame(*options.tokenizer);
  if (options.eos && (frame.after.empty() || frame.after.back() != *options.eos))
    frame.after.push_back(*options.eos);
  return frame;
}

std::unique_ptr<DocumentTasks> text_tasks(const TokenizeOptions& options,
                                          const std::vector<std::unique_ptr<ByteSource>>& files) {
  return std::make_unique<TextTasks>(options, files);
}

}  // namespace lockstep
