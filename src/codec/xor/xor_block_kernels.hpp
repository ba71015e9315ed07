// What the files of kernels offer each other, within one build (xor_kernels.hpp).

#pragma once

#include "codec/xor/xor_kernels.hpp"

namespace tailrace::neighbour_xor::XOR_BUILD {

template <class Word>
std::size_t pack_block(const BlockWords& block, std::size_t n, std::uint8_t* out);
template <class Word>
std::uint64_t block_cost(const BlockWords& block, std::size_t n);
template <class Word>
std::size_t unpack_block(const std::uint8_t* in, std::size_t n_in, std::size_t n,
                         BlockWords& block);

extern template std::size_t pack_block<std::uint32_t>(const BlockWords&, std::size_t,
                                                      std::uint8_t*);
extern template std::size_t pack_block<std::uint64_t>(const BlockWords&, std::size_t,
                                                      std::uint8_t*);
extern template std::uint64_t block_cost<std::uint32_t>(const BlockWords&, std::size_t);
extern template std::uint64_t block_cost<std::uint64_t>(const BlockWords&, std::size_t);
extern template std::size_t unpack_block<std::uint32_t>(const std::uint8_t*, std::size_t,
                                                        std::size_t, BlockWords&);
extern template std::size_t unpack_block<std::uint64_t>(const std::uint8_t*, std::size_t,
                                                        std::size_t, BlockWords&);

}  // namespace tailrace::neighbour_xor::XOR_BUILD
