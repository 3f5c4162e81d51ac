// Field: one key of a job file: its path, where its value goes, what it may be, and one line on what it
// means.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "job/spec.h"

namespace lockstep {

template <typename T>
using SlotOf = T* (*)(JobSpec&);

// A choice is stored as the index of its name.
struct ChoiceSlot {
  std::function<void(JobSpec&, size_t)> set;
  std::function<std::optional<size_t>(const JobSpec&)> get;  // nothing: unset
  std::span<const std::string_view> names;
};

// Read and passed over: other tools' keys that mean nothing here.
struct NoSlot {};

// Where a value goes, which also says its type. Of a worker pool: the last one.
using Slot =
    std::variant<NoSlot, SlotOf<int64_t>, SlotOf<std::optional<int64_t>>, SlotOf<double>,
                 SlotOf<std::optional<double>>, SlotOf<bool>, SlotOf<std::string>,
                 SlotOf<std::vector<std::string>>, SlotOf<std::vector<int64_t>>, SlotOf<std::vector<double>>,
                 SlotOf<std::vector<TransformSpec>>, SlotOf<std::vector<WeightChange>>,
                 SlotOf<ClassWeightsSpec>, SlotOf<std::array<double, 2>>, SlotOf<StepSpan>,
                 SlotOf<std::optional<StepSpan>>, ChoiceSlot>;

enum class FieldType : uint8_t {
  kAny,
  kInt,
  kNumber,
  kFlag,
  kText,
  kTexts,
  kInts,
  kNumbers,
  kTransforms,
  kWeightChanges,
  kClassWeights,
  kPair,
  kSpan,
  kChoice,
  kBytes
};

class Field {
 public:
  template <typename T>
  Field(std::string_view path, T* (*slot)(JobSpec&), std::string_view doc)
      : path_(path), slot_(wrap(slot)), doc_(doc) {}
  Field(std::string_view path, ChoiceSlot slot, std::string_view doc)
      : path_(path), slot_(std::move(slot)), doc_(doc) {}
  Field(std::string_view path, std::string_view doc) : path_(path), doc_(doc) {}

  // ---- how the table describes it
  Field required() && { return required_ = true, std::move(*this); }
  // As YAML text.
  Field defaults_to(std::string_view text) && { return fallback_ = text, std::move(*this); }
  // What the default stands for where it is not a value: "as many as the data's columns".
  Field or_else(std::string_view words) && { return absent_ = words, std::move(*this); }
  Field takes_auto() && { return auto_ = true, std::move(*this); }
  Field at_least(double least) && { return least_ = least, std::move(*this); }
  Field above(double bound) && { return least_ = bound, least_excluded_ = true, std::move(*this); }
  Field at_most(double most) && { return most_ = most, std::move(*this); }
  Field below(double bound) && { return most_ = bound, most_excluded_ = true, std::move(*this); }
  Field in_bytes() && { return bytes_ = true, std::move(*this); }
  // Texts that name files or folders: job/paths.h says how they are written.
  Field names_files() && { return files_ = true, std::move(*this); }
  // Its default means nothing where this other field is not set.
  Field only_with(std::string_view other) && { return companion_ = other, std::move(*this); }
  // The field is there only for these values of another one (earlier in the table), each with its own
  // default.
  Field when(std::string_view selector, std::vector<std::pair<std::string_view, std::string>> cases) && {
    return selector_ = selector, cases_ = std::move(cases), std::move(*this);
  }
  // Other words for some of the choices.
  Field words(std::vector<std::pair<std::string_view, std::string_view>> words) && {
    return words_ = std::move(words), std::move(*this);
  }
  Field example(std::string_view text) && { return example_ = text, std::move(*this); }

  // ---- how it is read
  std::string_view path() const { return path_; }
  std::string_view doc() const { return doc_; }
  const Slot& slot() const { return slot_; }
  FieldType type() const;
  bool is_required() const { return required_; }
  bool has_auto() const { return auto_; }
  bool is_path() const { return files_; }
  std::string_view companion() const { return companion_; }
  bool is_ignored() const { return std::holds_alternative<NoSlot>(slot_); }
  std::string_view fallback() const { return fallback_; }
  std::string_view absent() const { return absent_; }
  std::string_view selector() const { return selector_; }
  std::span<const std::pair<std::string_view, std::string>> cases() const { return cases_; }
  std::span<const std::string_view> choices() const;
  std::span<const std::pair<std::string_view, std::string_view>> other_words() const { return words_; }
  double least() const { return least_; }
  double most() const { return most_; }
  bool least_excluded() const { return least_excluded_; }
  bool most_excluded() const { return most_excluded_; }
  bool in_range(double value) const;
  // "at least 1", "above 0 and at most 1", "" without limits.
  std::string range() const;
  // What to write, in words: "a whole number at least 1".
  std::string expectation() const;
  // A value that would be accepted, as YAML.
  std::string sample() const;

 private:
  template <typename T>
  static Slot wrap(T* (*slot)(JobSpec&)) {
    if constexpr (requires { ChoiceNames<T>::names; }) {
      return ChoiceSlot{[slot](JobSpec& spec, size_t i) { *slot(spec) = static_cast<T>(i); },
                        [slot](const JobSpec& spec) -> std::optional<size_t> {
                          return static_cast<size_t>(*slot(const_cast<JobSpec&>(spec)));
                        },
                        ChoiceNames<T>::names};
    } else if constexpr (requires { ChoiceNames<typename T::value_type>::names; }) {
      using E = typename T::value_type;
      return ChoiceSlot{[slot](JobSpec& spec, size_t i) { *slot(spec) = static_cast<E>(i); },
                        [slot](const JobSpec& spec) -> std::optional<size_t> {
                          const auto& value = *slot(const_cast<JobSpec&>(spec));
                          return value ? std::optional(static_cast<size_t>(*value)) : std::nullopt;
                        },
                        ChoiceNames<E>::names};
    } else {
      return slot;
    }
  }

  std::string_view path_;
  Slot slot_ = NoSlot{};
  std::string_view doc_, fallback_, absent_, selector_, example_, companion_;
  std::vector<std::pair<std::string_view, std::string>> cases_;
  std::vector<std::pair<std::string_view, std::string_view>> words_;
  double least_ = -std::numeric_limits<double>::infinity();
  double most_ = std::numeric_limits<double>::infinity();
  bool least_excluded_ = false, most_excluded_ = false;
  bool required_ = false, auto_ = false, bytes_ = false, files_ = false;
};

// A field whose path is the member's name.
#define LOCKSTEP_FIELD(member, doc) \
  Field(                            \
      #member, +[](JobSpec& spec) { return &spec.member; }, doc)

}  // namespace lockstep
