#include "reduction/reducer.h"

#include "base/error.h"

namespace lockstep::reduction {

Reducer::Reducer(const SessionTerms& terms) : program_(terms.split()) {
  const LeafSplit split = terms.split();
  for (int host = 0; host < split.ranks(); ++host)
    partials_.push_back(static_cast<int64_t>(split.partials(host).size()));
}

std::optional<Reducer::Chunk> Reducer::take_if_whole(Contribution contribution) {
  const FrameHeader& header = contribution.header;
  const auto host = static_cast<size_t>(contribution.host);
  if (int64_t{header.partials} != partials_[host])
    throw CommError("host {} has {} partial sums, and rank {} sent {}", contribution.host, partials_[host],
                    contribution.rank, header.partials);
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = chunks_.try_emplace({header.collective, header.chunk});
  Chunk& chunk = found->second;
  if (is_new) {
    chunk.header = header;
    chunk.since = Clock::now();
    chunk.data.resize(partials_.size());
    chunk.missing = hosts();
  }
  if (chunk.header.type != header.type || chunk.header.elements != header.elements)
    throw CommError(
        "the ranks are not in the same operation: in chunk {} of #{} rank {} has {} {}, rank {} {} {}",
        header.chunk, header.collective, chunk.ranks.front(), chunk.header.elements,
        name_of(chunk.header.type), contribution.rank, header.elements, name_of(header.type));
  if (chunk.data[host])
    throw CommError("host {} sent chunk {} of #{} twice", contribution.host, header.chunk, header.collective);
  chunk.data[host] = std::move(contribution.data);
  chunk.ranks.push_back(contribution.rank);
  if (--chunk.missing > 0) return {};
  Chunk whole = std::move(chunk);
  chunks_.erase(found);
  return whole;
}

std::optional<CompletedRoot> Reducer::add(Contribution contribution) {
  std::optional<Chunk> chunk = take_if_whole(std::move(contribution));
  if (!chunk) return {};
  const int64_t bytes = int64_t{chunk->header.elements} * size_of(chunk->header.type);
  std::vector<const std::byte*> sources;
  for (size_t host = 0; host < partials_.size(); ++host)
    for (int64_t i = 0; i < partials_[host]; ++i) sources.push_back(chunk->data[host].get() + i * bytes);
  // In place: what has been added is not needed again.
  std::byte* const output = chunk->data[0].get();
  program_.run(chunk->header.type, sources, {&output, 1}, chunk->header.elements, false);
  FrameHeader header = chunk->header;
  header.kind = FrameKind::kRoot;
  header.partials = 1;
  header.payload = static_cast<uint32_t>(bytes);
  return CompletedRoot{header, std::move(chunk->data[0]), std::move(chunk->ranks)};
}

std::vector<Reducer::WaitingChunk> Reducer::waiting_since(Clock::time_point then) {
  const std::lock_guard lock(mutex_);
  std::vector<WaitingChunk> waiting;
  for (const auto& [key, chunk] : chunks_) {
    if (chunk.since > then) continue;
    int64_t host = 0;
    while (chunk.data[static_cast<size_t>(host)]) ++host;
    waiting.push_back({chunk.header, host, chunk.ranks});
  }
  return waiting;
}

}  // namespace lockstep::reduction
