# cmake --install: the programs, the libraries, the public headers, and a package for find_package(candor).
