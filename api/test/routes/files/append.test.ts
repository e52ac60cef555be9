// Uploads at an offset over HTTP, with a real guest daemon behind the host and with a scripted one.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { readFile, stat } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { until, untilTrue } from '../../../../os/test/until.ts';
import type { TestDaemon } from '../../../../guest/test/daemon.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import type { ExecFront } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { serveRealGuest } from '../../world/guests/real-guest.ts';
import { startReplica } from '../../world/replica.ts';

const endings: (() => unknown)[] = [];
let api: TestApi;
let daemon: TestDaemon;
let real: Pick<ExecFront, 'files' | 'stream'>;
let sandboxId: string;
before(async () => {
  api = await startApi({ durable: false });
  daemon = await serveRealGuest({ after: (end) => void endings.push(end as () => unknown) }, api.front);
  real = { files: api.front.files, stream: api.front.stream };
});
after(async () => {
  for (const end of endings) await end();
  await api.close();
});
beforeEach(async () => {
  Object.assign(api.front, real);
  sandboxId = (await api.makeSandbox('ready')).id;
});

const here = (name: string): string => `${daemon.codeFolder}/${name}`;
const at = (name: string, offset: number | string, more = ''): string =>
  `/v1/sandboxes/${sandboxId}/file/content?path=${encodeURIComponent(here(name))}&offset=${offset}${more}`;
const append = (name: string, offset: number | string, rawBody: string | Uint8Array<ArrayBuffer>): Promise<Answer> =>
  api.call('PUT', at(name, offset), { rawBody });
const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');
const sizeOf = async (name: string): Promise<number> => (await stat(here(name)).catch(() => ({ size: -1 }))).size;

async function feed(): Promise<{ size: number }[]> {
  const rows = await api.db.selectFrom('activity').select('details').where('sandbox_id', '=', sandboxId).execute();
  return rows.map(({ details }) => details as { size: number }).toSorted((one, other) => one.size - other.size);
}

/** An upload that promises more bytes than it sends. */
interface Begun {
  request: http.ClientRequest;
  response: Promise<http.IncomingMessage>;
  /** Resolves once the file has at least so many bytes. Rejects if the upload is refused. */
  arrived(bytes: number): Promise<void>;
}

