// The real libpnetcdf, used for classic files, and for everything if Tailrace is switched off.
//
// If Tailrace is preloaded, it is the next library (RTLD_NEXT). Otherwise it is the first of these
// that exists: the library named by TAILRACE_PNETCDF_LIBRARY, the one found when Tailrace was
// built, its usual names. A library that turns out to be Tailrace itself under another name is
// skipped.

#pragma once

namespace tailrace::pnetcdf {

/// Find a function of the real library; nullptr if the library or the function is missing.
/// Thread-safe.
void* real_symbol(const char* name);

template <class Function>
Function real_function(const char* name) {
  return reinterpret_cast<Function>(real_symbol(name));
}

/// True with TAILRACE_PNETCDF=off: every call goes to the real library.
bool switched_off();

}  // namespace tailrace::pnetcdf
