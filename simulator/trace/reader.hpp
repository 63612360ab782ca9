// Reading the Chakra trace of one rank, whoever wrote it.
//
// A file is a GlobalMetadata message and then Node messages, each preceded by its length. All bytes are read: what is
// wrong is among the findings, with node, position and byte; what ASTRA-sim refuses is an error here too.
#pragma once

#include <string>

#include "trace/finding.hpp"
#include "trace/trace.hpp"
#include "trace/wire.hpp"

namespace simai {

struct Reading {
    Trace trace;  // of no use if there are errors
    std::string version;
    Findings findings;
};

// Never throws for what the bytes are, and needs memory in proportion to their number.
Reading read_trace(Bytes file);

// Skips the metadata of a file, that nodes can be read from there on, and returns them. Throws TraceError.
Bytes read_metadata(Bytes file, WireReader& reader);

// What keeps a file from being read at all.
class TraceError : public WireError {
  public:
    TraceError(const Check& check, const std::string& reason, std::size_t offset)
        : WireError(reason, offset), check_(check) {}
    const Check& check() const { return check_; }

  private:
    Check check_;
};

}  // namespace simai
