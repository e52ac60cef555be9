// docs/access.md matches the contract.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accessTable } from '../../src/document/access-table.ts';
import { permission, role } from '../../src/route/permissions.ts';
import { ROUTES } from '../../src/routes.ts';

test('docs/access.md matches the contract (npm run docs:access)', () => {
  const committed = readFileSync(join(import.meta.dirname, '../../../docs/access.md'), 'utf8');
  // Compare line by line for a readable difference.
  assert.deepEqual(
    committed.split('\n'),
    accessTable().split('\n'),
    'docs/access.md is not what the contract says: npm run docs:access',
  );
});

test('docs/access.md lists every permission, role and route with a token', () => {
  const lines = accessTable().split('\n');
  for (const name of permission.options) {
    assert.ok(
      lines.some((line) => line.startsWith(`| \`${name}\` |`)),
      name,
    );
  }
  assert.ok(lines.includes(`| Permission | ${role.options.join(' | ')} |`));
  for (const { auth, method, path } of ROUTES) {
    assert.equal(
      lines.filter((line) => line.startsWith(`| \`${method} ${path}\` |`)).length,
      auth.length === 0 ? 0 : 1,
      path,
    );
  }
});
