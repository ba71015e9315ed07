// Whether a sanitizer looks on, which takes ten times as long: what is tried in very many ways for
// its results' sake is tried in fewer then. Clang has no macro of its own for it.

#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TAILRACE_TESTS_SANITIZED 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(TAILRACE_TESTS_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
