// The event queue: plain structs in a four-ary heap, ordered by (time, sequence). Times are int64 picoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace simai {

using Ps = std::int64_t;

constexpr double kPsPerSecond = 1e12;

enum class ChunkEvent : std::uint8_t { kDelivered, kPortFree, kNicEvent, kDetected, kStart };

struct QueuedEvent {
    Ps time = 0;
    std::uint64_t order = 0;  // sequence number and kind: ties go to who came first
    std::uint32_t id = 0;
    std::uint32_t epoch = 0;
    ChunkEvent kind() const { return static_cast<ChunkEvent>(order & 7); }
};

class EventQueue {
  public:
    bool empty() const { return heap_.empty(); }
    const QueuedEvent& top() const { return heap_.front(); }

    void push(Ps time, ChunkEvent kind, std::uint32_t id, std::uint32_t epoch = 0) {
        const QueuedEvent event{time, sequence_++ << 3 | static_cast<std::uint64_t>(kind), id, epoch};
        std::size_t i = heap_.size();
        heap_.push_back(event);
        while (i > 0) {
            const std::size_t parent = (i - 1) / 4;
            if (!before(event, heap_[parent])) break;
            heap_[i] = heap_[parent];
            i = parent;
        }
        heap_[i] = event;
    }

    void pop() {
        const QueuedEvent last = heap_.back();
        heap_.pop_back();
        const std::size_t n = heap_.size();
        if (n == 0) return;
        std::size_t i = 0;
        while (true) {
            const std::size_t first = 4 * i + 1;
            if (first >= n) break;
            std::size_t best = first;
            const std::size_t end = first + 4 < n ? first + 4 : n;
            for (std::size_t c = first + 1; c < end; ++c)
                if (before(heap_[c], heap_[best])) best = c;
            if (!before(heap_[best], last)) break;
            heap_[i] = heap_[best];
            i = best;
        }
        heap_[i] = last;
    }

  private:
    static bool before(const QueuedEvent& a, const QueuedEvent& b) {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
    }
    std::vector<QueuedEvent> heap_;
    std::uint64_t sequence_ = 0;
};

}  // namespace simai
