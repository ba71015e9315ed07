// The smallest user of the installed library, in C++: write one compressed field.

#include <cstdio>
#include <numeric>
#include <tailrace/tailrace.hpp>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  std::vector<float> values(48 * 32);
  std::iota(values.begin(), values.end(), 0.0F);
  auto file = tailrace::File::create(argv[1], "codec=deflate");
  auto ramp = file.define<float>("/ramp", {48, 32});
  ramp.put(values);
  file.close();
  return 0;
} catch (const tailrace::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
