#include "context.h"

namespace stalloc {
namespace {
thread_local Context* t_current = nullptr;
}

Context* Current() { return t_current; }

Scope::Scope(Context* context) : before_(t_current) { t_current = context; }

Scope::~Scope() { t_current = before_; }

}  // namespace stalloc
