// Every route with what answers it. A test holds this list against the contract's.
import { activityRoutes } from './activity.ts';
import { agentTokenRoutes } from './agent-tokens.ts';
import { apiKeyRoutes } from './api-keys.ts';
import { billingRoutes } from './billing.ts';
import type { BoundRoute } from './bind.ts';
import { connectionRoutes } from './connections.ts';
import { execRoutes } from './exec.ts';
import { fileRoutes } from './files.ts';
import { healthRoutes } from './health.ts';
import { identityRoutes } from './identity.ts';
import { invitationRoutes } from './invitations.ts';
import { metricsRoutes } from './metrics.ts';
import { orgRoutes } from './orgs.ts';
import { previewRoutes } from './previews.ts';
import { projectRoutes } from './projects.ts';
import { renewRoutes } from './renew.ts';
import { sandboxLifecycleRoutes } from './sandbox-lifecycle.ts';
import { sandboxRoutes } from './sandboxes.ts';
import { usageRoutes } from './usage.ts';
import { usageGuardrailRoutes } from './usage-guardrails.ts';

export const BOUND_ROUTES: readonly BoundRoute[] = [
  ...healthRoutes,
  ...identityRoutes,
  ...orgRoutes,
  ...billingRoutes,
  ...invitationRoutes,
  ...agentTokenRoutes,
  ...apiKeyRoutes,
  ...activityRoutes,
  ...usageRoutes,
  ...projectRoutes,
  ...usageGuardrailRoutes,
  ...sandboxRoutes,
  ...sandboxLifecycleRoutes,
  ...renewRoutes,
  ...execRoutes,
  ...connectionRoutes,
  ...previewRoutes,
  ...fileRoutes,
  ...metricsRoutes,
];
