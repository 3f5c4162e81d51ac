// ReadingKnobs: how many readers make batches, how many batches they make ahead, and how many bytes of files
// are asked for ahead. All begin small. A wait of the caller raises what would have helped: more batches
// ahead where readers had stopped at those there may be, more readers where none was free. These are also
// added before anybody waits, where those there are never rest. A long time without a wait in which readers
// were mostly idle lowers all knobs, the readers where half of them would do; if that was too much, the next
// try comes later.
#pragma once
#include <cstdint>

namespace lockstep {

struct KnobLimits {
  int readers = 1;          // that keep a processor busy
  int waiting_readers = 1;  // that mostly wait for files
  int64_t ahead = 1;
  int64_t fetch = 0;  // bytes
};

class ReadingKnobs {
 public:
  explicit ReadingKnobs(const KnobLimits& limits);

  int readers() const { return readers_; }
  int64_t ahead() const { return ahead_; }
  int64_t fetch() const { return fetch_; }

  struct Wait {
    bool busy = false;   // all readers had work
    bool full = false;   // since the wait before, they had made all that they may make ahead
    bool files = false;  // most of their time goes into waiting for files
  };
  void waited(const Wait& wait);
  // Batches were ready, but all readers were at work whenever one was taken: one that just keeps up finds no
  // time to look ahead, and what comes at once when an epoch begins is then waited for.
  void had_no_rest();
  // `idle`: the share of the time since the last change in which readers had nothing to do. True: changed.
  bool did_not_wait(double idle);

 private:
  KnobLimits limits_;
  int readers_;
  int64_t ahead_;
  int64_t fetch_ = 0;
  int64_t calm_ = 0;  // batches without a wait
  int64_t patience_;  // calm batches before the knobs are lowered
  bool lowered_ = false;
};

}  // namespace lockstep
