import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openDataFolder, readTokens } from '../../../src/vm/directory/data-folder.ts';

describe('the data folder', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-data-'));
  });
  afterEach(async () => {
    await rm(root, { recursive: true });
  });

  it('keeps its ids for life and leaves no other files', async () => {
    const first = await openDataFolder(root);
    await first.unlock();
    const second = await openDataFolder(root);
    await second.unlock();
    assert.match(first.instanceId, /^[a-z2-7]{8}$/);
    assert.match(first.hostId, /^hst_[a-z2-7]{24}$/);
    assert.deepEqual([second.instanceId, second.hostId], [first.instanceId, first.hostId]);
    assert.deepEqual((await readdir(root)).sort(), ['host', 'instance-id']);
    assert.equal((await readFile(join(root, 'instance-id'), 'utf8')).trim(), first.instanceId);
  });

  it('admits one daemon at a time', async () => {
    const first = await openDataFolder(root);
    await assert.rejects(openDataFolder(root), /another host daemon uses this data folder/);
    await first.unlock();
    await (await openDataFolder(root)).unlock();
  });

  it('refuses an invalid id rather than making another', async () => {
    await writeFile(join(root, 'instance-id'), 'x\n');
    await assert.rejects(openDataFolder(root), /instance-id holds 'x'/);
  });

  it('reads a token, and refuses one that is short, missing or open to every user', async () => {
    const file = join(root, 'token');
    await assert.rejects(readTokens(file), /--token-file.*ENOENT/);
    await writeFile(file, `${'t'.repeat(40)}\n`, { mode: 0o600 });
    assert.deepEqual(await readTokens(file), ['t'.repeat(40)]);
    await writeFile(file, `${'n'.repeat(40)}\n\n ${'t'.repeat(40)}\n`);
    assert.deepEqual(await readTokens(file), ['n'.repeat(40), 't'.repeat(40)]);
    await chmod(file, 0o644);
    await assert.rejects(readTokens(file), /is readable by every user/);
    await chmod(file, 0o640);
    await writeFile(file, 'short');
    await assert.rejects(readTokens(file), /at least 32 characters/);
    await writeFile(file, `${'t'.repeat(40)}\n${'t'.repeat(40)}\n`);
    await assert.rejects(readTokens(file), /secret 2 of the file repeats an earlier one$/);
    await writeFile(file, '\n');
    await assert.rejects(readTokens(file), /the file is empty$/);
  });
});
