// `berth cp` of a file from a sandbox: broken connections, changes meanwhile, and what is left.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { partsOf } from '../../../api/test/world/guests/exec-front.ts';
import { startBerth, type Ended } from '../world/berth.ts';
import { Service } from '../world/service.ts';

const CONTENT = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 31) % 251));

let service: Service;
let id: string;
let here: string;
let orders: string[];
let facts: Record<string, unknown>;
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
  const { files } = service.api.front;
  service.api.front.files = (call) => (call.verb === 'stat' ? facts : files(call));
});
after(() => service.close());
beforeEach(async () => {
  here = await mkdtemp(join(tmpdir(), 'berth-resume-'));
  orders = [];
  facts = { kind: 'file', size: CONTENT.length, mtimeSeconds: 1_500_000_000, mode: '4750' };
});
afterEach(() => rm(here, { recursive: true, force: true }));

interface Connection {
  content?: Buffer;
  version?: string;
  /** Bytes until the connection breaks. */
  breakAfter?: number;
}

function serve(connections: readonly Connection[]): void {
  let next = 0;
  service.api.front.stream = () => {
    const { content = CONTENT, version = 'a-1', breakAfter } = connections[next] ?? {};
    next += 1;
    return (caller: Duplex) => {
      caller.once('data', (order: Buffer) => orders.push(order.toString().trim()));
      if (breakAfter === undefined) return partsOf(content, version)(caller);
      caller.write(`${content.length} ${version}\n`);
      caller.once('data', (order: Buffer) => {
        const first = Number(order.toString().split(' ')[0]);
        caller.end(content.subarray(first, first + breakAfter));
      });
    };
  };
}

const cp = (to = join(here, 'f')): Promise<Ended> => service.run(['cp', `${id}:data/f`, to]);

test('a file is copied whole, with its mode and time and without set-user-ID', async () => {
  serve([]);
  assert.deepEqual(await cp(), { code: 0, stdout: '', stderr: '' });
  assert.ok((await readFile(join(here, 'f'))).equals(CONTENT));
  const { mode, mtimeMs } = await stat(join(here, 'f'));
  assert.deepEqual([mode & 0o7777, mtimeMs], [0o750, 1_500_000_000_000]);
  // The last byte is requested again, to see whether the file has changed.
  assert.deepEqual(orders, [`0 ${CONTENT.length}`, `${CONTENT.length - 1} 1`]);
  assert.equal((await cp(here)).code, 0);
  assert.deepEqual(await readdir(here), ['f']);
});

test('an empty file is copied', async () => {
  serve([{ content: Buffer.alloc(0), version: 'e-0' }]);
  assert.equal((await cp()).code, 0);
  assert.equal((await stat(join(here, 'f'))).size, 0);
});

test('a broken connection is resumed at its byte', async () => {
  serve([{ breakAfter: 100_000 }, { breakAfter: 50_000 }, {}, {}]);
  assert.deepEqual(await cp(), { code: 0, stdout: '', stderr: '' });
  assert.ok((await readFile(join(here, 'f'))).equals(CONTENT));
  const firsts = orders.slice(0, -1).map((order) => {
    const [first = 0, length = 0] = order.split(' ').map(Number);
    assert.equal(first + length, CONTENT.length, order);
    return first;
  });
  assert.deepEqual([firsts.length, firsts[0]], [3, 0]);
  // Bytes in the buffers of a broken connection are lost.
  assert.ok(firsts.every((first, at) => at === 0 || (first > (firsts[at - 1] ?? 0) && first <= at * 100_000)));
});

test('a file that changes between two parts is copied from its start, with a note', async () => {
  const other = Buffer.from('other content');
  const changed = { content: other, version: 'a-2' };
  serve([{ breakAfter: 100_000 }, changed, changed]);
  const { code, stderr } = await cp();
  assert.equal(code, 0, stderr);
  assert.match(stderr, /data\/f has changed meanwhile: copying it from its start/);
  assert.equal(await readFile(join(here, 'f'), 'utf8'), 'other content');
  assert.deepEqual(orders, ['0 300000', '0 13', '12 1']);
});

test('a file that changes while it is copied is kept, with exit code 1 and the reason', async () => {
  serve([{}, { version: 'a-2' }]);
  const { code, stderr } = await cp();
  assert.equal(code, 1);
  assert.match(stderr, /data\/f changed while it was copied: the copy may have parts of two versions/);
  assert.ok((await readFile(join(here, 'f'))).equals(CONTENT));
});

test('a connection that keeps breaking ends the copy; the old file and nothing else is left', async () => {
  await writeFile(join(here, 'f'), 'old');
  serve(Array.from({ length: 20 }, () => ({ breakAfter: 0 })));
  const { code, stderr } = await cp();
  assert.equal(code, 1);
  assert.match(stderr, /data\/f: the connection keeps breaking after 0 bytes: /);
  assert.equal(await readFile(join(here, 'f'), 'utf8'), 'old');
  assert.deepEqual(await readdir(here), ['f']);
});

test('an interrupted copy of a file leaves nothing behind', async () => {
  const begun = Promise.withResolvers<void>();
  service.api.front.stream = () => (caller) => {
    caller.write(`${CONTENT.length} a-1\n`);
    caller.once('data', () => {
      caller.write(CONTENT.subarray(0, 200_000));
      begun.resolve();
    });
  };
  const { child, ended } = startBerth(['cp', `${id}:data/f`, join(here, 'f')], { env: service.environment() });
  await begun.promise;
  child.kill('SIGINT');
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr, await readdir(here)], [130, 'berth: stopped by SIGINT\n', []]);
});

test('a file that a command must copy, and a missing local folder, open no transfer', async () => {
  serve([]);
  facts = { ...facts, kind: 'other' };
  assert.notEqual((await cp()).code, 0);
  facts = { ...facts, kind: 'file' };
  const { code, stderr } = await cp(join(here, 'missing/f'));
  assert.equal(code, 1);
  assert.match(stderr, /missing/);
  assert.deepEqual([orders, await readdir(here)], [[], []]);
});
