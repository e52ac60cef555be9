// All routes with their handlers. A test compares this list with the contract's.
import { activityRoutes } from './activity/activity.ts';
import { agentTokenRoutes } from './access/agent-tokens.ts';
import { agentCredentialRoutes } from './agents/credentials.ts';
import { agentSessionRoutes } from './agents/sessions.ts';
import { apiKeyRoutes } from './access/api-keys.ts';
import { billingRoutes } from './billing/billing.ts';
import type { BoundRoute } from '../call/bind.ts';
import { connectionRoutes } from './connections/connections.ts';
import { execRoutes } from './commands/exec.ts';
import { processRoutes } from './commands/processes.ts';
import { fileRoutes } from './files/files.ts';
import { healthRoutes } from './health.ts';
import { hostRoutes } from './hosts/hosts.ts';
import { identityRoutes } from './access/identity.ts';
import { invitationRoutes } from './orgs/invitations.ts';
import { metricsRoutes } from './metrics/metrics.ts';
import { orgRoutes } from './orgs/orgs.ts';
import { previewRoutes } from './previews/previews.ts';
import { projectRoutes } from './orgs/projects.ts';
import { sandboxChangeRoutes } from './sandboxes/changes.ts';
import { diagnosticsRoutes } from './diagnostics/diagnostics.ts';
import { variableRoutes } from './sandboxes/variables.ts';
import { sandboxLifecycleRoutes } from './sandboxes/lifecycle.ts';
import { sandboxRoutes } from './sandboxes/sandboxes.ts';
import { serviceRoutes } from './service.ts';
import { signInRoutes } from './access/sign-ins.ts';
import { ssoRoutes } from './orgs/sso.ts';
import { usageRoutes } from './usage/usage.ts';
import { usageGuardrailRoutes } from './usage/guardrails.ts';

export const BOUND_ROUTES: readonly BoundRoute[] = [
  ...healthRoutes,
  ...serviceRoutes,
  ...hostRoutes,
  ...identityRoutes,
  ...orgRoutes,
  ...ssoRoutes,
  ...billingRoutes,
  ...invitationRoutes,
  ...agentTokenRoutes,
  ...signInRoutes,
  ...apiKeyRoutes,
  ...activityRoutes,
  ...usageRoutes,
  ...projectRoutes,
  ...agentCredentialRoutes,
  ...agentSessionRoutes,
  ...usageGuardrailRoutes,
  ...sandboxRoutes,
  ...sandboxLifecycleRoutes,
  ...sandboxChangeRoutes,
  ...variableRoutes,
  ...diagnosticsRoutes,
  ...execRoutes,
  ...processRoutes,
  ...connectionRoutes,
  ...previewRoutes,
  ...fileRoutes,
  ...metricsRoutes,
];
