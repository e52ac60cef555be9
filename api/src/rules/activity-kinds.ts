// The kinds of events in the activity feed. Named as the spec names one of them (`sandbox_metrics_sample`): noun first, snake case.

/** `sandbox_exec` carries the time limit, never the command or its output: those are the tenant's. */
export const ACTIVITY_KINDS = [
  'org_created',
  'api_key_created',
  'project_created',
  'sandbox_created',
  'sandbox_running',
  'sandbox_ready',
  'sandbox_failed',
  'sandbox_exec',
  'sandbox_destroy_requested',
  'sandbox_deleted',
] as const;
export type ActivityKind = (typeof ACTIVITY_KINDS)[number];
