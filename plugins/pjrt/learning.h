// How it becomes known what a program asks for: from its first execution, all of which is over before the second begins.
#pragma once

#include <memory>

#include "abi.h"
#include "launches.h"
#include "programs.h"

namespace stalloc {

// To be called before each execution. True if this is the one to learn from. If there is one already, waits for its
// end, but not for ever: it may be waiting for something that the caller is yet to do. Then the execution that is about
// to begin goes without keys, and the next one tries again.
bool BeginsToLearn(Program* program);

// After the call of the execution to learn from. `outputs` are its buffers per device, null if the call failed.
// `ended`: all was allocated on the thread of the caller, and is known.
void LearnFrom(const std::shared_ptr<Launch>& launch, abi::Buffer** const* outputs, bool ended);

// Before an executable is destroyed.
void StopLearning(const Loaded& loaded);

}  // namespace stalloc
