// The marker of a disk that has an identity.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { IdentityMarker } from '../../src/identity/marker.ts';

test('a marker exists from its first put, repeated or not, until it is removed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-marker-'));
  t.after(() => rm(folder, { recursive: true }));
  const marker = new IdentityMarker(join(folder, 'lib', 'complete'));
  assert.equal(marker.there, false);
  marker.remove();
  marker.put();
  marker.put();
  assert.equal(marker.there, true);
  assert.equal(new IdentityMarker(join(folder, 'lib', 'complete')).there, true);
  marker.remove();
  assert.equal(marker.there, false);
});
