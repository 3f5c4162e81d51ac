#include "data/csv_reader.h"

#include "base/error.h"

namespace lockstep {

CsvReader::CsvReader(std::string_view name, std::string_view text) : name_(name), text_(text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

bool CsvReader::at_line_end() const {
  return text_[at_] == '\n' || (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
}

void CsvReader::skip_line_end() {
  at_ += text_[at_] == '\r' ? 2 : 1;
  ++line_;
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unescaped_.clear();
  while (at_ < text_.size() && at_line_end()) skip_line_end();
  if (at_ == text_.size()) return false;
  record_line_ = line_;
  do fields.push_back(field());
  while (take_separator());
  return true;
}

std::string_view CsvReader::field() {
  if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
  const size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == ',' || c == '\n') break;
    if (c == '\r' && at_line_end()) break;
    if (c == '"')
      fail(line_, "a quote inside a field; put the field in quotes and double the quote: \"a \"\"b\"\"\"");
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view CsvReader::quoted_field() {
  const int64_t opened = line_;
  const size_t begin = ++at_;
  bool doubled = false;
  for (;; ++at_) {
    if (at_ == text_.size()) fail(opened, "the quote that opens here is never closed; add the closing quote");
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') continue;
    if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
    doubled = true;
    ++at_;
  }
  const std::string_view inside = text_.substr(begin, at_++ - begin);
  if (!doubled) return inside;
  std::string& plain = unescaped_.emplace_back();
  for (size_t i = 0; i < inside.size(); ++i) {
    plain += inside[i];
    if (inside[i] == '"') ++i;
  }
  return plain;
}

bool CsvReader::take_separator() {
  if (at_ == text_.size()) return false;
  if (text_[at_] == ',') {
    ++at_;
    return true;
  }
  if (!at_line_end()) fail(line_, "text follows a closing quote; end the field with a comma or a new line");
  skip_line_end();
  return false;
}

void CsvReader::fail(int64_t line, std::string_view problem) const {
  throw UserError("{}:{}: {}", name_, line, problem);
}

}  // namespace lockstep
