// The main program of all MPI tests. CMakeLists.txt runs it once per test file, filtered by the
// names of its suites.

#include "rank_support.hpp"

int main(int argc, char** argv) { return api_test::run(argc, argv); }
