// Permissions for membership changes, and the last owner.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { role, ROLE_PERMISSIONS, type Role } from '@berth/contract/route/permissions.ts';
import fc from 'fast-check';
import { permissionToChange, requireOwnerLeft } from '../../../src/rules/orgs/membership.ts';

const roleOrNone = fc.constantFrom<(Role | null)[]>(null, ...role.options);

test('adding, changing or removing an owner needs org.owners.manage, all else org.members.manage', () => {
  for (const from of [null, ...role.options]) {
    for (const to of [null, ...role.options]) {
      const expected = [from, to].includes('owner') ? 'org.owners.manage' : 'org.members.manage';
      assert.equal(permissionToChange({ from, to }), expected, `${from} to ${to}`);
    }
  }
});

test('no role can assign or remove a role with permissions that it lacks', () => {
  fc.assert(
    fc.property(fc.constantFrom(...role.options), roleOrNone, roleOrNone, (own, from, to) => {
      if (!ROLE_PERMISSIONS[own].has(permissionToChange({ from, to }))) return;
      for (const touched of [from, to]) {
        if (touched === null) continue;
        for (const permission of ROLE_PERMISSIONS[touched])
          assert.ok(ROLE_PERMISSIONS[own].has(permission), `${own}, ${touched}: ${permission}`);
      }
    }),
  );
});

test('no sequence of allowed changes leaves an org without its last owner; no others are refused', () => {
  const change = fc.record({ who: fc.nat({ max: 5 }), to: roleOrNone });
  fc.assert(
    fc.property(
      fc.array(roleOrNone, { minLength: 6, maxLength: 6 }),
      fc.array(change, { maxLength: 40 }),
      (start, changes) => {
        const roles: (Role | null)[] = ['owner', ...start];
        const owners = (): number => roles.filter((name) => name === 'owner').length;
        for (const { who, to } of changes) {
          const from = roles[who] ?? null;
          const after = owners() - (from === 'owner' ? 1 : 0) + (to === 'owner' ? 1 : 0);
          if (after === 0) {
            assert.throws(() => requireOwnerLeft({ from, to }, owners()), { code: 'last_owner' });
          } else {
            requireOwnerLeft({ from, to }, owners());
            roles[who] = to;
          }
          assert.ok(owners() >= 1);
        }
      },
    ),
  );
});
