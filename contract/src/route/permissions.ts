// Permissions, the roles of an org's members, and the permissions of each role. The scopes of an
// API key are permission names. docs/access.md is printed from this table.
import { z } from 'zod';

/** Every permission (spec: Authentication rule 5 names ten of them). */
export const permission = z
  .enum([
    'org.read',
    'org.update',
    'org.members.manage',
    'org.owners.manage',
    'api_keys.manage',
    'activity.read',
    'billing.read',
    'billing.manage',
    'usage_guardrails.manage',
    'project.read',
    'project.create',
    'project.update',
    'project.delete',
    'sandbox.read',
    'sandbox.create',
    'sandbox.exec',
    'sandbox.stop',
    'sandbox.wake',
    'sandbox.resize',
    'sandbox.metrics',
    'sandbox.destroy',
    'sandbox.preview',
    'sandbox.preview.share',
    'sandbox.files.read',
    'sandbox.files.write',
    'sandbox.variables.write',
    'sandbox.connect',
    'agent_session.read',
    'agent_session.send',
    'agent_session.approve',
    'agent_credentials.manage',
    'agent_approvals.disable',
    'hosts.read',
  ])
  .meta({ id: 'Permission', description: 'A permission. More may be added; clients must accept unknown values.' });
export type Permission = z.infer<typeof permission>;

/** Roles, from most to least privileged. `owner` and `admin` are the org admins of the spec. */
export const role = z
  .enum(['owner', 'admin', 'member', 'operator', 'viewer'])
  .meta({ id: 'Role', description: 'Role of a member of an org, from most to least privileged.' });
export type Role = z.infer<typeof role>;

const EVERYTHING: readonly Permission[] = permission.options;

/**
 * Permissions that administer an org rather than its sandboxes. No route that needs one accepts an
 * API key: a leaked key must not delete projects, invite members, raise caps or create keys. Each
 * route says so by its `auth`, and a test checks all of them.
 */
export const ADMINISTRATION: readonly Permission[] = [
  'org.update',
  'org.members.manage',
  'org.owners.manage',
  'api_keys.manage',
  'billing.manage',
  'usage_guardrails.manage',
  'project.delete',
  'agent_credentials.manage',
];

/**
 * Permissions about the installation. They grant something in the operator's org alone: the org
 * that the first start created.
 */
export const INSTALLATION: readonly Permission[] = ['hosts.read'];

const without = (...lacking: readonly Permission[]): ReadonlySet<Permission> =>
  new Set(EVERYTHING.filter((name) => !lacking.includes(name)));

/**
 * Permissions of each role. `admin`: everything except managing owners. `member`: all projects and
 * sandboxes of the org, but not agents that act without approval. `operator`: its sandboxes.
 * `viewer`: read access, including previews. `operator` and `viewer` lack `sandbox.preview.share`
 * (spec: Sandboxes rule 4).
 */
export const ROLE_PERMISSIONS: { readonly [name in Role]: ReadonlySet<Permission> } = {
  owner: new Set(EVERYTHING),
  admin: without('org.owners.manage'),
  member: without(...ADMINISTRATION, ...INSTALLATION, 'agent_approvals.disable'),
  operator: without(
    ...ADMINISTRATION,
    ...INSTALLATION,
    'agent_approvals.disable',
    'billing.read',
    'project.update',
    'sandbox.preview.share',
  ),
  viewer: new Set<Permission>([
    'org.read',
    'activity.read',
    'project.read',
    'sandbox.read',
    'sandbox.preview',
    'sandbox.files.read',
    'agent_session.read',
  ]),
};
