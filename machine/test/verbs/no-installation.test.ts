// Verbs that need an installation, with a folder that has none.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runVerb } from './berth-program.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-none-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const VERBS = [
  ['keys', 'create'],
  ['owner-link'],
  ['plans', 'set', '--plan', 'team'],
  ['sso-off', '--org', 'org_7tpinkhqvgwuiymix32hcuz2'],
  ['secrets', 'show'],
  ['secrets', 'rotate', 'host-token'],
  ['secrets', 'retire', 'secret-key'],
];

for (const verb of VERBS) {
  test(`${verb.slice(0, 2).join(' ')} refuses a folder without an installation and leaves it as it is`, async () => {
    for (const missing of [folder, join(folder, 'none')]) {
      const { code, stdout, stderr } = await runVerb(...verb, '--data-dir', missing);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.ok(stderr.startsWith(`berth: no installation in ${missing}\n  name the folder of`), stderr);
      assert.match(stderr, /--data-dir/);
    }
    assert.deepEqual(await readdir(folder), []);
  });
}
