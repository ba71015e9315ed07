// Whether a sanitizer looks on, which takes ten times as long: what is tried in very many ways for
// its results' sake is tried in fewer then.

#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
