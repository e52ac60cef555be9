// The kinds of events in an org's activity feed, named as the spec names one of them
// (`sandbox_metrics_sample`): noun first, snake case. The route that reads the feed is in
// activity-feed.ts.
import { z } from 'zod';

/**
 * `sandbox_connected` carries the port, or that it is a terminal, or a command and whether in one;
 * never the command. `preview_link_created` carries port, audience and expiry, never the link's
 * token.
 */
/**
 * `sandbox_exec` carries the time limit, `sandbox_file_written` path and size, never a command, its
 * output or a content: those are the tenant's.
 */
export const activityKind = z.enum([
  'org_created',
  'owner_link_created',
  'plan_changed',
  'checkout_started',
  'subscription_changed',
  'usage_guardrails_updated',
  'usage_cap_warning',
  'member_role_changed',
  'member_removed',
  'invitation_created',
  'invitation_sent',
  'invitation_revoked',
  'invitation_accepted',
  'api_key_created',
  'api_key_revoked',
  'agent_token_created',
  'agent_token_revoked',
  'project_created',
  'project_updated',
  'project_deleted',
  'sandbox_created',
  'sandbox_running',
  'sandbox_ready',
  'sandbox_failed',
  'sandbox_clone_started',
  'sandbox_clone_finished',
  'sandbox_clone_failed',
  'sandbox_exec',
  'sandbox_connected',
  'sandbox_file_written',
  'preview_link_created',
  'preview_link_revoked',
  'sandbox_sleep_requested',
  'sandbox_sleep_failed',
  'sandbox_stopped',
  'sandbox_wake_requested',
  'sandbox_wake_failed',
  'sandbox_woken',
  'sandbox_recovered',
  'sandbox_resize_requested',
  'sandbox_resized',
  'sandbox_resize_deferred',
  'sandbox_renewed',
  'sandbox_expired',
  'sandbox_metrics_sample',
  'sandbox_destroy_requested',
  'sandbox_deleted',
]);
export type ActivityKind = z.infer<typeof activityKind>;