function begin(base: string, name: string, offset: number, sent: Uint8Array, promised: number): Begun {
  const request = http.request(`${base}${at(name, offset)}`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${api.token}`,
      'content-type': 'application/octet-stream',
      'content-length': String(promised),
    },
  });
  const response = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).on('error', reject);
  });
  let early: unknown;
  response.then(
    ({ statusCode }) => (early = new Error(`refused with status ${statusCode}`)),
    (error: unknown) => (early = error),
  );
  request.write(sent);
  return {
    request,
    response,
    arrived: async (bytes) =>
      await untilTrue(`${bytes} bytes arrived`, async () => {
        if ((await sizeOf(name)) >= bytes) return true;
        if (early !== undefined) throw early;
        return false;
      }),
  };
}

test('parts give the exact file; each response has its size and the hash of the part', async () => {
  const content = randomBytes(5_000_000);
  for (const [from, to] of [
    [0, 3_000_000],
    [3_000_000, 3_000_000],
    [3_000_000, 5_000_000],
  ] as const) {
    const part = content.subarray(from, to);
    const answer = await append('new/f', from, part);
    assert.deepEqual([answer.status, answer.body], [200, { path: here('new/f'), size: to, sha256: sha256(part) }]);
  }
  assert.ok((await readFile(here('new/f'))).equals(content));
  const row = (size: number) => ({ path: here('new/f'), size });
  assert.deepEqual(await feed(), [row(3_000_000), row(3_000_000), row(5_000_000)]);
  const created = await api.call('PUT', at('secret', 0, '&mode=600'), { rawBody: 'x' });
  assert.deepEqual([created.status, (await stat(here('secret'))).mode & 0o777], [200, 0o600]);
});

test('a file of another size is 409 with both sizes, and nothing is written', async () => {
  await append('g', 0, 'abc');
  for (const offset of [0, 2, 4]) {
    const { status, body } = await append('g', offset, 'new');
    assert.deepEqual([status, body.error.code], [409, 'file_changed']);
    assert.equal(
      body.error.message,
      `cannot append to "${here('g')}" at byte ${offset}: it has 3 bytes. Continue there, or delete it`,
    );
  }
  assert.equal(await readFile(here('g'), 'utf8'), 'abc');
  const missing = await append('none', 3, 'x');
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'file_not_found']);
  await daemon.exec('ln -s g link');
  const { status, body } = await append('link', 3, 'x');
  assert.deepEqual([status, body.error.code], [400, 'not_a_file']);
  assert.match(body.error.message, /link": this is a directory, link, socket, device or FIFO/);
  assert.equal((await feed()).length, 1);
});

test('an invalid offset, and one with a condition, do not reach the host', async () => {
  let opened = 0;
  api.front.stream = () => {
    opened += 1;
    throw new ExecRefusal('vm_not_running', 'no script');
  };
  for (const offset of ['', '-1', '1.5', 'x', '1e3', '0x1', '9007199254740992', '99999999999999999999']) {
    const { status, body } = await append('f', offset, 'x');
    assert.deepEqual([status, body.error.code, body.error.field], [400, 'invalid_request', 'query.offset'], offset);
  }
  const beyond = await append('f', Number.MAX_SAFE_INTEGER, 'x');
  assert.deepEqual([beyond.status, beyond.body.error.field], [400, 'query.offset']);
  const { status, body } = await api.call('PUT', at('f', 0, '&ifUnchanged=absent'), { rawBody: 'x' });
  assert.deepEqual([status, body.error.field], [400, 'query.ifUnchanged']);
  assert.match(body.error.message, /cannot be combined with offset/);
  assert.equal(opened, 0);
});

test('a sandbox of an earlier release is 409, and a hostile outcome 503', async () => {
  api.front.stream = () => {
    throw new ExecRefusal('file_call_unsupported', 'no such option');
  };
  const earlier = await append('f', 0, 'x');
  assert.deepEqual([earlier.status, earlier.body.error.code], [409, 'file_call_unsupported']);
  for (const line of [
    '{"size":4}\n',
    '{"size":7}\n',
    '{"error":{"code":"file_changed","size":-1}}\n',
    '{"error":{"code":"file_changed","size":"x"}}\n',
    'x'.repeat(10_000),
  ]) {
    api.front.stream = () => (caller: Duplex) => void caller.once('data', () => caller.end(line));
    const { status, body } = await append('f', 10, 'four');
    assert.deepEqual([status, body.error.code], [503, 'sandbox_unreachable'], line.slice(0, 60));
    assert.match(body.error.message, /query the size and continue there/);
  }
  for (const [line, words] of [
    ['{"error":{"code":"file_changed"}}\n', /moved or deleted meanwhile/],
    ['{"error":{"code":"guest_disk_full"}}\n', /the bytes that fit are written/],
  ] as const) {
    api.front.stream = () => (caller: Duplex) => void caller.once('data', () => caller.end(line));
    const { status, body } = await append('f', 10, 'four');
    assert.equal(status, 409);
    assert.match(body.error.message, words);
  }
  assert.deepEqual(await feed(), []);
});

test('of the same append through two replicas exactly one succeeds', async (t) => {
  const replica = await startReplica(api);
  t.after(() => replica.close());
  const content = randomBytes(1_000_000);
  const send = async (base: string): Promise<number> => {
    const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'application/octet-stream' };
    // 429: the other append takes long.
    return await until('the append has its turn', async () => {
      const response = await fetch(`${base}${at('raced', 0)}`, { method: 'PUT', headers, body: content });
      await response.arrayBuffer();
      return response.status === 429 ? null : response.status;
    });
  };
  const statuses = await Promise.all([api.url, replica.url, api.url, replica.url].map(send));
  assert.deepEqual(
    statuses.toSorted((one, other) => one - other),
    [200, 409, 409, 409],
  );
  assert.ok((await readFile(here('raced'))).equals(content));
});

test('an upload that breaks off at one replica continues at the other', async (t) => {
  const replica = await startReplica(api);
  const content = randomBytes(6_000_000);
  const begun = begin(replica.url, 'moved', 0, content.subarray(0, 2_000_000), content.length);
  await begun.arrived(1);
  begun.request.destroy();
  await replica.close();
  const size = await settled('moved');
  assert.ok(size > 0 && size <= 2_000_000);
  assert.equal((await append('moved', size, content.subarray(size))).status, 200);
  assert.ok((await readFile(here('moved'))).equals(content));
  t.diagnostic(`${size} bytes stayed`);
});

/** Size once no other append writes the file. */
async function settled(name: string): Promise<number> {
  return await until(`${name} is settled`, async () => {
    const size = await sizeOf(name);
    return (await append(name, size, '')).status === 200 ? size : null;
  });
}

test('a body that stalls is 408; its bytes stay, and the rest follows', async (t) => {
  const content = randomBytes(400_000);
  const begun = begin(api.url, 'stalled', 0, content.subarray(0, 300_000), content.length);
  t.after(() => begun.request.destroy());
  await begun.arrived(300_000);
  const response = await begun.response;
  const { error } = JSON.parse(Buffer.concat((await response.toArray()) as Buffer[]).toString()) as {
    error: { code: string; message: string };
  };
  assert.deepEqual([response.statusCode, error.code], [408, 'upload_stalled']);
  assert.match(error.message, new RegExp(`stalled for ${FILE_LIMITS.stalledSeconds} s; a part may be written`));
  assert.equal((await append('stalled', 300_000, content.subarray(300_000))).status, 200);
  assert.ok((await readFile(here('stalled'))).equals(content));
});
