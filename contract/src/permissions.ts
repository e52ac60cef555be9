// Who may do what: the permissions, the roles of an org's members, and which role has which. The one home of these names;
// an API key's scopes are permission names.
import { z } from 'zod';

/** Every permission (spec: Authentication rule 5 names ten of them). */
export const permission = z.enum([
  'api_keys.manage',
  'billing.read',
  'project.read',
  'project.create',
  'sandbox.read',
  'sandbox.create',
  'sandbox.exec',
  'sandbox.stop',
  'sandbox.wake',
  'sandbox.resize',
  'sandbox.metrics',
  'sandbox.destroy',
  'sandbox.preview.share',
  'sandbox.files.read',
  'sandbox.files.write',
  'agent_session.read',
  'agent_session.send',
  'agent_session.approve',
]);
export type Permission = z.infer<typeof permission>;

/** Roles of a member, from most to least. `owner` and `admin` are the org admins of the spec. */
export const role = z.enum(['owner', 'admin', 'operator', 'viewer']);
export type Role = z.infer<typeof role>;

const EVERYTHING: readonly Permission[] = permission.options;
const OPERATOR_LACKS: ReadonlySet<Permission> = new Set(['api_keys.manage', 'billing.read', 'sandbox.preview.share']);

/** Permissions of each role. `operator` and `viewer` lack `sandbox.preview.share` (spec: Sandboxes rule 4). */
export const ROLE_PERMISSIONS: { readonly [name in Role]: ReadonlySet<Permission> } = {
  owner: new Set(EVERYTHING),
  admin: new Set(EVERYTHING),
  operator: new Set(EVERYTHING.filter((name) => !OPERATOR_LACKS.has(name))),
  viewer: new Set<Permission>(['project.read', 'sandbox.read', 'sandbox.files.read', 'agent_session.read']),
};
