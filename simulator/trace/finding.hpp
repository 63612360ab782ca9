// What is wrong, or worth knowing, about the trace of one rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simai {

enum class Severity : std::uint8_t { kError, kWarning, kNote };

struct Check {
    std::string_view name;
    Severity severity;
};

namespace checks {
// Errors: the trace cannot be run, or ASTRA-sim would refuse it, or would stop short in silence.
inline constexpr Check kCompressed{"compressed", Severity::kError};
inline constexpr Check kEmpty{"empty", Severity::kError};
inline constexpr Check kNoTrace{"no-trace", Severity::kError};  // the bytes are none, or end too early
inline constexpr Check kNoMetadata{"no-metadata", Severity::kError};
inline constexpr Check kNodeType{"node-type", Severity::kError};
inline constexpr Check kCommType{"comm-type", Severity::kError};
inline constexpr Check kAttributeType{"attribute-type", Severity::kError};
inline constexpr Check kMissingAttribute{"missing-attribute", Severity::kError};
inline constexpr Check kRange{"range", Severity::kError};  // a negative size, an id or peer that cannot be
inline constexpr Check kGroupName{"group-name", Severity::kError};
inline constexpr Check kText{"text", Severity::kError};  // not UTF-8
inline constexpr Check kDuplicateId{"duplicate-id", Severity::kError};
inline constexpr Check kMissingDependency{"missing-dependency", Severity::kError};
inline constexpr Check kCycle{"cycle", Severity::kError};
// Warnings: probably not what was meant.
inline constexpr Check kElementCount{"element-count", Severity::kWarning};
inline constexpr Check kNoDuration{"no-duration", Severity::kWarning};
inline constexpr Check kInvalidNode{"invalid-node", Severity::kWarning};
inline constexpr Check kNoDimension{"no-dimension", Severity::kWarning};
inline constexpr Check kReservedTag{"reserved-tag", Severity::kWarning};
// Notes
inline constexpr Check kVersion{"version", Severity::kNote};
inline constexpr Check kNoNodes{"no-nodes", Severity::kNote};
inline constexpr Check kZeroBytes{"zero-bytes", Severity::kNote};
inline constexpr Check kReplayOnly{"replay-only", Severity::kNote};
inline constexpr Check kMemoryNode{"memory-node", Severity::kNote};
}  // namespace checks

struct Finding {
    Check check;
    std::string reason;
    std::int64_t node = -1;      // id; -1: unknown, or no node is to blame
    std::int64_t position = -1;  // among the nodes of the file
    std::int64_t offset = -1;    // byte of the file
    std::int64_t more = 0;       // findings of this check that are counted only
};

// Findings in the order in which they were made. Of each check only the first few are kept, the others counted: a
// broken file must not cost more memory than a good one.
class Findings {
  public:
    static constexpr int kKeptErrors = 20;
    static constexpr int kKeptOthers = 1;

    // `reason` makes the text; it is called only if the finding is kept.
    template <typename Reason>
    void add(const Check& check, std::int64_t node, std::int64_t position, std::int64_t offset, Reason reason) {
        int kept = 0;
        Finding* last = nullptr;
        for (Finding& one : all_)
            if (one.check.name == check.name) ++kept, last = &one;
        if (check.severity == Severity::kError) ++errors_;
        if (kept >= (check.severity == Severity::kError ? kKeptErrors : kKeptOthers))
            ++last->more;
        else
            all_.push_back({check, reason(), node, position, offset, 0});
    }

    const std::vector<Finding>& all() const { return all_; }
    std::int64_t errors() const { return errors_; }

  private:
    std::vector<Finding> all_;
    std::int64_t errors_ = 0;
};

}  // namespace simai
