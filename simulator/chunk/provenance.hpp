// Which contributions every byte of every rank's buffer holds, kept as the run executes.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule.hpp"

namespace simai {

// The buffer is cut into the smallest intervals that any chunk of the schedule respects. For each rank and interval two
// sets of ranks are kept: whose contribution it holds at least once, and whose more than once.
class Provenance {
  public:
    explicit Provenance(const Schedule& schedule);

    // A chunk [lo, hi) arrives at `dst` from `src`: added to what is there, or in its place.
    void arrive(int src, int dst, std::int64_t lo, std::int64_t hi, bool reduce);

    const std::vector<std::int64_t>& cuts() const { return cuts_; }
    int words() const { return words_; }
    // Index of the first word of rank r, interval i: (r * intervals + i) * words.
    const std::vector<std::uint64_t>& once() const { return once_; }
    const std::vector<std::uint64_t>& more() const { return more_; }

  private:
    std::size_t at(int rank, std::size_t interval) const {
        return (static_cast<std::size_t>(rank) * (cuts_.size() - 1) + interval) * static_cast<std::size_t>(words_);
    }
    std::vector<std::int64_t> cuts_;
    int words_ = 1;
    std::vector<std::uint64_t> once_, more_;
};

}  // namespace simai
