// The kinds of events in an org's activity feed, named as the spec names one of them (`sandbox_metrics_sample`): noun first, snake case.
import { z } from 'zod';

/** `sandbox_exec` carries the time limit, never the command or its output: those are the tenant's. */
export const activityKind = z.enum([
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
]);
export type ActivityKind = z.infer<typeof activityKind>;
