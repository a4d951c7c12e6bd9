"""The arena lever's plan: the allocations of all executions of a job, packed into one region."""

from xla_stalloc.plan.job.job_plan import JobPlan, JobPlanError, plan_job
from xla_stalloc.plan.job.trace import Trace, TraceBuilder, TraceError, program_key

__all__ = ["JobPlan", "JobPlanError", "Trace", "TraceBuilder", "TraceError", "plan_job", "program_key"]
