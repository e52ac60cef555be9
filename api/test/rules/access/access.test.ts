// Access decisions, as a table and as properties.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentTokenPermissions } from '@berth/contract/access/agent-tokens.ts';
import { permission, role, ROLE_PERMISSIONS, type Permission } from '@berth/contract/route/permissions.ts';
import fc from 'fast-check';
import {
  requireKind,
  requireMembership,
  requirePermission,
  type Actor,
  type ApiKeyActor,
} from '../../../src/rules/access/access.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';

const caller = { userId: 'usr_1', requestId: null };
const key = (changed: Partial<ApiKeyActor> = {}): ApiKeyActor => ({
  ...caller,
  kind: 'api_key',
  id: 'key_1',
  orgId: 'org_1',
  scopes: null,
  role: 'owner',
  ...changed,
});
const session: Actor = {
  ...caller,
  kind: 'session',
  id: 'ses_1',
  loginId: 'sgn_1',
  viaSso: false,
  secondsSinceSignIn: 0,
};
const agentToken = (permissions: ReadonlySet<Permission>): Actor => ({
  ...caller,
  kind: 'agent_token',
  id: 'agt_1',
  permissions,
  viaSso: false,
  revokedOrgs: new Set(),
});

const refusal = (check: () => void): { code: string; message: string } | null => {
  try {
    check();
    return null;
  } catch (error) {
    assert.ok(error instanceof CodedError);
    return { code: error.code, message: error.message };
  }
};

test('a token kind that the route does not list is refused, naming both', () => {
  const refused = refusal(() => requireKind(key(), { auth: ['session', 'agent_token'] }));
  assert.equal(refused?.code, 'auth_kind_not_allowed');
  assert.equal(refused.message, 'this route does not accept an API key; use an access token or a personal agent token');
  assert.equal(
    refusal(() => requireKind(session, { auth: ['session'] })),
    null,
  );
});

test("a key works in its own org only, whatever its creator's role elsewhere", () => {
  assert.equal(refusal(() => void requireMembership(key(), 'org_2', 'owner'))?.code, 'org_access_denied');
});

test('a non-member has no access, whatever the kind of token', () => {
  for (const actor of [session, key(), agentToken(new Set())])
    assert.equal(refusal(() => void requireMembership(actor, 'org_1', null))?.code, 'org_access_denied');
  assert.equal(requireMembership(session, 'org_1', 'viewer'), 'viewer');
});

const anyRole = fc.constantFrom(...role.options);
const anyPermission = fc.constantFrom(...permission.options);
const anyScopes = fc.option(fc.uniqueArray(anyPermission), { nil: null });

test('a key has the permissions of its role within its scopes; a refusal names the missing one', () => {
  fc.assert(
    fc.property(anyRole, anyScopes, anyPermission, (name, scopes, needed) => {
      const refused = refusal(() => requirePermission(key({ scopes: scopes && new Set(scopes) }), name, needed));
      assert.equal(
        refused === null,
        ROLE_PERMISSIONS[name].has(needed) && (scopes === null || scopes.includes(needed)),
      );
      if (refused !== null) assert.ok(refused.code === 'permission_denied' && refused.message.includes(needed));
    }),
  );
});

test('fewer scopes never grant more, and no scopes at all grant nothing', () => {
  fc.assert(
    fc.property(
      anyRole,
      fc.uniqueArray(anyPermission),
      fc.uniqueArray(anyPermission),
      anyPermission,
      (name, some, more, needed) => {
        const allowed = (scopes: Permission[]): boolean =>
          refusal(() => requirePermission(key({ scopes: new Set(scopes) }), name, needed)) === null;
        if (allowed(some)) assert.ok(allowed([...some, ...more]));
        assert.ok(!allowed([]));
      },
    ),
  );
});

test("a sign-in session has exactly the role's permissions", () => {
  for (const name of role.options) {
    for (const needed of permission.options) {
      assert.equal(
        refusal(() => requirePermission(session, name, needed)) === null,
        ROLE_PERMISSIONS[name].has(needed),
      );
    }
  }
});

test('an agent token has its permissions within the role, limited to agent sessions and waking', () => {
  const tokens = [
    { access: 'read_only', canApprove: false, canWake: false },
    { access: 'read_send', canApprove: false, canWake: false },
    { access: 'read_send', canApprove: true, canWake: false },
    { access: 'read_send', canApprove: true, canWake: true },
  ] as const;
  const most = new Set<Permission>([
    'agent_session.read',
    'agent_session.send',
    'agent_session.approve',
    'sandbox.wake',
  ]);
  for (const [index, token] of tokens.entries()) {
    const granted = agentTokenPermissions(token);
    assert.equal(granted.size, index + 1);
    for (const name of role.options) {
      for (const needed of permission.options) {
        const allowed = refusal(() => requirePermission(agentToken(granted), name, needed)) === null;
        assert.equal(allowed, granted.has(needed) && ROLE_PERMISSIONS[name].has(needed));
        if (allowed) assert.ok(most.has(needed));
      }
    }
  }
});
