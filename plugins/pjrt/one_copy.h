// One wrapper per process. A copy of this library may be loaded twice, by the entry point and by hand say, from two
// files; two of them would wrap and patch the same vendor twice. So all copies agree on the one that was loaded first,
// by the order in which the loader lists them, and the others hand everything to it.
#pragma once

namespace stalloc {

// The function `name` of the copy that acts for this process, which may be this very one. Null if the first copy is of
// another version and lacks it.
void* OfTheOneCopy(const char* name);

// Path of the copy that acts for this process.
const char* PathOfTheOneCopy();

}  // namespace stalloc
