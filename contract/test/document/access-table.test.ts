// The table of who may do what is what the contract says.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accessTable } from '../../src/document/access-table.ts';
import { permission, role } from '../../src/route/permissions.ts';
import { ROUTES } from '../../src/routes.ts';

test('docs/access.md is what the contract says; npm run docs:access writes it anew', () => {
  const committed = readFileSync(join(import.meta.dirname, '../../../docs/access.md'), 'utf8');
  // Compared by the line, so that a difference can be read.
  assert.deepEqual(
    committed.split('\n'),
    accessTable().split('\n'),
    'docs/access.md is not what the contract says: npm run docs:access',
  );
});

test('every permission, role and route that needs a token has its place in docs/access.md', () => {
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
