# The script behind candor_embed(): writes OUTPUT, a C++ source that holds the bytes of INPUT as SYMBOL.
file(READ ${INPUT} bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT}
"#include <string_view>
namespace candor::embedded {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}0};
}  // namespace
extern const std::string_view ${SYMBOL};
const std::string_view ${SYMBOL}(reinterpret_cast<const char*>(kBytes), ${size});
}  // namespace candor::embedded
")
