// The access rule, as a table and as a property.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permission, role, ROLE_PERMISSIONS } from '@berth/contract/permissions.ts';
import fc from 'fast-check';
import { requireAccess, type Actor } from '../../src/rules/access.ts';
import { CodedError } from '../../src/rules/coded-error.ts';

const actor = (changed: Partial<Actor> = {}): Actor => ({
  kind: 'api_key',
  id: 'key_1',
  userId: 'usr_1',
  orgId: 'org_1',
  scopes: null,
  role: 'owner',
  ...changed,
});
const codeOf = (check: () => void): string => {
  try {
    check();
    return 'allowed';
  } catch (error) {
    return error instanceof CodedError ? error.code : 'bug';
  }
};

test('a key on a route outside its allow-list is refused before anything else', () => {
  assert.equal(
    codeOf(() => requireAccess(actor(), { auth: ['session'], permission: null }, null)),
    'auth_kind_not_allowed',
  );
});

test("a key is good for its own org alone, whatever its creator's role elsewhere", () => {
  assert.equal(
    codeOf(() => requireAccess(actor(), { auth: ['api_key'], permission: null }, 'org_2')),
    'org_access_denied',
  );
});

test('a permission is had exactly when the role has it and the scopes, if any, include it', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...role.options, null),
      fc.option(fc.uniqueArray(fc.constantFrom(...permission.options)), { nil: null }),
      fc.constantFrom(...permission.options),
      (name, scopes, needed) => {
        const code = codeOf(() =>
          requireAccess(
            actor({ role: name, scopes: scopes === null ? null : new Set(scopes) }),
            { auth: ['api_key'], permission: needed },
            'org_1',
          ),
        );
        if (name === null) assert.equal(code, 'org_access_denied');
        else
          assert.equal(
            code,
            ROLE_PERMISSIONS[name].has(needed) && (scopes === null || scopes.includes(needed)) ? 'allowed' : 'permission_denied',
          );
      },
    ),
  );
});
