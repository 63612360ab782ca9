// The messages of a trace as JSON, with everything that the file says.
#pragma once

#include <string>

#include "trace/wire.hpp"

namespace simai {

struct JsonPiece {
    std::string text;
    std::size_t next = 0;  // byte of the file from which to go on
};

// {"version": "0.0.4", "attributes": {...}}; `next` is where the nodes begin. Throws TraceError.
JsonPiece metadata_json(Bytes file);

// The nodes from a byte on, as objects separated by ",\n", until `limit` bytes are written or the file ends. Throws
// WireError.
JsonPiece nodes_json(Bytes file, std::size_t from, std::size_t limit);

}  // namespace simai
