// The real libpnetcdf, for what is not ours: classic files, and everything if we are switched off.
//
// Where it is: behind us, if we were preloaded (RTLD_NEXT); else the library that
// TAILRACE_PNETCDF_LIBRARY names; else the one found when Tailrace was built; else by its usual
// names. A library that turns out to be ourselves under another name is passed over.

#pragma once

namespace tailrace::pnetcdf {

/// A function of the real library; nullptr if there is no such library or function. Thread-safe.
void* real_symbol(const char* name);

template <class Function>
Function real_function(const char* name) {
  return reinterpret_cast<Function>(real_symbol(name));
}

/// TAILRACE_PNETCDF=off: every call goes to the real library.
bool switched_off();

}  // namespace tailrace::pnetcdf
