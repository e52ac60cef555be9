// Whether the creator of a public link may still share it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROLE_PERMISSIONS, role as roleName } from '@berth/contract/route/permissions.ts';
import { inactiveReason } from '../../../src/rules/previews/link-creator.ts';

test('a link is active exactly if its creator may share and its key is not revoked', () => {
  for (const role of roleName.options) {
    const expected = ROLE_PERMISSIONS[role].has('sandbox.preview.share') ? null : 'creator_not_permitted';
    assert.equal(inactiveReason({ role, keyRevoked: false }), expected, role);
    assert.equal(inactiveReason({ role, keyRevoked: true }), 'api_key_revoked', role);
  }
  assert.equal(inactiveReason({ role: null, keyRevoked: false }), 'creator_removed');
  assert.equal(inactiveReason({ role: 'of a later version', keyRevoked: false }), 'creator_not_permitted');
});
