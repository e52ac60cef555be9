import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Upstreams, nameServersOf } from '../../../src/network/dns/upstreams.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

const addresses = (text: string) => nameServersOf(text).map((server) => server.address);

test('name servers are parsed as the C library does', () => {
  assert.deepEqual(addresses('# nameserver 1.1.1.1\nsearch example\nnameserver 10.0.0.2\nnameserver\t2001:db8::1\n'), [
    '10.0.0.2',
    '2001:db8::1',
  ]);
  assert.deepEqual(
    addresses('nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n').length,
    3,
  );
  assert.deepEqual(addresses('nameserver fe80::1%eth0\n'), ['fe80::1%eth0']);
  assert.deepEqual(addresses('nameserver none\n'), ['127.0.0.1'], 'without any, the machine itself');
  assert.deepEqual(addresses(''), ['127.0.0.1']);
});

test('a changed file is read again, and the last servers are kept while it is missing', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-upstreams-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'resolv.conf');
  const reported: unknown[] = [];
  const upstreams = new Upstreams({ file }, (error) => reported.push(error));
  const becomes = async (address: string | undefined) => {
    const deadline = AbortSignal.timeout(deadlineOf(10_000));
    while (upstreams.servers()[0]?.address !== address) await sleep(50, undefined, { signal: deadline });
  };
  assert.deepEqual(upstreams.servers(), []);
  assert.equal(reported.length, 1);
  writeFileSync(file, 'nameserver 10.0.0.1\n');
  await becomes('10.0.0.1');
  writeFileSync(`${file}.new`, 'nameserver 10.0.0.2\n');
  renameSync(`${file}.new`, file);
  await becomes('10.0.0.2');
  rmSync(file);
  const deadline = AbortSignal.timeout(deadlineOf(10_000));
  while (reported.length < 2) {
    assert.equal(upstreams.servers()[0]?.address, '10.0.0.2');
    await sleep(50, undefined, { signal: deadline });
  }
});
