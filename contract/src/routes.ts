// Every route of the public API. A test checks that the server serves exactly these and the paths
// of access/open-paths.ts.
import { deleteAgentCredentials, getAgentCredentials, putAgentCredentials } from './agents/credentials.ts';
import {
  answerAgentPrompt,
  getAgentOutput,
  interruptAgentTurn,
  listAgentTurns,
  sendAgentMessage,
} from './agents/conversation.ts';
import { createAgentSession, getAgentSession, listAgentSessions, recoverAgentSession } from './agents/sessions.ts';
import { exportActivity, listActivity } from './activity/feed.ts';
import { followActivity } from './activity/follow.ts';
import {
  createAgentToken,
  listAgentTokens,
  listOrgAgentTokens,
  revokeAgentToken,
  revokeOrgAgentToken,
} from './access/agent-tokens.ts';
import { createApiKey, listApiKeys, revokeApiKey } from './access/api-keys.ts';
import { createCheckout, getSubscription, listPlans } from './billing/billing.ts';
import { execInSandbox } from './commands/exec.ts';
import { followProcessOutput } from './commands/follow.ts';
import {
  startProcess,
  listProcesses,
  getProcess,
  readProcessOutput,
  writeProcessInput,
  signalProcess,
  resizeProcess,
  removeProcess,
} from './commands/processes.ts';
import { createFolder, deleteFile, moveFile, setFileMode } from './files/changes.ts';
import { listFiles, readFile, snapshotFiles, statFile, writeFile } from './files/files.ts';
import { createFileLink } from './files/links.ts';
import { downloadFile, uploadFile } from './files/transfers.ts';
import { watchFiles } from './files/watch.ts';
import { getHealth } from './health.ts';
import { getHost, listHosts } from './hosts/hosts.ts';
import { getService } from './service.ts';
import { getMe, listMyOrgs, updateMe } from './access/identity.ts';
import {
  acceptInvitation,
  createInvitation,
  getInvitation,
  listInvitations,
  revokeInvitation,
} from './orgs/invitations.ts';
import { getLiveMetrics, getMetricsHistory, sampleMetrics } from './metrics/metrics.ts';
import { createOrg, leaveOrg, listMembers, removeMember, updateMember, updateOrg } from './orgs/orgs.ts';
import { claimDomain, getSso, removeDomain, updateSso, verifyDomain } from './orgs/sso.ts';
import { createPreview, listPreviews, revokePreview } from './previews/previews.ts';
import { createProject, deleteProject, getProject, listProjects, updateProject } from './orgs/projects.ts';
import type { Route } from './route/route.ts';
import { endOtherSignIns, endSignIn, listSignIns } from './access/sign-ins.ts';
import { getDiagnostics } from './diagnostics/diagnostics.ts';
import { setEgress } from './sandboxes/egress.ts';
import { updateSandbox } from './sandboxes/update.ts';
import {
  renewSandbox,
  resizeSandbox,
  resumeSandbox,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
} from './sandboxes/lifecycle.ts';
import { countSandboxes, listSandboxes } from './sandboxes/list.ts';
import { createSandbox, destroySandbox, getSandbox } from './sandboxes/sandboxes.ts';
import { listVariables, replaceVariables, updateVariables } from './sandboxes/variables.ts';
import { getSshAccess } from './connections/ssh.ts';
import { terminalInSandbox } from './connections/terminal.ts';
import { tunnelToSandbox } from './connections/tunnel.ts';
import { getDailyUsage, getEndUserUsage, getOrgUsage } from './usage/usage.ts';
import { updateProjectUsageGuardrails, updateUsageGuardrails } from './usage/guardrails.ts';

const ALL = [
  getHealth,
  getService,
  listHosts,
  getHost,
  getMe,
  updateMe,
  listMyOrgs,
  leaveOrg,
  listAgentTokens,
  createAgentToken,
  revokeAgentToken,
  listOrgAgentTokens,
  revokeOrgAgentToken,
  listSignIns,
  endSignIn,
  endOtherSignIns,
  createOrg,
  updateOrg,
  listMembers,
  updateMember,
  removeMember,
  getSso,
  updateSso,
  claimDomain,
  verifyDomain,
  removeDomain,
  getSubscription,
  listPlans,
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
  followActivity,
  exportActivity,
  getOrgUsage,
  getDailyUsage,
  getEndUserUsage,
  listProjects,
  createProject,
  getProject,
  updateProject,
  deleteProject,
  getAgentCredentials,
  putAgentCredentials,
  deleteAgentCredentials,
  createAgentSession,
  listAgentSessions,
  getAgentSession,
  recoverAgentSession,
  sendAgentMessage,
  getAgentOutput,
  listAgentTurns,
  answerAgentPrompt,
  interruptAgentTurn,
  updateUsageGuardrails,
  updateProjectUsageGuardrails,
  listSandboxes,
  countSandboxes,
  createSandbox,
  getSandbox,
  execInSandbox,
  startProcess,
  listProcesses,
  getProcess,
  readProcessOutput,
  followProcessOutput,
  writeProcessInput,
  signalProcess,
  resizeProcess,
  removeProcess,
  getSshAccess,
  tunnelToSandbox,
  terminalInSandbox,
  createPreview,
  listPreviews,
  revokePreview,
  listFiles,
  snapshotFiles,
  watchFiles,
  statFile,
  readFile,
  writeFile,
  deleteFile,
  moveFile,
  setFileMode,
  createFolder,
  downloadFile,
  uploadFile,
  createFileLink,
  sleepSandbox,
  stopSandbox,
  wakeSandbox,
  resumeSandbox,
  resizeSandbox,
  setEgress,
  updateSandbox,
  listVariables,
  replaceVariables,
  updateVariables,
  renewSandbox,
  getLiveMetrics,
  getMetricsHistory,
  getDiagnostics,
  sampleMetrics,
  destroySandbox,
] as const satisfies readonly Route[];

export const ROUTES: readonly Route[] = ALL;

/** Names of all routes, for exhaustive tables. */
export type RouteName = (typeof ALL)[number]['name'];
/** Type of the route with the given name. */
export type RouteNamed<N extends RouteName> = Extract<(typeof ALL)[number], { name: N }>;
