// Build flag of the address and thread sanitizers, under which code runs about ten times slower.
// Tests that try very many inputs for their results try fewer of them in such a build.

#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
