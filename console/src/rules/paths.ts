// Paths of the pages: the path of the API's resource, below `/console` instead of `/v1`. The router
// adds `/console`.
import type { ActivityKind } from './activity.ts';

const part = encodeURIComponent;

export const PATHS = {
  home: '/',
  me: '/me',
  org: (orgId: string) => `/orgs/${part(orgId)}`,
  start: (orgId: string) => `/orgs/${part(orgId)}/start`,
  sandboxes: (orgId: string) => `/orgs/${part(orgId)}/sandboxes`,
  newSandbox: (orgId: string) => `/orgs/${part(orgId)}/sandboxes/new`,
  activity: (orgId: string, kind?: ActivityKind) =>
    `/orgs/${part(orgId)}/activity${kind === undefined ? '' : `?kind=${kind}`}`,
  sandbox: (sandboxId: string) => `/sandboxes/${part(sandboxId)}`,
  apiKeys: (orgId: string) => `/orgs/${part(orgId)}/api-keys`,
  projects: (orgId: string) => `/orgs/${part(orgId)}/projects`,
  usage: (orgId: string) => `/orgs/${part(orgId)}/usage`,
  billing: (orgId: string) => `/orgs/${part(orgId)}/subscription`,
  orgSettings: (orgId: string) => `/orgs/${part(orgId)}/settings`,
  members: (orgId: string) => `/orgs/${part(orgId)}/members`,
  sandboxFiles: (sandboxId: string) => `/sandboxes/${part(sandboxId)}/files`,
  sandboxMetrics: (sandboxId: string) => `/sandboxes/${part(sandboxId)}/metrics`,
  sandboxPreviews: (sandboxId: string) => `/sandboxes/${part(sandboxId)}/previews`,
  /** @param session one of several shells; the first by default */
  sandboxTerminal: (sandboxId: string, session?: string) =>
    `/sandboxes/${part(sandboxId)}/terminal${session === undefined ? '' : `?session=${part(session)}`}`,
  sandboxAgents: (sandboxId: string) => `/sandboxes/${part(sandboxId)}/agents`,
  agentSessions: () => '/agent-sessions',
  hosts: () => '/service/hosts',
  host: (hostId: string) => `/service/hosts/${part(hostId)}`,
  inbox: '/agent-sessions?needsYou=true',
  agentSession: (sessionId: string) => `/agent-sessions/${part(sessionId)}`,
  sandboxActivity: (sandboxId: string) => `/sandboxes/${part(sandboxId)}/activity`,
} as const;
