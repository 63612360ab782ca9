// Which passes of a schedule may start: those whose predecessors are complete, in order within their channel.
#pragma once

#include <vector>

#include "model/schedule.hpp"

namespace simai {

class PassOrder {
  public:
    // With `one_at_a_time` a channel hands out its next pass only after free() was called for the one before.
    PassOrder(const Schedule& schedule, bool one_at_a_time);

    // A pass that may start now and was not handed out yet; -1: none.
    int next();
    void complete(int pass);
    void free(int channel);
    bool finished() const { return complete_ == static_cast<int>(waits_for_.size()); }

  private:
    const Schedule& schedule_;
    bool one_at_a_time_;
    int complete_ = 0;
    std::vector<int> waits_for_;  // per pass: predecessors that are not complete
    std::vector<std::vector<int>> dependents_;
    std::vector<std::vector<int>> channel_;  // passes of each channel, in order
    std::vector<std::size_t> handed_out_;    // how many of them
    std::vector<char> busy_;
    std::vector<int> to_look_at_;  // channels where something has changed
};

}  // namespace simai
