// A table that answers every call with one error. PJRT has no other way to say why a plugin cannot be used: what loads
// it shows the error of the first call to its user.
#pragma once

#include <string>

#include "abi.h"

namespace stalloc {

// The one refusal of this process; the first problem stays.
const abi::Api* Refusal(const std::string& problem);

}  // namespace stalloc
