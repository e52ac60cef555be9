// Uploads that continue after a failure, on the real service and on the test server.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Sandbox } from '../../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from '../worlds.ts';

const CONTENT = randomBytes(1_000_003);
const PARTS = { partBytes: 300_000 };

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let id: string;
    let plain: Sandbox;
    /** Requests of uploads, as `OFFSET+BYTES`. */
    let sent: string[];
    /** Fates of the next requests. */
    let faults: ('lost' | 'half' | 'nothing' | 'pass')[];
    let file: File;

    before(async () => {
      world = await start();
      plain = await world.client().sandboxes.create({ agent: 'agent_one', machineSize: 'small' });
      ({ id } = plain);
    });
    after(() => world.close());
    beforeEach(() => {
      [sent, faults] = [[], []];
      file = new File([CONTENT], 'data.bin', { lastModified: 1_700_000_000_000 });
    });

    /** Loses requests and responses as `faults` says. */
    const flaky: typeof fetch = async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const isWrite = (input instanceof Request ? input.method : init?.method) !== 'GET';
      const body = init?.body;
      if (body instanceof Blob) sent.push(`${url.searchParams.get('offset')}+${body.size}`);
      const fault = isWrite ? (faults.shift() ?? 'pass') : 'pass';
      if (fault === 'pass') return await world.fetch(input, init);
      if (fault === 'lost') await world.fetch(input, init);
      if (fault === 'half' && body instanceof Blob)
        await world.fetch(input, { ...init, body: body.slice(0, body.size / 2) });
      throw new TypeError('fetch failed', { cause: new Error('the connection broke') });
    };
    const sandbox = async (): Promise<Sandbox> => await world.client({ fetch: flaky }).sandboxes.get(id);
    const names = async (folder: string): Promise<string[]> =>
      (await plain.files.list(folder)).entries.map(({ label }) => label);

    test('an append checks the size of the file, and hashes what it sent', async () => {
      const { files } = plain;
      assert.equal((await files.append('a/f', 'one', { offset: 0, mode: '600' })).size, 3);
      const { path, size, sha256 } = await files.append('a/f', new TextEncoder().encode('two'), { offset: 3 });
      assert.deepEqual([path, size], ['/code/a/f', 6]);
      assert.equal(sha256, '3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3');
      for (const offset of [0, 3, 7])
        await assert.rejects(files.append('a/f', 'x', { offset }), failing('file_changed', 409));
      await assert.rejects(files.append('a/f', 'x', { offset: 0 }), /at byte 0: it has 6 bytes/);
      await assert.rejects(files.append('a/none', 'x', { offset: 1 }), failing('file_not_found', 404));
      await assert.rejects(files.append('a', 'x', { offset: 0 }), failing('not_a_file', 400));
      await assert.rejects(files.append('a/f', 'x', { offset: -1 }), failing('invalid_request', 400));
      assert.deepEqual([await files.read('a/f'), (await files.stat('a/f')).mode], ['onetwo', '0600']);
    });

    test('a file is sent in parts and appears whole, with its mode and progress', async () => {
      const { files } = await sandbox();
      const seen: number[] = [];
      const options = { ...PARTS, mode: '0750', onProgress: (bytes: number) => seen.push(bytes) };
      const { path, size } = await files.uploadResumable('b/new', file, options);
      assert.deepEqual([path, size], ['/code/b/new', CONTENT.length]);
      assert.deepEqual(Buffer.from(await files.readBytes('b/new')), CONTENT);
      assert.equal((await files.stat('b/new')).mode, '0750');
      assert.deepEqual(await names('b'), ['new']);
      assert.deepEqual(sent, ['0+0', '0+300000', '300000+300000', '600000+300000', '900000+100003']);
      assert.deepEqual(seen, [0, 300_000, 600_000, 900_000, 1_000_003]);
    });

    test('broken and lost requests continue at the byte that arrived', async () => {
      const { files } = await sandbox();
      faults = ['pass', 'half', 'pass', 'lost', 'nothing', 'pass', 'pass', 'pass', 'lost', 'lost', 'lost'];
      const retries: string[] = [];
      await files.uploadResumable('c/f', file, { ...PARTS, onRetry: ({ code }) => void retries.push(code) });
      assert.deepEqual(Buffer.from(await plain.files.readBytes('c/f')), CONTENT);
      assert.deepEqual(await names('c'), ['f']);
      assert.deepEqual(sent.slice(0, 4), ['0+0', '0+300000', '150000+0', '150000+300000']);
      assert.ok(retries.length >= 4 && retries.every((code) => code === 'connection_failed'), retries.join());
    });

    test('a lost move is not an error if the file is there', async () => {
      const { files } = await sandbox();
      // The empty append, one part, the mode, the move.
      faults = ['pass', 'pass', 'pass', 'lost'];
      assert.equal((await files.uploadResumable('c/moved', file)).size, CONTENT.length);
      assert.deepEqual(Buffer.from(await plain.files.readBytes('c/moved')), CONTENT);
    });

    test('after an abort the old file is whole, and the same call continues', async () => {
      const { files } = await sandbox();
      await plain.files.write('d/f', 'old', { mode: '0640' });
      const stop = new AbortController();
      const onProgress = (bytes: number): void => {
        if (bytes > 500_000) stop.abort(new Error('enough'));
      };
      const options = { ...PARTS, signal: stop.signal, onProgress };
      await assert.rejects(files.uploadResumable('d/f', file, options), /enough/);
      assert.equal(await plain.files.read('d/f'), 'old');
      const [part = '', ...others] = await names('d');
      assert.match(part, /^\.f\.berth-part-[0-9a-z]{1,13}$/);
      assert.deepEqual(others, ['f']);
      assert.equal((await plain.files.stat(`d/${part}`)).mode, '0600');
      sent = [];
      await files.uploadResumable('d/f', file, PARTS);
      assert.deepEqual(sent, ['600000+0', '600000+300000', '900000+100003']);
      assert.deepEqual(Buffer.from(await plain.files.readBytes('d/f')), CONTENT);
      assert.deepEqual([(await plain.files.stat('d/f')).mode, await names('d')], ['0640', ['f']]);
    });

    test('another content, key or target has another part', async () => {
      const { files } = await sandbox();
      const begin = async (path: string, source: Blob, key?: string): Promise<void> => {
        const stop = new AbortController();
        const onProgress = (): void => stop.abort(new Error('enough'));
        await assert.rejects(files.uploadResumable(path, source, { key, signal: stop.signal, onProgress }), /enough/);
      };
      await begin('e/f', file);
      await begin('e/f', file);
      await begin('e/f', new File([CONTENT], 'data.bin', { lastModified: 1_700_000_000_001 }));
      await begin('e/f', new File([CONTENT], 'other.bin', { lastModified: 1_700_000_000_000 }));
      await begin('e/f', new File([CONTENT.subarray(1)], 'data.bin', { lastModified: 1_700_000_000_000 }));
      await begin('e/f', new Blob([CONTENT]), 'a key');
      await begin(`e/${'🙂'.repeat(60)}`, file);
      assert.equal((await names('e')).length, 6);
    });

    test('wrong targets and sources are refused before a part is written', async () => {
      const { files } = await sandbox();
      await plain.files.write('g/f', 'old');
      for (const [path, source, options, code] of [
        ['g/f', new Blob(['x']), {}, 'configuration'],
        ['g/f', file, { partBytes: 0 }, 'configuration'],
        ['g', file, {}, 'not_a_file'],
        ['g/', file, {}, 'not_a_file'],
        ['g/..', file, {}, 'not_a_file'],
      ] as const)
        await assert.rejects(files.uploadResumable(path, source, options), failing(code), path);
      assert.deepEqual(await names('g'), ['f']);
      await plain.files.write('g/part', 'longer than the source');
      await assert.rejects(files.continueUpload('g/part', new Blob(['x'])), /has 22 of 1 bytes. Delete it/);
      const short = { size: 2, slice: async () => await Promise.resolve(new Blob(['x'])) };
      await assert.rejects(files.continueUpload('g/short', short), /the source ends before its 2 bytes/);
      assert.equal((await files.uploadResumable('g/empty', new Blob([]), { key: '0' })).size, 0);
      await assert.rejects(files.uploadResumable('g/f/below', file), failing('not_a_directory', 400));
    });

    test('a local file opened by Node is uploaded with a key', async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'berth-sdk-upload-'));
      t.after(() => rm(folder, { recursive: true }));
      await writeFile(join(folder, 'f'), CONTENT);
      const blob = await openAsBlob(join(folder, 'f'));
      await plain.files.uploadResumable('h/f', blob, { ...PARTS, key: '1' });
      assert.deepEqual(Buffer.from(await plain.files.readBytes('h/f')), CONTENT);
    });
  });
}
