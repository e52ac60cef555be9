import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { makeSshHostKey } from '../../src/guest/ssh-host-key.ts';

const run = promisify(execFile);

describe('an ssh host key', () => {
  it('is readable by OpenSSH with the matching public key, for comments of any length', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-ssh-'));
    try {
      // The padding depends on the length of the comment: eight lengths cover every case.
      for (let length = 1; length <= 8; length += 1) {
        const comment = 'h'.repeat(length);
        const { privateKey, publicKey } = makeSshHostKey(comment);
        const file = join(folder, `key-${length}`);
        await writeFile(file, privateKey, { mode: 0o600 });
        const { stdout } = await run('ssh-keygen', ['-y', '-f', file]);
        assert.equal(stdout.trim(), publicKey);
        assert.ok(publicKey.endsWith(` ${comment}`));
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('differs each time', () => {
    assert.notEqual(makeSshHostKey('a').publicKey, makeSshHostKey('a').publicKey);
  });
});
