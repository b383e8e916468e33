#include <candor/version.h>

#include <cstdio>

int main() {
  if (candor::version != EXPECTED_VERSION) {
    std::printf("the headers say version %s, the package %s\n", candor::version.data(), EXPECTED_VERSION);
    return 1;
  }
  return 0;
}
