// Every route of the public API. The server serves exactly these; a test proves it. What needs no
// token besides is in open-paths.ts.
import { listActivity } from './activity-feed.ts';
import { createAgentToken, listAgentTokens, revokeAgentToken } from './agent-tokens.ts';
import { createApiKey, listApiKeys, revokeApiKey } from './api-keys.ts';
import { createCheckout, getSubscription } from './billing.ts';
import { execInSandbox } from './exec.ts';
import { listFiles, readFile, snapshotFiles, writeFile } from './files.ts';
import { getHealth } from './health.ts';
import { getMe, listMyOrgs } from './identity.ts';
import { acceptInvitation, createInvitation, getInvitation, listInvitations, revokeInvitation } from './invitations.ts';
import { getLiveMetrics, sampleMetrics } from './metrics.ts';
import { createOrg, leaveOrg, listMembers, removeMember, updateMember } from './orgs.ts';
import { createPreview, listPreviews, revokePreview } from './previews.ts';
import { createProject, deleteProject, getProject, listProjects, updateProject } from './projects.ts';
import type { Route } from './route.ts';
import {
  renewSandbox,
  resizeSandbox,
  resumeSandbox,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
} from './sandbox-lifecycle.ts';
import { createSandbox, destroySandbox, getSandbox, listSandboxes } from './sandboxes.ts';
import { getSshAccess } from './ssh.ts';
import { terminalInSandbox } from './terminal.ts';
import { tunnelToSandbox } from './tunnel.ts';
import { getEndUserUsage, getOrgUsage } from './usage.ts';
import { updateProjectUsageGuardrails, updateUsageGuardrails } from './usage-guardrails.ts';

const ALL = [
  getHealth,
  getMe,
  listMyOrgs,
  leaveOrg,
  listAgentTokens,
  createAgentToken,
  revokeAgentToken,
  createOrg,
  listMembers,
  updateMember,
  removeMember,
  getSubscription,
  createCheckout,
  listInvitations,
  createInvitation,
  revokeInvitation,
  getInvitation,
  acceptInvitation,
  listApiKeys,
  createApiKey,
  revokeApiKey,
  listActivity,
  getOrgUsage,
  getEndUserUsage,
  listProjects,
  createProject,
  getProject,
  updateProject,
  deleteProject,
  updateUsageGuardrails,
  updateProjectUsageGuardrails,
  listSandboxes,
  createSandbox,
  getSandbox,
  execInSandbox,
  getSshAccess,
  tunnelToSandbox,
  terminalInSandbox,
  createPreview,
  listPreviews,
  revokePreview,
  listFiles,
  snapshotFiles,
  readFile,
  writeFile,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
  resumeSandbox,
  resizeSandbox,
  renewSandbox,
  getLiveMetrics,
  sampleMetrics,
  destroySandbox,
] as const satisfies readonly Route[];

export const ROUTES: readonly Route[] = ALL;

/** Names of all routes, for tables that must have an entry for each. */
export type RouteName = (typeof ALL)[number]['name'];
/** The type of the route with the name. */
export type RouteNamed<N extends RouteName> = Extract<(typeof ALL)[number], { name: N }>;
