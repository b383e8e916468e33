// How the line that ends a program whose mapped file shrank (install_map_fault_handler, file.h) is written.
#pragma once

namespace candor {

/// From now on as {"error": {"code", "message"}}, for the files mapped after this.
void report_map_faults_as_json();

}  // namespace candor
