// The calls that this plugin takes over. Each does its own accounting and passes on to the vendor.
#pragma once

#include "table.h"

namespace stalloc {

void OverrideClients(Table* table);
void OverrideExecutables(Table* table);
void OverrideBuffers(Table* table);
void OverrideMemoryStats(Table* table);

}  // namespace stalloc
