// Event kinds of the activity feed: noun first, snake case, as the spec's
// `sandbox_metrics_sample`.
import { z } from 'zod';

/**
 * Details never hold tenant data: no command, output, file content or token. `sandbox_connected`
 * holds the port, or the kind of terminal; `preview_link_created` port, audience and expiry;
 * `sandbox_exec` the timeout; `sandbox_file_written` path and size; `sandbox_egress_denied` a count
 * and the last destinations.
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
  'domain_claimed',
  'domain_verified',
  'domain_removed',
  'sso_changed',
  'api_key_created',
  'api_key_revoked',
  'agent_token_created',
  'agent_token_revoked',
  'sign_in_ended',
  'project_created',
  'project_updated',
  'project_deleted',
  'agent_credentials_updated',
  'agent_credentials_removed',
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
  'sandbox_egress_changed',
  'sandbox_egress_denied',
  'sandbox_renewed',
  'sandbox_expired',
  'sandbox_metrics_sample',
  'sandbox_destroy_requested',
  'sandbox_deleted',
]);
export type ActivityKind = z.infer<typeof activityKind>;
