// Field numbers of Chakra's et_def.proto, as in the package mlc-chakra 1.0.0.
#pragma once

#include <cstdint>

namespace simai::schema {

inline constexpr const char* kVersion = "0.0.4";

// GlobalMetadata
inline constexpr std::uint32_t kMetadataVersion = 1, kMetadataAttr = 2;

// Node
inline constexpr std::uint32_t kNodeId = 1, kNodeName = 2, kNodeType = 3, kNodeCtrlDeps = 4, kNodeDataDeps = 5,
                               kNodeStart = 6, kNodeDuration = 7, kNodeInputs = 8, kNodeOutputs = 9, kNodeAttr = 10;

// IOInfo
inline constexpr std::uint32_t kIoValues = 1, kIoShapes = 2, kIoTypes = 3;

// AttributeProto: its value is one of the fields 3 to 32, of each type first one value, then a list.
enum class Value : std::uint8_t {
    kNone = 0,
    kName = 1,
    kDocString = 2,
    kDouble = 3,
    kDoubleList = 4,
    kFloat = 5,
    kFloatList = 6,
    kInt32 = 7,
    kInt32List = 8,
    kInt64 = 9,
    kInt64List = 10,
    kUint32 = 11,
    kUint32List = 12,
    kUint64 = 13,
    kUint64List = 14,
    kSint32 = 15,
    kSint32List = 16,
    kSint64 = 17,
    kSint64List = 18,
    kFixed32 = 19,
    kFixed32List = 20,
    kFixed64 = 21,
    kFixed64List = 22,
    kSfixed32 = 23,
    kSfixed32List = 24,
    kSfixed64 = 25,
    kSfixed64List = 26,
    kBool = 27,
    kBoolList = 28,
    kString = 29,
    kStringList = 30,
    kBytes = 31,
    kBytesList = 32,
};

// Of the lists that attributes hold.
inline constexpr std::uint32_t kListValues = 1;

}  // namespace simai::schema
